/* depthwise.cuh: depthwise convolution over two axes, a filter for each channel.
 *
 * A thread makes four neighbouring columns of some rows; the overlap with what other threads read
 * comes from L1 and L2. 3 x 3 filters at a stride of 1 without padding, over rows of whole float4,
 * have a kernel of their own, which reads and stores whole float4 (see there). */
#pragma once
#include "gemm.cuh" /* Same */

constexpr int DEPTHWISE_ROWS = 10; /* of the result, a thread; more are slower */
constexpr int DEPTHWISE_THREADS = 128, DEPTHWISE_FEW_ROWS = 4; /* of the general kernel */

/* The constants of a depthwise convolution. Stride and padding are the same on both axes. */
template <int CHANNELS_, int H_, int W_, int KH_, int KW_, int STRIDE_, int PAD_>
struct DepthwiseShape {
    static constexpr int CHANNELS = CHANNELS_, H = H_, W = W_, KH = KH_, KW = KW_;
    static constexpr int STRIDE = STRIDE_, PAD = PAD_, TAPS = KH * KW;
    static constexpr int OH = (H + 2 * PAD - KH) / STRIDE + 1;
    static constexpr int OW = (W + 2 * PAD - KW) / STRIDE + 1;
    static constexpr bool FOURS = KH == 3 && KW == 3 && STRIDE == 1 && PAD == 0 && H % 2 == 0 &&
                                  W % 4 == 0 && W >= 128 && W <= 2048;
};

/* The filters, and f, the base: f(value, channel) is what is stored. */
template <class F> struct ChannelFilters : F { const float *data; };

/* Reads eight columns from p on; at the right edge only four exist. */
__device__ __forceinline__ void read_columns(const float *p, bool edge, float (&v)[8]) {
    const float4 a = __ldg((const float4 *)p);
    const float4 b = edge ? make_float4(0, 0, 0, 0) : __ldg((const float4 *)p + 1);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

/* The sum of the window that begins at row r and column c of what was read. */
template <int ROWS>
__device__ __forceinline__ float window(const float (&w)[9], const float (&v)[ROWS][8], int r,
                                        int c) {
    float sum = 0;
#pragma unroll
    for (int t = 0; t < 9; t++) sum += w[t] * v[r + t / 3][c + t % 3];
    return sum;
}

/* S::FOURS. A thread reads the twelve rows under its ten at once. Rows of the result are two words
 * off a multiple of four, so that in odd rows it makes the four columns two further right: every
 * store is a whole float4. Grid: x the strips of ten rows, y the planes. */
template <class S, class F>
__global__ void __launch_bounds__(S::W / 4)
    depthwise_fours_kernel(const float *__restrict__ x, const ChannelFilters<F> weight,
                           float *__restrict__ y) {
    constexpr int ROWS = DEPTHWISE_ROWS, H = S::H, W = S::W, OH = S::OH, OW = S::OW;
    static_assert(S::FOURS && OW % 4 == 2 && OH % 2 == 0 && ROWS % 2 == 0,
                  "even rows: whole float4");
    const int column = threadIdx.x * 4, row = blockIdx.x * ROWS;
    const unsigned channel = blockIdx.y % S::CHANNELS;
    const bool edge = threadIdx.x == W / 4 - 1;
    const float *in = x + ((long long)blockIdx.y * H + row) * W + column;
    float *out = y + ((long long)blockIdx.y * OH + row) * OW + column;
    const F &f = weight;
    float w[9], v[ROWS + 2][8];
#pragma unroll
    for (int i = 0; i < 9; i++) w[i] = __ldg(weight.data + channel * 9 + i);
#pragma unroll
    for (int r = 0; r < ROWS + 2; r++)
        read_columns(in + (OH % ROWS ? min(r, H - 1 - row) : r) * W, edge, v[r]);
#pragma unroll
    for (int r = 0; r < ROWS; r++, out += OW) {
        const int shift = r % 2 * 2;
        if (OH % ROWS && row + r >= OH) break;
        if (!edge) {
            const float4 sum = make_float4(
                f(window(w, v, r, shift), channel), f(window(w, v, r, shift + 1), channel),
                f(window(w, v, r, shift + 2), channel), f(window(w, v, r, shift + 3), channel));
            *(float4 *)(out + shift) = sum;
        }
        if (shift ? threadIdx.x == 0 : edge) /* the two columns that are left over */
            *(float2 *)out =
                make_float2(f(window(w, v, r, 0), channel), f(window(w, v, r, 1), channel));
    }
}

/* Any shape. Threads are numbered along four columns, strips of rows and planes. */
template <class S, class F>
__global__ void __launch_bounds__(DEPTHWISE_THREADS)
    depthwise_kernel(const float *__restrict__ x, const ChannelFilters<F> weight,
                     float *__restrict__ y, int planes) {
    constexpr int ROWS = DEPTHWISE_FEW_ROWS, SPAN = 3 * S::STRIDE + S::KW;
    constexpr int ACROSS = (S::OW + 3) / 4, DOWN = (S::OH + ROWS - 1) / ROWS;
    const long long unit = (long long)blockIdx.x * DEPTHWISE_THREADS + threadIdx.x;
    const int plane = (int)(unit / (ACROSS * DOWN)), i = (int)(unit % (ACROSS * DOWN));
    if (plane >= planes) return;
    const int row = i / ACROSS * ROWS, column = i % ACROSS * 4, channel = plane % S::CHANNELS;
    const int top = row * S::STRIDE - S::PAD, left = column * S::STRIDE - S::PAD;
    const float *in = x + (long long)plane * (S::H * S::W), *w = weight.data + channel * S::TAPS;
    float sum[ROWS][4] = {};
#pragma unroll
    for (int a = 0; a < (ROWS - 1) * S::STRIDE + S::KH; a++) { /* a row of the image */
        float v[SPAN];
#pragma unroll
        for (int b = 0; b < SPAN; b++) {
            const bool inside =
                (unsigned)(top + a) < (unsigned)S::H && (unsigned)(left + b) < (unsigned)S::W;
            v[b] = inside ? __ldg(in + (top + a) * S::W + left + b) : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int t = 0; t < S::KW * 4; t++) {
                const int ky = a - r * S::STRIDE, kx = t / 4, c = t % 4;
                if (ky >= 0 && ky < S::KH)
                    sum[r][c] += __ldg(w + ky * S::KW + kx) * v[c * S::STRIDE + kx];
            }
    }
    const F &f = weight;
    float *out = y + ((long long)plane * S::OH + row) * S::OW + column;
#pragma unroll
    for (int t = 0; t < ROWS * 4; t++)
        if (row + t / 4 < S::OH && column + t % 4 < S::OW)
            out[t / 4 * S::OW + t % 4] = f(sum[t / 4][t % 4], channel);
}

/* Enqueues out = f(depthwise convolution of `images` images), x and out aligned to 16 bytes; where
 * S::FOURS, of at most 65535 planes. */
template <class S, class F>
static void depthwise(const float *x, const float *weight, float *out, int images, const F &f,
                      cudaStream_t stream) {
    const ChannelFilters<F> filters = {f, weight};
    const int planes = images * S::CHANNELS;
    if constexpr (S::FOURS) {
        const dim3 grid((S::OH + DEPTHWISE_ROWS - 1) / DEPTHWISE_ROWS, planes);
        depthwise_fours_kernel<S><<<grid, S::W / 4, 0, stream>>>(x, filters, out);
    } else {
        constexpr int DOWN = (S::OH + DEPTHWISE_FEW_ROWS - 1) / DEPTHWISE_FEW_ROWS;
        const long long units = (long long)planes * DOWN * ((S::OW + 3) / 4);
        const unsigned blocks = (unsigned)((units + DEPTHWISE_THREADS - 1) / DEPTHWISE_THREADS);
        depthwise_kernel<S><<<blocks, DEPTHWISE_THREADS, 0, stream>>>(x, filters, out, planes);
    }
}
