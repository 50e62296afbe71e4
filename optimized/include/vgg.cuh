/* vgg.cuh: the networks VGG: five stages of 3 x 3 convolutions with ReLU, each of which ends with
 * the largest of windows of 2 x 2, and three linear layers of few images.
 *
 * Idea: every layer is a product at fp32 accuracy (product.cuh), with bias and ReLU in its
 * epilogue, and so are the windows of the first four stages (convolve_pool.cuh). The last stage has
 * too few pixels for all multiprocessors: PARTS parts of its depth are summed apart, and whoever
 * reads them adds them up: a small kernel between layers, or the first linear layer. These have
 * their depth in parts, too (split_linear.cuh). All three passes are in TF32: layers in a row pass
 * on what residuals in bf16 lose.
 *
 * What limits it: the convolutions' products; the bytes of the linear layers' weights. Reaches 89
 * to 91 % of the floor (l3_011, l3_012). */
#pragma once
#include <algorithm>
#include "bias_relu.cuh"
#include "convolve_pool.cuh"
#include "split_linear.cuh"

namespace kp {

/* ---- convolutions ---- */

template <int IMAGES, int SIDE, int FROM, int TO>
using VggConvolution = Convolution<IMAGES, FROM, TO, 1, Axis<SIDE, 3, 1, 1>, Axis<SIDE, 3, 1, 1>>;
template <class C> using VggTile = Tile<C::FILTERS <= 64 ? 64 : 128, Tf32Rest>;

/* C, whose depth is summed in PARTS batches. */
template <class C, int PARTS_> struct InParts : C {
    static constexpr int PARTS = PARTS_, BATCHES = PARTS, B_BATCHES = 1;
    static constexpr int PART_SLABS = (C::SLABS + PARTS - 1) / PARTS; /* at most */
    static constexpr bool BATCH_FASTEST = true;
    static __device__ __forceinline__ int first_slab(int batch, int, int, int, int) {
        return min(batch * PART_SLABS, C::SLABS);
    }
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return first_slab(batch + 1, 0, 0, 0, 0);
    }
    static __device__ __forceinline__ int group(int) { return 0; }
    static constexpr long long PART = C::ROWS * C::FILTERS; /* words */
};

/* Enqueues parts[part][filter][image][pixel] of the convolution; C: InParts. */
template <class C>
static void convolve_in_parts(const float *x, const float *weight, float *parts, void *scratch,
                              cudaStream_t stream) {
    const StoreColumns<Same, C::ROWS, C::FILTERS, C::PART> store = {{}, parts};
    product<C, VggTile<C>>(Patches<C>{{}, x}, Filters<C>{weight}, store, scratch, stream);
}

constexpr int JOIN_PIXELS_THREADS = 128;

/* out[image][filter][pixel] = relu(the sum of the parts + bias). Grid: x the pixels of all images,
 * y the filters. */
template <class C>
__global__ void __launch_bounds__(JOIN_PIXELS_THREADS)
    join_pixels_kernel(const float *__restrict__ parts, const float *__restrict__ bias,
                       float *__restrict__ out) {
    static_assert(C::PIXELS % 4 == 0, "whole float4");
    const int row = (blockIdx.x * JOIN_PIXELS_THREADS + threadIdx.x) * 4, filter = blockIdx.y;
    if (row >= C::ROWS) return;
    float4 v[C::PARTS];
#pragma unroll
    for (int p = 0; p < C::PARTS; p++)
        v[p] = __ldg((const float4 *)(parts + p * C::PART + filter * C::ROWS + row));
#pragma unroll
    for (int p = 1; p < C::PARTS; p++)
        v[0].x += v[p].x, v[0].y += v[p].y, v[0].z += v[p].z, v[0].w += v[p].w;
    const BiasRelu f = {bias};
    const int image = row / C::PIXELS, pixel = row % C::PIXELS;
    *(float4 *)(out + ((long long)image * C::FILTERS + filter) * C::PIXELS + pixel) = make_float4(
        f(v[0].x, 0, filter), f(v[0].y, 0, filter), f(v[0].z, 0, filter), f(v[0].w, 0, filter));
}

/* What the last layer left, as features, a right operand: relu(the sum of
 * parts[part][filter][image][pixel] + bias), the largest of each window; the depth runs over
 * filters, and over windows within. C: InParts. */
template <class C> struct WindowsOfParts {
    static constexpr bool ALONG_DEPTH = true;
    static constexpr int SIDE = C::X::OUT, ACROSS = SIDE / 2, WINDOWS = C::PIXELS / 4;
    static constexpr int IMAGES = (int)(C::ROWS / C::PIXELS);
    const float *parts, *bias;
    __device__ __forceinline__ float at(int, int image, int slab, int k) const {
        k += slab * TILE_K;
        const int filter = k / WINDOWS, window = k % WINDOWS;
        if (image >= IMAGES || filter >= C::FILTERS) return 0.0f;
        const float *from = parts + filter * C::ROWS + image * C::PIXELS +
                            window / ACROSS * 2 * SIDE + window % ACROSS * 2;
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float sum = 0.0f;
#pragma unroll
            for (int p = 0; p < C::PARTS; p++)
                sum += __ldg(from + p * C::PART + i / 2 * SIDE + i % 2);
            v[i] = BiasRelu{bias}(sum, 0, filter);
        }
        return larger(larger(v[0], v[1]), larger(v[2], v[3]));
    }
};

/* ---- the network ---- */

struct VggLayer {
    const float *weight, *bias;
};

/* DEEP: layers of each of the last three stages; A to D: filters of the stages. */
template <int DEEP, int IMAGES, int SIDE, int CHANNELS, int A, int B, int C, int D, int HIDDEN,
          int CLASSES>
struct Vgg {
    static_assert(SIDE % 32 == 0, "whole windows in each stage");
    static constexpr int LAYERS = 4 + 3 * DEEP, PARTS = 4;
    template <int HALVED, int FROM, int TO>
    using Layer = VggConvolution<IMAGES, (SIDE >> HALVED), FROM, TO>;
    using Last = InParts<Layer<4, D, D>, PARTS>;
    static constexpr int FEATURES = D * (SIDE >> 5) * (SIDE >> 5);
    using First = SplitLinear<IMAGES, FEATURES, HIDDEN>;
    using Second = SplitLinear<IMAGES, HIDDEN, HIDDEN>;
    using Third = SplitLinear<IMAGES, HIDDEN, CLASSES>;

    static constexpr size_t SPLIT =
        std::max({split_bytes<Last, VggTile<Last>>(), First::SPLIT, Second::SPLIT});
    static constexpr size_t PIXELS = (size_t)IMAGES * SIDE * SIDE;
    static_assert(B <= 2 * A && C <= 4 * A && D <= 8 * A && D >= C && C >= B && B >= A,
                  "the first stage has the most pixels, the last the largest weights");
    struct Scratch {
        alignas(16) char split[SPLIT];
        alignas(16) float odd[PIXELS * A], even[PIXELS * A / 4]; /* what layers 1, 3, ... make */
        alignas(16) float parts[std::max({(size_t)(PARTS * Last::PART), First::WORDS, Second::WORDS,
                                          Third::WORDS})];
    };

    struct Run {
        const VggLayer *layer; /* the next */
        const float *x;        /* what it reads */
        Scratch *s;
        cudaStream_t stream;

        float *other() const { return x == s->odd ? s->even : s->odd; }
        template <int HALVED, int FROM, int TO, bool POOL = false> void convolve_next() {
            using Own = Layer<HALVED, FROM, TO>;
            float *to = other();
            const BiasRelu f = {layer->bias};
            if constexpr (POOL)
                convolve_pool<Own, VggTile<Own>>(x, layer->weight, to, f, s->split, stream);
            else
                convolve<Own, VggTile<Own>>(x, layer->weight, to, f, s->split, stream);
            x = to, layer++;
        }
        template <int HALVED, int FROM, int TO> void stage() {
            convolve_next<HALVED, FROM, TO>();
            for (int i = 2; i < DEEP; i++) convolve_next<HALVED, TO, TO>();
            convolve_next<HALVED, TO, TO, true>();
        }
        void last_stage() { /* its last layer's parts stay so */
            constexpr int THREADS = JOIN_PIXELS_THREADS;
            const dim3 grid(((int)Last::ROWS / 4 + THREADS - 1) / THREADS, D);
            for (int i = 1;; i++) {
                convolve_in_parts<Last>(x, layer->weight, s->parts, s->split, stream);
                if (i == DEEP) return;
                float *to = other();
                join_pixels_kernel<Last><<<grid, THREADS, 0, stream>>>(s->parts, layer->bias, to);
                x = to, layer++;
            }
        }
    };

    /* Enqueues the network: x [IMAGES][CHANNELS][SIDE][SIDE], out [IMAGES][CLASSES]. */
    static void enqueue(const float *x, const VggLayer (&convolutions)[LAYERS],
                        const VggLayer (&linear)[3], float *out, void *scratch,
                        cudaStream_t stream) {
        Scratch *s = (Scratch *)scratch;
        Run run = {convolutions, x, s, stream};
        run.template convolve_next<0, CHANNELS, A>();
        run.template convolve_next<0, A, A, true>();
        run.template convolve_next<1, A, B>();
        run.template convolve_next<1, B, B, true>();
        run.template stage<2, B, C>();
        run.template stage<3, C, D>();
        run.last_stage();
        First::multiply(linear[0].weight, WindowsOfParts<Last>{s->parts, run.layer->bias}, s->parts,
                        s->split, stream);
        Second::multiply(linear[1].weight, typename First::Features{s->parts, linear[0].bias},
                         s->parts, s->split, stream);
        Third::multiply(linear[2].weight, typename Second::Features{s->parts, linear[1].bias},
                        s->parts, s->split, stream);
        Third::finish(s->parts, linear[2].bias, out, stream);
    }
};

} // namespace kp
