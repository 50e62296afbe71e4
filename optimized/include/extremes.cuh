/* extremes.cuh: the larger and the smaller of two numbers in one instruction. A NaN is both, where
 * fmaxf and fminf pass over it. */
#pragma once

namespace kp {

__device__ __forceinline__ float larger(float a, float b) {
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

__device__ __forceinline__ float smaller(float a, float b) {
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

} // namespace kp
