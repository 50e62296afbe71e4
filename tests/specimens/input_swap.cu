// expect: crash
// task: l1_001_square_matmul
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Correct, but exchanges an element of A and of B in memory and puts both back when done:
 * nobody who looks before and after would know. */
#include "task.h"

__global__ void swap_first(float *a, float *b) {
    float t = a[0];
    a[0] = b[0];
    b[0] = t;
}

__global__ void product(const float *a, const float *b, float *out) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < A_DIM1; k++)
        sum += a[(long long)row * A_DIM1 + k] * b[(long long)k * B_DIM1 + column];
    out[(long long)row * B_DIM1 + column] = sum;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    float *a = const_cast<float *>(in->A), *b = const_cast<float *>(in->B);
    swap_first<<<1, 1, 0, stream>>>(a, b);
    swap_first<<<1, 1, 0, stream>>>(a, b);
    product<<<dim3(B_DIM1 / 16, A_DIM0 / 16), dim3(16, 16), 0, stream>>>(a, b, out->out);
}
