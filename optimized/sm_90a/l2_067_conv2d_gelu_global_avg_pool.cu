// provenance: shipped
/* The mean over each filter of gelu(conv), conv a convolution over two axes with bias: x
 * [128][8][256][256], weight [64][8][3][3] -> [128][64][254][254] -> [128][64].
 *
 * Idea: in fp32 registers (few_channels.cuh): a mean of 64,516 results shows what tensor cores cut
 * off of each. A block has 16 filters of an image, a thread all results of a column; rows of x are
 * copied some steps ahead. Results go to shared memory, so that the code of gelu is short, and are
 * added up with what each addition lost: where all of a filter are alike, as of tiny x, the losses
 * are too.
 * Floor: 76 GFLOP in fp32, 1480 us; 0.25 GiB read, 59 us.
 * Measured: 2396 us on an H200, 62 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "async.cuh"
#include "few_channels.cuh"
#include "reduce.cuh"

constexpr int FILTERS = 16, GROUPS = CONV_WEIGHT_DIM0 / FILTERS, THREADS = (X_DIM3 + 31) / 32 * 32;
constexpr int STAGES = 4;
using Conv = kp::FewChannels<X_DIM1, FILTERS, 1, X_DIM2, X_DIM3, 1>;
constexpr int ROWS = Conv::PIXELS + 2, STEPS = (Conv::OUT_Y + Conv::PIXELS - 1) / Conv::PIXELS;
static_assert(CONV_WEIGHT_DIM0 % FILTERS == 0 && THREADS <= 256 && X_DIM3 % 4 == 0,
              "a thread a column");

struct Memory {
    Conv::Weights weights;
    float rows[STAGES][ROWS * X_DIM3 + 4]; /* the last threads read beyond a row */
    float result[FILTERS][Conv::PIXELS][THREADS], total[FILTERS][THREADS], lost[FILTERS][THREADS];
};

/* Starts to copy the rows of step i: of eight rows of results after the other, all channels. */
static __device__ __forceinline__ void fetch(const float *__restrict__ image, Memory &m, int i) {
    const float *plane = image + i % X_DIM1 * Conv::PLANE;
    if (i < STEPS * X_DIM1)
        for (int c = threadIdx.x; c < ROWS * X_DIM3 / 4; c += THREADS) {
            const int row = min(i / X_DIM1 * Conv::PIXELS + c / (X_DIM3 / 4), X_DIM2 - 1);
            copy_async(m.rows[i % STAGES] + c * 4, plane + row * X_DIM3 + c % (X_DIM3 / 4) * 4);
        }
    copy_commit();
}

/* Adds gelu of a thread's results from row y on. */
static __device__ __forceinline__ void add(Memory &m, int y) {
#pragma unroll 1 /* two at a time take 6 % longer */
    for (int f = 0; f < FILTERS; f++)
        Conv::add_up(m.total[f][threadIdx.x], m.lost[f][threadIdx.x], [&](int p) {
            const float v = kp::Gelu()(m.result[f][p][threadIdx.x]);
            return y + p < Conv::OUT_Y ? v : 0.0f;
        });
}

__global__ void __launch_bounds__(THREADS, 1)
    means(const float *__restrict__ x, const float *__restrict__ weight,
          const float *__restrict__ bias, float *__restrict__ out) {
    extern __shared__ float4 memory[];
    Memory &m = *(Memory *)memory;
    const int first = blockIdx.x % GROUPS * FILTERS;
    const float *image = x + (long long)(blockIdx.x / GROUPS) * Conv::IMAGE;
    for (int i = 0; i < STAGES - 1; i++) fetch(image, m, i);
    Conv::load<THREADS>(weight + first * (CONV_WEIGHT_ELEMENTS / CONV_WEIGHT_DIM0), bias + first,
                        m.weights);
    for (int f = 0; f < FILTERS; f++) m.total[f][threadIdx.x] = m.lost[f][threadIdx.x] = 0;
    int i = 0;
#pragma unroll 1
    for (int y = 0; y < Conv::OUT_Y; y += Conv::PIXELS) {
        float sum[Conv::PIXELS][FILTERS];
        __syncthreads(); /* the weights are there */
        Conv::multiply(m.weights, sum, [&](int, Conv::Values &v) {
            copy_wait(STAGES - 2);
            __syncthreads(); /* of all threads; and nobody reads the stage before any more */
            fetch(image, m, i + STAGES - 1);
            const float *rows = m.rows[i++ % STAGES] + threadIdx.x;
#pragma unroll
            for (int e = 0; e < 3 * ROWS; e++) v[e % 3][e / 3] = rows[e / 3 * X_DIM3 + e % 3];
        });
#pragma unroll
        for (int p = 0; p < Conv::PIXELS; p++)
#pragma unroll
            for (int f = 0; f < FILTERS; f++) m.result[f][p][threadIdx.x] = sum[p][f];
        add(m, y);
    }
#pragma unroll 1
    for (int f = 0; f < FILTERS; f++) {
        const bool inside = threadIdx.x < Conv::OUT_X;
        const float all = block_reduce<THREADS>(inside ? m.total[f][threadIdx.x] : 0.0f, Add());
        if (threadIdx.x == 0)
            out[blockIdx.x / GROUPS * CONV_WEIGHT_DIM0 + first + f] =
                all / (Conv::OUT_Y * Conv::OUT_X);
    }
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaFuncSetAttribute((const void *)means, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         sizeof(Memory));
    means<<<X_DIM0 * GROUPS, THREADS, sizeof(Memory), stream>>>(in->x, in->conv_weight,
                                                                in->conv_bias, out->out);
}
