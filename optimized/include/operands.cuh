/* operands.cuh: matrices as operands of a product (product.cuh), either of the two.
 *
 * `count` rows of A, or columns of B, with the depth contiguous (Along) or across (Across):
 * element (batch, i, k) lies at data[batch * BATCH + i * PITCH + k], or + k * PITCH + i. What lies
 * beyond COUNT or DEPTH counts as zero. Where pitches and sizes are multiples of four, copies are
 * of 16 bytes; data is 16-byte aligned. Reaches: see product.cuh. */
#pragma once
#include "product.cuh"

namespace kp {

template <int COUNT, int DEPTH, int PITCH = DEPTH, long long BATCH = 0> struct Along : AlongSlab {
    static constexpr bool FOURS = PITCH % 4 == 0 && DEPTH % 4 == 0 && BATCH % 4 == 0;
    const float *data;

    struct Place {
        const float *from; /* the thread's first element, of the first slab */
        int left;          /* rows from there to the edge */
    };
    /* Of 16-byte pieces a thread copies one of every 16th row, of words one of every fourth. */
    static __device__ __forceinline__ int own_row() { return threadIdx.x % 128 / (FOURS ? 8 : 32); }
    static __device__ __forceinline__ int own_k() {
        return FOURS ? threadIdx.x % 8 * 4 : threadIdx.x % 32;
    }
    __device__ __forceinline__ Place place(int batch, int row) const {
        row += own_row();
        return {data + batch * BATCH + (long long)row * PITCH + own_k(), COUNT - row};
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        constexpr int STEP = FOURS ? 16 : 4;
        const float *from = p.from + slab * TILE_K;
        const bool inside = DEPTH % TILE_K == 0 || slab * TILE_K + own_k() < DEPTH;
#pragma unroll
        for (int r = 0; r < TILE_M; r += STEP)
            copy_async<FOURS ? 16 : 4>(to + AlongSlab::word(own_row() + r, own_k()) * 4,
                                       from + (long long)r * PITCH,
                                       inside && (whole_tiles(COUNT) || r < p.left));
    }

    /* As B that is split on the way: a warp copies a quarter of the N columns to where their big
     * parts go, a lane one of eight pieces of every fourth column. */
    template <int N> __device__ __forceinline__ Place column_place(int batch, int column) const {
        column += threadIdx.x % 128 / 32 * (N / 4) + threadIdx.x % 32 / 8;
        return {data + batch * BATCH + (long long)column * PITCH + own_k(), COUNT - column};
    }
    template <int N>
    __device__ __forceinline__ void fetch_columns(const Place &p, uint32_t to, int slab) const {
        static_assert(FOURS && DEPTH % TILE_K == 0 && N % 32 == 0, "whole pieces, slabs and warps");
        const float *from = p.from + slab * TILE_K;
        const int column = threadIdx.x % 32 / 8, piece = threadIdx.x % 8;
        to += threadIdx.x % 128 / 32 * (N / 4) * TILE_K * 4;
#pragma unroll
        for (int n = 0; n < N / 4; n += 4)
            copy_async<16>(to + (n + column) * TILE_K * 4 + (piece ^ (column + n % 8)) * 16,
                           from + (long long)n * PITCH, COUNT % N == 0 || n < p.left);
    }

    __device__ __forceinline__ float at(int batch, int column, int slab, int k) const {
        k += slab * TILE_K;
        return column < COUNT && k < DEPTH
                   ? __ldg(data + batch * BATCH + (long long)column * PITCH + k)
                   : 0.0f;
    }
};

template <int COUNT, int DEPTH, int PITCH = COUNT, long long BATCH = 0> struct Across : AcrossSlab {
    static constexpr bool FOURS = PITCH % 4 == 0 && COUNT % 4 == 0 && BATCH % 4 == 0;
    const float *data;

    struct Place {
        const float *from;
        int left;
    };
    /* Of 16-byte pieces a thread copies one of every second depth, of words two of each. */
    static __device__ __forceinline__ int own_row() {
        return FOURS ? threadIdx.x % 64 * 4 : threadIdx.x % 128;
    }
    static __device__ __forceinline__ int own_k() { return FOURS ? threadIdx.x % 128 / 64 : 0; }
    __device__ __forceinline__ Place place(int batch, int row) const {
        row += own_row();
        return {data + batch * BATCH + row + (long long)own_k() * PITCH, COUNT - row};
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        constexpr int STEP = FOURS ? 2 : 1;
        const float *from = p.from + (long long)slab * TILE_K * PITCH;
        const int depth = DEPTH - slab * TILE_K - own_k(); /* from here on */
        to += AcrossSlab::word(own_row(), own_k()) * 4;
#pragma unroll
        for (int k = 0; k < TILE_K; k += STEP) {
            const bool inside = DEPTH % TILE_K == 0 || k < depth;
#pragma unroll
            for (int r = 0; r < (FOURS ? 1 : TILE_M); r += 128)
                copy_async<FOURS ? 16 : 4>(to + AcrossSlab::word(r, k) * 4,
                                           from + (long long)k * PITCH + r,
                                           inside && (whole_tiles(COUNT) || r < p.left));
        }
    }

    __device__ __forceinline__ float at(int batch, int column, int slab, int k) const {
        k += slab * TILE_K;
        return column < COUNT && k < DEPTH
                   ? __ldg(data + batch * BATCH + (long long)k * PITCH + column)
                   : 0.0f;
    }
};

} // namespace kp
