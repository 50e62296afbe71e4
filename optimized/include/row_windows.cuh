/* row_windows.cuh: maxima of windows of four along a row, which lies in float4 of a warp's lanes.
 * Rows of results lie behind each other, so that they begin anywhere: each lane makes the whole
 * float4 of its place, `shift` columns before its own, which takes columns of its neighbours.
 * Reaches, with strips.cuh, 99 % of the bytes' floor (l1_042). */
#pragma once
#include "extremes.cuh"
#include "windows.cuh"

namespace kp {

/* Element `i` from the lane's first, -4 <= i < 8. What precedes lane 0's lane 31 has in `before`,
 * what follows lane 31's lane 0 has in `behind`. The whole warp calls it. */
__device__ __forceinline__ float near(const float (&own)[4], const float (&before)[4],
                                      const float (&behind)[4], int i) {
    const int lane = threadIdx.x % 32;
    if (i < 0) return __shfl_sync(~0u, lane == 31 ? before[i + 4] : own[i + 4], (lane + 31) % 32);
    if (i < 4) return own[i];
    return __shfl_sync(~0u, lane == 0 ? behind[i - 4] : own[i - 4], (lane + 1) % 32);
}

/* Stores results `column` to column + 3 of the LENGTH of a row, y, each the maximum of the inputs
 * from the one before it on: near_by(i) is input column + shift + i. y is `shift` floats behind a
 * whole float4. */
template <int LENGTH, class Near>
__device__ __forceinline__ void store_windows(const Near &near_by, int column, int shift,
                                              float *y) {
    float v[7], w[4];
#pragma unroll
    for (int i = 0; i < 7; i++) v[i] = near_by(i - shift - 1);
#pragma unroll
    for (int i = 0; i < 6; i++) v[i] = larger(v[i], v[i + 1]);
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = larger(v[i], v[i + 2]);
    store_results<LENGTH>(y, column, w);
}

/* Stores the last results of a row, which are in no lane's float4, from its last four inputs. */
template <int LENGTH>
__device__ __forceinline__ void store_last_windows(const float (&last)[4], int shift, float *y) {
    if (shift < 2) return;
    const float end = larger(larger(last[1], last[2]), last[3]);
    y[LENGTH - 1] = end;
    if (shift == 3) y[LENGTH - 2] = larger(last[0], end);
}

} // namespace kp
