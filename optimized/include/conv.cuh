/* conv.cuh: convolution as a matrix product whose right operand is never stored.
 *
 * weight[channel][depth] * patch[depth][pixel], where depth runs over input channel and filter
 * position, and pixel over one image's output: out[image][channel][pixel], as PyTorch lays it out.
 * The tile engine of gemm.cuh asks for elements of patch; they are looked up in the image, at
 * offsets that are computed once a thread (pixel) and once a slab (depth). */
#pragma once
#include "gemm.cuh"

/* The constants of a convolution over up to three axes. Fewer axes: the leading sizes are 1.
 * Stride and padding are the same on every axis but a filter size of 1 has no padding. */
template <int CHANNELS_, int D_, int H_, int W_, int KD_, int KH_, int KW_, int STRIDE_, int PAD_>
struct ConvShape {
    static constexpr int CHANNELS = CHANNELS_, D = D_, H = H_, W = W_;
    static constexpr int KD = KD_, KH = KH_, KW = KW_, STRIDE = STRIDE_, PAD = PAD_;
    static constexpr int OD = (D + 2 * (KD > 1 ? PAD : 0) - KD) / STRIDE + 1;
    static constexpr int OH = (H + 2 * (KH > 1 ? PAD : 0) - KH) / STRIDE + 1;
    static constexpr int OW = (W + 2 * (KW > 1 ? PAD : 0) - KW) / STRIDE + 1;
    static constexpr int TAPS = KD * KH * KW, DEPTH = CHANNELS * TAPS, PIXELS = OD * OH * OW;
    static_assert(PAD == 0 || (D == 1 && KH > 1 && KW > 1), "padding: two axes only");
};

/* Left operand: the filters, [channel][DEPTH] without any alignment. */
template <class S> struct Filters {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    struct At {
        const float *row;
        __device__ __forceinline__ float one(int k) const {
            return S::DEPTH % TILE_K == 0 || k < S::DEPTH ? __ldg(row + k) : 0.0f;
        }
        __device__ __forceinline__ float4 fetch(int k) const {
            if (S::DEPTH % 4 == 0 && S::DEPTH % TILE_K == 0)
                return __ldg((const float4 *)(row + k));
            return make_float4(one(k), one(k + 1), one(k + 2), one(k + 3));
        }
    };
    __device__ __forceinline__ At at(int, int i) const { return {data + i * S::DEPTH}; }
};

/* Right operand: four pixels' patches. Pixels beyond the last read the last one's. */
template <class S> struct Patches {
    static constexpr bool ALONG_DEPTH = false;
    const float *data;
    struct At {
        const float *image;
        int base[4];         /* offset of the patch's first element, possibly in the padding */
        int top[4], left[4]; /* its row and column */

        __device__ __forceinline__ float one(int j, int offset, int r, int c) const {
            if (S::PAD > 0 && ((unsigned)(top[j] + r) >= (unsigned)S::H ||
                               (unsigned)(left[j] + c) >= (unsigned)S::W))
                return 0.0f;
            return __ldg(image + (base[j] + offset));
        }
        __device__ __forceinline__ float4 fetch(int k) const {
            if (S::DEPTH % TILE_K != 0 && k >= S::DEPTH) return make_float4(0, 0, 0, 0);
            const int channel = k / S::TAPS, tap = k % S::TAPS;
            const int c = tap % S::KW, r = tap / S::KW % S::KH, d = tap / (S::KW * S::KH);
            const int offset = ((channel * S::D + d) * S::H + r) * S::W + c;
            return make_float4(one(0, offset, r, c), one(1, offset, r, c), one(2, offset, r, c),
                               one(3, offset, r, c));
        }
    };
    __device__ __forceinline__ At at(int batch, int i) const {
        At a;
        a.image = data + (long long)batch * S::CHANNELS * S::D * S::H * S::W;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int pixel = min(i + j, S::PIXELS - 1);
            const int c = pixel % S::OW, r = pixel / S::OW % S::OH, d = pixel / (S::OW * S::OH);
            a.top[j] = r * S::STRIDE - S::PAD;
            a.left[j] = c * S::STRIDE - S::PAD;
            a.base[j] = (d * S::STRIDE * S::H + a.top[j]) * S::W + a.left[j];
        }
        return a;
    }
};

/* Epilogue: f(value, channel) stored at out[image][channel][pixel]; f is the base. */
template <class S, int CHANNELS_OUT, class F> struct StorePixels : F {
    float *out;
    __device__ __forceinline__ void four(float *p, int pixel, int channel, float a, float b,
                                         float c, float d) const {
        const F &f = *this;
        const float v[4] = {f(a, channel), f(b, channel), f(c, channel), f(d, channel)};
        if (S::PIXELS % 4 == 0) {
            if (pixel < S::PIXELS) *(float4 *)(p + pixel) = make_float4(v[0], v[1], v[2], v[3]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (pixel + j < S::PIXELS) p[pixel + j] = v[j];
        }
    }
    __device__ __forceinline__ void row(int batch, int m, int n, const float (&v)[8]) const {
        float *p = out + ((long long)batch * CHANNELS_OUT + m) * S::PIXELS;
        four(p, n, m, v[0], v[1], v[2], v[3]);
        four(p, n + 32, m, v[4], v[5], v[6], v[7]);
    }
};

/* The epilogue's function of a convolution with bias and nothing after it. */
struct AddBias {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int channel) const {
        return v + __ldg(bias + channel);
    }
};

/* Enqueues out = f(convolution of `images` images with CHANNELS_OUT filters). CHANNELS_OUT is a
 * multiple of 32 up to 128: one tile. */
template <class S, int CHANNELS_OUT, class F>
static void convolve(const float *x, const float *weight, float *out, int images, const F &f,
                     cudaStream_t stream) {
    const Filters<S> filters = {weight};
    const Patches<S> patches = {x};
    const StorePixels<S, CHANNELS_OUT, F> store = {f, out};
    product<CHANNELS_OUT>(filters, patches, store, CHANNELS_OUT, S::PIXELS, S::DEPTH, images,
                          stream);
}
