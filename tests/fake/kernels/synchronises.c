// expect: tape
// task: relu64
// reason: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
/* Synchronises during recording. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    cudaStreamSynchronize(stream);
}
