// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// racecheck: clean
/* A thread brings B to shared memory by asynchronous copies, round after round into the same place;
 * all wait for it at one barrier, and it for them at another (on Hopper; elsewhere no copies).
 * Racecheck looks at the variant that hopper.cuh has for it. */
#include "task.h"
#include "hopper.cuh"

constexpr int THREADS = 256, ROUNDS = 4;
static_assert(OUT_ELEMENTS % (THREADS * ROUNDS) == 0, "whole blocks");

__global__ void diagonal(const float *a, const float *b, float *out) {
    const size_t first = (size_t)blockIdx.x * THREADS * ROUNDS + threadIdx.x;
#if __CUDA_ARCH__ == 900
    __shared__ __align__(16) float tile[THREADS];
    __shared__ uint64_t bars[2];
    const uint32_t full = kp::shared_address(bars), empty = full + 8;
    if (threadIdx.x == 0) {
        kp::bar_init(full, 1);
        kp::bar_init(empty, THREADS / 32 * kp::WARP_ARRIVALS);
        kp::bar_init_done();
    }
    __syncthreads();
    for (int r = 0; r < ROUNDS; r++) {
        const size_t i = first + r * THREADS;
        if (threadIdx.x == 0) {
            kp::bar_wait(empty, r % 2 ^ 1);
            for (int k = 0; k < THREADS; k += 4)
                kp::copy_async<16>(kp::shared_address(tile + k), b + i + k);
            kp::bar_arrive_copied(full);
        }
        kp::bar_wait(full, r % 2);
        out[i] = a[i / B_DIM1] * tile[threadIdx.x];
        __syncwarp();
        kp::bar_arrive_warp<1>(empty);
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
