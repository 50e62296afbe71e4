// expect: gate
// task: l1_019_relu
// reason: dlopen
/* Finds the vendor library at run time, so that no symbol of it is seen. */
#include "task.h"
#include <dlfcn.h>

__global__ void nothing() {}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    void *library = dlopen("libcublas.so", RTLD_NOW);
    (void)in, (void)out;
    if (library && dlsym(library, "cublasCreate_v2")) nothing<<<1, 1, 0, stream>>>();
}
