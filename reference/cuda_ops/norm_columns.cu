/* norm_columns.cu: batch normalisation of [N, C]: each column by its own mean and variance.
 *
 * Threads read packs of neighbouring columns, row after row, and rows are cut into parts that fill
 * the machine.  One launch finds the moments of each part, one merges the parts, and one reads
 * everything once more (from cache, mostly) and normalises it. */
#include "cuda_ops/norm_columns.h"
#include "cuda_ops/moments.cuh"

namespace {

enum {
    BLOCK = 256,
    MERGE_BLOCK = 1024,
    IN_FLIGHT = 4,      /* rows a thread has in flight */
    PART_BLOCKS = 1024, /* blocks wanted */
    TILE = 128,         /* columns of a block, about */
    LEAST_ROWS = 64     /* of a part */
};

/* Rows are cut into `parts` of `each`. */
struct Cut {
    int64_t rows, columns, parts, each;
};
Cut cut_of(const struct kp_call *c) {
    Cut k = {c->in[0].dim[0], c->in[0].dim[1], 1, 0};
    int64_t tiles = (k.columns + TILE - 1) / TILE, wanted = (PART_BLOCKS + tiles - 1) / tiles;
    int64_t most = (k.rows + LEAST_ROWS - 1) / LEAST_ROWS;
    k.parts = wanted < most ? wanted : most;
    k.each = (k.rows + k.parts - 1) / k.parts;
    return k;
}

/* The moments of V columns; all have seen n rows. */
template <class A, int V> struct Columns {
    A n, mean[V], m2[V];

    /* R rows more. */
    template <int R, class T> __device__ void add(const Pack<T, V> (&p)[R]) {
        A share = R / (n + R), weight = n * share;
#pragma unroll
        for (int e = 0; e < V; e++) {
            A x[R];
#pragma unroll
            for (int r = 0; r < R; r++) x[r] = widen(p[r].v[e]);
            Moments<A> b = moments_of(x);
            A delta = b.mean - mean[e];
            mean[e] += delta * share;
            m2[e] += b.m2 + delta * delta * weight;
        }
        n += R;
    }
};

/* Moments of part blockIdx.y of the columns of tile blockIdx.x: threadIdx.x walks columns,
 * threadIdx.y shares their rows. */
template <class T, int V>
__global__ void __launch_bounds__(BLOCK)
    column_moments(const T *__restrict__ in, Moments<Acc<T>> *parts, Cut k) {
    using A = Acc<T>;
    __shared__ Moments<A> part[V][BLOCK];
    int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    int64_t i = blockIdx.y * k.each, end = min(i + k.each, k.rows), step = blockDim.y;
    int id = threadIdx.y * blockDim.x + threadIdx.x;
    Columns<A, V> c = {};

    if (column >= k.columns) end = 0; /* stays for the barriers */
    in += column;
    for (i += threadIdx.y; i + (IN_FLIGHT - 1) * step < end; i += IN_FLIGHT * step) {
        Pack<T, V> p[IN_FLIGHT];
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; u++) p[u] = load<V>(in + (i + u * step) * k.columns);
        c.add(p);
    }
    for (; i < end; i += step) {
        Pack<T, V> p[1] = {load<V>(in + i * k.columns)};
        c.add(p);
    }
#pragma unroll
    for (int e = 0; e < V; e++) part[e][id] = {c.n, c.mean[e], c.m2[e]};
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int e = 0; e < V; e++)
                part[e][id] = Merge()(part[e][id], part[e][id + half * blockDim.x]);
    }
    if (threadIdx.y == 0 && column < k.columns)
#pragma unroll
        for (int e = 0; e < V; e++) parts[blockIdx.y * k.columns + column + e] = part[e][id];
}

/* What is subtracted from a column, and what it is multiplied by then. */
template <class A> struct Scale { A mean, factor; };

/* From the moments of all parts: 32 columns a block, whose threads share the parts. */
template <class A>
__global__ void __launch_bounds__(MERGE_BLOCK)
    merge_parts(const Moments<A> *__restrict__ parts, Scale<A> *scales, Cut k, A eps) {
    __shared__ Moments<A> part[MERGE_BLOCK / 32][32];
    int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x;
    Moments<A> m = {0, 0, 0};
    if (column < k.columns)
        for (int64_t p = threadIdx.y; p < k.parts; p += blockDim.y)
            m = Merge()(m, parts[p * k.columns + column]);
    part[threadIdx.y][threadIdx.x] = m;
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            part[threadIdx.y][threadIdx.x] =
                Merge()(part[threadIdx.y][threadIdx.x], part[threadIdx.y + half][threadIdx.x]);
    }
    m = part[0][threadIdx.x];
    if (threadIdx.y == 0 && column < k.columns)
        scales[column] = {m.mean, A(1) / sqrt(m.m2 / m.n + eps)};
}

/* The same parts, normalised. */
template <class T, int V>
__global__ void __launch_bounds__(BLOCK)
    apply_columns(const T *__restrict__ in, T *__restrict__ out, const T *__restrict__ weight,
                  const T *__restrict__ bias, const Scale<Acc<T>> *__restrict__ scales, Cut k) {
    using A = Acc<T>;
    int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    int64_t i = blockIdx.y * k.each, end = min(i + k.each, k.rows), step = blockDim.y;
    A mean[V], factor[V], w[V], b[V];
    if (column >= k.columns) return;
#pragma unroll
    for (int e = 0; e < V; e++) {
        Scale<A> s = scales[column + e];
        mean[e] = s.mean, factor[e] = s.factor;
        w[e] = weight ? widen(weight[column + e]) : A(1);
        b[e] = bias ? widen(bias[column + e]) : A(0);
    }
#pragma unroll 4
    for (i += threadIdx.y; i < end; i += step) {
        Pack<T, V> p = load<V>(in + i * k.columns + column);
#pragma unroll
        for (int e = 0; e < V; e++)
            p.v[e] = narrow<T>((widen(p.v[e]) - mean[e]) * factor[e] * w[e] + b[e]);
        store<V>(out + i * k.columns + column, p);
    }
}

/* The three launches, in packs of V. */
template <class T, int V>
void launch(const struct kp_call *c, const Cut &k, void *scratch, cudaStream_t stream) {
    using A = Acc<T>;
    const T *in = (const T *)c->in[0].data;
    const T *weight = c->present[1] ? (const T *)c->in[1].data : NULL;
    const T *bias = c->present[2] ? (const T *)c->in[2].data : NULL;
    Moments<A> *parts = (Moments<A> *)scratch;
    Scale<A> *scales = (Scale<A> *)(parts + k.parts * k.columns);
    int64_t packs = k.columns / V;
    int across = 1;
    while (across < 32 && across < packs) across *= 2;
    dim3 grid((unsigned)((packs + across - 1) / across), (unsigned)k.parts);
    dim3 block(across, BLOCK / across);

    column_moments<T, V><<<grid, block, 0, stream>>>(in, parts, k);
    KP_CUDA(cudaGetLastError());
    merge_parts<A><<<(unsigned)((k.columns + 31) / 32), dim3(32, MERGE_BLOCK / 32), 0, stream>>>(
        parts, scales, k, (A)op_float(c->op, "eps", 1e-5));
    KP_CUDA(cudaGetLastError());
    apply_columns<T, V>
        <<<grid, block, 0, stream>>>(in, (T *)c->out[0].data, weight, bias, scales, k);
    KP_CUDA(cudaGetLastError());
}

/* Packs where rows are whole packs. */
template <class T>
void launch_type(const struct kp_call *c, const Cut &k, void *scratch, cudaStream_t stream) {
    if (packs<T>(c->in[0].data, k.columns) && packs<T>(c->out[0].data, k.columns))
        launch<T, kPack<T>>(c, k, scratch, stream);
    else
        launch<T, 1>(c, k, scratch, stream);
}

} // namespace

/* See norm_columns.h. */
size_t kp_norm_columns_bytes(const struct kp_call *c) {
    Cut k = cut_of(c);
    return (size_t)k.columns * ((size_t)k.parts * sizeof(Moments<double>) + sizeof(Scale<double>));
}

/* See norm_columns.h. */
void kp_norm_columns(const struct kp_call *c, void *scratch, cudaStream_t stream) {
    Cut k = cut_of(c);
    KP_BY_TYPE(c->in[0].dtype, launch_type<T>(c, k, scratch, stream))
}
