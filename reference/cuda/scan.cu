/* scan.cu: cumsum along any axis of a dense tensor.
 *
 * A contiguous row is walked once by one block, tile by tile: each thread adds up
 * its pack, warps and then the block scan those sums, and the next tile is
 * already on its way.  Other axes: a thread walks a column, 16 elements at a
 * time, so that rounding errors grow with n / 16 + 16 steps, not n. */
#include "cuda/device.cuh"

namespace {

using namespace kp;

enum { BLOCK = 256, WARPS = BLOCK / 32, CHUNK = 16 };

/* Sum over the lower lanes (exclusive), and *total over the whole warp. */
template <class A> __device__ inline A warp_exclusive(A x, A *total) {
    int lane = threadIdx.x % 32;
    A sum = x;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        A below = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d) sum = below + sum;
    }
    *total = __shfl_sync(0xffffffffu, sum, 31);
    A before = __shfl_up_sync(0xffffffffu, sum, 1);
    return lane ? before : A(0);
}

template <class T, int V>
__global__ void __launch_bounds__(BLOCK)
    scan_rows(const T *__restrict__ in, T *__restrict__ out, int64_t packs) {
    using A = Acc<T>;
    __shared__ A sums[2][WARPS]; /* two, so that one barrier a tile is enough */
    int warp = threadIdx.x / 32, turn = 0;
    A carry = 0;
    Pack<T, V> p = {}, next = {};

    in += blockIdx.x * packs * V;
    out += blockIdx.x * packs * V;
    if (threadIdx.x < packs) next = load<V>(in + threadIdx.x * V);
    for (int64_t i = threadIdx.x; i - threadIdx.x < packs; i += BLOCK, turn ^= 1) {
        A x[V], total, sum = 0;
        p = next;
        if (i + BLOCK < packs) next = load<V>(in + (i + BLOCK) * V);
#pragma unroll
        for (int e = 0; e < V; e++) x[e] = sum += i < packs ? widen(p.v[e]) : A(0);
        A before = warp_exclusive(sum, &total);
        if (threadIdx.x % 32 == 0) sums[turn][warp] = total;
        __syncthreads();
        A lower = 0, all = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (w == warp) lower = all;
            all += sums[turn][w];
        }
        if (i < packs) {
#pragma unroll
            for (int e = 0; e < V; e++) p.v[e] = narrow<T>(carry + (lower + (before + x[e])));
            store<V>(out + i * V, p);
        }
        carry += all;
    }
}

template <class T>
__global__ void __launch_bounds__(BLOCK) scan_columns(const T *__restrict__ in, T *__restrict__ out,
                                                      int64_t columns, int64_t n, int64_t inner) {
    using A = Acc<T>;
    int64_t column = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (column >= columns) return;
    int64_t base = column / inner * n * inner + column % inner;
    A carry = 0;
    for (int64_t i = 0; i < n; i += CHUNK) {
        int left = (int)min((int64_t)CHUNK, n - i);
        A x[CHUNK], sum = 0;
#pragma unroll
        for (int u = 0; u < CHUNK; u++) x[u] = u < left ? widen(in[base + (i + u) * inner]) : A(0);
#pragma unroll
        for (int u = 0; u < CHUNK; u++) {
            sum += x[u];
            if (u < left) out[base + (i + u) * inner] = narrow<T>(carry + sum);
        }
        carry += sum;
    }
}

template <class T>
void launch(const void *in_, void *out_, int64_t outer, int64_t n, int64_t inner,
            cudaStream_t stream) {
    const T *in = (const T *)in_;
    T *out = (T *)out_;
    constexpr int V = kPack<T>;
    if (inner == 1 && packs<T>(in, n) && packs<T>(out, n))
        scan_rows<T, V><<<(unsigned)outer, BLOCK, 0, stream>>>(in, out, n / V);
    else if (inner == 1)
        scan_rows<T, 1><<<(unsigned)outer, BLOCK, 0, stream>>>(in, out, n);
    else
        scan_columns<T><<<(unsigned)((outer * inner + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(
            in, out, outer * inner, n, inner);
    KP_CUDA(cudaGetLastError());
}

/* Split the shape at the axis and launch. */
void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    const struct kp_array *x = &c->in[0];
    int dim = op_axis(c->op, "dim", x->n);
    if (dim < 0) dim = x->n - 1;
    int64_t outer = 1, inner = 1, n = x->n ? x->dim[dim] : 1;
    for (int i = 0; i < dim; i++) outer *= x->dim[i];
    for (int i = dim + 1; i < x->n; i++) inner *= x->dim[i];
    if (outer > INT32_MAX || outer * inner / BLOCK >= INT32_MAX)
        die(KP_INPUT, "cumsum: more than 2^31 rows; use a smaller task");
    KP_BY_TYPE(x->dtype, launch<T>(x->data, c->out[0].data, outer, n, inner, stream))
}

} // namespace

const struct kp_impl kp_impl_scan = {NULL, run, NULL, true};
