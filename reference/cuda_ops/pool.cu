/* pool.cu: max_pool2d, one thread for each output.  Padding counts as -inf; a NaN
 * in the window wins. */
#include "cuda_base/device.cuh"

namespace {

using namespace kp;

enum { BLOCK = 256 };

struct Window {
    int h, w, out_h, out_w; /* of one plane */
    int kernel[2], stride[2], pad[2], dilation[2];
};

/* I: unsigned where it can count the outputs, else 64-bit. */
template <class T, class I>
__global__ void __launch_bounds__(BLOCK)
    pool_max(const T *__restrict__ in, T *__restrict__ out, I count, Window g) {
    I id = (I)blockIdx.x * BLOCK + threadIdx.x;
    if (id >= count) return;
    I row = id / (I)g.out_w, plane = row / (I)g.out_h;
    int x0 = (int)(id - row * g.out_w) * g.stride[1] - g.pad[1];
    int y0 = (int)(row - plane * g.out_h) * g.stride[0] - g.pad[0];
    in += (int64_t)plane * g.h * g.w;
    Acc<T> max = -INFINITY;
    for (int i = 0; i < g.kernel[0]; i++) {
        int y = y0 + i * g.dilation[0];
        if (y < 0 || y >= g.h) continue;
        for (int j = 0; j < g.kernel[1]; j++) {
            int x = x0 + j * g.dilation[1];
            if (x < 0 || x >= g.w) continue;
            Acc<T> v = widen(in[(int64_t)y * g.w + x]);
            if (v > max || isnan(v)) max = v;
        }
    }
    out[id] = narrow<T>(max);
}

/* Launch with the smallest index type that can count the outputs. */
template <class T>
void launch(const void *in, void *out, int64_t count, const Window &g, cudaStream_t stream) {
    unsigned blocks = (unsigned)((count + BLOCK - 1) / BLOCK);
    if (count <= INT32_MAX)
        pool_max<T, unsigned>
            <<<blocks, BLOCK, 0, stream>>>((const T *)in, (T *)out, (unsigned)count, g);
    else
        pool_max<T, uint64_t>
            <<<blocks, BLOCK, 0, stream>>>((const T *)in, (T *)out, (uint64_t)count, g);
    KP_CUDA(cudaGetLastError());
}

/* A list of two attributes, as ints. */
void pair(const struct kp_op *op, const char *key, int64_t otherwise, int *out) {
    int64_t v[2];
    op_list(op, key, 2, otherwise, v);
    out[0] = (int)v[0];
    out[1] = (int)v[1];
}

/* Enqueue the pool of the last two axes. */
void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    const struct kp_array *x = &c->in[0], *y = &c->out[0];
    int64_t count = 1;
    Window g;
    for (int i = 0; i < y->n; i++) count *= y->dim[i];
    g.h = (int)x->dim[x->n - 2];
    g.w = (int)x->dim[x->n - 1];
    g.out_h = (int)y->dim[y->n - 2];
    g.out_w = (int)y->dim[y->n - 1];
    pair(c->op, "kernel_size", 1, g.kernel);
    memcpy(g.stride, g.kernel, sizeof g.stride); /* stride defaults to the kernel's size */
    if (op_attr(c->op, "stride")) pair(c->op, "stride", 1, g.stride);
    pair(c->op, "padding", 0, g.pad);
    pair(c->op, "dilation", 1, g.dilation);
    KP_BY_TYPE(x->dtype, launch<T>(x->data, y->data, count, g, stream))
}

} // namespace

KP_IMPL(max_pool2d, NULL, run, NULL, NULL, KP_DENSE);
