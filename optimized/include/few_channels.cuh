/* few_channels.cuh: convolutions of few channels over three axes, filters of DEEP x 3 x 3, stride
 * 1, no padding, in fp32 registers; over two axes with Z and DEEP 1.
 *
 * Idea: a thread has PIXELS results along y of all filters, its neighbours those along x: a read of
 * four weights from shared memory, which all lanes share, is used 4 * PIXELS times, a value that is
 * read three times along y. As a product the depth would be 27 a channel, a tile's slabs half
 * empty, and what tensor cores cut off would have one sign, which a mean of many results shows.
 * What limits it: the FMAs. Reaches 44 % of their floor (l2_006) and 62 % (l2_067). */
#pragma once

namespace kp {

/* CHANNELS x Z x Y x X inputs an image. */
template <int CHANNELS, int FILTERS, int Z, int Y, int X, int DEEP = 3> struct FewChannels {
    static constexpr int PIXELS = 8, PLANE = Y * X, IMAGE = CHANNELS * Z * PLANE;
    static constexpr int OUT_Z = Z - DEEP + 1, OUT_Y = Y - 2, OUT_X = X - 2;
    static_assert(FILTERS % 4 == 0, "weights are read by four");

    struct Weights { /* of four filters each */
        float4 tap[CHANNELS * DEEP][9][FILTERS / 4], bias[FILTERS / 4];
    };
    /* By a block of THREADS; weight [FILTERS][CHANNELS][DEEP][3][3]. */
    template <int THREADS>
    static __device__ __forceinline__ void load(const float *__restrict__ weight,
                                                const float *__restrict__ bias, Weights &w) {
        for (int i = threadIdx.x; i < FILTERS * CHANNELS * DEEP * 9; i += THREADS) {
            const int filter = i / (CHANNELS * DEEP * 9), slab = i / 9 % (CHANNELS * DEEP);
            ((float *)w.tap[slab][i % 9])[filter] = weight[i];
        }
        for (int i = threadIdx.x; i < FILTERS; i += THREADS) ((float *)w.bias)[i] = bias[i];
    }

    /* What a thread reads of a slab, a plane of a channel: [x][y]. */
    using Values = float[3][PIXELS + 2];

    /* The results at z, x and PIXELS places from y on. Beyond the end they are of other places. */
    static __device__ __forceinline__ void multiply(const float *__restrict__ image,
                                                    const Weights &w, int z, int y, int x,
                                                    float (&sum)[PIXELS][FILTERS]) {
        multiply(w, sum, [&](int slab, Values &v) {
            const float *plane = image + (slab / DEEP * Z + z + slab % DEEP) * PLANE;
#pragma unroll
            for (int i = 0; i < 3 * (PIXELS + 2); i++)
                v[i % 3][i / 3] = __ldg(plane + min(y + i / 3, Y - 1) * X + min(x + i % 3, X - 1));
        });
    }

    /* The same of values that load(slab, v) brings. */
    template <class F>
    static __device__ __forceinline__ void multiply(const Weights &w, float (&sum)[PIXELS][FILTERS],
                                                    const F &load) {
#pragma unroll
        for (int f = 0; f < FILTERS; f += 4) {
            const float4 b = w.bias[f / 4];
#pragma unroll
            for (int p = 0; p < PIXELS; p++)
                sum[p][f] = b.x, sum[p][f + 1] = b.y, sum[p][f + 2] = b.z, sum[p][f + 3] = b.w;
        }
#pragma unroll 1
        for (int slab = 0; slab < CHANNELS * DEEP; slab++) {
            Values v;
            load(slab, v);
#pragma unroll
            for (int tap = 0; tap < 9; tap++)
#pragma unroll
                for (int f = 0; f < FILTERS; f += 4) {
                    const float4 four = w.tap[slab][tap][f / 4];
#pragma unroll
                    for (int p = 0; p < PIXELS; p++) {
                        const float a = v[tap % 3][tap / 3 + p];
                        sum[p][f] = fmaf(a, four.x, sum[p][f]);
                        sum[p][f + 1] = fmaf(a, four.y, sum[p][f + 1]);
                        sum[p][f + 2] = fmaf(a, four.z, sum[p][f + 2]);
                        sum[p][f + 3] = fmaf(a, four.w, sum[p][f + 3]);
                    }
                }
        }
    }

    /* Adds value(p) of PIXELS places to a total, with what the additions before have `lost`: where
     * all are alike, the losses are too. */
    template <class F>
    static __device__ __forceinline__ void add_up(float &total, float &lost, const F &value) {
        float of[PIXELS];
#pragma unroll
        for (int p = 0; p < PIXELS; p++) of[p] = value(p);
#pragma unroll
        for (int half = PIXELS / 2; half > 0; half /= 2)
#pragma unroll
            for (int p = 0; p < half; p++) of[p] += of[p + half];
        const float before = total, more = of[0] - lost, now = before + more;
        total = now;
        lost = now - before - more;
    }
};

} // namespace kp
