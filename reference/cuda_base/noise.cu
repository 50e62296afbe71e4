/* noise.cu: see noise.h. */
#include "cuda_base/noise.cuh"
#include "cuda_base/check.h"

using namespace kp;

enum { BLOCK = 256, MOST_BLOCKS = 132 * 16 };

#define FOR_EACH(i, n)                                                            \
    for (int64_t i = blockIdx.x * (int64_t)BLOCK + threadIdx.x; i < (int64_t)(n); \
         i += (int64_t)gridDim.x * BLOCK)

/* Blocks for n elements. */
static unsigned blocks_for(int64_t n) {
    int64_t blocks = (n + BLOCK - 1) / BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks);
}

/* `operand`: of the terms' factors; 0: the terms are exact.  A sum with an infinite term is NaN in
 * every draw, so that whatever depends on it is known to. */
__global__ void add_sum_noise(double *y, const double *q, int64_t count, double terms, int chain,
                              double operand, double sum, uint64_t seed) {
    FOR_EACH(i, count) {
        double var =
            2 * q[i] * operand * operand + noise_of_sum(y[i], q[i], terms, chain) * sum * sum;
        y[i] = isfinite(var) ? on_grid(y[i] + sqrt(var) * noise_even(seed, (uint64_t)i)) : NAN;
    }
}

/* The standard deviation of what a product strays by; NaN for a sum with an infinite term. */
__device__ static double stray_of(double c, double q, double terms, double operand, double sum) {
    double var =
        2 * q * operand * operand + noise_of_sum(c, q, terms, KP_PRODUCT_CHAIN) * sum * sum;
    return isfinite(var) ? sqrt(var) : NAN;
}

/* APART: each draw has a product of its own. */
template <bool APART>
__global__ void draw_products(kp_noisy draws, const double *x, int64_t apart, const double *q,
                              int64_t count, double terms, double operand, double sum) {
    FOR_EACH(i, count) {
        double c = x[i], square = q[i], size = stray_of(c, square, terms, operand, sum);
#pragma unroll
        for (int d = 0; d < KP_DRAWS; d++) {
            if (APART && d) {
                c = x[d * apart + i];
                size = stray_of(c, square, terms, operand, sum);
            }
            draws.y[d][i] = on_grid(c + size * noise_even(draws.seed[d], (uint64_t)i));
        }
    }
}

__global__ void add_rounding(double *y, int64_t count, double unit, uint64_t seed) {
    FOR_EACH(i, count) y[i] += unit * noise_size(y[i]) * noise_even(seed, (uint64_t)i);
}

__global__ void square(const double *x, double *to, int64_t count) {
    FOR_EACH(i, count) to[i] = x[i] * x[i] + KP_NOISE_FLOOR * KP_NOISE_FLOOR;
}

/* Positive numbers are in the order of their bits; so are infinity and, above it, NaN. */
__global__ void find_largest(const double *x, int64_t count, double *largest) {
    unsigned long long most = 0;
    FOR_EACH(i, count) {
        unsigned long long bits = (unsigned long long)__double_as_longlong(fabs(x[i]));
        most = bits > most ? bits : most;
    }
    for (int k = 16; k; k >>= 1) {
        unsigned long long other = __shfl_down_sync(~0u, most, k);
        most = other > most ? other : most;
    }
    if (!(threadIdx.x & 31)) atomicMax((unsigned long long *)largest, most);
}

__global__ void add_largest(double *x, int64_t count, double unit, const double *largest,
                            uint64_t seed) {
    FOR_EACH(i, count) x[i] += unit * *largest * noise_even(seed, (uint64_t)i);
}

uint64_t kp_noise_seed(uint64_t seed, int64_t use) {
    return noise_bits(seed, (uint64_t)use);
}

void kp_noise_sum(double *y, const double *q, int64_t count, double terms, int chain,
                  const struct kp_noise *n, cudaStream_t stream) {
    add_sum_noise<<<blocks_for(count), BLOCK, 0, stream>>>(y, q, count, terms, chain, 0, n->sum,
                                                           n->seed);
    KP_CUDA(cudaGetLastError());
}

void kp_noise_product(double *y, const double *q, int64_t count, double terms,
                      const struct kp_noise *n, cudaStream_t stream) {
    add_sum_noise<<<blocks_for(count), BLOCK, 0, stream>>>(y, q, count, terms, KP_PRODUCT_CHAIN,
                                                           n->operand, n->sum, n->seed);
    KP_CUDA(cudaGetLastError());
}

void kp_noise_products(const struct kp_noisy *draws, const double *x, int64_t apart,
                       const double *q, int64_t count, double terms, const struct kp_noise *n,
                       cudaStream_t stream) {
    (apart ? draw_products<true> : draw_products<false>)<<<blocks_for(count), BLOCK, 0, stream>>>(
        *draws, x, apart, q, count, terms, n->operand, n->sum);
    KP_CUDA(cudaGetLastError());
}

void kp_noise_round(double *y, int64_t count, double unit, uint64_t seed, cudaStream_t stream) {
    add_rounding<<<blocks_for(count), BLOCK, 0, stream>>>(y, count, unit, seed);
    KP_CUDA(cudaGetLastError());
}

void kp_noise_square(const double *x, double *to, int64_t count, cudaStream_t stream) {
    square<<<blocks_for(count), BLOCK, 0, stream>>>(x, to, count);
    KP_CUDA(cudaGetLastError());
}

void kp_noise_largest(double *x, int64_t count, const struct kp_noise *n, double *scratch,
                      cudaStream_t stream) {
    KP_CUDA(cudaMemsetAsync(scratch, 0, sizeof *scratch, stream));
    find_largest<<<blocks_for(count), BLOCK, 0, stream>>>(x, count, scratch);
    add_largest<<<blocks_for(count), BLOCK, 0, stream>>>(x, count, n->largest, scratch, n->seed);
    KP_CUDA(cudaGetLastError());
}
