// provenance: shipped
/* Attention without mask: softmax(Q K^T / sqrt(1024)) V for 32 x 32 heads, 512 x 1024 each.
 *
 * Idea: three f16 products for each fp32 one (split_f16.cuh), twice the rate of three TF32 ones. Q,
 * K and the columns of V are split first. The product with K stores exp(score - top), split again,
 * where top is a row's maximum over 128 keys only; the product with V has the tops and sums of all
 * four such parts, and weighs each part by exp(top - maximum) / sum.
 * Floor: 3 x 4 B S S D flops over the f16 rate (B heads of S x D), 4.1 ms at 805 TFLOP/s; bytes
 * hide behind them, but for those of the splitting, 12.9 GB, 3.0 ms at the rate of a copy. Measured
 * on an H200: 8.15 ms, 0.87 of the sum; cuBLAS in fp32 beside it 22.2 ms.
 * Spills 8 bytes a thread (stored and loaded) in the product of the values. */
#include "task.h"
#include "split_f16.cuh"

using namespace kp;

constexpr int HEADS = Q_DIM0 * Q_DIM1, QUERIES = Q_DIM2, KEYS = K_DIM2, WIDTH = Q_DIM3;
constexpr int ROW_TILES = QUERIES / BLOCK_ROWS, PARTS = KEYS / BLOCK_ROWS, CTAS = 2;
constexpr int KEY_BLOCKS = KEYS / BLOCK_DEPTH, WIDTH_BLOCKS = WIDTH / BLOCK_DEPTH;
constexpr float SCORE = 1.0f / 32; /* 1 / sqrt(WIDTH) */
constexpr float LOG2_E = 1.44269504f;
static_assert(WIDTH == 32 * 32 && PARTS == 4, "the root in SCORE; parts of a row in a float4");
static_assert(QUERIES % BLOCK_ROWS == 0 && KEYS % BLOCK_ROWS == 0, "heads of whole blocks");

/* What a cluster works on, where COLUMNS of a head are the second operand's rows. */
template <int COLUMNS> struct Place {
    static constexpr int GROUPS = COLUMNS / BLOCK_ROWS / CTAS, TILES = HEADS * GROUPS * ROW_TILES;
    int head, rows, columns; /* rows and columns of the head, in blocks; of rank 0 */
    __device__ __forceinline__ Place(int tile)
        : head(tile / (GROUPS * ROW_TILES)), rows(tile % ROW_TILES),
          columns(tile / ROW_TILES % GROUPS * CTAS) {}
};

/* exp(scores - tops) * 2^14, split, from split Q and K. */
struct Scores {
    const unsigned char *q, *k;
    const float *q_back, *k_back; /* undo the scales of rows */
    unsigned char *p;
    float *tops, *sums; /* of a row, PARTS each */
    using At = Place<KEYS>;
    static constexpr int TILES = At::TILES;

    struct Weights {
        __device__ __forceinline__ float add(float sum, int, float x) const { return sum + x; }
        __device__ __forceinline__ void next(int) {}
    };
    __device__ __forceinline__ Weights begin(int, const unsigned char *) const { return {}; }

    static constexpr int SIDE_BYTES = 2 * BLOCK_ROWS * 4; /* of q_back, of k_back */
    __device__ __forceinline__ void fetch_side(int tile, int rank, uint32_t to,
                                               uint32_t bar) const {
        const At at(tile);
        copy_side(to, q_back + (at.head * ROW_TILES + at.rows) * BLOCK_ROWS, BLOCK_ROWS * 4, bar);
        copy_side(to + BLOCK_ROWS * 4, k_back + (at.head * PARTS + at.columns + rank) * BLOCK_ROWS,
                  BLOCK_ROWS * 4, bar);
    }

    __device__ __forceinline__ const unsigned char *a(int tile) const {
        const At at(tile);
        return q + (long long)(at.head * ROW_TILES + at.rows) * WIDTH_BLOCKS * BLOCK_BYTES;
    }
    __device__ __forceinline__ const unsigned char *b(int tile, int rank) const {
        const At at(tile);
        return k + (long long)(at.head * PARTS + at.columns + rank) * WIDTH_BLOCKS * BLOCK_BYTES;
    }

    __device__ __forceinline__ void finish(int tile, int rank, int row, int lane, float (&s)[64],
                                           const unsigned char *side) const {
        const At at(tile);
        const int part = at.columns + rank,
                  query = (at.head * ROW_TILES + at.rows) * BLOCK_ROWS + row;
        const float *qb = (const float *)side + row,
                    *kb = (const float *)side + BLOCK_ROWS + lane % 4 * 2;
        float back[2], top[2], sum[2] = {0, 0};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            back[h] = qb[h * 8] * SCORE;
            top[h] = __int_as_float(0xff800000); /* -inf */
        }
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float2 f = *(const float2 *)(kb + j * 8);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                s[j * 4 + h * 2] *= back[h] * f.x;
                s[j * 4 + h * 2 + 1] *= back[h] * f.y;
                top[h] = fmaxf(top[h], fmaxf(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1]));
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 1));
            top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 2));
        }
#pragma unroll
        for (int j = 0; j < 16; j += 4)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                unsigned high[4], low[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float *v = &s[(j + i) * 4 + h * 2];
                    const float x = exp2_fast((v[0] - top[h]) * LOG2_E + 14);
                    const float y = exp2_fast((v[1] - top[h]) * LOG2_E + 14);
                    sum[h] += x + y;
                    split2(x, y, high[i], low[i]);
                }
                half_transpose(high);
                half_transpose(low);
                unsigned char *to = p + ((long long)(at.head * ROW_TILES + at.rows) * KEY_BLOCKS +
                                         part * 2 + j / 8) *
                                            BLOCK_BYTES;
                const int piece = j % 8 + lane % 4;
                *piece_of(to, 0, row + h * 8, piece) = make_uint4(low[0], low[1], low[2], low[3]);
                *piece_of(to, 1, row + h * 8, piece) =
                    make_uint4(high[0], high[1], high[2], high[3]);
            }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
            sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
            if (lane % 4 == 0) {
                tops[(query + h * 8) * PARTS + part] = top[h];
                sums[(query + h * 8) * PARTS + part] = sum[h];
            }
        }
    }
};

/* The weighted sums of V's rows. */
struct Values {
    const unsigned char *p, *v;
    const float4 *tops, *sums; /* a row */
    const float *v_back;
    float *out;
    using At = Place<WIDTH>;
    static constexpr int TILES = At::TILES;

    static constexpr int SIDE_BYTES = BLOCK_ROWS * 16 * 2 + BLOCK_ROWS * 4;
    __device__ __forceinline__ void fetch_side(int tile, int rank, uint32_t to,
                                               uint32_t bar) const {
        const At at(tile);
        const int query = (at.head * ROW_TILES + at.rows) * BLOCK_ROWS;
        copy_side(to, tops + query, BLOCK_ROWS * 16, bar);
        copy_side(to + BLOCK_ROWS * 16, sums + query, BLOCK_ROWS * 16, bar);
        copy_side(to + BLOCK_ROWS * 32, v_back + at.head * WIDTH + (at.columns + rank) * BLOCK_ROWS,
                  BLOCK_ROWS * 4, bar);
    }

    /* exp(top - maximum) / sum of each part of a thread's two rows; a part is two blocks. */
    struct Weights {
        float w[2][PARTS];
        __device__ __forceinline__ float add(float sum, int h, float x) const {
            return fmaf(x, w[h][0], sum);
        }
        __device__ __forceinline__ void next(int k) {
            if (k % 2) return;
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 1; i < PARTS; i++) w[h][i - 1] = w[h][i];
        }
    };
    __device__ __forceinline__ Weights begin(int row, const unsigned char *side) const {
        const float4 *top = (const float4 *)side + row, *sum = top + BLOCK_ROWS;
        Weights r;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float4 t = top[h * 8], s = sum[h * 8];
            const float most = fmaxf(fmaxf(t.x, t.y), fmaxf(t.z, t.w));
            const float x = exp2_fast((t.x - most) * LOG2_E), y = exp2_fast((t.y - most) * LOG2_E);
            const float z = exp2_fast((t.z - most) * LOG2_E), w = exp2_fast((t.w - most) * LOG2_E);
            const float f = 1.0f / ((x * s.x + y * s.y) + (z * s.z + w * s.w));
            r.w[h][0] = x * f;
            r.w[h][1] = y * f;
            r.w[h][2] = z * f;
            r.w[h][3] = w * f;
        }
        return r;
    }

    __device__ __forceinline__ const unsigned char *a(int tile) const {
        const At at(tile);
        return p + (long long)(at.head * ROW_TILES + at.rows) * KEY_BLOCKS * BLOCK_BYTES;
    }
    __device__ __forceinline__ const unsigned char *b(int tile, int rank) const {
        const At at(tile);
        return v + (long long)(at.head * (WIDTH / BLOCK_ROWS) + at.columns + rank) * KEY_BLOCKS *
                       BLOCK_BYTES;
    }

    __device__ __forceinline__ void finish(int tile, int rank, int row, int lane,
                                           const float (&s)[64], const unsigned char *side) const {
        const At at(tile);
        const bool odd = lane & 1; /* two lanes exchange halves of two groups of columns */
        const int column = (lane & 1) * 8 + (lane & 2) * 2;
        const float *vb = (const float *)(side + BLOCK_ROWS * 32) + column;
        float *to = out + (long long)(at.head * QUERIES + at.rows * BLOCK_ROWS + row) * WIDTH +
                    (at.columns + rank) * BLOCK_ROWS + column;
#pragma unroll
        for (int j = 0; j < 16; j += 2) {
            const float4 f = *(const float4 *)(vb + j * 8);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float *x = &s[j * 4 + h * 2], *y = x + 4; /* of groups j and j + 1 */
                const float u = __shfl_xor_sync(~0u, odd ? x[0] : y[0], 1);
                const float v = __shfl_xor_sync(~0u, odd ? x[1] : y[1], 1);
                const float4 r = odd ? make_float4(u * f.x, v * f.y, y[0] * f.z, y[1] * f.w)
                                     : make_float4(x[0] * f.x, x[1] * f.y, u * f.z, v * f.w);
                __stcs((float4 *)(to + h * 8 * WIDTH + j * 8), r);
            }
        }
    }
};

/* Where things lie in scratch. */
constexpr size_t ROWS = (size_t)HEADS * QUERIES, KEY_ROWS = (size_t)HEADS * KEYS;
constexpr size_t Q_BYTES = ROWS * WIDTH * 4, KV_BYTES = KEY_ROWS * WIDTH * 4;
constexpr size_t P_BYTES = ROWS * KEYS * 4;

extern "C" size_t scratch_bytes(void) {
    return Q_BYTES + 2 * KV_BYTES + P_BYTES +
           (ROWS * (1 + 2 * PARTS) + KEY_ROWS + (size_t)HEADS * WIDTH) * 4;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    unsigned char *q = (unsigned char *)scratch, *k = q + Q_BYTES, *v = k + KV_BYTES;
    unsigned char *p = v + KV_BYTES;
    float *tops = (float *)(p + P_BYTES), *sums = tops + ROWS * PARTS;
    float *q_back = sums + ROWS * PARTS, *k_back = q_back + ROWS;
    float *v_back = k_back + KEY_ROWS;

    split_rows_kernel<WIDTH><<<ROWS / 8, 256, 0, stream>>>(in->Q, q, q_back);
    split_rows_kernel<WIDTH><<<KEY_ROWS / 8, 256, 0, stream>>>(in->K, k, k_back);
    const Scores scores = {q, k, q_back, k_back, p, tops, sums};
    split_product<SplitShape<CTAS, WIDTH_BLOCKS>>(scores, stream);

    constexpr int BYTES = KEYS * 32 * 4;
    cudaFuncSetAttribute(split_columns_kernel<KEYS, WIDTH>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    split_columns_kernel<KEYS, WIDTH>
        <<<dim3(WIDTH / 32, HEADS), 256, BYTES, stream>>>(in->V, v, v_back);
    const Values values = {p, v, (const float4 *)tops, (const float4 *)sums, v_back, out->out};
    split_product<SplitShape<CTAS, KEY_BLOCKS>>(values, stream);
}
