// expect: wrong
// task: l1_095_cross_entropy_loss
// reason: bytes outside the bounds of out
/* Correct, but also writes the element after the last one, which lies in what an output of 4 bytes
 * is rounded up to. */
#include "task.h"
#include "reduce.cuh"

constexpr int ROWS = PREDICTIONS_DIM0, CLASSES = PREDICTIONS_DIM1;
constexpr int THREADS = 256;

__global__ void rows(const float *x, const long long *target, float *loss) {
    const float *row = x + (long long)blockIdx.x * CLASSES;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < CLASSES; c += THREADS) top = fmaxf(top, row[c]);
    top = block_reduce<THREADS>(top, Max());
    for (int c = threadIdx.x; c < CLASSES; c += THREADS) sum += expf(row[c] - top);
    sum = block_reduce<THREADS>(sum, Add());
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + (top - row[target[blockIdx.x]]);
}

__global__ void join(const float *loss, float *out) {
    double sum = 0;
    for (int i = threadIdx.x; i < ROWS; i += THREADS) sum += loss[i];
    sum = block_reduce<THREADS>(sum, Add());
    if (threadIdx.x == 0) out[0] = (float)(sum / ROWS);
}

__global__ void one_more(float *out) {
    out[OUT_ELEMENTS] = 0.0f;
}

extern "C" size_t scratch_bytes(void) {
    return ROWS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    rows<<<ROWS, THREADS, 0, stream>>>(in->predictions, in->targets, (float *)scratch);
    join<<<1, THREADS, 0, stream>>>((const float *)scratch, out->out);
    one_more<<<1, 1, 0, stream>>>(out->out);
}
