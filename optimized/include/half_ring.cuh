/* half_ring.cuh: what products of f16 on sm_90a share: the ring of stages through which those who
 * fetch slabs of operands hand them to those who multiply, and how a quad's sums become rows. A
 * tile T says how many STAGES there are, how many bytes a STAGE and its A_BYTES have, and that its
 * barriers lie at BARS: of each stage one for full, one for empty. */
#pragma once
#include "hopper_f16.cuh"

namespace kp {

/* A place in the ring, and the parity of its barriers. */
template <class T> struct HalfRing {
    uint32_t base;
    int stage = 0, parity = 0;
    __device__ __forceinline__ uint32_t a() const { return base + stage * T::STAGE; }
    __device__ __forceinline__ uint32_t b() const { return a() + T::A_BYTES; }
    __device__ __forceinline__ uint32_t full() const { return base + T::BARS + stage * 16; }
    __device__ __forceinline__ uint32_t empty() const { return full() + 8; }
    __device__ __forceinline__ void next() {
        if (++stage == T::STAGES) stage = 0, parity ^= 1;
    }
    __device__ __forceinline__ void skip(int slabs) {
        stage += slabs;
        parity ^= stage / T::STAGES & 1;
        stage %= T::STAGES;
    }
    /* Waits until all stages are given back: before that no block leaves which others arrive at. */
    __device__ __forceinline__ void wait_all() {
        for (int s = 0; s < T::STAGES; s++, next()) bar_wait(empty(), parity ^ 1);
    }
};

/* Transposes 4 x 4 words over the four threads of a quad, so that each holds 16 bytes of a row. */
__device__ __forceinline__ void half_transpose(uint32_t (&r)[4]) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const bool odd = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & step) continue;
            const uint32_t got = __shfl_xor_sync(~0u, odd ? r[i] : r[i + step], step);
            if (odd)
                r[i] = got;
            else
                r[i + step] = got;
        }
    }
}

} // namespace kp
