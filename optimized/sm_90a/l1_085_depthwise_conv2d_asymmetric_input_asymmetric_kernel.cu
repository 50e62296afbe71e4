// provenance: shipped
/* Depthwise 3 x 7 convolution, no padding: 32 x 128 planes of 128 x 256 -> 126 x 250.
 *
 * Idea: a block makes 18 rows of a plane. One bulk copy brings the 20 rows under them to shared
 * memory, and one takes the results away, which are one run of memory (strips.cuh). A thread makes
 * four neighbouring columns of six rows; it goes down the rows with three sums open, so that it
 * reads each row once. In odd rows it makes the four columns two further right, which are a float4
 * of the run, too. Strips overlap: the L2 sends 1.11 times the input, the memory once.
 * Floor: 4 bytes an input and 4 an output element over the copy bandwidth, 245 us.
 * Measured: 252.9 us on an H200, 97 % of the floor (the portable kernel: 287.2); 346.8 us on an
 * H100. */
#include "task.h"
#include "strips.cuh"

constexpr int ROWS = X_DIM2, COLUMNS = X_DIM3, PLANES = X_DIM0 * X_DIM1;
constexpr int DOWN = CONV2D_WEIGHT_DIM2, TAPS = CONV2D_WEIGHT_DIM3; /* of a filter */
constexpr int OWN = 6; /* rows of results of a thread */
constexpr int GROUPS = OUT_DIM2 % (3 * OWN) == 0 ? 3 : 1;
constexpr int STRIP = OWN * GROUPS, STRIPS = (OUT_DIM2 + STRIP - 1) / STRIP;
constexpr int ACROSS = COLUMNS / 4, THREADS = ACROSS * GROUPS;
constexpr int READ = (STRIP + DOWN - 1) * COLUMNS + 8; /* threads at the edge read 8 floats on */
constexpr int BYTES = (READ + STRIP * OUT_DIM3) * 4;   /* shared memory */
static_assert(DOWN == 3 && TAPS == 7 && COLUMNS % 4 == 0, "three float4 under a thread");
static_assert(OUT_DIM3 % 4 == 2 && OUT_DIM3 == COLUMNS - 6, "odd rows begin amid a float4");
static_assert(OUT_DIM2 * OUT_DIM3 % 4 == 0 && OWN % 2 == 0, "strips begin at a whole float4");

struct Filter {
    float at[DOWN][TAPS];
};

/* sum[c] += row k of the filter on columns c of v. */
template <int COUNT>
__device__ __forceinline__ void add_row(const Filter &w, int k, const float *v,
                                        float (&sum)[COUNT]) {
#pragma unroll
    for (int c = 0; c < COUNT; c++)
#pragma unroll
        for (int t = 0; t < TAPS; t++) sum[c] += w.at[k][t] * v[c + t];
}

/* A thread's results, from row `in` of the input on, to `out`. */
__device__ __forceinline__ void convolve(const Filter &w, const float *in, int column, float *out) {
    float sum[DOWN][4], left[DOWN][2]; /* left: what is left of an odd row's first float4 */
#pragma unroll
    for (int i = 0; i < OWN + DOWN - 1; i++) {
        float v[12];
#pragma unroll
        for (int j = 0; j < 12; j += 4) {
            const float4 a = *(const float4 *)(in + i * COLUMNS + column + j);
            v[j] = a.x, v[j + 1] = a.y, v[j + 2] = a.z, v[j + 3] = a.w;
        }
#pragma unroll
        for (int k = 0; k < DOWN; k++) {
            const int r = i - k;
            if (r < 0 || r >= OWN) continue;
#pragma unroll
            for (int c = 0; c < 4 && k == 0; c++) sum[r % DOWN][c] = left[r % DOWN][c / 2] = 0;
            add_row(w, k, v + r % 2 * 2, sum[r % DOWN]);
            if (r % 2 && column == 0) add_row(w, k, v, left[r % DOWN]);
        }
        if (i + 1 < DOWN) continue;
        const int r = i + 1 - DOWN, at = column + r % 2 * 2;
        const float *const s = sum[r % DOWN];
        float *const to = out + r * OUT_DIM3;
        if (at + 4 <= OUT_DIM3)
            *(float4 *)(to + at) = make_float4(s[0], s[1], s[2], s[3]);
        else if (at < OUT_DIM3)
            to[at] = s[0], to[at + 1] = s[1];
        if (r % 2 && column == 0) to[0] = left[r % DOWN][0], to[1] = left[r % DOWN][1];
    }
}

__global__ void __launch_bounds__(THREADS)
    depthwise(const float *__restrict__ x, const float *__restrict__ weight,
              float *__restrict__ y) {
    extern __shared__ __align__(128) float memory[];
    __shared__ uint64_t come;
    const int plane = blockIdx.x / STRIPS, row = blockIdx.x % STRIPS * STRIP;
    Filter w;
#pragma unroll
    for (int k = 0; k < DOWN; k++)
#pragma unroll
        for (int t = 0; t < TAPS; t++)
            w.at[k][t] = __ldg(weight + (plane % X_DIM1 * DOWN + k) * TAPS + t);
    kp::strip_fetch(memory, x + ((long long)plane * ROWS + row) * COLUMNS,
                    min(STRIP + DOWN - 1, ROWS - row) * COLUMNS, &come);
    const int own = threadIdx.x / ACROSS * OWN;
    convolve(w, memory + own * COLUMNS, threadIdx.x % ACROSS * 4, memory + READ + own * OUT_DIM3);
    kp::strip_store(y + ((long long)plane * OUT_DIM2 + row) * OUT_DIM3, memory + READ, 0,
                    min(STRIP, OUT_DIM2 - row) * OUT_DIM3);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaFuncSetAttribute(depthwise, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    depthwise<<<PLANES * STRIPS, THREADS, BYTES, stream>>>(in->x, in->conv2d_weight, out->out);
}
