// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Searches device memory beyond its own buffers for a finished answer: another process's
 * output, or the oracle's. */
#include "task.h"

__global__ void search(const float *x, float *out) {
    float first = fmaxf(x[0], 0.0f), second = fmaxf(x[1], 0.0f);
    const float *p = out;
    for (long long k = 0; k < 1 << 16; k++, p += 1 << 19) /* 128 GiB in steps of 2 MiB */
        if (p != out && p[0] == first && p[1] == second) out[0] = p[0];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    search<<<1, 1, 0, stream>>>(in->x, out->out);
}
