// expect: tape
// task: l1_019_relu
// reason: an access policy window
/* Correct, but asks that its input stay in the persisting part of L2, which outlives the launch
 * and survives a flush. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaLaunchAttribute window = {};
    window.id = cudaLaunchAttributeAccessPolicyWindow;
    window.val.accessPolicyWindow.base_ptr = const_cast<float *>(in->x);
    window.val.accessPolicyWindow.num_bytes = 16 << 20;
    window.val.accessPolicyWindow.hitRatio = 1.0f;
    window.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaLaunchConfig_t config = {};
    config.gridDim = 4096;
    config.blockDim = 256;
    config.stream = stream;
    config.attrs = &window;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, relu, in->x, out->out, (long long)OUT_ELEMENTS);
}
