// expect: ok
// task: relu64
/* Uses every kind of node and edge of a tape: a memset, a copy, a packed structure of
 * parameters, a kernel without parameters, a forked stream, a programmatic launch, a cluster,
 * scratch. */
#include "kernel.h"

enum { HALF = COUNT / 2 };

struct __attribute__((packed)) part {
    short from, to;
    const float *x;
    float *out;
    unsigned char end;
};

KERNEL(packed, sizeof(struct part)) {
    struct part p = PARAM(0, struct part);
    relu_of(p.x + p.from, p.out + p.from, p.to - p.from);
}

KERNEL(plain, 4, 8, 8) {
    int n = PARAM(0, int);
    relu_of(PARAM(1, const float *), PARAM(2, float *), n);
}

KERNEL(idle, 0) {
    (void)args;
}

size_t scratch_bytes(void) {
    return 4 * HALF;
}

/* Launch with attributes: a cluster, and without waiting for the previous launch. */
static void start_early(const struct CUfunc_st *f, void **args, cudaStream_t stream) {
    cudaLaunchAttribute a[2] = {
        {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
         .val.programmaticStreamSerializationAllowed = 1},
        {.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {2, 1, 1}}};
    cudaLaunchConfig_t c = {{2, 1, 1}, {32, 1, 1}, 1024, stream, a, 2};
    cudaLaunchKernelExC(&c, f, args);
}

LAUNCH {
    cudaStream_t side;
    cudaEvent_t fork, join;
    struct part first = {0, HALF, in[0], out[0], 1};
    int half = HALF;
    const float *second = in[0] + HALF;
    void *one[] = {&first}, *two[] = {&half, (void *)&second, &scratch};
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    cudaMemsetAsync(out[0], 0, 4 * COUNT, stream);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(side, fork, 0);
    start(&packed, one, stream);
    start(&idle, NULL, stream);
    start_early(&packed, one, stream);
    start(&plain, two, side);
    cudaMemcpyAsync(out[0] + HALF, scratch, 4 * HALF, cudaMemcpyDeviceToDevice, side);
    cudaEventRecord(join, side);
    cudaStreamWaitEvent(stream, join, 0);
}
