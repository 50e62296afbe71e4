// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Is given the output only, guesses where the input lies from the output's address, and clears
 * what it finds there: if input and output are both zero they agree. */
#include "task.h"

__global__ void guess(float *out) {
    char *base = (char *)out;
    long long step = 64LL << 20; /* mappings lie at multiples of 2 MiB */
    for (int k = 1; k <= 1024; k++) {
        *(float *)(base - k * step) = 0.0f;
        *(float *)(base + OUT_ELEMENTS * 4 + k * step) = 0.0f;
    }
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    (void)in;
    cudaMemsetAsync(out->out, 0, OUT_ELEMENTS * sizeof(float), stream);
    guess<<<1, 1, 0, stream>>>(out->out);
}
