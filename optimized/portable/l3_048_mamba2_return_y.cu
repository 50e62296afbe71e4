// provenance: shipped
/* What Mamba-2's chunked scan returns: X [2048][128][8][64], A [2048][128][8], B and C
 * [2048][128][8][16] -> Y as X. Of each sample and head Y[l] is the sum over s <= l of
 * (C[l] B[s]) exp(sum of A over s + 1 .. l) X[s]. Within a chunk of 64 places it is computed as
 * written, with 0 for s > l; from the first chunk the second gets the state, X^T B with its decay.
 *
 * Idea: one launch, a block a head of a sample, no scores in memory. X and B come into shared
 * memory, a chunk after the other; four blocks a multiprocessor, so that some wait for memory while
 * others multiply. A warp has 16 places of each chunk, and those of four warps see as many others.
 * A lane's scores, as the tensor cores leave them, times their decay, are its part of the left
 * operand of the product with X: no exchange. Products are at fp32 accuracy (split_tf32.cuh); 16 of
 * the depth at a time are added in fp32. Shared memory is permuted so that reads have no conflicts
 * of banks, but for X's as the state is made.
 * Floor: 1.35 GB, 311 us; 15 GFLOP without what is above the diagonal, three times, 110 us.
 * Measured on an H200: 499 us, 62 % of the floor; 340 to 370 predicted. */
#include "task.h"
#include <cuda_pipeline.h>
#include "split_tf32.cuh"

constexpr int BATCH = X_DIM0, LENGTH = X_DIM1, HEADS = X_DIM2, WIDTH = X_DIM3, STATE = B_DIM3;
constexpr int CHUNK = 64, WARPS = CHUNK / 16, THREADS = WARPS * 32;
static_assert(LENGTH == 2 * CHUNK, "the task file's chunks: the second sees the first");
static_assert(WIDTH == 16 * WARPS && STATE == 16, "fragments");

struct Memory {
    float x[LENGTH * WIDTH], b[LENGTH * STATE], state[STATE * WIDTH];
    float sum[LENGTH];   /* of A, from its chunk's first place on */
    float weight[CHUNK]; /* of a place of the first chunk in the state */
    /* Where four floats begin: of rows t and t + 4 (X), q and q + 4 (B), 4 t (the state). */
    __device__ __forceinline__ static int x_at(int row, int four) {
        return row * WIDTH + (four ^ row % 4) * 4;
    }
    __device__ __forceinline__ static int b_at(int row, int four) {
        return (row ^ row / 4 % 2) * STATE + (four ^ (row & 2)) * 4;
    }
    __device__ __forceinline__ static int state_at(int row, int four) {
        return row * WIDTH + (four ^ row / 4) * 4;
    }
};

using Left = kp::WarpLeft;
using Right = kp::WarpRight;

/* Starts to copy a chunk of a tensor of W numbers a place and head. */
template <int W, class At>
__device__ __forceinline__ void fetch(float *to, const At &at, const float *from, int chunk) {
#pragma unroll
    for (int f = threadIdx.x; f < CHUNK * W / 4; f += THREADS) {
        const int row = chunk * CHUNK + f / (W / 4), four = f % (W / 4);
        __pipeline_memcpy_async(to + at(row, four), from + row * (HEADS * W) + four * 4, 16);
    }
}

/* A warp sums up A over a chunk. A lane has two neighbours. */
__device__ __forceinline__ void sum_up(Memory &memory, const float *__restrict__ a, int chunk) {
    const int lane = threadIdx.x % 32, at = chunk * CHUNK + 2 * lane;
    const float first = __ldg(a + at * HEADS), second = __ldg(a + (at + 1) * HEADS);
    float sum = first + second, before;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        before = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += before;
    }
    before = __shfl_up_sync(~0u, sum, 1);
    const float odd = lane > 0 ? before + first : first;
    const float total = __shfl_sync(~0u, sum, 31);
    memory.sum[at] = odd, memory.sum[at + 1] = sum;
    if (chunk == 0)
        memory.weight[at] = expf(total - odd), memory.weight[at + 1] = expf(total - sum);
}

/* The state behind the first chunk: a warp has 16 features of it. */
__device__ __forceinline__ void make_state(Memory &memory) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float state[2][4] = {};
#pragma unroll 2
    for (int k = 0; k < CHUNK; k += 16) {
        float sum[2][4] = {};
#pragma unroll
        for (int j = 0; j < 2; j++) {
            Left a;
            Right x[2];
#pragma unroll
            for (int u = 0; u < 2; u++) {
                const int s = k + 8 * j + t + 4 * u;
                const float w = memory.weight[s];
                const float2 b = *(const float2 *)(memory.b + Memory::b_at(s, g / 2) + g % 2 * 2);
                const float2 v =
                    *(const float2 *)(memory.x + Memory::x_at(s, 4 * warp + g / 2) + g % 2 * 2);
                a.set(2 * u, b.x * w), a.set(2 * u + 1, b.y * w);
                x[0].set(u, v.x), x[1].set(u, v.y);
            }
            kp::multiply(sum, a, x);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) state[i / 4][i % 4] += sum[i / 4][i % 4];
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
        *(float4 *)(memory.state + Memory::state_at(2 * g + h, 4 * warp + t)) =
            make_float4(state[0][2 * h], state[1][2 * h], state[0][2 * h + 1], state[1][2 * h + 1]);
}

/* A warp's 16 places of a chunk. */
struct Rows {
    float4 c[2];             /* of rows g and g + 8: 4 t to + 3 of the state */
    float result[8][4] = {}; /* 4 J + i: of features 32 J + 4 t + i, and that + 16 (odd columns) */
    __device__ __forceinline__ void fetch(const float *__restrict__ from) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int h = 0; h < 2; h++)
            c[h] = __ldg((const float4 *)(from + (g + 8 * h) * (HEADS * STATE)) + t);
    }
    /* The left operands: depths t and t + 4 are 4 t + 2 q and the next of the state. */
    __device__ __forceinline__ void split(Left (&a)[2]) const {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            a[0].set(h, c[h].x), a[0].set(h + 2, c[h].y);
            a[1].set(h, c[h].z), a[1].set(h + 2, c[h].w);
        }
    }
    /* result = C * the state, decayed. */
    __device__ __forceinline__ void begin(const Memory &memory, const float (&sum)[2]) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, four = g / 2 + g % 2 * 4;
        const float decay[2] = {expf(sum[0]), expf(sum[1])};
        Left a[2];
        split(a);
#pragma unroll
        for (int part = 0; part < 2; part++) {
            float v[4][4] = {};
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const int n = 4 * t + 2 * q, at = 8 * part + four;
                Right b[4];
                kp::four_columns(memory.state + Memory::state_at(n, at),
                                 memory.state + Memory::state_at(n + 1, at), b);
                kp::multiply(v, a[q], b);
            }
#pragma unroll
            for (int i = 0; i < 16; i++)
                result[4 * part + i / 4][i % 4] = v[i / 4][i % 4] * decay[i % 4 / 2];
        }
    }
    /* The weights of 16 places from `from` on: left operands, depths as places lie. */
    __device__ __forceinline__ void weigh(const Memory &memory, int from, bool diagonal,
                                          const float (&sum)[2], Left (&weight)[2]) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        Left a[2];
        split(a);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float score[1][4] = {};
            const float4 b =
                *(const float4 *)(memory.b + Memory::b_at(from + 8 * j + g / 2 + g % 2 * 4, t));
            Right low[1], high[1];
            low[0].set(0, b.x), low[0].set(1, b.y), high[0].set(0, b.z), high[0].set(1, b.w);
            kp::multiply(score, a[0], low);
            kp::multiply(score, a[1], high);
#pragma unroll
            for (int i = 0; i < 4; i++) { /* row g + 8 (i / 2), place t + 4 (i % 2) of eight */
                const int place = 8 * j + t + i % 2 * 4;
                const float decay = expf(sum[i / 2] - memory.sum[from + place]);
                weight[j].set(i / 2 + i % 2 * 2,
                              diagonal && place > g + i / 2 * 8 ? 0.0f : score[0][i] * decay);
            }
        }
    }
    /* result += what places of the chunk up to each row's own add. `tile`: which 16 of it. */
    __device__ __forceinline__ void attend(const Memory &memory, int chunk, int tile,
                                           const float (&sum)[2]) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, four = g / 2 + g % 2 * 4;
#pragma unroll 1
        for (int k = 0; k <= tile; k++) {
            const int from = chunk * CHUNK + k * 16;
            Left weight[2];
            weigh(memory, from, k == tile, sum, weight);
#pragma unroll
            for (int part = 0; part < 2; part++) {
                float v[4][4] = {};
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const float *x = memory.x + Memory::x_at(from + 8 * j + t, 8 * part + four);
                    Right b[4];
                    kp::four_columns(x, x + 4 * WIDTH, b);
                    kp::multiply(v, weight[j], b);
                }
#pragma unroll
                for (int i = 0; i < 16; i++) result[4 * part + i / 4][i % 4] += v[i / 4][i % 4];
            }
        }
    }
    __device__ __forceinline__ void store(float *to) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 8; i++) { /* row g + 8 (i / 4), half i / 2 % 2, column 2 t + i % 2 */
            const int part = i / 2 % 2 * 4, e = i / 4 * 2 + i % 2;
            __stcs((float4 *)(to + (g + i / 4 * 8) * (HEADS * WIDTH)) + part * 2 + t + i % 2 * 4,
                   make_float4(result[part][e], result[part + 1][e], result[part + 2][e],
                               result[part + 3][e]));
        }
    }
};

/* Grid: heads, then samples. */
__global__ void __launch_bounds__(THREADS, 4)
    scan_kernel(const float *__restrict__ x, const float *__restrict__ a,
                const float *__restrict__ b, const float *__restrict__ c, float *__restrict__ out) {
    extern __shared__ __align__(16) float shared_memory[];
    auto &memory = *(Memory *)shared_memory;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    const int own[2] = {warp * 16, CHUNK + (WARPS - 1 - warp) * 16}; /* first places */
    const long long place = (long long)(blockIdx.x / HEADS) * LENGTH * HEADS + blockIdx.x % HEADS;
    for (int chunk = 0; chunk < 2; chunk++) {
        fetch<WIDTH>(memory.x, Memory::x_at, x + place * WIDTH, chunk);
        fetch<STATE>(memory.b, Memory::b_at, b + place * STATE, chunk);
        __pipeline_commit();
    }
    Rows rows[2];
    rows[0].fetch(c + place * STATE + own[0] * (HEADS * STATE));
    if (warp < 2) sum_up(memory, a + place, warp);
    __pipeline_wait_prior(1);
    __syncthreads(); /* the first chunk is there, and all sums */
    make_state(memory);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float sum[2] = {memory.sum[own[i] + g], memory.sum[own[i] + g + 8]};
        if (i == 1) {
            __pipeline_wait_prior(0);
            __syncthreads(); /* the second is, and the state */
            rows[i].begin(memory, sum);
        }
        rows[i].attend(memory, i, (own[i] - i * CHUNK) / 16, sum);
        if (i == 0) /* sooner would not fit the registers */
            rows[1].fetch(c + place * STATE + own[1] * (HEADS * STATE));
        rows[i].store(out + place * WIDTH + own[i] * (HEADS * WIDTH));
    }
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    static_assert(sizeof(Memory) <= 48 * 1024, "four blocks a multiprocessor");
    cudaFuncSetAttribute(scan_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory));
    scan_kernel<<<BATCH * HEADS, THREADS, sizeof(Memory), stream>>>(in->X, in->A, in->B, in->C,
                                                                    out->out);
}
