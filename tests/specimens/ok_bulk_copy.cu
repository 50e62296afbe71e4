// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// racecheck: clean
/* A thread brings B to shared memory by bulk copies, round after round into the same place; all
 * wait for it at one mbarrier, and it for them at another (on Hopper; elsewhere no copies).
 * Racecheck looks at the variant that hopper_f16.cuh has for it. */
#include "task.h"
#include "hopper_f16.cuh"

constexpr int THREADS = 256, ROUNDS = 4;
static_assert(OUT_ELEMENTS % (THREADS * ROUNDS) == 0, "whole blocks");

__global__ void diagonal(const float *a, const float *b, float *out) {
    const size_t first = (size_t)blockIdx.x * THREADS * ROUNDS + threadIdx.x;
#if __CUDA_ARCH__ == 900
    __shared__ __align__(16) float tile[THREADS];
    __shared__ uint64_t full, empty;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_init(&empty, THREADS);
        barrier_init_done();
    }
    __syncthreads();
    for (int r = 0; r < ROUNDS; r++) {
        const size_t i = first + r * THREADS;
        if (threadIdx.x == 0) {
            barrier_wait(&empty, r % 2 ^ 1);
            barrier_expect(&full, sizeof tile);
            bulk_copy(tile, b + i, sizeof tile, &full);
            bulk_copied(&full);
        }
        barrier_wait(&full, r % 2);
        out[i] = a[i / B_DIM1] * tile[threadIdx.x];
        barrier_arrive(&empty);
    }
#else
    for (size_t i = first; i < first + THREADS * ROUNDS; i += THREADS)
        out[i] = a[i / B_DIM1] * b[i];
#endif
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / (THREADS * ROUNDS), THREADS, 0, stream>>>(in->A, in->B, out->out);
}
