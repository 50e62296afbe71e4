/* conv_f16_unit.cuh: plans for conv_f16.cuh of convolutions with three taps along the last axis,
 * at stride 1 and without padding, over 16 or more input channels.
 *
 * A step is 16 channels at one tap, a group the 3 taps of a filter row. A thread's fragments of a
 * group are 4 consecutive pixels of 4 channels: rows g and g + 8 of the product are neighbouring
 * pixels 2g and 2g + 1, so that the taps share their words and pairs of outputs are stored. */
#pragma once
#include "conv_f16.cuh"

/* A tile's pixels of channel 0 in out, as its storers see them: a run of `length`, which begins
 * or ends a stretch of out or has neighbours. */
struct Span {
    long long at;
    int length;
    bool begins, ends;
};

/* What the plans P of stride 1 share: fragments from 4 x 4 words, and stores. P::run() says where
 * in out a warpgroup's 64 pixels of channel 0 begin and how many of them are outputs. */
template <class P> struct UnitBase {
    static constexpr int PAIRS = 8;
    static __device__ __forceinline__ constexpr int pick(int j, int i) {
        return j + i % 2 + i / 2 * 4;
    }
    /* Which of 16 channels a column is: a thread's four are 4 apart. */
    static __device__ __forceinline__ int channel(int column) {
        return column / 8 * 8 + column % 2 * 4 + column % 8 / 2;
    }
    /* v = the four words at p, each with that at q; all even. */
    static __device__ __forceinline__ void read(const float *p, const float *q, float2 *v) {
        const float2 a = *(const float2 *)p, b = *(const float2 *)(p + 2);
        const float2 c = *(const float2 *)q, d = *(const float2 *)(q + 2);
        v[0] = make_float2(a.x, c.x), v[1] = make_float2(a.y, c.y);
        v[2] = make_float2(b.x, d.x), v[3] = make_float2(b.y, d.y);
    }
    /* At the ends of planes a warp may see words that no copy wrote: let them be zero. */
    static __device__ __forceinline__ void prepare(float *x, int words) {
        for (int i = threadIdx.x; i < words; i += blockDim.x) x[i] = 0.0f;
    }
    /* put(channel, values of the thread's two pixels) for each of the thread's channels. */
    template <class F, class Sum, class Put>
    static __device__ __forceinline__ void each_pair(int lane, const Sum &sum, const Scales &scales,
                                                     const float *bias, const Put &put) {
#pragma unroll
        for (int j = 0; j < P::N / 4; j++) {
            const int i = j / 2 * 4 + j % 2, n = j / 2 * 8 + lane % 4 * 2 + j % 2;
            const float f = scales.of(n);
            put(n, make_float2(F::apply(sum[i] * f, bias, n), F::apply(sum[i + 2] * f, bias, n)));
        }
    }
    template <class F, class Sum>
    static __device__ __forceinline__ void store(int tile, int wg, int warp, int lane,
                                                 const Sum &sum, const Scales &scales,
                                                 const float *bias, float *out) {
        int width;
        const int i = warp * 16 + lane / 4 * 2;
        float *p = out + P::run(tile, wg, &width) + i;
        if (i >= width) return;
        each_pair<F>(lane, sum, scales, bias,
                     [=](int n, float2 v) { *(float2 *)(p + n * (long long)P::PIXELS) = v; });
    }
    /* Words between channels in shared memory: stage() meets no bank twice. */
    static __device__ __forceinline__ int y_pitch() {
        return P::WGS * 64 + 4;
    }
    template <class F, class Sum>
    static __device__ __forceinline__ void stage(int wg, int warp, int lane, const Sum &sum,
                                                 const Scales &scales, const float *bias,
                                                 float *y) {
        float *p = y + wg * 64 + warp * 16 + lane / 4 * 2;
        each_pair<F>(lane, sum, scales, bias,
                     [=](int n, float2 v) { *(float2 *)(p + n * y_pitch()) = v; });
    }
    /* A sector of 32 bytes that is not written whole at once costs a read of memory, half of the
     * bandwidth in all. So a tile that neither begins nor ends a row stores what lies between the
     * first boundary of a sector in it and the first in the next tile, 8 pixels less than it has.
     */
    static __device__ __forceinline__ void store_staged(int tile, int storer, int lane,
                                                        const float *y, float *out) {
        constexpr int STEPS_OF_64 = (P::WGS * 64 + 7 + 63) / 64, PLANES = 8;
        const Span span = P::span(tile);
        for (int n = storer; n < PLANES;
             n += P::STORERS) { /* and every eighth after: they align alike */
            const long long at = span.at + n * (long long)P::PIXELS;
            const int skew = (int)(-at & 7); /* pixels before the first boundary */
            const int first = span.begins ? 0 : skew;
            const int last = span.ends ? span.length : P::STEP + (int)(-(at + P::STEP) & 7);
            const int begin = skew - (span.begins ? 8 : 0) + 2 * lane;
            const float *from[STEPS_OF_64];
#pragma unroll
            for (int k = 0; k < STEPS_OF_64; k++)
                from[k] = y + n * y_pitch() + P::staged_word(begin + 64 * k);
            float *to = out + at + begin;
#pragma unroll 2
            for (int c = 0; c < P::N / PLANES; c++) {
                float2 v[STEPS_OF_64];
#pragma unroll
                for (int k = 0; k < STEPS_OF_64; k++)
                    if (begin + 64 * k >= first && begin + 64 * k < last)
                        v[k] = *(const float2 *)(from[k] + c * PLANES * y_pitch());
#pragma unroll
                for (int k = 0; k < STEPS_OF_64; k++)
                    if (begin + 64 * k >= first && begin + 64 * k < last)
                        *(float2 *)(to + 64 * k) = v[k];
                to += PLANES * (long long)P::PIXELS;
            }
        }
    }
};

/* Planes of ROWS x WIDTH. PITCH == 0: a tile is 64 x WGS pixels of a row. Else the plane is taken
 * as one line (ROWS = 1) whose filter rows are PITCH apart and a tile is 64 x WGS pixels of it; the
 * pixels at the end of each PITCH are no outputs, they are computed and dropped. */
template <int N_, int CHANNELS, int IMAGES, int ROWS, int WIDTH, int KH, int PITCH, int WGS_,
          int X_STAGES_, int W_STAGES_, int SPLIT_, int STORERS_>
struct UnitPlan : UnitBase<UnitPlan<N_, CHANNELS, IMAGES, ROWS, WIDTH, KH, PITCH, WGS_, X_STAGES_,
                                    W_STAGES_, SPLIT_, STORERS_>> {
    static constexpr int STORERS = STORERS_;
    static constexpr int N = N_, WGS = WGS_, X_STAGES = X_STAGES_, W_STAGES = W_STAGES_;
    static constexpr int SPLIT = SPLIT_;
    static constexpr bool LINE = PITCH > 0;
    static constexpr int TILE = 64 * WGS, STEP = STORERS > 0 && !LINE ? TILE - 8 : TILE;
    static constexpr int ROW = LINE ? PITCH : WIDTH; /* words an image row */
    static constexpr int OUT_ROWS = (LINE ? WIDTH / PITCH : ROWS) - KH + 1, OUT_WIDTH = ROW - 2;
    static constexpr int PIXELS = OUT_ROWS * OUT_WIDTH;
    static constexpr int TILES_DOWN = LINE ? 1 : OUT_ROWS;
    static constexpr int ACROSS = LINE ? (OUT_ROWS - 1) * PITCH + OUT_WIDTH : OUT_WIDTH;
    static constexpr int TILES_ACROSS = (ACROSS - TILE + STEP - 1) / STEP + 1;
    static constexpr int TILES = IMAGES * TILES_DOWN * TILES_ACROSS;
    static constexpr int CHUNKS = CHANNELS / 16, GROUPS = KH, DEPTH = CHANNELS * KH * 3;
    /* A segment: what a tile needs of a row; segments of a channel; words between channels, 8
     * more than a multiple of 16 so that a fragment's reads meet no bank twice. */
    static constexpr int SEGMENT = (TILE + (LINE ? (KH - 1) * PITCH : 0) + 2 + 3) / 4 * 4;
    static constexpr int SEGMENTS = LINE ? 1 : KH;
    static constexpr int SEGMENT_PITCH = (SEGMENT + 7) / 8 * 8;
    static constexpr int DENSE = SEGMENTS * SEGMENT_PITCH;
    static constexpr int CHANNEL = (DENSE + 7) / 16 * 16 + 8;
    static constexpr int X_WORDS = 16 * CHANNEL, COPIES = 16 * SEGMENTS;
    static_assert(CHANNEL >= DENSE && CHANNELS % 16 == 0 && ROW % 4 == 0, "layout");
    static_assert(!LINE || PITCH % 64 == 0, "a warpgroup's pixels are of one row");

    /* Of a pixel of the row, or line, that a tile is of. */
    static __device__ __forceinline__ int in_row(int i) { return LINE ? i % ROW : i; }
    static __device__ __forceinline__ int depth(int step, int column) {
        const int chunk = step / (3 * KH), tap = step % (3 * KH);
        return (chunk * 16 + UnitPlan::channel(column)) * KH * 3 + tap;
    }
    static __device__ __forceinline__ int copy_bytes(int tile) {
        const int left = tile % TILES_ACROSS * STEP;
        return 4 * min(SEGMENT, WIDTH - left);
    }
    static __device__ __forceinline__ const float *copy(int tile, int chunk, int i, const float *x,
                                                        const float *, int *to) {
        const int left = tile % TILES_ACROSS * STEP, band = tile / TILES_ACROSS;
        const int channel = i / SEGMENTS, segment = i % SEGMENTS;
        const int row = min(band % TILES_DOWN + segment, ROWS - 1);
        const long long image = band / TILES_DOWN;
        *to = channel * CHANNEL + segment * SEGMENT_PITCH;
        return x + ((image * CHANNELS + chunk * 16 + channel) * ROWS + row) * WIDTH + left;
    }

    /* Pixels behind a row's outputs take the words of the last two: what lies there, of the next
     * row or an earlier tile, must not count in the warp's scale. */
    struct At {
        int word;
        __device__ __forceinline__ At(int tile, int wg, int warp, int lane) {
            const int i = wg * 64 + warp * 16 + lane / 4 * 2;
            const int past = in_row(tile % TILES_ACROSS * STEP + i) - (OUT_WIDTH - 2);
            word = i - max(past, 0) + lane % 4 * CHANNEL;
        }
        __device__ __forceinline__ void fetch(const float *x, int g, float2 (&v)[8]) const {
            const float *p = x + word + g * (LINE ? PITCH : SEGMENT_PITCH);
            UnitPlan::read(p, p + 4 * CHANNEL, v);
            UnitPlan::read(p + 8 * CHANNEL, p + 12 * CHANNEL, v + 4);
        }
    };

    static __device__ __forceinline__ int staged_word(int i) { return i; }
    static __device__ __forceinline__ Span span(int tile) {
        const int left = tile % TILES_ACROSS * STEP, band = tile / TILES_ACROSS;
        const long long image = band / TILES_DOWN, row = band % TILES_DOWN;
        static_assert(STORERS == 0 || !LINE || TILE == PITCH, "runs of one row");
        if (LINE)
            return {image * N * PIXELS + tile % TILES_ACROSS * OUT_WIDTH, OUT_WIDTH, true, true};
        return {image * N * PIXELS + row * OUT_WIDTH + left, OUT_WIDTH - left, left == 0,
                tile % TILES_ACROSS == TILES_ACROSS - 1};
    }
    static __device__ __forceinline__ long long run(int tile, int wg, int *width) {
        const int left = tile % TILES_ACROSS * STEP, band = tile / TILES_ACROSS;
        const int i = left + wg * 64, row = LINE ? i / ROW : band % TILES_DOWN;
        const long long image = band / TILES_DOWN;
        *width = row < OUT_ROWS ? OUT_WIDTH - in_row(i) : 0;
        return image * N * PIXELS + row * OUT_WIDTH + in_row(i);
    }
};
