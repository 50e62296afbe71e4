/* reducing_stores.cuh: products (product.cuh) of whose rows or columns only the sum, or the log of
 * the sum of exponentials, is wanted: no value of theirs goes to memory.
 *
 * Idea: a warp takes the values f(value, row, column) of its part of a tile, 32 rows by N columns,
 * into states (Op: LogSumExp, Sum of row_ops.cuh), and writes one for each of its lines. A line is
 * a column of the product (ReduceColumns; so where a task's rows are the operand B) or a row
 * (ReduceRows). A second kernel joins the states of each line: join_parts().
 *
 * The product has one batch; an Op has a NEUTRAL value, which stands for what lies beyond the
 * edges. What it costs: one state a line and warp, and an Op's instructions while the block
 * multiplies nothing: about 1 % of a product of 8192 terms. Reaches 92 to 98 % of the products'
 * floor (l2_056, l2_080). */
#pragma once
#include "product.cuh"
#include "states.cuh"

namespace kp {

/* Whether a tile's element is inside the product. A cluster's last tiles may be beyond it. */
template <class S, class T> __device__ __forceinline__ bool is_inside(int row, int column) {
    return (whole_tiles(S::ROWS) || row < S::ROWS) &&
           (S::COLUMNS % T::N == 0 || column < S::COLUMNS);
}

/* Lanes STEP apart, COUNT of them, have a state each of COUNT lines. Returns that of all of them
 * for one line, to the i-th lane line i. */
template <class Op, int STEP, int COUNT>
__device__ __forceinline__ typename Op::State join_lanes(typename Op::State (&s)[COUNT]) {
#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2) {
        const bool upper = threadIdx.x & half * STEP;
#pragma unroll
        for (int i = 0; i < half; i++) {
            typename Op::State kept = s[i], sent = s[i + half];
            if (upper) kept = s[i + half], sent = s[i];
            s[i] = Op::join(kept, shuffle_xor(sent, half * STEP));
        }
    }
    return s[0];
}

/* A tile's rows joined: part[32 rows of a warp][column]. */
template <class F, class Op_, class S, class T> struct ReduceColumns : F {
    using Op = Op_;
    using State = typename Op::State;
    static constexpr int LINES = S::COLUMNS, CLUSTER_M = TILE_M * T::CLUSTER;
    static constexpr int PARTS = (int)((S::ROWS + CLUSTER_M - 1) / CLUSTER_M * (CLUSTER_M / 32));
    static_assert(T::N % 32 == 0 && S::BATCHES == 1, "eight columns for each of eight lanes");
    State *part;

    template <class P>
    __device__ __forceinline__ void tile(const P &values, int, int row, int column) const {
        const F &f = *this;
#pragma unroll
        for (int first = 0; first < T::N / 4; first += 8) { /* of the thread's columns */
            State s[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int j = (first + i) / 2, e = i % 2, n = column + 8 * j + e;
                float v[4];
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const int m = row + values.row(r / 2, r % 2);
                    const float value = values.v[r / 2][4 * j + r % 2 * 2 + e];
                    v[r] = is_inside<S, T>(m, n) ? f(value, m, n) : Op::NEUTRAL;
                }
                const float4 taken[1] = {make_float4(v[0], v[1], v[2], v[3])};
                s[i] = Op::none();
                Op::take(s[i], taken);
            }
            const State own = join_lanes<Op, 4>(s);
            const int i = first + threadIdx.x / 4 % 8, n = column + i / 2 * 8 + i % 2;
            if (is_inside<S, T>(0, n)) part[row / 32 * (long long)LINES + n] = own;
        }
    }
};

/* A tile's columns joined: part[tile][row]. */
template <class F, class Op_, class S, class T> struct ReduceRows : F {
    using Op = Op_;
    using State = typename Op::State;
    static constexpr int LINES = (int)S::ROWS, PARTS = (S::COLUMNS + T::N - 1) / T::N;
    static_assert(S::ROWS < 1 << 30 && S::BATCHES == 1, "lines are counted in 32 bits");
    State *part;

    template <class P>
    __device__ __forceinline__ void tile(const P &values, int, int row, int column) const {
        const F &f = *this;
        State s[4] = {Op::none(), Op::none(), Op::none(), Op::none()};
#pragma unroll
        for (int j = 0; j < T::N / 8; j += 2)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int m = row + values.row(r / 2, r % 2);
                float v[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int n = column + 8 * (j + i / 2) + i % 2;
                    const float value = values.v[r / 2][4 * (j + i / 2) + r % 2 * 2 + i % 2];
                    v[i] = is_inside<S, T>(m, n) ? f(value, m, n) : Op::NEUTRAL;
                }
                const float4 taken[1] = {make_float4(v[0], v[1], v[2], v[3])};
                Op::take(s[r], taken);
            }
        const State own = join_lanes<Op, 1>(s);
        const int r = threadIdx.x % 4, m = row + values.row(r / 2, r % 2);
        if (is_inside<S, T>(m, 0)) part[column / T::N * (long long)LINES + m] = own;
    }
};

/* A g that leaves values as they are. */
struct Itself {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

/* out[line] = g(what its parts say). A lane a line; each of eight warps takes every eighth part. */
template <class Store, class G>
__global__ void __launch_bounds__(256)
    join_parts_kernel(const typename Store::State *__restrict__ part, float *__restrict__ out) {
    using Op = typename Store::Op;
    __shared__ typename Store::State joined[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = blockIdx.x * 32 + lane;
    typename Store::State s = Op::none();
    if (line < Store::LINES) {
#pragma unroll 8
        for (int p = warp; p < Store::PARTS; p += 8)
            s = Op::join(s, part[p * (long long)Store::LINES + line]);
    }
    joined[warp][lane] = s;
    __syncthreads();
    if (warp > 0 || line >= Store::LINES) return;
    for (int w = 1; w < 8; w++) s = Op::join(s, joined[w][lane]);
    out[line] = G()(Op::value(s));
}

/* ---- host ---- */

/* Bytes of the parts that a store of this kind writes. */
template <class Store> constexpr size_t parts_bytes() {
    return (size_t)Store::PARTS * Store::LINES * sizeof(typename Store::State);
}

/* Enqueues out[line] = g(value of the line), from its parts; G has no data. */
template <class Store, class G>
static void join_parts(const typename Store::State *part, float *out, cudaStream_t stream) {
    join_parts_kernel<Store, G><<<(Store::LINES + 31) / 32, 256, 0, stream>>>(part, out);
}

} // namespace kp
