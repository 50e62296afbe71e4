/* copy.h: kp_copy. */
#ifndef KP_COPY_H
#define KP_COPY_H

#include "cuda_base/array.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueue a copy of a strided array into a dense one of the same shape.  The two may have
 * different dtypes: elements are converted. */
void kp_copy(const struct kp_array *from, const struct kp_array *to, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
