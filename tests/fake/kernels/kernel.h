/* kernel.h: what the kernels for the pretend GPU share.  Each is compiled to a shared object
 * that is library and cubin at once.  Like tests/specimens each opens with the verdict that
 * it should get, the task it is for, and text that the reason must hold. */
#ifndef KP_FAKE_KERNEL_H
#define KP_FAKE_KERNEL_H

#include "../fake.h"

#include <cuda_runtime_api.h>

#ifndef COUNT
#define COUNT 4096 /* elements of the output; the test says how many */
#endif

#define UNUSED __attribute__((unused))

/* The contract: tensors and outputs as in the task. */
void launch(const float *const in[], float *const out[], void *scratch, cudaStream_t stream);
size_t scratch_bytes(void);
#define LAUNCH                                                                                   \
    void launch(UNUSED const float *const in[], UNUSED float *const out[], UNUSED void *scratch, \
                UNUSED cudaStream_t stream)

static inline void start(const struct CUfunc_st *f, void **args, cudaStream_t stream) {
    cudaLaunchKernel(f, (dim3){1, 1, 1}, (dim3){32, 1, 1}, args, 0, stream);
}

/* The usual one: the first tensor and the output. */
static inline void start_usual(const struct CUfunc_st *f, const float *const in[],
                               float *const out[], cudaStream_t stream) {
    void *args[] = {(void *)&in[0], (void *)&out[0]};
    start(f, args, stream);
}

static inline void relu_of(const float *x, float *out, int n) {
    for (int i = 0; i < n; i++) out[i] = x[i] > 0 ? x[i] : 0;
}

#endif
