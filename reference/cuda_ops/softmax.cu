/* softmax.cu: softmax and its logarithm along any axis of a dense tensor.
 *
 * A row (the softmax axis) is read once for its maximum and the sum of its
 * exponentials, kept together online, and once more to be normalised.  Rows
 * that fit the registers of a few lanes are read only once. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"

namespace {

using namespace kp;

enum { BLOCK = 256, LONG_BLOCK = 1024, LONG_ROW = 16384 /* packs */ };

/* A result, from exp(x - max) and their sum; LOG: from x - max. */
template <bool LOG, class A> __device__ inline A share(A x, A sum) {
    if constexpr (LOG)
        return x - log(sum);
    else
        return x / sum;
}
template <bool LOG, class A> __device__ inline A term(A x, A max) {
    if constexpr (LOG)
        return x - max;
    else
        return exp(x - max);
}

/* Short contiguous rows: `lanes` neighbouring lanes hold one row, K packs each. */
template <bool LOG, class T, int V, int K>
__global__ void __launch_bounds__(BLOCK)
    softmax_short(const T *__restrict__ in, T *__restrict__ out, int64_t rows, int packs,
                  int lanes) {
    using A = Acc<T>;
    int64_t row = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / lanes;
    int lane = threadIdx.x % lanes;
    bool live = row < rows; /* all lanes stay for the shuffles */
    const T *from = in + row * packs * V;
    Pack<T, V> p[K];
    A max = -INFINITY, sum = 0;

#pragma unroll
    for (int k = 0; k < K; k++)
        if (live && lane + k * lanes < packs) p[k] = load<V>(from + (lane + k * lanes) * V);
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int e = 0; e < V; e++)
            if (live && lane + k * lanes < packs) max = fmax(max, widen(p[k].v[e]));
    max = warp_reduce(
        max, [](A a, A b) { return fmax(a, b); }, lanes);

    A x[K * V];
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int e = 0; e < V; e++)
            if (live && lane + k * lanes < packs) {
                x[k * V + e] = term<LOG>(widen(p[k].v[e]), max);
                sum += LOG ? exp(x[k * V + e]) : x[k * V + e];
            }
    sum = warp_reduce(sum, Add(), lanes);
#pragma unroll
    for (int k = 0; k < K; k++)
        if (live && lane + k * lanes < packs) {
#pragma unroll
            for (int e = 0; e < V; e++) p[k].v[e] = narrow<T>(share<LOG>(x[k * V + e], sum));
            store<V>(out + row * packs * V + (lane + k * lanes) * V, p[k]);
        }
}

/* Long contiguous rows: one block a row. */
template <bool LOG, class T, int V>
__global__ void __launch_bounds__(LONG_BLOCK)
    softmax_long(const T *__restrict__ in, T *__restrict__ out, int64_t packs) {
    using A = Acc<T>;
    in += blockIdx.x * packs * V;
    out += blockIdx.x * packs * V;
    Online<A> s = online_scan<T, V>(in, packs, threadIdx.x, blockDim.x);
    s = block_reduce(s, online_empty<A>(), Join());
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        Pack<T, V> p = load<V>(in + i * V);
#pragma unroll
        for (int e = 0; e < V; e++)
            p.v[e] = narrow<T>(share<LOG>(term<LOG>(widen(p.v[e]), s.max), s.sum));
        store<V>(out + i * V, p);
    }
}

/* Any other axis: blockDim.x neighbouring columns, each shared by blockDim.y
 * threads.  Elements of a column are `inner` apart. */
template <bool LOG, class T>
__global__ void softmax_columns(const T *__restrict__ in, T *out, int64_t n, int64_t inner,
                                int64_t tiles) {
    using A = Acc<T>;
    __shared__ Online<A> part[BLOCK];
    int64_t outer = blockIdx.x / tiles;
    int64_t column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    bool live = column < inner;
    int64_t base = outer * n * inner + (live ? column : inner - 1);
    int id = threadIdx.y * blockDim.x + threadIdx.x;
    int64_t i = threadIdx.y, step = blockDim.y;
    Online<A> s = online_empty<A>();

    for (; i + 7 * step < n; i += 8 * step) {
        A x[8];
#pragma unroll
        for (int u = 0; u < 8; u++) x[u] = widen(in[base + (i + u * step) * inner]);
        s = online_add(s, x);
    }
    for (; i < n; i += step) {
        A x[1] = {widen(in[base + i * inner])};
        s = online_add(s, x);
    }
    part[id] = s;
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) part[id] = Join()(part[id], part[id + half * blockDim.x]);
    }
    __syncthreads();
    s = part[threadIdx.x];
    if (!live) return;
#pragma unroll 4
    for (i = threadIdx.y; i < n; i += step)
        out[base + i * inner] =
            narrow<T>(share<LOG>(term<LOG>(widen(in[base + i * inner]), s.max), s.sum));
}

/* Contiguous rows of `packs` packs of V. */
template <bool LOG, class T, int V>
void launch_rows(const T *in, T *out, int64_t rows, int64_t packs, cudaStream_t stream) {
    if (packs > 32 * 8) {
        int threads = packs >= LONG_ROW ? LONG_BLOCK : BLOCK;
        softmax_long<LOG, T, V><<<(unsigned)rows, threads, 0, stream>>>(in, out, packs);
        KP_CUDA(cudaGetLastError());
        return;
    }
    int lanes = 1;
    while (lanes < 32 && lanes * 4 < packs) lanes *= 2;
    unsigned blocks = (unsigned)((rows * lanes + BLOCK - 1) / BLOCK);
    if (packs <= lanes * 4)
        softmax_short<LOG, T, V, 4><<<blocks, BLOCK, 0, stream>>>(in, out, rows, (int)packs, lanes);
    else
        softmax_short<LOG, T, V, 8><<<blocks, BLOCK, 0, stream>>>(in, out, rows, (int)packs, lanes);
    KP_CUDA(cudaGetLastError());
}

/* Launch the form that suits the axis. */
template <bool LOG, class T>
void launch(const void *in_, void *out_, int64_t outer, int64_t n, int64_t inner,
            cudaStream_t stream) {
    const T *in = (const T *)in_;
    T *out = (T *)out_;
    if (inner == 1 && packs<T>(in, n) && packs<T>(out, n)) {
        launch_rows<LOG, T, kPack<T>>(in, out, outer, n / kPack<T>, stream);
    } else if (inner == 1) {
        launch_rows<LOG, T, 1>(in, out, outer, n, stream);
    } else {
        int across = 1;
        while (across < 32 && across < inner) across *= 2;
        int64_t tiles = (inner + across - 1) / across;
        softmax_columns<LOG, T>
            <<<(unsigned)(outer * tiles), dim3(across, BLOCK / across), 0, stream>>>(in, out, n,
                                                                                     inner, tiles);
        KP_CUDA(cudaGetLastError());
    }
}

/* Enqueue the softmax. */
template <bool LOG> void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    const struct kp_array *x = &c->in[0];
    Axis s = axis_of(c);
    if (s.outer * ((s.inner + 31) / 32) > INT32_MAX)
        die(KP_INPUT, "softmax: more than 2^31 rows; use a smaller task");
    KP_BY_TYPE(x->dtype, launch<LOG, T>(x->data, c->out[0].data, s.outer, s.n, s.inner, stream))
}

/* The draws of a launch, one for each block of grid y. */
struct Draws {
    const double *in[KP_DRAWS];
    double *out[KP_DRAWS];
    uint64_t seed[KP_DRAWS];
};

/* Rows with noise: one block a row, row after row.  The noise of the sum is common to a row.  An
 * exponential with noise is most of the work: it waits in the result for their sum. */
template <bool LOG>
__global__ void __launch_bounds__(LONG_BLOCK) softmax_rough(Draws draws, Axis s, kp_noise noise) {
    const double *__restrict__ in = draws.in[blockIdx.y];
    double *__restrict__ out = draws.out[blockIdx.y];
    noise.seed = draws.seed[blockIdx.y];
    for (int64_t r = blockIdx.x; r < s.outer * s.inner; r += gridDim.x) {
        int64_t base = r / s.inner * s.n * s.inner + r % s.inner;
        double max = -INFINITY;
        Sums sum = {0, 0};
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x)
            max = fmax(max, in[base + i * s.inner]);
        max = block_reduce(max, -(double)INFINITY, [](double a, double b) { return fmax(a, b); });
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
            int64_t at = base + i * s.inner;
            double e = exp_below(Rough(in[at], noise.seed), max).v;
            if (!LOG) out[at] = e;
            sum.add(e);
        }
        sum = block_reduce(sum, Sums{0, 0}, Add());
        Rough total = noisy(sum, (double)s.n, noise, 1, r);
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
            int64_t at = base + i * s.inner;
            if (LOG)
                out[at] =
                    (Rough(in[at], noise.seed) - Rough(max) - log(Rough(total.v, noise.seed))).v;
            else
                out[at] = (Rough(out[at], noise_bits(noise.seed, 2)) / total).v;
        }
    }
}

/* Enqueue the softmax with noise of n calls: a few long rows are as many blocks. */
template <bool LOG> void rough_calls(const struct kp_call *c, int n, cudaStream_t stream) {
    Axis s = axis_of(c);
    Draws draws;
    int64_t rows = s.outer * s.inner;
    int threads = 32;
    while (threads < LONG_BLOCK && threads < s.n) threads *= 2;
    for (int d = 0; d < n; d++) {
        draws.in[d] = (const double *)c[d].in[0].data;
        draws.out[d] = (double *)c[d].out[0].data;
        draws.seed[d] = c[d].noise->seed;
    }
    dim3 grid((unsigned)(rows < INT32_MAX ? rows : INT32_MAX), (unsigned)n);
    softmax_rough<LOG><<<grid, threads, 0, stream>>>(draws, s, *c->noise);
    KP_CUDA(cudaGetLastError());
}
template <bool LOG> void rough(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    rough_calls<LOG>(c, 1, stream);
}
template <bool LOG>
bool together(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    run<LOG>(c, state, scratch, stream);
    rough_calls<LOG>(c + 1, KP_DRAWS, stream);
    return true;
}

} // namespace

KP_IMPL(softmax, NULL, run<false>, rough<false>, NULL, KP_DENSE, together<false>);
KP_IMPL(log_softmax, NULL, run<true>, rough<true>, NULL, KP_DENSE, together<true>);
