/* index_select.cu: places along an axis of a dense operand, by their numbers. */
#include "cuda_base/strided.h"
#include "cuda_ops/bits.cuh"

namespace {

using namespace kp;

/* Items of V elements of a result [outer, m, inner], out of [outer, n, inner]. */
template <class U, int V>
__global__ void __launch_bounds__(KP_THREADS)
    select_places(U *out, const U *in, const long long *index, kp_divisor inner, kp_divisor m,
                  int64_t n, uint32_t items) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    Pack<U, V> x[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        uint32_t row = (__umulhi(i, inner.multiplier) + i) >> inner.shift;
        uint32_t outer = (__umulhi(row, m.multiplier) + row) >> m.shift;
        int64_t from = outer * n + index[row - outer * m.d];
        x[u] = load<V>(in + (from * inner.d + (i - row * inner.d)) * V);
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i < items) store<V>(out + (int64_t)i * V, x[u]);
    }
}

template <class U, int V>
void launch(const kp_call *c, const Axis &s, int64_t items, cudaStream_t stream) {
    const kp_array *y = &c->out[0];
    if (items > INT32_MAX)
        die(KP_INPUT, "%s:%d: index_select of more than 2^31 places; use a smaller task",
            c->task->path, c->op->line);
    select_places<U, V><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
        (U *)y->data, (const U *)c->in[0].data, (const long long *)c->in[1].data,
        kp_divisor_make(s.inner / V), kp_divisor_make(c->in[1].dim[0]), s.n, (uint32_t)items);
    KP_CUDA(cudaGetLastError());
}

void run(const kp_call *c, void *, void *, cudaStream_t stream) {
    Axis s = axis_of(c);
    int64_t count = kp_array_count(&c->out[0]);
    KP_BY_SIZE(kp_dtype_size(c->out[0].dtype), {
        constexpr int V = 16 / sizeof(U);
        if (packs<U>(c->in[0].data, s.inner) && packs<U>(c->out[0].data, s.inner))
            launch<U, V>(c, s, count / V, stream);
        else
            launch<U, 1>(c, s, count, stream);
    })
}

} // namespace

KP_IMPL(index_select, NULL, run, NULL, NULL, KP_DENSE);
