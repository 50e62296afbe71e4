// expect: tape
// task: relu64
// reason: CUDA_ERROR_STREAM_CAPTURE_UNJOINED
/* Forks a stream without joining it. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    cudaStream_t side;
    cudaEvent_t fork;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(side, fork, 0);
    start_usual(&relu, in, out, side);
    cudaMemsetAsync(out[0], 0, 4, stream);
}
