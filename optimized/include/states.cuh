/* states.cuh: small structs that threads pass to each other and join.
 *
 * A state says something about a set of values; two of them join to that of both sets. An Op has
 *   struct State                 of 4 to 16 bytes, a multiple of 4
 *   static State none()          of no values
 *   static State join(State, State) */
#pragma once
#include <math.h>
#include <string.h>

namespace kp {

/* What the lane has whose number differs in the bits of `step`. */
template <class T> __device__ __forceinline__ T shuffle_xor(const T &v, int step) {
    static_assert(sizeof(T) % 4 == 0, "whole words");
    unsigned word[sizeof(T) / 4];
    T r;
    memcpy(word, &v, sizeof v);
#pragma unroll
    for (unsigned &w : word) w = __shfl_xor_sync(0xffffffffu, w, step);
    memcpy(&r, word, sizeof r);
    return r;
}

/* The sum, and the largest, over each aligned group of LANES lanes; all of them get it. The largest
 * passes over NaN. */
template <int LANES = 32, class T> __device__ __forceinline__ T lanes_sum(T v) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}
template <int LANES = 32> __device__ __forceinline__ float lanes_max(float v) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
    return v;
}

/* The states of a warp, joined. Lane 0's is used: those of others may differ in rounding. */
template <class Op> __device__ __forceinline__ typename Op::State warp_join(typename Op::State s) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) s = Op::join(s, shuffle_xor(s, step));
    return s;
}

/* The states of a block of THREADS, joined; thread 0's is used. Once in a kernel: a second call
 * would have to wait until the first one's shared memory was read. */
template <class Op, int THREADS>
__device__ __forceinline__ typename Op::State block_join(typename Op::State s) {
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block is 1 to 32 whole warps");
    __shared__ typename Op::State part[THREADS / 32];
    s = warp_join<Op>(s);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x >= 32) return s;
    return warp_join<Op>(threadIdx.x < THREADS / 32 ? part[threadIdx.x] : Op::none());
}

/* Reads 8 or 16 bytes from the L2 cache: what another block has written. */
template <class T> __device__ __forceinline__ T load_l2(const T *p) {
    static_assert(sizeof(T) == 8 || sizeof(T) == 16, "one load");
    T r;
    if constexpr (sizeof(T) == 8) {
        const uint2 w = __ldcg((const uint2 *)p);
        memcpy(&r, &w, sizeof r);
    } else {
        const uint4 w = __ldcg((const uint4 *)p);
        memcpy(&r, &w, sizeof r);
    }
    return r;
}

} // namespace kp
