/* norm_columns.h: batch_norm of [N, C], whose channels are columns. */
#ifndef KP_NORM_COLUMNS_H
#define KP_NORM_COLUMNS_H

#include "cuda_base/impl.h"

/* Bytes of scratch that it needs. */
size_t kp_norm_columns_bytes(const struct kp_call *c);

/* Enqueue it: axes after the second have size 1. */
void kp_norm_columns(const struct kp_call *c, void *scratch, cudaStream_t stream);

#endif
