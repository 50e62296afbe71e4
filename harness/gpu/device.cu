/* device.cu: see device.h; what empties and scrubs the GPU is in flush.cu.  Plain grid-stride
 * kernels, each obviously right, and all at or near the speed of memory. */
#include "gpu/device.h"
#include "gpu/widen.cuh"
#include "base/error.h"

#include <math.h>

static const int kThreads = 256;
static const size_t kMostBlocks = 132 * 32; /* 32 for each multiprocessor of an H200 */
static const unsigned kCanaryBlocks = 64;   /* a mapping's canaries are 2 MiB at most */

void device_check(cudaError_t e, const char *step) {
    if (e != cudaSuccess) die(KP_MACHINE, "%s: %s", step, cudaGetErrorString(e));
}

/* Blocks for n items at `each` items a thread. */
static unsigned grid_for(size_t n, size_t each) {
    size_t blocks = (n + kThreads * each - 1) / (kThreads * each);
    return (unsigned)(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

#define FOR_EACH(i, n)                                                              \
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)(n); \
         i += (size_t)gridDim.x * blockDim.x)

/* ---- Poison ------------------------------------------------------------------ */

uint32_t device_poison_word(uint64_t seed) {
    uint32_t r = (uint32_t)kp_mix(seed, 77);
    return 0x7b007b00u | (r & 0x00ff00ffu); /* f32 and bf16: 6e35, f16: 6e4, i64: 8e18 */
}

__global__ void poison_kernel(uint32_t *data, size_t words, uint32_t word) {
    FOR_EACH(i, words) data[i] = word;
}

__global__ void poison_tail(unsigned char *data, size_t bytes, uint32_t word) {
    for (size_t i = bytes & ~(size_t)3; i < bytes; i++)
        data[i] = (unsigned char)(word >> 8 * (i & 3));
}

void device_poison(void *data, size_t bytes, uint32_t word, cudaStream_t stream) {
    if (!bytes) return;
    poison_kernel<<<grid_for(bytes / 4, 4), kThreads, 0, stream>>>((uint32_t *)data, bytes / 4,
                                                                   word);
    if (bytes & 3) poison_tail<<<1, 1, 0, stream>>>((unsigned char *)data, bytes, word);
    device_check(cudaGetLastError(), "poisoning memory");
}

__global__ void poison_check_kernel(const unsigned char *data, size_t bytes, uint32_t word,
                                    unsigned long long *mismatches) {
    unsigned long long bad = 0;
    size_t words = bytes / 4;
    FOR_EACH(i, words) bad += ((const uint32_t *)data)[i] != word;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (size_t i = words * 4; i < bytes; i++)
            bad += data[i] != (unsigned char)(word >> 8 * (i & 3));
    if (bad) atomicAdd(mismatches, bad);
}

void device_poison_check(const void *data, size_t bytes, uint32_t word,
                         unsigned long long *mismatches, cudaStream_t stream) {
    if (!bytes) return;
    poison_check_kernel<<<grid_for(bytes / 4, 4), kThreads, 0, stream>>>(
        (const unsigned char *)data, bytes, word, mismatches);
    device_check(cudaGetLastError(), "checking the pattern");
}

/* Write the canaries of mapping blockIdx.y, or, if `changed` is given, count what differs. */
__global__ void canaries_kernel(const kp_guarded *list, uint32_t word,
                                unsigned long long *changed) {
    const kp_guarded g = list[blockIdx.y];
    unsigned long long bad = 0;
    FOR_EACH(i, g.from / 4) {
        uint32_t *p = (uint32_t *)g.base + i;
        if (!changed) *p = word;
        bad += __popc(__vcmpne4(*p, word)) / 8;
    }
    FOR_EACH(i, g.mapped - g.to) {
        size_t at = g.to + i;
        unsigned char byte = (unsigned char)(word >> 8 * (at & 3));
        if (!changed) g.base[at] = byte;
        bad += g.base[at] != byte;
    }
    if (bad) atomicAdd(&changed[blockIdx.y], bad);
}

static void canaries(const struct kp_guarded *list, int n, uint32_t word,
                     unsigned long long *changed, cudaStream_t stream) {
    if (n)
        canaries_kernel<<<dim3(kCanaryBlocks, (unsigned)n), kThreads, 0, stream>>>(list, word,
                                                                                   changed);
    device_check(cudaGetLastError(), "canaries");
}

void device_canaries(const struct kp_guarded *list, int n, uint32_t word, cudaStream_t stream) {
    canaries(list, n, word, NULL, stream);
}

void device_canaries_check(const struct kp_guarded *list, int n, uint32_t word,
                           unsigned long long *changed, cudaStream_t stream) {
    canaries(list, n, word, changed, stream);
}

/* ---- Sums ------------------------------------------------------------------- */

template <class T> __global__ void squares_kernel(const T *x, int64_t n, double *sum) {
    double s = 0;
#pragma unroll 4
    FOR_EACH(i, n) {
        double v = widen(x[i]);
        s += isfinite(v) ? v * v : 0;
    }
    for (int k = 16; k; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    if (!(threadIdx.x & 31)) atomicAdd(sum, s);
}

void device_sum_squares(const void *x, enum kp_dtype type, int64_t n, double *sum, cudaStream_t s) {
    unsigned grid = grid_for((size_t)n, 8);
    switch (type) {
    case KP_F64: squares_kernel<<<grid, kThreads, 0, s>>>((const double *)x, n, sum); break;
    case KP_F32: squares_kernel<<<grid, kThreads, 0, s>>>((const float *)x, n, sum); break;
    case KP_F16: squares_kernel<<<grid, kThreads, 0, s>>>((const __half *)x, n, sum); break;
    case KP_BF16: squares_kernel<<<grid, kThreads, 0, s>>>((const __nv_bfloat16 *)x, n, sum); break;
    case KP_I64: squares_kernel<<<grid, kThreads, 0, s>>>((const long long *)x, n, sum); break;
    case KP_I32: squares_kernel<<<grid, kThreads, 0, s>>>((const int *)x, n, sum); break;
    case KP_BOOL: squares_kernel<<<grid, kThreads, 0, s>>>((const unsigned char *)x, n, sum); break;
    }
    device_check(cudaGetLastError(), "measuring an output");
}

__global__ void checksum_kernel(const uint32_t *data, size_t words, unsigned long long *sum) {
    unsigned long long s = 0;
#pragma unroll 4
    FOR_EACH(i, words) s += kp_mix(data[i], i);
    for (int k = 16; k; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    if (!(threadIdx.x & 31)) atomicAdd(sum, s);
}

void device_checksum(const void *data, size_t bytes, unsigned long long *sum, cudaStream_t stream) {
    checksum_kernel<<<grid_for(bytes / 4, 8), kThreads, 0, stream>>>((const uint32_t *)data,
                                                                     bytes / 4, sum);
    device_check(cudaGetLastError(), "adding up an input");
}
