/* scan.cuh: running sums, maxima and the like along rows.
 *
 * A block owns a row and takes it in spans, which its threads hold in registers: CHUNKS float4
 * each, a block's width apart. A warp scans its 128 values of a chunk by shuffles; one warp scans
 * the totals of all warps and chunks, carrying in double what came before. Every value is read and
 * written once. Loads and stores are plain: evict-first ones cost 5 %. Nothing is taken back from
 * a sum: an infinity leaves the sums before it as they are. Reaches 95 % of the bytes' floor
 * (l1_089).
 *
 * An operation is associative; it need not commute. It has, as Add and Max of reduce.cuh do,
 *   static constexpr float IDENTITY
 *   T operator()(T before, T v)   for float and double */
#pragma once
#include "reduce.cuh"

/* `v` combined with what the lanes below hold. */
template <class T, class Op> __device__ __forceinline__ T warp_scan(T v, Op op) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T below = __shfl_up_sync(0xffffffffu, v, step);
        if (lane >= step) v = op(below, v);
    }
    return v;
}

/* Turns up to 64 totals into what comes before each of them; `carry` is what comes before all, and
 * returns what comes after. One warp. */
template <int TOTALS, class Op>
__device__ __forceinline__ double scan_totals(float *total, double carry, Op op) {
    const int lane = threadIdx.x % 32;
    const bool two = TOTALS == 64 || 2 * lane < TOTALS;
    const double a = two ? total[2 * lane] : Op::IDENTITY;
    const double b = two ? total[2 * lane + 1] : Op::IDENTITY;
    const double end = op(carry, warp_scan(op(a, b), op));
    const double below = __shfl_up_sync(0xffffffffu, end, 1);
    const double before = lane ? below : carry;
    if (two) {
        total[2 * lane] = (float)before;
        total[2 * lane + 1] = (float)op(before, a);
    }
    return __shfl_sync(0xffffffffu, end, 31);
}

/* Reads four values of a row that goes on for `left` more, and stores them; WHOLE: for as many as
 * are asked for. ALIGNED: rows are float4. Of what lies beyond the end nothing is stored. */
template <bool WHOLE, bool ALIGNED>
__device__ __forceinline__ float4 scan_load(const float4 *p, int left) {
    if (WHOLE || (ALIGNED && left > 0)) return __ldg(p);
    const float *q = (const float *)p;
    float v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = !ALIGNED && j < left ? __ldg(q + j) : 0.0f;
    return make_float4(v[0], v[1], v[2], v[3]);
}

template <bool WHOLE, bool ALIGNED>
__device__ __forceinline__ void scan_store(float4 *p, int left, float4 v) {
    if (WHOLE || (ALIGNED && left > 0)) {
        *p = v;
        return;
    }
    const float w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (!ALIGNED && j < left) ((float *)p)[j] = w[j];
}

/* One row of COLUMNS values a block. */
template <class Op, int COLUMNS, int THREADS, int CHUNKS>
__global__ void __launch_bounds__(THREADS)
    scan_kernel(const float *__restrict__ x, float *__restrict__ y) {
    constexpr int WARPS = THREADS / 32, TOTALS = WARPS * CHUNKS, SPAN = THREADS * 4 * CHUNKS;
    constexpr int SPANS = (COLUMNS + SPAN - 1) / SPAN;
    constexpr bool WHOLE = COLUMNS % SPAN == 0, ALIGNED = COLUMNS % 4 == 0;
    static_assert(THREADS % 32 == 0 && TOTALS % 2 == 0 && TOTALS <= 64, "two totals a lane");
    __shared__ float total[2][TOTALS]; /* [chunk][warp]; two, so that one sync a span is saved */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long first = (long long)blockIdx.x * (COLUMNS / 4) + threadIdx.x;
    const long long odd = (long long)blockIdx.x * (COLUMNS % 4); /* words, beside whole float4 */
    const float4 *in = (const float4 *)(x + odd) + first;
    float4 *out = (float4 *)(y + odd) + first;
    const Op op;
    double carry = Op::IDENTITY; /* of warp 0 */
    for (int span = 0; span < SPANS; span++, in += SPAN / 4, out += SPAN / 4) {
        const int left = COLUMNS - span * SPAN - (int)threadIdx.x * 4;
        float *totals = total[span % 2];
        float4 v[CHUNKS];
        float before[CHUNKS]; /* this thread's values, inside its warp */
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            v[c] = scan_load<WHOLE, ALIGNED>(in + c * THREADS, left - c * THREADS * 4);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            v[c].y = op(v[c].x, v[c].y);
            v[c].w = op(v[c].z, v[c].w);
            v[c].z = op(v[c].y, v[c].z);
            v[c].w = op(v[c].y, v[c].w);
            const float end = warp_scan(v[c].w, op);
            before[c] = __shfl_up_sync(0xffffffffu, end, 1);
            if (lane == 0) before[c] = Op::IDENTITY;
            if (lane == 31) totals[c * WARPS + warp] = end;
        }
        __syncthreads();
        if (warp == 0) carry = scan_totals<TOTALS>(totals, carry, op);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const float b = op(totals[c * WARPS + warp], before[c]);
            scan_store<WHOLE, ALIGNED>(
                out + c * THREADS, left - c * THREADS * 4,
                make_float4(op(b, v[c].x), op(b, v[c].y), op(b, v[c].z), op(b, v[c].w)));
        }
    }
}

/* Enqueues y[r][i] = x[r][0] op ... op x[r][i] for `rows` rows of COLUMNS, x and y aligned
 * to 16 bytes. A shorter row than a span takes as long as one. */
template <class Op, int COLUMNS, int THREADS = 512, int CHUNKS = 4>
static void scan_rows(const float *x, float *y, int rows, cudaStream_t stream) {
    scan_kernel<Op, COLUMNS, THREADS, CHUNKS><<<rows, THREADS, 0, stream>>>(x, y);
}
