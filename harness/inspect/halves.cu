/* halves.cu: see halves.h. */
#include "inspect/halves.h"
#include "gpu/device.h"

#include <cuda_fp16.h>

enum { SIDE = 16 }; /* a block computes SIDE x SIDE elements */

__global__ void __launch_bounds__(SIDE *SIDE)
    multiply_halves(const __half *a, const __half *b, __half *out, int64_t m, int64_t n, int64_t k,
                    int terms) {
    int64_t row = blockIdx.y * (int64_t)SIDE + threadIdx.y;
    int64_t column = blockIdx.x * (int64_t)SIDE + threadIdx.x;
    if (row >= m || column >= n) return;
    __half sum = __float2half_rn(0);
    for (int64_t at = 0; at < k; at += terms) {
        float part = 0;
        for (int64_t i = at; i < at + terms && i < k; i++)
            part += __half2float(a[row * k + i]) * __half2float(b[i * n + column]);
        sum = __float2half_rn(__half2float(sum) + part);
    }
    out[row * n + column] = sum;
}

void halves_product(const void *a, const void *b, void *out, int64_t m, int64_t n, int64_t k,
                    int terms, cudaStream_t stream) {
    dim3 grid((unsigned)((n + SIDE - 1) / SIDE), (unsigned)((m + SIDE - 1) / SIDE));
    multiply_halves<<<grid, dim3(SIDE, SIDE), 0, stream>>>((const __half *)a, (const __half *)b,
                                                           (__half *)out, m, n, k, terms);
    device_check(cudaGetLastError(), "a product in f16");
}
