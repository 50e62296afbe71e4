// provenance: shipped
/* Transposed convolution over three axes: x [8][32][12][24][48], weight [32][8][3][5][7],
 * stride 2, padding 1 x 2 x 3, output padding 1, 4 groups -> [8][32][24][48][96].
 *
 * Idea: a group has 8 channels and 8 filters: a tap is one step of the tensor cores, which add up
 * in three passes of TF32 (split_tf32.cuh). A warp has a line of x, whose places are rows, and the
 * four lines of results about it, two at a time. What it reads of a line of x at one distance is
 * split once for up to four taps. Weights lie in shared memory, split, as lanes hold them; blocks
 * stay for their sake. Both results of a place leave from registers, 64 bytes of a line at a time.
 * Floor: three products in TF32, 43 us; 0.12 GiB, 30 us, beside it.
 * Measured: 117.4 us on an H200, 37 % of the floor. */
#include "task.h"
#include "hopper.cuh"
#include "split_tf32.cuh"

constexpr int GROUPS = 4, CHANNELS = X_DIM1 / GROUPS, FILTERS = CONV_TRANSPOSE3D_WEIGHT_DIM1;
constexpr int IMAGES = X_DIM0, Z = X_DIM2, Y = X_DIM3, X = X_DIM4;
constexpr int TAPS_Z = CONV_TRANSPOSE3D_WEIGHT_DIM2, TAPS_Y = CONV_TRANSPOSE3D_WEIGHT_DIM3;
constexpr int TAPS_X = CONV_TRANSPOSE3D_WEIGHT_DIM4, TAPS = TAPS_Z * TAPS_Y * TAPS_X;
constexpr int PAD_Z = 1, PAD_Y = 2, PAD_X = 3, OUT_AREA = 8 * Z * Y * X;
static_assert(OUT_DIM2 == 2 * Z && OUT_DIM3 == 2 * Y && OUT_DIM4 == 2 * X, "two results a place");
static_assert(CHANNELS == 8 && FILTERS == 8 && X % 16 == 0, "fragments");
static_assert(TAPS_Z == 3 && TAPS_Y == 5 && TAPS_X == 7,
              "distances from 0, -1 and -1 to 1, 1 and 2");

/* Result 2 q + e of an axis takes in place q + d by this tap, if there is one. */
__device__ __forceinline__ constexpr int tap_of(int e, int pad, int d) {
    return e + pad - 2 * d;
}

constexpr int WARPS = 4, THREADS = WARPS * 32, TILES = X / 16; /* of a warp's line */
constexpr int LINE = 4 + X; /* 4 zeros, which are behind the line before, too */
constexpr int LINES = WARPS + 2, PITCH = 2 * LINES * LINE + 8;
constexpr int PARTS = (Y + WARPS - 1) / WARPS, UNITS = IMAGES * Z * PARTS; /* of a group */
static_assert(PITCH % 16 == 8, "a warp's reads lie in different banks");

struct Shared {
    float weight[TAPS][32 * 4 + 4]; /* 4 more, for the banks of those who write them */
    float x[CHANNELS][PITCH];       /* lines y - 1 to y + WARPS of planes z and z + 1 */
};

/* What lane 4 * filter + channel % 4 multiplies by: two big parts and two rests. */
__device__ __forceinline__ void load(Shared &s, const float *__restrict__ weight) {
    weight += blockIdx.y * CHANNELS * FILTERS * TAPS;
#pragma unroll 8
    for (int i = threadIdx.x; i < CHANNELS * FILTERS * TAPS; i += THREADS) {
        const int filter = i / TAPS % FILTERS, c = i / TAPS / FILTERS;
        float *to = s.weight[i % TAPS] + (filter * 4 + c % 4) * 4 + c / 4;
        kp::WarpSplit<1> w;
        w.set(0, __ldg(weight + i));
        to[0] = w.big[0], to[2] = w.rest[0];
    }
}

/* Starts to copy what lines from (z, y) on read of an image, zeros beyond the edges. */
__device__ __forceinline__ void fetch(Shared &s, const float *__restrict__ x, int image, int z,
                                      int y) {
    x += (size_t)(image * GROUPS + blockIdx.y) * CHANNELS * Z * Y * X;
    for (int i = threadIdx.x; i < CHANNELS * 2 * LINES * X / 4; i += THREADS) {
        const int place = i % (X / 4) * 4, line = i / (X / 4) % (2 * LINES);
        const int c = i / (X / 4) / (2 * LINES), at_z = z + line / LINES;
        const int at_y = y - 1 + line % LINES;
        const bool inside = at_z < Z && (unsigned)at_y < Y;
        kp::copy_async<16>(kp::shared_address(&s.x[c][line * LINE + 4 + place]),
                           x + (inside ? ((c * Z + at_z) * Y + at_y) * X + place : 0), inside);
    }
}

/* Of both lines along y, of both results of a place: value 2 h + i of a tile is that of place
 * g + 8 h and filter 2 t + i. */
using Sums = float[2][2][TILES][4];

/* Adds a line of x, `from` its place g in channel t, at distance dy along y, by the taps from
 * `weight` on, a plane of them. */
__device__ __forceinline__ void multiply(Sums &sums, const float *from, int dy,
                                         const float (*weight)[32 * 4 + 4]) {
#pragma unroll
    for (int dx = 2; dx >= -1; dx--) {
        kp::WarpLeft x[TILES];
#pragma unroll
        for (int i = 0; i < TILES * 4; i++)
            x[i / 4].set(i % 4, from[i % 4 / 2 * 4 * PITCH + i / 4 * 16 + i % 2 * 8 + dx]);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int ky = tap_of(e / 2, PAD_Y, dy), kx = tap_of(e % 2, PAD_X, dx);
            if (ky >= TAPS_Y || kx < 0) continue;
            const float4 four = *(const float4 *)&weight[ky * TAPS_X + kx][threadIdx.x % 32 * 4];
            const float big[2] = {four.x, four.y}, rest[2] = {four.z, four.w};
            float(&sum)[TILES][4] = sums[e / 2][e % 2];
#pragma unroll
            for (int i = 0; i < TILES; i++) kp::mma_tf32(sum[i], x[i].rest, big);
#pragma unroll
            for (int i = 0; i < TILES; i++) kp::mma_tf32(sum[i], x[i].big, rest);
#pragma unroll
            for (int i = 0; i < TILES; i++) kp::mma_tf32(sum[i], x[i].big, big);
        }
    }
}

/* Lines 2 z + ez, of both along y, of what is in shared memory, to `to`, their place g. */
__device__ __forceinline__ void results(const Shared &s, int ez, float *to) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    Sums all = {};
#pragma unroll 1
    for (int i = 0; i < 3 * (ez + 1); i++) {
        const int dz = i / 3, dy = i % 3 - 1;
        Sums sums = {}; /* tensor cores cut off digits as they add: 32 terms at most */
        multiply(sums, s.x[t] + (dz * LINES + warp + 1 + dy) * LINE + 4 + g, dy,
                 s.weight + tap_of(ez, PAD_Z, dz) * TAPS_Y * TAPS_X);
#pragma unroll
        for (int k = 0; k < 4 * TILES * 4; k++) (&all[0][0][0][0])[k] += (&sums[0][0][0][0])[k];
    }
#pragma unroll
    for (int k = 0; k < 2 * TILES * 4; k++) {
        const int ey = k / (TILES * 4), tile = k / 4 % TILES, i = k % 4;
        *(float2 *)(to + (2 * t + i % 2) * OUT_AREA + ey * 2 * X + tile * 32 + i / 2 * 16) =
            make_float2(all[ey][0][tile][i], all[ey][1][tile][i]);
    }
}

__global__ void __launch_bounds__(THREADS, 3)
    results_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                   float *__restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    Shared &s = *(Shared *)memory;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    load(s, weight);
    for (int i = threadIdx.x; i < CHANNELS * PITCH; i += THREADS) (&s.x[0][0])[i] = 0.0f;
    for (int unit = blockIdx.x; unit < UNITS; unit += gridDim.x) {
        const int y = unit % PARTS * WARPS, z = unit / PARTS % Z, image = unit / PARTS / Z;
        __syncthreads(); /* nobody reads the last lines */
        fetch(s, x, image, z, y);
        kp::copies_wait();
        __syncthreads();
        float *to = out + (size_t)(image * GROUPS + blockIdx.y) * FILTERS * OUT_AREA +
                    (2 * z * 2 * Y + 2 * (y + warp)) * 2 * X + 2 * g;
#pragma unroll 1
        for (int ez = 0; ez < 2 && y + warp < Y; ez++) results(s, ez, to + ez * 4 * Y * X);
    }
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    int device = 0, processors = 132;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(results_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         sizeof(Shared));
    const int blocks = min(3 * processors / GROUPS, UNITS);
    results_kernel<<<dim3(blocks, GROUPS), THREADS, sizeof(Shared), stream>>>(
        in->x, in->conv_transpose3d_weight, out->out);
}
