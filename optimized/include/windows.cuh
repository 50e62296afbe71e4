/* windows.cuh: windows that slide along an axis, for pools and convolutions, and how a thread
 * stores what it made of four of them. */
#pragma once

namespace kp {

/* SIZE places, windows of KERNEL of them, DILATION apart, one every STRIDE, from -PAD on. What lies
 * outside is padding. */
template <int SIZE_, int KERNEL_, int STRIDE_ = 1, int PAD_ = 0, int DILATION_ = 1> struct Windows {
    static constexpr int SIZE = SIZE_, KERNEL = KERNEL_, STRIDE = STRIDE_, PAD = PAD_;
    static constexpr int DILATION = DILATION_;
    static constexpr int REACH =
        (KERNEL - 1) * DILATION + 1; /* places from the first to the last */
    static constexpr int OUT = (SIZE + 2 * PAD - REACH) / STRIDE + 1;
    static_assert(SIZE + 2 * PAD >= REACH, "a window at least");

    /* How many places lie under `n` neighbouring windows. */
    static constexpr int under(int n) { return (n - 1) * STRIDE + REACH; }
};

/* Stores results `column` to column + 3 of the LENGTH of a row, y, but for those outside of it.
 * y + column is aligned to 16 bytes. */
template <int LENGTH>
__device__ __forceinline__ void store_results(float *y, int column, const float (&w)[4]) {
    if (column >= 0 && column + 4 <= LENGTH)
        *(float4 *)(y + column) = make_float4(w[0], w[1], w[2], w[3]);
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            if ((unsigned)(column + i) < (unsigned)LENGTH) y[column + i] = w[i];
}

} // namespace kp
