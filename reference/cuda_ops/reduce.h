/* reduce.h: the reductions that other ops are made of. */
#ifndef KP_REDUCE_H
#define KP_REDUCE_H

#include "cuda_base/impl.h"

KP_IMPL_OF(mean);

#endif
