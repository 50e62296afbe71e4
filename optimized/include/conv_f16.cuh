/* conv_f16.cuh: convolution as a matrix product on Hopper's tensor cores, class fp32-normwise.
 *
 * out[pixel][channel] = patch[pixel][depth] * filter[depth][channel], each fp32 operand as the sum
 * of two f16 ones, hi + lo, together 22 bits, and three products: hi hi + hi lo + lo hi (lo lo is
 * below fp32's last place). Powers of two bring the operands into f16's range: the filter has one a
 * channel, the patches one for what a warp reads at a time (18 neighbouring pixels of a row, 16
 * channels), so elements 2^17 below their neighbourhood's largest still have all 22 bits.
 *
 * The patch is the left operand, in registers: read from the image's tile in shared memory at any
 * offset, split there. The filter is the right operand, split once into a shared-memory image by
 * filter_image_kernel. Tensor cores truncate when they add; so every 48 of depth (a group: 3 steps
 * of 16) the small products come first, and the group's sum goes to fp32 registers.
 *
 * A block is WGS consumer warpgroups, each 64 pixels x N channels, and a producer: one warp copies
 * image tiles, one streams the filter where it does not fit (W_STAGES > 0). Blocks are persistent.
 *
 * What differs between convolutions is a plan P:
 *   N, WGS, TILES, CHUNKS (image stages a tile), GROUPS (a chunk), DEPTH (of a filter row)
 *   X_WORDS (a stage), X_STAGES, W_STAGES (0: resident), PAIRS (words a thread reads a group, / 2)
 *   SPLIT: parts of N multiplied one after the other, to save registers
 *   COPIES, copy(): the bulk copies of a chunk; depth(): which weight a step and column hold
 *   pick(): which pair is fragment i of step j; At: a thread's place in the image tile
 *   STORERS: 0, or 4 more warps store the tiles, from shared memory
 *   store<F>(): F's value of the sums to out; or stage<F>() them and store_staged() */
#pragma once
#include <cuda_fp16.h>
#include "hopper_f16.cuh"

constexpr int STEPS = 3; /* steps of 16 of depth a group */

/* The function of a convolution with nothing after it, and with bias. */
struct Plain {
    static __device__ __forceinline__ float apply(float v, const float *, int) { return v; }
};
struct Biased {
    static __device__ __forceinline__ float apply(float v, const float *bias, int channel) {
        return v + __ldg(bias + channel);
    }
};

template <class P> struct Layout {
    static constexpr int GROUP_BYTES = STEPS * P::N * 64; /* hi and lo of 16 x N a step */
    static constexpr int ALL_GROUPS = P::CHUNKS * P::GROUPS;
    static constexpr int W_SLOTS = P::W_STAGES ? P::W_STAGES : ALL_GROUPS;
    static constexpr int W_BARS = P::W_STAGES ? P::W_STAGES : 1;
    static constexpr int W_BYTES = W_SLOTS * GROUP_BYTES;
    static constexpr int X_BYTES = P::X_STAGES * P::X_WORDS * 4;
    static constexpr int Y_BYTES = P::STORERS ? P::N * (P::WGS * 64 + 4) * 4 : 0;
    static constexpr int BYTES = W_BYTES + X_BYTES + Y_BYTES + 2 * (P::X_STAGES + W_BARS + 1) * 8;
    static constexpr int THREADS = (P::WGS + 1 + P::STORERS / 4) * 128;
    static constexpr int ZEROS = 1024, SCALES = 512; /* bytes after the filter's image */
    static constexpr size_t IMAGE_BYTES = (size_t)ALL_GROUPS * GROUP_BYTES;
    static_assert(P::STORERS == 0 || (P::STORERS == 4 && P::WGS == 2), "registers are for these");
    static constexpr int PRODUCER_REGISTERS = P::WGS == 2 ? 40 : 32;
    static constexpr int REGISTERS = P::WGS == 3 ? 160 : P::STORERS ? 216 : 232;
    static_assert(BYTES <= 232448, "shared memory of a block");
    static_assert(P::X_WORDS % 4 == 0, "stages of whole 16 bytes");
    static_assert(P::DEPTH <= 1024, "sums in range, see LEAST_SHIFT");
};

/* 2^14 over the power of two in the largest of values whose bits' maximum this is, and its inverse.
 * Values below 2^-110 count as that. */
constexpr int LEAST_EXPONENT = 17; /* of these bits */
__device__ __forceinline__ float scale_up(uint32_t bits) {
    return __uint_as_float((268 - max(bits >> 23, LEAST_EXPONENT)) << 23);
}
__device__ __forceinline__ float scale_down(uint32_t bits) {
    return __uint_as_float((max(bits >> 23, LEAST_EXPONENT) - 14) << 23);
}

/* What undoes the scales of the filter's channels, after the sums. Until then a sum is as many
 * times its result, and could overflow where the result does not. So scale_down() of the patches is
 * multiplied by `shift`, the power of two that undoes the scale of the channel with the largest
 * weights: at most 1, and at least LEAST_SHIFT. With that one the sum of 1024 products (the most of
 * DEPTH) of 2^128 and 2^15 is in range, and the least scale_down() becomes the least denormal. */
struct Scales {
    static constexpr float LEAST_SHIFT = 0x1p-25f;
    const float *down;
    float shift;

    /* All lanes of a warp. */
    __device__ __forceinline__ Scales(const float *down, int channels) : down(down) {
        float top = 0;
        for (int n = threadIdx.x % 32; n < channels; n += 32) top = fmaxf(top, __ldg(down + n));
        top = __uint_as_float(__reduce_max_sync(0xffffffff, __float_as_uint(top)));
        shift = fminf(fmaxf(top, LEAST_SHIFT), 1.0f);
    }
    /* The sum of channel n times this is its result. */
    __device__ __forceinline__ float of(int n) const {
        const float back = __uint_as_float((254u << 23) - __float_as_uint(shift)); /* 1 / shift */
        return __ldg(down + n) * back;
    }
};

/* image = the filter as the consumers want it: for each step of 16 of depth the hi parts, then the
 * lo parts, each [N / 8][2][8][8]: eight channels, half of the depth, channel, depth. Then zeros,
 * then what undoes the channels' scales. A block a channel. */
template <class P>
__global__ void __launch_bounds__(256)
    filter_image_kernel(const float *__restrict__ weight, __half *__restrict__ image) {
    constexpr int STEP = P::N * 16, COUNT = Layout<P>::ALL_GROUPS * STEPS * 16;
    const int n = blockIdx.x;
    __shared__ uint32_t largest;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    uint32_t top = 0;
    for (int i = threadIdx.x; i < P::DEPTH; i += blockDim.x)
        top = max(top, __float_as_uint(fabsf(weight[n * P::DEPTH + i])));
    atomicMax(&largest, top);
    __syncthreads();
    const float scale = scale_up(largest);
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) {
        const int step = i / 16, column = i % 16, d = P::depth(step, column);
        const float v = d < 0 ? 0.0f : weight[n * P::DEPTH + d] * scale;
        const __half hi = __float2half_rn(v);
        __half *p = image + (long long)step * 2 * STEP + n / 8 * 128 + column / 8 * 64 + n % 8 * 8 +
                    column % 8;
        p[0] = hi;
        p[STEP] = __float2half_rn(v - __half2float(hi));
    }
    float *zeros = (float *)((char *)image + Layout<P>::IMAGE_BYTES);
    if (n == 0) zeros[threadIdx.x] = 0.0f;
    if (threadIdx.x == 0) zeros[Layout<P>::ZEROS / 4 + n] = scale_down(largest);
}

/* The block's shared memory. */
template <class P> struct Shared {
    unsigned char *w;
    float *x, *y;
    uint64_t *x_full, *x_empty, *w_full, *w_empty, *y_full, *y_empty;
    __device__ __forceinline__ Shared(unsigned char *p) {
        w = p;
        x = (float *)(p + Layout<P>::W_BYTES);
        y = x + P::X_STAGES * P::X_WORDS;
        x_full = (uint64_t *)(y + Layout<P>::Y_BYTES / 4);
        x_empty = x_full + P::X_STAGES;
        w_full = x_empty + P::X_STAGES;
        w_empty = w_full + Layout<P>::W_BARS;
        y_full = w_empty + Layout<P>::W_BARS;
        y_empty = y_full + 1;
    }
};

/* One warp: the image tiles of all this block's tiles, each lane its share of the copies. */
template <class P>
__device__ __forceinline__ void produce_images(const Shared<P> &s, const float *x,
                                               const float *zeros) {
    const int lane = threadIdx.x % 32;
    uint32_t n = 0;
    for (int tile = blockIdx.x; tile < P::TILES; tile += gridDim.x)
        for (int chunk = 0; chunk < P::CHUNKS; chunk++, n++) {
            const int stage = n % P::X_STAGES;
            barrier_wait(s.x_empty + stage, n / P::X_STAGES % 2 ^ 1);
            const int bytes = P::copy_bytes(tile);
            barrier_expect(s.x_full + stage, (P::COPIES - lane + 31) / 32 * bytes);
            for (int i = lane; i < P::COPIES; i += 32) {
                int to;
                const float *from = P::copy(tile, chunk, i, x, zeros, &to);
                bulk_copy(s.x + stage * P::X_WORDS + to, from, bytes, s.x_full + stage);
            }
            bulk_copied(s.x_full + stage);
        }
}

/* One thread: the filter, once if it stays, else a group at a time for each tile. */
template <class P>
__device__ __forceinline__ void produce_filter(const Shared<P> &s, const unsigned char *image) {
    constexpr int GROUP = Layout<P>::GROUP_BYTES, ALL = Layout<P>::ALL_GROUPS;
    if (P::W_STAGES == 0) {
        barrier_expect(s.w_full, ALL * GROUP);
        for (int g = 0; g < ALL; g++)
            bulk_copy(s.w + g * GROUP, image + g * GROUP, GROUP, s.w_full);
        bulk_copied(s.w_full);
        return;
    }
    uint32_t n = 0;
    for (int tile = blockIdx.x; tile < P::TILES; tile += gridDim.x)
        for (int g = 0; g < ALL; g++, n++) {
            const int stage = n % Layout<P>::W_SLOTS;
            barrier_wait(s.w_empty + stage, n / Layout<P>::W_SLOTS % 2 ^ 1);
            barrier_expect(s.w_full + stage, GROUP);
            bulk_copy(s.w + stage * GROUP, image + g * GROUP, GROUP, s.w_full + stage);
            bulk_copied(s.w_full + stage);
        }
}

/* What a thread multiplies: a group's fragments, and what undoes their scale. */
template <class P> struct Fragments {
    uint32_t hi[P::PAIRS], lo[P::PAIRS];
    float down;

    /* Splits the thread's words of the image; `shift` is that of Scales. */
    __device__ __forceinline__ void split(const float2 (&v)[P::PAIRS], float shift) {
        float top = 0;
#pragma unroll
        for (int i = 0; i < P::PAIRS; i++) top = fmaxf(top, fmaxf(fabsf(v[i].x), fabsf(v[i].y)));
        const uint32_t largest = __reduce_max_sync(0xffffffff, __float_as_uint(top));
        const float up = scale_up(largest);
        down = scale_down(largest) * shift;
#pragma unroll
        for (int i = 0; i < P::PAIRS; i++) {
            const float x = v[i].x * up, y = v[i].y * up;
            const __half2 h = __floats2half2_rn(x, y);
            const __half2 l = __floats2half2_rn(x - __low2float(h), y - __high2float(h));
            hi[i] = *(const uint32_t *)&h;
            lo[i] = *(const uint32_t *)&l;
        }
    }

    /* d = their product with N channels of the filter from b on. */
    template <int N>
    __device__ __forceinline__ void multiply(float (&d)[N / 2], uint64_t b, uint32_t never,
                                             float *word) const {
        constexpr int STEP = P::N * 64 >> 4, LOW = P::N * 32 >> 4;
        wgmma_fence();
#pragma unroll
        for (int j = 0; j < STEPS; j++) {
            one<N>(d, lo, j, b + j * STEP, j > 0);
            one<N>(d, hi, j, b + j * STEP + LOW, 1);
        }
#pragma unroll
        for (int j = 0; j < STEPS; j++) one<N>(d, hi, j, b + j * STEP, 1);
        wgmma_commit();
        wgmma_wait();
        hold(never, word);
#pragma unroll
        for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(d[i])::"memory"); /* not sooner */
    }

    /* Keeps the fragments' registers until here. To the assembler they are free once the products
     * are issued, and the next group's words got there while products still read them (nvcc 13.0).
     * `never` is a count that does not get to 2^32 - 1. */
    __device__ __forceinline__ void hold(uint32_t never, float *word) const {
        if (never != 0xffffffff) return;
        uint32_t all = 0;
#pragma unroll
        for (int i = 0; i < P::PAIRS; i++) all = all * 3 ^ hi[i] ^ lo[i] * 5;
        *(volatile uint32_t *)word = all;
    }

    template <int N>
    static __device__ __forceinline__ void one(float (&d)[N / 2], const uint32_t (&a)[P::PAIRS],
                                               int j, uint64_t b, int add) {
        Wgmma<N>::go(d, a[P::pick(j, 0)], a[P::pick(j, 1)], a[P::pick(j, 2)], a[P::pick(j, 3)], b,
                     add);
    }
};

/* A warpgroup: its 64 pixels of all this block's tiles. */
template <class P, class F>
__device__ __forceinline__ void consume(const Shared<P> &s, const Scales &scales, const float *bias,
                                        float *out) {
    constexpr int N = P::N / P::SPLIT;
    const int wg = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const uint64_t b = operand(s.w);
    uint32_t n = 0, m = 0, k = 0; /* chunks, groups and tiles so far */
    if (P::W_STAGES == 0) barrier_wait(s.w_full, 0);
    for (int tile = blockIdx.x; tile < P::TILES; tile += gridDim.x, k++) {
        float sum[P::N / 2] = {};
        const typename P::At at(tile, wg, warp, lane);
        for (int chunk = 0; chunk < P::CHUNKS; chunk++, n++) {
            const int x_stage = n % P::X_STAGES;
            barrier_wait(s.x_full + x_stage, n / P::X_STAGES % 2);
#pragma unroll(P::GROUPS <= 4 ? P::GROUPS : 1)
            for (int g = 0; g < P::GROUPS; g++, m++) {
                const int w_stage = P::W_STAGES ? m % Layout<P>::W_SLOTS : chunk * P::GROUPS + g;
                const uint64_t w = b + (uint32_t)w_stage * (Layout<P>::GROUP_BYTES >> 4);
                float2 v[P::PAIRS];
                Fragments<P> f;
                at.fetch(s.x + x_stage * P::X_WORDS, g, v);
                f.split(v, scales.shift);
                if (P::W_STAGES) barrier_wait(s.w_full + w_stage, m / Layout<P>::W_SLOTS % 2);
#pragma unroll
                for (int part = 0; part < P::SPLIT; part++) {
                    float d[N / 2];
                    f.template multiply<N>(d, w + part * (N * 32 >> 4), m, s.x);
#pragma unroll
                    for (int i = 0; i < N / 2; i++)
                        sum[part * N / 2 + i] = fmaf(d[i], f.down, sum[part * N / 2 + i]);
                }
                if (P::W_STAGES && lane == 0) barrier_arrive(s.w_empty + w_stage);
            }
            barrier_arrive_warp(s.x_empty + x_stage);
        }
        if constexpr (P::STORERS > 0) {
            barrier_wait(s.y_empty, k % 2 ^ 1);
            P::template stage<F>(wg, warp, lane, sum, scales, bias, s.y);
            barrier_arrive_warp(s.y_full);
        } else {
            P::template store<F>(tile, wg, warp, lane, sum, scales, bias, out);
        }
    }
}

/* One of the warps that store staged tiles while the next are multiplied. */
template <class P>
__device__ __forceinline__ void store_tiles(const Shared<P> &s, int storer, float *out) {
    uint32_t k = 0;
    for (int tile = blockIdx.x; tile < P::TILES; tile += gridDim.x, k++) {
        barrier_wait(s.y_full, k % 2);
        P::store_staged(tile, storer, threadIdx.x % 32, s.y, out);
        barrier_arrive_warp(s.y_empty);
    }
}

template <class P, class F>
__global__ void __launch_bounds__(Layout<P>::THREADS, 1)
    conv_kernel(const float *__restrict__ x, const unsigned char *__restrict__ image,
                const float *__restrict__ bias, float *__restrict__ out) {
    extern __shared__ __align__(128) unsigned char memory[];
    const Shared<P> s(memory);
    if (threadIdx.x == 0) {
        for (int i = 0; i < P::X_STAGES; i++) {
            barrier_init(s.x_full + i, 32);
            barrier_init(s.x_empty + i, 4 * P::WGS * WARP_ARRIVALS);
        }
        for (int i = 0; i < Layout<P>::W_BARS; i++) {
            barrier_init(s.w_full + i, 1);
            barrier_init(s.w_empty + i, 4 * P::WGS);
        }
        barrier_init(s.y_full, 4 * P::WGS * WARP_ARRIVALS);
        barrier_init(s.y_empty, 4 * WARP_ARRIVALS);
        barrier_init_done();
    }
    P::prepare(s.x, P::X_STAGES * P::X_WORDS);
    fence_proxy_async();
    __syncthreads();
    const int role = threadIdx.x / 128, warp = threadIdx.x / 32 % 4;
    if (role >= P::WGS) {
        fewer_registers<Layout<P>::PRODUCER_REGISTERS>();
        if (role == P::WGS && warp == 0)
            produce_images<P>(s, x, (const float *)(image + Layout<P>::IMAGE_BYTES));
        if (role == P::WGS && threadIdx.x % 128 == 32) produce_filter<P>(s, image);
        if constexpr (P::STORERS > 0)
            if (role > P::WGS) store_tiles<P>(s, warp, out);
    } else {
        more_registers<Layout<P>::REGISTERS>();
        const float *down = (const float *)(image + Layout<P>::IMAGE_BYTES + Layout<P>::ZEROS);
        consume<P, F>(s, Scales(down, P::N), bias, out);
    }
}

/* Bytes of scratch that convolve() needs. */
template <class P> constexpr size_t convolve_scratch() {
    return Layout<P>::IMAGE_BYTES + Layout<P>::ZEROS + Layout<P>::SCALES;
}

/* Enqueues out = F(convolution of x). */
template <class P, class F>
static void convolve(const float *x, const float *weight, const float *bias, float *out,
                     void *scratch, cudaStream_t stream) {
    int device = 0, sms = 132;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    filter_image_kernel<P><<<P::N, 256, 0, stream>>>(weight, (__half *)scratch);
    const int blocks = P::TILES < sms ? P::TILES : sms;
    cudaFuncSetAttribute(conv_kernel<P, F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         Layout<P>::BYTES);
    conv_kernel<P, F><<<blocks, Layout<P>::THREADS, Layout<P>::BYTES, stream>>>(
        x, (const unsigned char *)scratch, bias, out);
}
