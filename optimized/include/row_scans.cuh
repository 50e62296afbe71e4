/* row_scans.cuh: running sums, products and the like along rows, from either end, with or without a
 * value itself, of what a functor makes of the inputs.
 *
 * As scan.cuh: a block owns a row and takes it in spans, which its threads hold in registers:
 * CHUNKS float4 each, a block's width apart. A warp scans its 128 values of a chunk by shuffles;
 * one warp scans the totals of all warps and chunks, carrying in double what came before. A scan
 * from the end is one of the reversed row: threads read and store reversed float4 from the end on.
 * Every value is read and written once; bytes over the copy bandwidth limit it. Reaches 95 to 96 %
 * of the floor (l1_090, l1_093).
 *
 * An operation is associative, as those of scan.cuh. The inputs I are a functor with
 *   float4 four(i)   values i to i + 3; i is a multiple of 4
 *   float one(i)     value i */
#pragma once
#include "scan.cuh"

namespace kp {

struct Product {
    static constexpr float IDENTITY = 1;
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return a * b; }
};

/* The values themselves. */
struct Values {
    const float *x;
    __device__ __forceinline__ float4 four(long long i) const {
        return __ldg((const float4 *)(x + i));
    }
    __device__ __forceinline__ float one(long long i) const { return __ldg(x + i); }
};

/* Each value times its mask, which is 0 or 1: an infinity that is masked makes NaN. */
struct MaskedValues {
    const float *x;
    const unsigned char *mask;
    __device__ __forceinline__ float4 four(long long i) const {
        const float4 v = __ldg((const float4 *)(x + i));
        const uchar4 m = __ldg((const uchar4 *)(mask + i));
        return make_float4(v.x * m.x, v.y * m.y, v.z * m.z, v.w * m.w);
    }
    __device__ __forceinline__ float one(long long i) const {
        return __ldg(x + i) * __ldg(mask + i);
    }
};

constexpr int SCAN_THREADS = 512, SCAN_CHUNKS = 4;

/* The operation, the length of a row, and what is scanned: from the last value to the first
 * (REVERSE), and without the value itself (EXCLUSIVE: the first result is the identity). */
template <class Op_, int COLUMNS_, bool REVERSE_ = false, bool EXCLUSIVE_ = false> struct RowScan {
    using Op = Op_;
    static constexpr int COLUMNS = COLUMNS_;
    static constexpr bool REVERSE = REVERSE_, EXCLUSIVE = EXCLUSIVE_;
    static constexpr bool ALIGNED = COLUMNS % 4 == 0;
    static constexpr int SPAN = SCAN_THREADS * 4 * SCAN_CHUNKS;
    static constexpr bool EVEN = COLUMNS % SPAN == 0; /* whole spans */
};

/* Values at to at + 3 of a row in the order of the scan; the identity beyond its end. */
template <class S, class I>
__device__ __forceinline__ float4 row_scan_load(const I &in, long long row, int at) {
    constexpr float NONE = S::Op::IDENTITY;
    const long long begin = row * S::COLUMNS;
    if constexpr (S::ALIGNED) {
        if (!S::EVEN && at >= S::COLUMNS) return make_float4(NONE, NONE, NONE, NONE);
        const float4 v = in.four(begin + (S::REVERSE ? S::COLUMNS - 4 - at : at));
        return S::REVERSE ? make_float4(v.w, v.z, v.y, v.x) : v;
    } else {
        const auto one = [&](int i) {
            return i < S::COLUMNS ? in.one(begin + (S::REVERSE ? S::COLUMNS - 1 - i : i)) : NONE;
        };
        return make_float4(one(at), one(at + 1), one(at + 2), one(at + 3));
    }
}

/* Stores them there. */
template <class S>
__device__ __forceinline__ void row_scan_store(float *__restrict__ y, long long row, int at,
                                               const float (&v)[4]) {
    float *const to = y + row * S::COLUMNS;
    if constexpr (S::ALIGNED) {
        if (!S::EVEN && at >= S::COLUMNS) return;
        if (S::REVERSE)
            *(float4 *)(to + S::COLUMNS - 4 - at) = make_float4(v[3], v[2], v[1], v[0]);
        else
            *(float4 *)(to + at) = make_float4(v[0], v[1], v[2], v[3]);
    } else
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (at + j < S::COLUMNS) to[S::REVERSE ? S::COLUMNS - 1 - at - j : at + j] = v[j];
}

/* A row a block. Up to 64 registers: the compiler would stop at 40, and spill. */
template <class S, class I>
__global__ void __launch_bounds__(SCAN_THREADS, 2)
    row_scan_kernel(const I in, float *__restrict__ y) {
    constexpr int WARPS = SCAN_THREADS / 32, CHUNKS = SCAN_CHUNKS, TOTALS = WARPS * CHUNKS;
    static_assert(TOTALS == 64, "two totals a lane");
    __shared__ float total[2][TOTALS]; /* [chunk][warp]; two, so that one sync a span is saved */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const typename S::Op op;
    double carry = S::Op::IDENTITY; /* of warp 0 */
    for (int span = 0; span * S::SPAN < S::COLUMNS; span++) {
        const int first = span * S::SPAN + threadIdx.x * 4;
        float *const totals = total[span % 2];
        float4 v[CHUNKS];
        float before[CHUNKS]; /* this thread's values, inside its warp */
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            v[c] = row_scan_load<S>(in, blockIdx.x, first + c * SCAN_THREADS * 4);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            v[c].y = op(v[c].x, v[c].y);
            v[c].w = op(v[c].z, v[c].w);
            v[c].z = op(v[c].y, v[c].z);
            v[c].w = op(v[c].y, v[c].w);
            const float end = warp_scan(v[c].w, op);
            before[c] = __shfl_up_sync(0xffffffffu, end, 1);
            if (lane == 0) before[c] = S::Op::IDENTITY;
            if (lane == 31) totals[c * WARPS + warp] = end;
        }
        __syncthreads();
        if (warp == 0) carry = scan_totals<TOTALS>(totals, carry, op);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const float b = op(totals[c * WARPS + warp], before[c]);
            const float all[5] = {b, op(b, v[c].x), op(b, v[c].y), op(b, v[c].z), op(b, v[c].w)};
            float w[4];
#pragma unroll
            for (int j = 0; j < 4; j++) w[j] = all[S::EXCLUSIVE ? j : j + 1];
            row_scan_store<S>(y, blockIdx.x, first + c * SCAN_THREADS * 4, w);
        }
    }
}

/* Enqueues S of `rows` rows of `in`; inputs and y are aligned to 16 bytes. */
template <class S, class I>
static void row_scan(const I &in, float *y, int rows, cudaStream_t stream) {
    row_scan_kernel<S><<<rows, SCAN_THREADS, 0, stream>>>(in, y);
}

} // namespace kp
