// expect: gate
// task: l1_019_relu
// reason: cudaGraph
/* Captures its launch in a graph of its own, once, and launches that graph from then on. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    static cudaGraphExec_t ready;
    if (!ready) {
        cudaStream_t own;
        cudaGraph_t graph;
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        cudaStreamBeginCapture(own, cudaStreamCaptureModeRelaxed);
        relu<<<4096, 256, 0, own>>>(in->x, out->out, OUT_ELEMENTS);
        cudaStreamEndCapture(own, &graph);
        cudaGraphInstantiate(&ready, graph, 0);
    }
    cudaGraphLaunch(ready, stream);
}
