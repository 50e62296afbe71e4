/* even_phases.cuh: transposed convolutions (convolve.cuh) of stride 2 whose phases have unequal
 * taps, in an order that gives all clusters as much to multiply.
 *
 * Idea: clusters take phases in turn, and their number is even: one cluster always gets those of an
 * even number, or those of an odd one. Counted as in convolve.cuh, odd ones are those with the
 * other phase along x: twice the taps, where the kernel has three. Here number i is phase i ^ i / 2
 * (a Gray code), so that neighbours differ along one axis, and each axis changes as often: of 27
 * taps in three axes even ones have 13.
 *
 * Contract: EvenPhases<C> in place of a Convolution C with one group and an even number of phases.
 * Reaches: see l2_036, l2_044, l2_078 (13 to 15 % less time than in convolve.cuh's order). */
#pragma once
#include "convolve.cuh"

namespace kp {

template <class C> struct EvenPhases : C {
    static_assert(C::GROUPS == 1 && C::PHASES % 2 == 0, "phases of stride 2");
    static __device__ __forceinline__ int x(int batch) { return C::x(batch ^ batch / 2); }
    static __device__ __forceinline__ int y(int batch) { return C::y(batch ^ batch / 2); }
    static __device__ __forceinline__ int z(int batch) { return C::z(batch ^ batch / 2); }
    static __device__ __forceinline__ int taps_of(int batch) {
        return C::taps_of(batch ^ batch / 2);
    }
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return C::slabs(taps_of(batch));
    }
};

} // namespace kp
