/* gemm.cuh: C = A * B in fp32 on the CUDA cores, with hooks for operands and result.
 *
 * A block computes a TILE_M x 128 tile, a warp 32 x 64 of it, a thread 8 x 8. Slabs of 8 along
 * the depth (the summed axis) pass through two shared-memory stages: while one is multiplied, the
 * next is on its way in registers. What limits it: FMA. Reaches 86 % of that floor in the portable
 * l1_097 (24.9 ms in development, with its softmax; no result is of it).
 *
 * An operand says how its elements are found. It has
 *   static constexpr bool ALONG_DEPTH   whether four neighbours run along the depth or across it
 *   At at(int batch, int i)             a place on its own axis (i: row of A, column of B)
 *   float4 At::fetch(int k)             four elements from (i, k) on; zeros beyond the depth
 * An epilogue is called once for each row of a thread's part:
 *   void row(int batch, int m, int n, const float (&v)[8])
 * where v[0..3] belong to columns n..n+3 and v[4..7] to n+32..n+35. The eight lanes that share a
 * row are neighbours (lane/8 is equal) and hold 64 consecutive columns of it, so that a reduction
 * over 64 features needs only shuffles.
 *
 * Operands and epilogues are kernel parameters: they have no padding, whose bytes would be
 * whatever the stack held, and differ from one recording of a launch to the next. */
#pragma once

constexpr int TILE_N = 128;
constexpr int TILE_K = 8;   /* deeper slabs spill registers */
constexpr int TILE_PAD = 4; /* words a row of a stage is longer than its tile */

/* Element (i, k) lies at data[i * pitch + k]: rows of A, or columns of B given transposed.
 * Pitch and depth are multiples of four; an operand of one batch is below 2^31 elements. */
struct AlongDepth {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    int pitch, batch_stride;
    struct At {
        const float *row;
        __device__ __forceinline__ float4 fetch(int k) const {
            return __ldg((const float4 *)(row + k));
        }
    };
    __device__ __forceinline__ At at(int batch, int i) const {
        return {data + (long long)batch * batch_stride + (long long)i * pitch};
    }
};

/* Element (i, k) lies at data[k * pitch + i]: columns of B, or rows of A given transposed. */
struct AcrossDepth {
    static constexpr bool ALONG_DEPTH = false;
    const float *data;
    int pitch, batch_stride;
    struct At {
        const float *column;
        int pitch;
        __device__ __forceinline__ float4 fetch(int k) const {
            return __ldg((const float4 *)(column + k * pitch));
        }
    };
    __device__ __forceinline__ At at(int batch, int i) const {
        return {data + (long long)batch * batch_stride + i, pitch};
    }
};

/* Epilogue: f(value, column) stored row-major; f is the base. */
template <class F> struct StoreRows : F {
    float *out;
    int pitch, batch_stride;
    __device__ __forceinline__ void row(int batch, int m, int n, const float (&v)[8]) const {
        const F &f = *this;
        float *p = out + (long long)batch * batch_stride + (long long)m * pitch + n;
#pragma unroll
        for (int h = 0; h < 8; h += 4)
            *(float4 *)(p + 8 * h) =
                make_float4(f(v[h], n + 8 * h), f(v[h + 1], n + 8 * h + 1),
                            f(v[h + 2], n + 8 * h + 2), f(v[h + 3], n + 8 * h + 3));
    }
};

/* The epilogue's function of a plain product. */
struct Same {
    __device__ __forceinline__ float operator()(float v, int) const { return v; }
};

/* One thread's share of moving an operand's slabs from global to shared memory. */
template <class Operand, int SPAN, int THREADS> struct Mover {
    static constexpr int FOURS = SPAN * TILE_K / 4;
    static constexpr int ROUNDS = (FOURS + THREADS - 1) / THREADS;
    typename Operand::At at[ROUNDS];
    float4 held[ROUNDS];

    /* Round r's place in the slab: index on the operand's axis and depth. */
    static __device__ __forceinline__ void place(int r, int *i, int *k) {
        const int f = threadIdx.x + r * THREADS;
        if (Operand::ALONG_DEPTH) {
            *i = f / (TILE_K / 4);
            *k = f % (TILE_K / 4) * 4;
        } else {
            *i = f % (SPAN / 4) * 4;
            *k = f / (SPAN / 4);
        }
    }

    static __device__ __forceinline__ bool idle(int r) {
        return FOURS % THREADS && (int)threadIdx.x + r * THREADS >= FOURS;
    }

    __device__ __forceinline__ void start(const Operand &operand, int batch, int first) {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            int i, k;
            place(r, &i, &k);
            if (!idle(r)) at[r] = operand.at(batch, first + i);
        }
    }

    __device__ __forceinline__ void fetch(int depth) {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            int i, k;
            place(r, &i, &k);
            if (!idle(r)) held[r] = at[r].fetch(depth + k);
        }
    }

    __device__ __forceinline__ void put(float (*stage)[SPAN + TILE_PAD]) const {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            int i, k;
            place(r, &i, &k);
            if (idle(r)) continue;
            if (Operand::ALONG_DEPTH) {
                stage[k + 0][i] = held[r].x;
                stage[k + 1][i] = held[r].y;
                stage[k + 2][i] = held[r].z;
                stage[k + 3][i] = held[r].w;
            } else {
                *(float4 *)&stage[k][i] = held[r];
            }
        }
    }
};

/* Reads the eight words at p[0..3] and p[apart..apart+3]. */
__device__ __forceinline__ void read_eight(const float *p, int apart, float (&v)[8]) {
    const float4 a = *(const float4 *)p, b = *(const float4 *)(p + apart);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

/* acc += the product of one slab, for the 8 x 8 part whose first row is m and first column n. */
template <int TILE_M>
__device__ __forceinline__ void multiply(const float (*left)[TILE_M + TILE_PAD],
                                         const float (*right)[TILE_N + TILE_PAD], int m, int n,
                                         float (&acc)[8][8]) {
#pragma unroll
    for (int k = 0; k < TILE_K; k++) {
        float a[8], b[8];
        read_eight(&left[k][m], 16, a);
        read_eight(&right[k][n], 32, b);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) acc[i][j] += a[i] * b[j];
    }
}

/* One tile. Grid: x the tiles along N, y along M, z the batch. */
template <int TILE_M, class Left, class Right, class Epilogue>
__global__ void __launch_bounds__(TILE_M * 2, TILE_M > 64 ? 2 : 3)
    product_kernel(Left left, Right right, Epilogue epilogue, int depth) {
    static_assert(TILE_M % 32 == 0 && TILE_M <= 128, "a tile is whole warps of 32 rows");
    __shared__ __align__(16) float left_stage[2][TILE_K][TILE_M + TILE_PAD];
    __shared__ __align__(16) float right_stage[2][TILE_K][TILE_N + TILE_PAD];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int m = warp / 2 * 32 + lane / 8 * 4, n = warp % 2 * 64 + lane % 8 * 4;
    const int first_m = blockIdx.y * TILE_M, first_n = blockIdx.x * TILE_N;

    Mover<Left, TILE_M, TILE_M * 2> move_left;
    Mover<Right, TILE_N, TILE_M * 2> move_right;
    move_left.start(left, blockIdx.z, first_m);
    move_right.start(right, blockIdx.z, first_n);
    move_left.fetch(0);
    move_right.fetch(0);

    float acc[8][8] = {};
    int stage = 0;
    for (int k = TILE_K;; k += TILE_K, stage ^= 1) {
        move_left.put(left_stage[stage]);
        move_right.put(right_stage[stage]);
        __syncthreads(); /* also: nobody still reads the other stage, which is written next */
        if (k < depth) {
            move_left.fetch(k);
            move_right.fetch(k);
        }
        multiply<TILE_M>(left_stage[stage], right_stage[stage], m, n, acc);
        if (k >= depth) break;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        epilogue.row(blockIdx.z, first_m + m + i % 4 + i / 4 * 16, first_n + n, acc[i]);
}

/* Enqueues `batches` products of rows x depth by depth x columns. Rows must be a multiple of
 * TILE_M. An operand or epilogue that accepts any index may be given columns and a depth that are
 * no multiples of the tile; the ones of this file may not. */
template <int TILE_M, class Left, class Right, class Epilogue>
static void product(const Left &left, const Right &right, const Epilogue &epilogue, int rows,
                    int columns, int depth, int batches, cudaStream_t stream) {
    const dim3 grid((columns + TILE_N - 1) / TILE_N, rows / TILE_M, batches);
    product_kernel<TILE_M><<<grid, TILE_M * 2, 0, stream>>>(left, right, epilogue, depth);
}
