// expect: ok
// task: l1_019_relu
/* Twenty instances of a template in an anonymous namespace, one after another, each doing a
 * twentieth. */
#include "task.h"

namespace {

template <int PART> __global__ void relu_part(const float *x, float *out) {
    const long long from = OUT_ELEMENTS / 20 * PART;
    const long long to = PART == 19 ? OUT_ELEMENTS : OUT_ELEMENTS / 20 * (PART + 1);
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = from + blockIdx.x * (long long)blockDim.x + threadIdx.x; i < to; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

template <int PART> void enqueue(const float *x, float *out, cudaStream_t stream) {
    if constexpr (PART > 0) enqueue<PART - 1>(x, out, stream);
    relu_part<PART><<<1024, 256, 0, stream>>>(x, out);
}

} // namespace

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    enqueue<19>(in->x, out->out, stream);
}
