// provenance: shipped
/* Depthwise 3 x 7 convolution, no padding: 32 x 128 planes of 128 x 256 -> 126 x 250.
 *
 * Idea: a block of 64 threads has a plane, and copies rows into shared memory ahead of their use,
 * six a step, each once. A thread makes four neighbouring columns of each row; the three rows under
 * them wait in registers, so that a row of the result costs three reads of 16 bytes. Rows of the
 * result are 1000 bytes, so that in odd rows a thread makes the four columns two further right:
 * every store is a whole float4, but for two columns between an even row and the next, which the
 * last two threads make. To read all that is under six rows at once, straight into registers
 * (depthwise_conv.cuh), took 284 us on an H200: too little was under way while a warp added up.
 * Floor: 4 bytes an input and 4 an output element over the copy bandwidth, 245 us; sums, 105 us of
 * issuing instructions, and 85 of reading shared memory go beside it.
 * Measured: not yet. */
#include "task.h"
#include "async.cuh"

constexpr int ROWS = OUT_DIM2, COLUMNS = OUT_DIM3, WIDTH = X_DIM3, HIGH = 3, WIDE = 7;
constexpr int THREADS = WIDTH / 4, STEP = 6, STAGES = 3; /* steps of rows in shared memory */
constexpr int READ = 12;                                 /* columns that a thread reads */
constexpr int WHOLE = COLUMNS / 4;                       /* threads that store four columns */
static_assert(CONV2D_WEIGHT_DIM2 == HIGH && CONV2D_WEIGHT_DIM3 == WIDE, "the sizes of the filter");
static_assert(ROWS == X_DIM2 - HIGH + 1 && COLUMNS == WIDTH - WIDE + 1, "no padding");
static_assert(ROWS % STEP == 0 && STEP % 2 == 0, "whole steps, which begin with an even row");
static_assert(COLUMNS % 4 == 2 && WHOLE + 2 == THREADS, "odd rows begin in mid float4");

/* Rows lie four floats apart: the last thread's columns begin 4 before the row's, and what the last
 * two read between rows counts nowhere. */
constexpr int PITCH = WIDTH + 4;
struct alignas(16) Ring {
    float before[4], first[HIGH - 1][PITCH], rows[STAGES][STEP][PITCH];
};

__device__ __forceinline__ void read(const float *from, float (&v)[READ]) {
#pragma unroll
    for (int j = 0; j < READ; j += 4) {
        const float4 a = *(const float4 *)(from + j);
        v[j] = a.x, v[j + 1] = a.y, v[j + 2] = a.z, v[j + 3] = a.w;
    }
}

/* sum[c] = the result `shift` + c columns from the first that was read. */
__device__ __forceinline__ void add_up(const float (&w)[HIGH][WIDE], const float (*v)[READ],
                                       int shift, float (&sum)[4]) {
#pragma unroll
    for (int i = 0; i < HIGH; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++)
#pragma unroll
            for (int c = 0; c < 4; c++) sum[c] += w[i][j] * v[i][shift + c + j];
}

/* A block a plane; 11 fit into the shared memory of a multiprocessor. */
__global__ void __launch_bounds__(THREADS, 11)
    plane_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                 float *__restrict__ out) {
    __shared__ Ring ring;
    const int t = threadIdx.x, column = 4 * t, own = (column + 4) % WIDTH - 4;
    const float *from = x + (size_t)blockIdx.x * (X_DIM2 * WIDTH) + column;
    float *to = out + (size_t)blockIdx.x * (ROWS * COLUMNS);
    float w[HIGH][WIDE], v[STEP + HIGH - 1][READ];
    auto fetch = [&](float(*rows)[PITCH], int count) {
#pragma unroll
        for (int r = 0; r < count; r++, from += WIDTH) copy_async(&rows[r][column], from);
    };
    fetch(ring.first, HIGH - 1);
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i * STEP < ROWS) fetch(ring.rows[i], STEP);
        copy_commit();
    }
#pragma unroll
    for (int i = 0; i < HIGH * WIDE; i++)
        w[i / WIDE][i % WIDE] = __ldg(weight + blockIdx.x % CONV2D_WEIGHT_DIM0 * (HIGH * WIDE) + i);
    int stage = 0;
#pragma unroll 1
    for (int row = 0; row < ROWS; row += STEP, to += STEP * COLUMNS) {
        copy_wait(STAGES - 2);
        __syncthreads();
        const int last = stage == 0 ? STAGES - 1 : stage - 1; /* that all have read */
        if (row + (STAGES - 1) * STEP < ROWS) fetch(ring.rows[last], STEP);
        copy_commit();
#pragma unroll
        for (int r = 0; r < HIGH - 1; r++)
            if (row == 0)
                read(ring.first[r] + own, v[r]);
            else
#pragma unroll
                for (int j = 0; j < READ; j++) v[r][j] = v[STEP + r][j];
#pragma unroll
        for (int r = 0; r < STEP; r++) {
            float sum[4] = {};
            float *line = to + r * COLUMNS;
            read(ring.rows[stage][r] + own, v[r + HIGH - 1]);
            add_up(w, v + r, r % 2 * 2, sum);
            if (t < WHOLE)
                *(float4 *)(line + column + r % 2 * 2) =
                    make_float4(sum[0], sum[1], sum[2], sum[3]);
            else if (t == WHOLE + r % 2)
                *(float2 *)(line + (r % 2 ? 0 : column)) =
                    r % 2 ? make_float2(sum[2], sum[3]) : make_float2(sum[0], sum[1]);
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    plane_kernel<<<X_DIM0 * X_DIM1, THREADS, 0, stream>>>(in->x, in->conv2d_weight, out->out);
}
