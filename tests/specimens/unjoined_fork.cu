// expect: tape
// task: l1_019_relu
// reason: STREAM_CAPTURE_UNJOINED
/* Forks a second stream from the given one, does half of the work there, and does not
 * join it. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const long long half = OUT_ELEMENTS / 2;
    cudaStream_t side;
    cudaEvent_t fork;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(side, fork, 0);
    relu<<<2048, 256, 0, side>>>(in->x, out->out, half);
    relu<<<2048, 256, 0, stream>>>(in->x + half, out->out + half, OUT_ELEMENTS - half);
}
