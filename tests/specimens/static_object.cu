// expect: gate
// task: l1_019_relu
// reason: runs when the object is loaded
/* Has a global object whose constructor runs when it is loaded. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

struct Grid {
    int blocks;
    Grid() { cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0); }
};
static Grid grid;

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<grid.blocks * 8, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
