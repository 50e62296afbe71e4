/* conv_transpose.cuh: transposed convolution over two axes as matrix products.
 *
 * A value of the result gathers the inputs that reach it. Rows STRIDE apart are reached by the same
 * rows of the filter, and so are columns; STRIDE x STRIDE such phases make the result. A phase is a
 * product weight[channel][depth] * patch[depth][pixel], where depth runs over input channel and the
 * taps that reach the phase: no zeros between inputs are multiplied. The tile engine of gemm.cuh
 * makes it, with the functions of conv.cuh in the epilogue. */
#pragma once
#include "conv.cuh"

constexpr int common_divisor(int a, int b) {
    return b ? common_divisor(b, a % b) : a;
}

/* The constants of a transposed convolution, as PyTorch names them; weight is [IN][OUT][KH][KW].
 * Stride, padding and the like are the same on both axes. */
template <int IN_, int OUT_, int H_, int W_, int KH_, int KW_, int STRIDE_, int PAD_,
          int OUTPUT_PAD, int DILATION_>
struct ConvTransposeShape {
    static constexpr int IN = IN_, OUT = OUT_, H = H_, W = W_, KH = KH_, KW = KW_;
    static constexpr int STRIDE = STRIDE_, PAD = PAD_, DILATION = DILATION_;
    static constexpr int OH = (H - 1) * STRIDE - 2 * PAD + DILATION * (KH - 1) + OUTPUT_PAD + 1;
    static constexpr int OW = (W - 1) * STRIDE - 2 * PAD + DILATION * (KW - 1) + OUTPUT_PAD + 1;
    /* Taps of a phase are APART in the filter; the next one's input is REACH before. */
    static constexpr int APART = STRIDE / common_divisor(STRIDE, DILATION);
    static constexpr int REACH = DILATION / common_divisor(STRIDE, DILATION);
    static constexpr int TAPS_W = (KW + APART - 1) / APART;
    static constexpr int TAPS = (KH + APART - 1) / APART * TAPS_W, DEPTH = IN * TAPS;
    /* Rows of a phase count as whole groups of four, so that four neighbours lie in one. */
    static constexpr int PHASE_W = (OW + 4 * STRIDE - 1) / (4 * STRIDE) * 4;
    static constexpr int PHASES = STRIDE * STRIDE, PIXELS = (OH + STRIDE - 1) / STRIDE * PHASE_W;
    static_assert(OH > 0 && OW > 0, "output size");
};

/* One axis of a phase: the first tap that reaches it, and the input by which its first row or
 * column is reached. A phase may be reached by none: then the tap is beyond every filter. */
struct PhaseStart {
    int tap, from;
};
template <class S> __device__ __forceinline__ PhaseStart phase_start(int phase) {
    for (int tap = 0; tap < S::APART; tap++) {
        const int distance = phase + S::PAD - tap * S::DILATION;
        if (distance % S::STRIDE == 0) return {tap, distance / S::STRIDE};
    }
    return {S::KH + S::KW, 0};
}

/* Left operand: the filters' taps that reach a phase. Rows beyond the last read the last one's. */
template <class S> struct PhaseFilters {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    struct At {
        const float *filter;
        int top, left; /* first tap */
        __device__ __forceinline__ float one(int k) const {
            const int tap = k % S::TAPS;
            const int r = top + tap / S::TAPS_W * S::APART, c = left + tap % S::TAPS_W * S::APART;
            if (k >= S::DEPTH || r >= S::KH || c >= S::KW) return 0.0f;
            return __ldg(filter + (k / S::TAPS * S::OUT * S::KH + r) * S::KW + c);
        }
        __device__ __forceinline__ float4 fetch(int k) const {
            return make_float4(one(k), one(k + 1), one(k + 2), one(k + 3));
        }
    };
    __device__ __forceinline__ At at(int batch, int i) const {
        const int phase = batch % S::PHASES;
        return {data + min(i, S::OUT - 1) * S::KH * S::KW, phase_start<S>(phase / S::STRIDE).tap,
                phase_start<S>(phase % S::STRIDE).tap};
    }
};

/* Right operand: the inputs that reach four neighbours. What lies outside the image is zero. */
template <class S> struct PhasePatches {
    static constexpr bool ALONG_DEPTH = false;
    const float *data;
    struct At {
        const float *image;
        int top, left;   /* first tap */
        int row, column; /* the first neighbour's input for it, possibly outside the image */
        __device__ __forceinline__ float4 fetch(int k) const {
            const int channel = k / S::TAPS, tap = k % S::TAPS;
            const int a = tap / S::TAPS_W, b = tap % S::TAPS_W;
            const int r = row - a * S::REACH, c = column - b * S::REACH;
            float v[4] = {};
            if (k < S::DEPTH && top + a * S::APART < S::KH && left + b * S::APART < S::KW &&
                (unsigned)r < (unsigned)S::H) {
                const float *p = image + ((channel * S::H + r) * S::W + c);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    if ((unsigned)(c + j) < (unsigned)S::W) v[j] = __ldg(p + j);
            }
            return make_float4(v[0], v[1], v[2], v[3]);
        }
    };
    __device__ __forceinline__ At at(int batch, int i) const {
        const int phase = batch % S::PHASES;
        const PhaseStart rows = phase_start<S>(phase / S::STRIDE);
        const PhaseStart columns = phase_start<S>(phase % S::STRIDE);
        return {data + (long long)(batch / S::PHASES) * S::IN * S::H * S::W, rows.tap, columns.tap,
                rows.from + i / S::PHASE_W, columns.from + i % S::PHASE_W};
    }
};

/* Epilogue: f(value, channel) stored at out[image][channel][row][column]; f is the base. */
template <class S, class F> struct StorePhases : F {
    float *out;
    __device__ __forceinline__ void four(int batch, int channel, int pixel, float a, float b,
                                         float c, float d) const {
        const F &f = *this;
        const int phase = batch % S::PHASES, image = batch / S::PHASES;
        const int row = phase / S::STRIDE + pixel / S::PHASE_W * S::STRIDE;
        const int column = phase % S::STRIDE + pixel % S::PHASE_W * S::STRIDE;
        const float v[4] = {a, b, c, d};
        if (channel >= S::OUT || row >= S::OH) return;
        float *p = out + (((long long)image * S::OUT + channel) * S::OH + row) * S::OW + column;
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (column + j * S::STRIDE < S::OW) p[j * S::STRIDE] = f(v[j], channel);
    }
    __device__ __forceinline__ void row(int batch, int m, int n, const float (&v)[8]) const {
        four(batch, m, n, v[0], v[1], v[2], v[3]);
        four(batch, m, n + 32, v[4], v[5], v[6], v[7]);
    }
};

/* Enqueues out = f(transposed convolution of `images` images), which are at most 65535 / PHASES. */
template <class S, class F>
static void convolve_transposed(const float *x, const float *weight, float *out, int images,
                                const F &f, cudaStream_t stream) {
    constexpr int TILES = (S::OUT + 127) / 128,
                  TILE = (S::OUT + TILES * 32 - 1) / (TILES * 32) * 32;
    const PhaseFilters<S> filters = {weight};
    const PhasePatches<S> patches = {x};
    const StorePhases<S, F> store = {f, out};
    product<TILE>(filters, patches, store, TILES * TILE, S::PIXELS, S::DEPTH, images * S::PHASES,
                  stream);
}
