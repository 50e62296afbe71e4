/* linear.cuh: a linear layer, rows of features in and out: out = f(x * transpose(weight) + bias),
 * plus a residual. The product is product.cuh's, with the weight as the operand that is split
 * beforehand, so it should be the smaller one; what follows is its epilogue. All three passes are
 * in TF32, however long the sums: layers in a row pass on what residuals of split numbers lose in
 * bf16 where one product is all of a sum (a weight far larger than the others), 2^-20 instead of
 * 2^-22.
 *
 * Bias and residual are read a few columns ahead of their stores: all of them at once do not fit
 * the registers.
 *
 * Reaches, with attention, 81 to 89 % of the floor (l3_043, l3_044; no share of its own was
 * measured). */
#pragma once
#include "operands.cuh"

namespace kp {

struct NoActivation {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

/* f(value + bias[column]) + residual[row][column] to out[row][column]. */
template <class F, bool RESIDUAL, int ROWS, int COLUMNS> struct StoreLinear : F {
    static_assert(COLUMNS % 2 == 0, "pairs");
    const float *bias, *residual;
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int, int row, int column) const {
        constexpr int AHEAD = RESIDUAL ? 8 : 2;
        const F &f = *this;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int m = row + part.row(r / 2, r % 2);
            if (!whole_tiles(ROWS) && m >= ROWS) continue;
            const long long at = (long long)m * COLUMNS + column;
#pragma unroll
            for (int first = 0; first < P::N / 8; first += AHEAD) {
                float2 b[AHEAD], add[AHEAD] = {};
#pragma unroll
                for (int j = 0; j < AHEAD; j++) {
                    const int n = 8 * (first + j);
                    if (COLUMNS % P::N && column + n >= COLUMNS) break;
                    b[j] = *(const float2 *)(bias + column + n);
                    if (RESIDUAL) add[j] = *(const float2 *)(residual + at + n);
                }
#pragma unroll
                for (int j = 0; j < AHEAD; j++) {
                    const int n = 8 * (first + j);
                    if (COLUMNS % P::N && column + n >= COLUMNS) break;
                    const float *v = part.v[r / 2] + n / 2 + r % 2 * 2;
                    *(float2 *)(out + at + n) =
                        make_float2(f(v[0] + b[j].x) + add[j].x, f(v[1] + b[j].y) + add[j].y);
                }
            }
        }
    }
};

template <int ROWS, int FROM, int TO> using LinearSizes = Matrices<ROWS, TO, FROM>;
using LinearTile = Tile<128, Tf32Rest>;

/* Bytes of scratch that linear() needs. */
template <int ROWS, int FROM, int TO> constexpr size_t linear_scratch() {
    return split_bytes<LinearSizes<ROWS, FROM, TO>, LinearTile>();
}

/* Enqueues the layer: x is [ROWS][FROM], weight [TO][FROM], out and residual, which is not read
 * unless RESIDUAL, [ROWS][TO]; all are aligned to 16 bytes. */
template <int ROWS, int FROM, int TO, bool RESIDUAL = false, class F>
static void linear(const F &f, const float *x, const float *weight, const float *bias,
                   const float *residual, float *out, void *scratch, cudaStream_t stream) {
    const Along<ROWS, FROM> a = {{}, x};
    const Along<TO, FROM> b = {{}, weight};
    const StoreLinear<F, RESIDUAL, ROWS, TO> store = {f, bias, residual, out};
    product<LinearSizes<ROWS, FROM, TO>, LinearTile>(a, b, store, scratch, stream);
}

} // namespace kp
