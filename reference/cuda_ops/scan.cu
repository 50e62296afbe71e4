/* scan.cu: running sums and products along any axis of a dense tensor.
 *
 * One block walks a contiguous row, tile by tile: each thread combines its pack, then warps and
 * the block scan those results, while the next tile is being loaded.  Along other axes a thread
 * walks a column, 16 elements at a time, so that rounding errors grow with n / 16 + 16 steps and
 * not with n. */
#include "cuda_base/device.cuh"

namespace {

using namespace kp;

enum { BLOCK = 256, WARPS = BLOCK / 32, CHUNK = 16 };

/* What a scan combines with: an associative function, and the value that changes nothing. */
struct Plus {
    template <class A> static __device__ A of(A a, A b) { return a + b; }
    template <class A> static __device__ A none() { return A(0); }
};
struct Times {
    template <class A> static __device__ A of(A a, A b) { return a * b; }
    template <class A> static __device__ A none() { return A(1); }
};

/* The lower lanes combined (this one not), and *total of the whole warp. */
template <class Op, class A> __device__ inline A warp_exclusive(A x, A *total) {
    int lane = threadIdx.x % 32;
    A sum = x;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        A below = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d) sum = Op::of(below, sum);
    }
    *total = __shfl_sync(0xffffffffu, sum, 31);
    A before = __shfl_up_sync(0xffffffffu, sum, 1);
    return lane ? before : Op::template none<A>();
}

/* One block a row. */
template <class Op, class T, int V>
__global__ void __launch_bounds__(BLOCK)
    scan_rows(const T *__restrict__ in, T *__restrict__ out, int64_t packs) {
    using A = Acc<T>;
    __shared__ A sums[2][WARPS]; /* two, so that one barrier a tile is enough */
    int warp = threadIdx.x / 32, turn = 0;
    const A none = Op::template none<A>();
    A carry = none;
    Pack<T, V> p = {}, next = {};

    in += blockIdx.x * packs * V;
    out += blockIdx.x * packs * V;
    if (threadIdx.x < packs) next = load<V>(in + threadIdx.x * V);
    for (int64_t i = threadIdx.x; i - threadIdx.x < packs; i += BLOCK, turn ^= 1) {
        A x[V], total, sum = none;
        p = next;
        if (i + BLOCK < packs) next = load<V>(in + (i + BLOCK) * V);
#pragma unroll
        for (int e = 0; e < V; e++) x[e] = sum = Op::of(sum, i < packs ? widen(p.v[e]) : none);
        A before = warp_exclusive<Op>(sum, &total);
        if (threadIdx.x % 32 == 0) sums[turn][warp] = total;
        __syncthreads();
        A lower = none, all = none;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (w == warp) lower = all;
            all = Op::of(all, sums[turn][w]);
        }
        if (i < packs) {
#pragma unroll
            for (int e = 0; e < V; e++)
                p.v[e] = narrow<T>(Op::of(carry, Op::of(lower, Op::of(before, x[e]))));
            store<V>(out + i * V, p);
        }
        carry = Op::of(carry, all);
    }
}

/* One thread a column. */
template <class Op, class T>
__global__ void __launch_bounds__(BLOCK) scan_columns(const T *__restrict__ in, T *__restrict__ out,
                                                      int64_t columns, int64_t n, int64_t inner) {
    using A = Acc<T>;
    int64_t column = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (column >= columns) return;
    int64_t base = column / inner * n * inner + column % inner;
    const A none = Op::template none<A>();
    A carry = none;
    for (int64_t i = 0; i < n; i += CHUNK) {
        int left = (int)min((int64_t)CHUNK, n - i);
        A x[CHUNK], sum = none;
#pragma unroll
        for (int u = 0; u < CHUNK; u++) x[u] = u < left ? widen(in[base + (i + u) * inner]) : none;
#pragma unroll
        for (int u = 0; u < CHUNK; u++) {
            sum = Op::of(sum, x[u]);
            if (u < left) out[base + (i + u) * inner] = narrow<T>(Op::of(carry, sum));
        }
        carry = Op::of(carry, sum);
    }
}

/* The whole scan of [outer, n, inner] along its middle axis. */
template <class Op, class T>
void launch(const void *in_, void *out_, int64_t outer, int64_t n, int64_t inner,
            cudaStream_t stream) {
    const T *in = (const T *)in_;
    T *out = (T *)out_;
    constexpr int V = kPack<T>;
    if (inner == 1 && packs<T>(in, n) && packs<T>(out, n))
        scan_rows<Op, T, V><<<(unsigned)outer, BLOCK, 0, stream>>>(in, out, n / V);
    else if (inner == 1)
        scan_rows<Op, T, 1><<<(unsigned)outer, BLOCK, 0, stream>>>(in, out, n);
    else
        scan_columns<Op, T><<<(unsigned)((outer * inner + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(
            in, out, outer * inner, n, inner);
    KP_CUDA(cudaGetLastError());
}

/* Split the shape at the axis and launch. */
template <class Op> void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    const struct kp_array *x = &c->in[0];
    int dim = op_axis(c->op, "dim", x->n);
    if (dim < 0) dim = x->n - 1;
    int64_t outer = 1, inner = 1, n = x->n ? x->dim[dim] : 1;
    for (int i = 0; i < dim; i++) outer *= x->dim[i];
    for (int i = dim + 1; i < x->n; i++) inner *= x->dim[i];
    if (outer > INT32_MAX || outer * inner / BLOCK >= INT32_MAX)
        die(KP_INPUT, "%s: more than 2^31 rows; use a smaller task", c->op->def->name);
    KP_BY_TYPE(x->dtype, launch<Op, T>(x->data, c->out[0].data, outer, n, inner, stream))
}

} // namespace

KP_IMPL(cumsum, NULL, run<Plus>, NULL, NULL, KP_DENSE);
KP_IMPL(cumprod, NULL, run<Times>, NULL, NULL, KP_DENSE);
