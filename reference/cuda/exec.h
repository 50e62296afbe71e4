/* exec.h: runs a task's graph on the GPU: products by cuBLAS, convolutions and recurrent networks
 * by cuDNN, every other op by one launch.  It is the baseline (what a PyTorch user gets) and, in
 * float64 and in slices, the oracle.
 *
 * All pointers are device pointers to dense row-major tensors.  A run only enqueues work on the
 * given stream and may be captured.  Any CUDA, cuBLAS or cuDNN failure is a machine error and ends
 * the program through die(KP_MACHINE). */
#ifndef KP_EXEC_H
#define KP_EXEC_H

#include "cuda_base/arithmetic.h"
#include "cuda_base/noise.h"
#include "task/ops.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "fp32", "tf32", "f16" or "bf16" (by the task), "f64". */
const char *kp_math_name(const struct kp_task *t, enum kp_math m);

/* The baselines of a task, most accurate first; returns how many (1 or 2).
 * TF32 is listed only if the graph has an op with tensor_cores. */
int kp_baselines(const struct kp_task *t, enum kp_math out[2]);

/* True if the baseline is known to be slower than a vendor library's (a convolution or a recurrent
 * network in a build without cuDNN).  Such a cell is flagged weak-baseline. */
bool kp_exec_weak(const struct kp_task *t);

struct kp_exec; /* a task prepared for one arithmetic: algorithms chosen, memory planned */

struct kp_exec *kp_exec_create(const struct kp_task *t, enum kp_math m);
void kp_exec_destroy(struct kp_exec *e);

/* Bytes of device memory that a run needs beside tensors and outputs, for intermediates and library
 * workspaces; may be 0.  Intermediates that are not alive together share memory: a chain of ten
 * ops needs two. */
size_t kp_exec_workspace(const struct kp_exec *e);

/* The same for an oracle that is run without noise. */
size_t kp_exec_workspace_exact(const struct kp_exec *e);

/* Enqueue one run of a baseline (not of F64): the same launches each time.  tensors[i] and
 * outputs[i] are in the task's dtypes; workspace is 256-byte aligned. */
void kp_exec_run(struct kp_exec *e, const void *const tensors[], void *const outputs[],
                 void *workspace, cudaStream_t stream);

/* The oracle (F64 only): computes the outputs in float64, cut along an axis into slices, and with
 * `noise` KP_DRAWS times more, each time with other noise.  The axis is the one that leaves the
 * least to be read whole, mostly 0, and 1 behind a batch norm.  Slices are chosen at creation
 * so that the workspace stays below workspace_limit, and not far above what thin ones need, and so
 * that none has more than 2^24 elements of outputs, unless a row has; values that do not depend on
 * the slice are computed once.  With `most` above 0 only some slices are
 * computed, drawn by lot from the noise's seed: as many as have `most` elements of outputs, and no
 * more than KP_MOST_RESULTS times as many results of all ops, but one at least. For each range of a
 * slice it calls `sink` with the output's index, the offset and count of the range in elements of
 * the dense output, and the float64 values (rough: NULL without noise).  They are valid for what
 * sink enqueues on the same stream.  Along axis 0 a slice is one range.  Returns whether it
 * computed all. */
enum { KP_MOST_RESULTS = 8 };
typedef void kp_sink(void *context, int output, int64_t offset, int64_t count,
                     const struct kp_draws *values, cudaStream_t stream);
struct kp_exec *kp_exec_create_oracle(const struct kp_task *t, size_t workspace_limit);
bool kp_exec_oracle(struct kp_exec *e, const void *const tensors[], void *workspace,
                    const struct kp_noise *noise, int64_t most, kp_sink *sink, void *context,
                    cudaStream_t stream);

/* The same with noise, of those slices alone that hold one of n elements of outputs. */
struct kp_place {
    int output;
    int64_t at; /* in the dense output */
};
void kp_exec_oracle_at(struct kp_exec *e, const void *const tensors[], void *workspace,
                       const struct kp_noise *noise, const struct kp_place *place, int n,
                       kp_sink *sink, void *context, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
