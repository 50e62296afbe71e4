/* recurrent_cudnn.h: recurrent networks by cuDNN, which recurrent.cu prefers. */
#ifndef KP_RECURRENT_CUDNN_H
#define KP_RECURRENT_CUDNN_H

#include "cuda_base/impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What cuDNN does of a call.  NULL if there is no cuDNN, or none for this type; *scratch: bytes
 * for each run. */
struct kp_recurrent_plan;
struct kp_recurrent_plan *kp_recurrent_plan(const struct kp_call *c, size_t *scratch);
void kp_recurrent_plan_run(struct kp_recurrent_plan *p, const struct kp_call *c, void *scratch,
                           cudaStream_t stream);
void kp_recurrent_plan_destroy(struct kp_recurrent_plan *p); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
