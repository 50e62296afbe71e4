/* exec.h: any task's graph on the GPU, by cuBLAS, cuDNN and one honest launch
 * for each remaining op.  It serves twice: as the baselines (what a PyTorch user
 * gets) and, in float64 and in slices, as the oracle.
 *
 * All pointers are device pointers to dense row-major tensors.  Work is only
 * enqueued on the given stream and may be captured.  Any CUDA, cuBLAS or cuDNN
 * failure is a machine error and ends the program through die(KP_MACHINE). */
#ifndef KP_EXEC_H
#define KP_EXEC_H

#include <cuda_runtime_api.h>
#include "task/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic of a run.  FP32: no tensor cores anywhere.  TF32: cuBLAS and cuDNN
 * may use TF32 (storage stays f32).  HALF: the task's own 16-bit type with fp32
 * accumulation.  F64: everything in double, whatever the task's types. */
enum kp_math { KP_MATH_FP32, KP_MATH_TF32, KP_MATH_HALF, KP_MATH_F64 };

/* "fp32", "tf32", "f16" or "bf16" (by the task), "f64". */
const char *kp_math_name(const struct kp_task *t, enum kp_math m);

/* The baselines of a task, most accurate first; returns how many (1 or 2).
 * TF32 is listed only if the graph has an op with tensor_cores. */
int kp_baselines(const struct kp_task *t, enum kp_math out[2]);

/* True if the baseline is known to be weaker than a vendor library's (a
 * convolution without cuDNN): such a cell is flagged weak-baseline. */
bool kp_exec_weak(const struct kp_task *t);

struct kp_exec; /* a task prepared for one arithmetic: algorithms chosen, memory planned */

struct kp_exec *kp_exec_create(const struct kp_task *t, enum kp_math m);
void kp_exec_destroy(struct kp_exec *e);

/* Device memory that a run needs beside tensors and outputs: intermediates
 * (freed as soon as they are dead, so that a chain of ten ops needs two) and
 * library workspaces.  Bytes; may be 0. */
size_t kp_exec_workspace(const struct kp_exec *e);

/* Enqueue one run.  tensors[i]: task tensor i, in the task's dtype.  outputs[i]:
 * output i, in the task's dtype (FP32, TF32, HALF).  workspace: 256-byte aligned.
 * Enqueues the same launches each time; capturable; not for F64. */
void kp_exec_run(struct kp_exec *e, const void *const tensors[], void *const outputs[],
                 void *workspace, cudaStream_t stream);

/* The oracle (F64 only).  Computes every output in float64, cut along its axis 0
 * into slices chosen at creation so that the workspace stays under the limit
 * given to kp_exec_create_oracle; values that do not depend on the slice are
 * computed once.  For each slice calls `sink` with the output index, the offset
 * and count of the slice in elements of the dense output, and the float64 values
 * (valid until sink's own stream work ends: sink enqueues on the same stream). */
typedef void kp_sink(void *context, int output, int64_t offset, int64_t count, const double *values,
                     cudaStream_t stream);
struct kp_exec *kp_exec_create_oracle(const struct kp_task *t, size_t workspace_limit);
void kp_exec_oracle(struct kp_exec *e, const void *const tensors[], void *workspace, kp_sink *sink,
                    void *context, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
