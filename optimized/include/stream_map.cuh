/* stream_map.cuh: elementwise maps at copy speed.
 *
 * A block moves few KB: what is in flight on the whole chip then lies close together in memory,
 * which DRAM likes better than many loads a thread (measured on an H200: 3.00 ms for 12.9 GB, 3.24
 * with four float4 a thread). Loads and stores are plain: evict-first loads cost 5 %. */
#pragma once

/* y[i] = f(x[i]); f is an F, which has no state. A thread does FOURS float4, a block's width apart;
 * all blocks are whole. */
template <class F, int THREADS, int FOURS>
__global__ void __launch_bounds__(THREADS)
    stream_map_kernel(const float4 *__restrict__ x, float4 *__restrict__ y) {
    const long long first = (long long)blockIdx.x * (THREADS * FOURS) + threadIdx.x;
    const F f;
    float4 v[FOURS];
#pragma unroll
    for (int j = 0; j < FOURS; j++) v[j] = __ldg(x + first + j * THREADS);
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        y[first + j * THREADS] = make_float4(f(v[j].x), f(v[j].y), f(v[j].z), f(v[j].w));
}

/* Enqueues y = f(x) over ELEMENTS floats. */
template <class F, int THREADS, int FOURS, long long ELEMENTS>
static void stream_map(const float *x, float *y, cudaStream_t stream) {
    constexpr long long blocks = ELEMENTS / (4 * THREADS * FOURS);
    static_assert(ELEMENTS % (4 * THREADS * FOURS) == 0 && blocks < 1LL << 31, "whole blocks");
    stream_map_kernel<F, THREADS, FOURS>
        <<<(unsigned)blocks, THREADS, 0, stream>>>((const float4 *)x, (float4 *)y);
}
