// expect: gate
// task: l1_001_square_matmul
// reason: no vendor library
/* Calls the vendor library that it is compared with. */
#include "task.h"
#include <cublas_v2.h>

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    static cublasHandle_t handle;
    const float one = 1.0f, zero = 0.0f;
    if (!handle) cublasCreate(&handle);
    cublasSetStream(handle, stream);
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, B_DIM1, A_DIM0, A_DIM1, &one, in->B, B_DIM1,
                in->A, A_DIM1, &zero, out->out, B_DIM1);
}
