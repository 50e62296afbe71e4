/* extremes.cuh: optimized/include/extremes.cuh for tests/emulate. */
#pragma once

namespace kp {
inline float larger(float a, float b) {
    return a != a || b != b ? NAN : fmaxf(a, b);
}
inline float smaller(float a, float b) {
    return a != a || b != b ? NAN : fminf(a, b);
}
} // namespace kp
