/* index.h: the CUDA implementation of each op. */
#ifndef KP_INDEX_H
#define KP_INDEX_H

#include "cuda_base/impl.h"

/* The implementation of the op with this id; NULL for a view, which needs none. */
const struct kp_impl *kp_impl_of(int id);

#endif
