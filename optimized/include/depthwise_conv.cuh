/* depthwise_conv.cuh: depthwise convolution over two axes, a filter for each channel, of any size,
 * stride, padding and dilation.
 *
 * A thread makes four neighbouring columns of some rows of the result. It reads all rows under them
 * at once, as whole float4; the overlap with what other threads read comes from L1 and L2. Where
 * rows of the result are no whole float4, but strips of rows are, each row has its own shift, known
 * when compiled: a thread makes the four columns that are a float4 of memory, the first threads
 * also what is left over. Bytes over the copy bandwidth limit it. Reaches 96 to 97 % of the floor
 * (l1_083, l1_082).
 *
 * Slower: where rows of the input are no whole float4 they are read value by value; where strips or
 * planes of the result are none they are stored so. depthwise_read and depthwise_sum serve a kernel
 * that does more with the sums, too. */
#pragma once
#include "windows.cuh"

namespace kp {

constexpr int DEPTHWISE_BLOCK = 128;

/* The constants of a convolution of CHANNELS planes an image, H and W: Windows. A thread makes ROWS
 * rows of the result and holds what is under them in UNDER * READ float4: 26 fit. */
template <int CHANNELS_, class H_, class W_, int ROWS_> struct DepthwiseConv {
    using H = H_;
    using W = W_;
    static constexpr int CHANNELS = CHANNELS_, ROWS = ROWS_, TAPS = H::KERNEL * W::KERNEL;
    static constexpr bool FOURS_IN = W::SIZE % 4 == 0;
    static constexpr bool FOURS_OUT = H::OUT * W::OUT % 4 == 0 && ROWS * W::OUT % 4 == 0;
    /* How far row r of a strip is shifted to the right, and the most that a row is. */
    static __host__ __device__ constexpr int shift(int r) {
        return FOURS_OUT ? (4 - r * W::OUT % 4) % 4 : 0;
    }
    static constexpr int MOST = !FOURS_OUT || W::OUT % 4 == 0 ? 0 : W::OUT % 2 == 0 ? 2 : 3;
    static constexpr int LEFT = (W::PAD + 3) / 4 * 4; /* a thread reads from so far to the left */
    static constexpr int READ = (LEFT - W::PAD + W::under(MOST + 4) + 3) / 4; /* float4 of a row */
    static constexpr int UNDER = H::under(ROWS);                              /* rows */
    static constexpr int STRIPS = (H::OUT + ROWS - 1) / ROWS;
    /* Threads along a row; of a long one whole lines of memory, so that warps read such. */
    static constexpr int ACROSS = W::OUT < 128 ? (W::OUT + 3) / 4 : (W::OUT + 31) / 32 * 8;
    static_assert((long long)H::SIZE * W::SIZE < 1LL << 31, "a plane has fewer than 2^31 elements");
};

/* Reads what lies under the ROWS x 4 results from (row, column) on; column is a multiple of 4. */
template <class S>
__device__ __forceinline__ void depthwise_read(const float *__restrict__ plane, int row, int column,
                                               float (&v)[S::UNDER][S::READ * 4]) {
    using H = typename S::H;
    using W = typename S::W;
    const int top = row * H::STRIDE - H::PAD, left = column * W::STRIDE - S::LEFT;
    const float *in = plane + (long long)top * W::SIZE + left;
#pragma unroll
    for (int r = 0; r < S::UNDER; r++)
#pragma unroll
        for (int j = 0; j < S::READ * 4; j += S::FOURS_IN ? 4 : 1) {
            const bool inside =
                (unsigned)(top + r) < (unsigned)H::SIZE && (unsigned)(left + j) < (unsigned)W::SIZE;
            if constexpr (S::FOURS_IN) {
                float4 a = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (inside) a = __ldg((const float4 *)(in + r * W::SIZE + j));
                v[r][j] = a.x, v[r][j + 1] = a.y, v[r][j + 2] = a.z, v[r][j + 3] = a.w;
            } else
                v[r][j] = inside ? __ldg(in + r * W::SIZE + j) : 0.0f;
        }
}

/* The result c columns and r rows from the first of what was read. */
template <class S>
__device__ __forceinline__ float
depthwise_sum(const float (&w)[S::TAPS], const float (&v)[S::UNDER][S::READ * 4], int r, int c) {
    using H = typename S::H;
    using W = typename S::W;
    float sum = 0;
#pragma unroll
    for (int t = 0; t < S::TAPS; t++)
        sum += w[t] * v[r * H::STRIDE + t / W::KERNEL * H::DILATION]
                       [S::LEFT - W::PAD + c * W::STRIDE + t % W::KERNEL * W::DILATION];
    return sum;
}

/* Threads are numbered along four columns, strips of rows and planes. 128 registers a thread:
 * without a bound the compiler saves some and moves loads down to their use. */
template <class S>
__global__ void __launch_bounds__(DEPTHWISE_BLOCK, 4)
    depthwise_conv_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                          float *__restrict__ y, int planes) {
    using H = typename S::H;
    using W = typename S::W;
    const unsigned unit = blockIdx.x * DEPTHWISE_BLOCK + threadIdx.x;
    const int column = unit % S::ACROSS * 4, strip = unit / S::ACROSS;
    const int row = strip % S::STRIPS * S::ROWS, plane = strip / S::STRIPS;
    if (plane >= planes) return;
    float w[S::TAPS], v[S::UNDER][S::READ * 4];
#pragma unroll
    for (int t = 0; t < S::TAPS; t++) w[t] = __ldg(weight + plane % S::CHANNELS * S::TAPS + t);
    depthwise_read<S>(x + (long long)plane * (H::SIZE * W::SIZE), row, column, v);
    float *to = y + ((long long)plane * H::OUT + row) * W::OUT + column;
#pragma unroll
    for (int r = 0; r < S::ROWS; r++, to += W::OUT) {
        constexpr int OUT = W::OUT;
        const int shift = S::shift(r);
        if (H::OUT % S::ROWS && row + r >= H::OUT) break;
        float sum[4];
#pragma unroll
        for (int c = 0; c < 4; c++) sum[c] = depthwise_sum<S>(w, v, r, shift + c);
        if (S::FOURS_OUT && column + shift + 4 <= OUT)
            *(float4 *)(to + shift) = make_float4(sum[0], sum[1], sum[2], sum[3]);
        else
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (column + shift + c < OUT) to[shift + c] = sum[c];
#pragma unroll
        for (int c = 0; c < shift; c++) /* left over */
            if (column == 0) to[c] = depthwise_sum<S>(w, v, r, c);
    }
}

/* Enqueues y = the convolution of `images` images of x with weight[CHANNELS][TAPS]; x and y are
 * aligned to 16 bytes. */
template <class S>
static void depthwise_conv(const float *x, const float *weight, float *y, int images,
                           cudaStream_t stream) {
    const int planes = images * S::CHANNELS;
    const long long units = (long long)planes * S::STRIPS * S::ACROSS;
    const unsigned blocks = (unsigned)((units + DEPTHWISE_BLOCK - 1) / DEPTHWISE_BLOCK);
    depthwise_conv_kernel<S><<<blocks, DEPTHWISE_BLOCK, 0, stream>>>(x, weight, y, planes);
}

} // namespace kp
