/* instance_norm.cuh: instance norm of planes that fit in the registers of a block, in place. */
#pragma once
#include "norm.cuh"

constexpr int INSTANCE_THREADS = 512;

/* x = (x - mean) * scale * factor in place, for one plane of FOURS float4 a block, held in
 * registers between the two passes. */
template <int FOURS>
__global__ void __launch_bounds__(INSTANCE_THREADS)
    instance_norm_kernel(float4 *__restrict__ x, double eps, float factor) {
    constexpr int ROUNDS = (FOURS + INSTANCE_THREADS - 1) / INSTANCE_THREADS;
    static_assert(ROUNDS % 2 == 0 && ROUNDS <= 16, "pairs of float4, in registers");
    float4 *p = x + (long long)blockIdx.x * FOURS;
    float4 v[ROUNDS];
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
        const int i = threadIdx.x + j * INSTANCE_THREADS;
        if (i < FOURS) v[j] = p[i];
    }
    Moments m = {0, 0};
#pragma unroll
    for (int j = 0; j < ROUNDS; j += 2) {
        const int i = threadIdx.x + j * INSTANCE_THREADS;
        if (i + INSTANCE_THREADS < FOURS)
            m.take(v[j], v[j + 1]);
        else if (i < FOURS)
            m.take(v[j].x), m.take(v[j].y), m.take(v[j].z), m.take(v[j].w);
    }
    m = block_moments<INSTANCE_THREADS>(m);
    const Standard s = standard(m, 4.0 * FOURS, eps);
    const float f = s.scale * factor;
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
        const int i = threadIdx.x + j * INSTANCE_THREADS;
        if (i < FOURS)
            p[i] = make_float4((v[j].x - s.mean) * f, (v[j].y - s.mean) * f, (v[j].z - s.mean) * f,
                               (v[j].w - s.mean) * f);
    }
}
