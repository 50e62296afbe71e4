/* scan.cu: running sums and products along any axis of a dense tensor.
 *
 * One block walks a contiguous row, tile by tile: each thread combines its pack, then warps and
 * the block scan those results, while the next tile is being loaded.  Along other axes a thread
 * walks a column, 16 elements at a time, so that rounding errors grow with n / 16 + 16 steps and
 * not with n. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"

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

/* The axis that is scanned; too many rows are an error. */
Axis scanned(const struct kp_call *c) {
    Axis s = axis_of(c);
    if (s.outer > INT32_MAX || s.outer * s.inner / BLOCK >= INT32_MAX)
        die(KP_INPUT, "%s: more than 2^31 rows; use a smaller task", c->op->def->name);
    return s;
}

/* Enqueue the scan. */
template <class Op> void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    const struct kp_array *x = &c->in[0];
    Axis s = scanned(c);
    KP_BY_TYPE(x->dtype, launch<Op, T>(x->data, c->out[0].data, s.outer, s.n, s.inner, stream))
}

/* ---- the same with noise ---- */

/* Place i gets the noise of a sum of i + 1 terms, whose squares add up to q there; without q, that
 * of as many factors, each of which adds a rounding.  Carries of tiles of CHUNK terms are added one
 * after another to the whole sum so far: that is the noise of chains of terms / sqrt(CHUNK). */
__global__ void __launch_bounds__(BLOCK)
    add_noise(double *y, const double *q, int64_t count, Axis s, kp_noise noise) {
    int64_t at = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (at >= count) return;
    double terms = (double)(at / s.inner % s.n + 1), size = noise_size(y[at]);
    int chain = (int)fmax((double)KP_SUM_CHAIN, terms / sqrt((double)CHUNK));
    double var = q ? noise_of_sum(y[at], q[at], terms, chain) : terms * size * size;
    y[at] += noise.sum * sqrt(var) * noise_even(noise.seed, at);
}

/* Launch it for all elements. */
void launch_noise(double *y, const double *q, const Axis &s, const struct kp_noise *noise,
                  cudaStream_t stream) {
    int64_t count = s.outer * s.n * s.inner, blocks = (count + BLOCK - 1) / BLOCK;
    if (blocks > INT32_MAX) die(KP_INPUT, "scan: more than 2^39 elements; use a smaller task");
    add_noise<<<(unsigned)blocks, BLOCK, 0, stream>>>(y, q, count, s, *noise);
    KP_CUDA(cudaGetLastError());
}

/* cumsum: room for the sums of squares. */
void *prepare(const struct kp_call *c, size_t *scratch) {
    *scratch = c->math == KP_MATH_F64 ? kp_array_bytes(&c->out[0]) : 0;
    return NULL;
}

/* cumsum: the squares stand where the result goes until they are summed. */
void rough_sums(const struct kp_call *c, void *, void *scratch, cudaStream_t stream) {
    Axis s = scanned(c);
    double *x = (double *)c->in[0].data, *y = (double *)c->out[0].data, *q = (double *)scratch;
    kp_noise_square(x, y, s.outer * s.n * s.inner, stream);
    launch<Plus, double>(y, q, s.outer, s.n, s.inner, stream);
    launch<Plus, double>(x, y, s.outer, s.n, s.inner, stream);
    launch_noise(y, q, s, c->noise, stream);
}

/* cumprod */
void rough_products(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    Axis s = scanned(c);
    double *y = (double *)c->out[0].data;
    launch<Times, double>(c->in[0].data, y, s.outer, s.n, s.inner, stream);
    launch_noise(y, NULL, s, c->noise, stream);
}

} // namespace

KP_IMPL(cumsum, prepare, run<Plus>, rough_sums, NULL, KP_DENSE);
KP_IMPL(cumprod, NULL, run<Times>, rough_products, NULL, KP_DENSE);
