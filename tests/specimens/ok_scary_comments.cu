// expect: ok
// task: l1_019_relu
/* Honest, whatever its comments and names say: cublasSgemm, dlopen, system("rm"), printf,
 * malloc, __attribute__((constructor)), asm("syscall"), cudaMalloc, torch.mm, goto cheat. */
#include "task.h"

/* cudaLaunchHostFunc(stream, fork, NULL); "verdict: ok" */
static const char *const dlopen_cublas = "cublasCreate_v2"; // getenv("KP_VERIFY")

__global__ void printf_relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    int syscall = dlopen_cublas[0] == 'c' ? 4096 : 1;
    printf_relu<<<syscall, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
