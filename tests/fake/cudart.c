/* cudart.c: the pretend runtime, on top of the pretend driver; see fake.h.  Error numbers of
 * the two are the same. */
#define _GNU_SOURCE
#include "fake.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static cudaError_t last;

/* The clock by which runners see the host wait is the pretend one, others are the host's. */
int clock_gettime(clockid_t id, struct timespec *t) {
    if (id != CLOCK_MONOTONIC_RAW) return (int)syscall(SYS_clock_gettime, id, t);
    t->tv_sec = (time_t)(fake_clock_us * 1e-6);
    t->tv_nsec = (long)((fake_clock_us - (double)t->tv_sec * 1e6) * 1e3);
    return 0;
}

/* Nobody sleeps by the host's clock: a gap passes on the pretend one. */
int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left) {
    (void)id, (void)flags, (void)left;
    fake_log("sleep %.0f", (double)t->tv_sec * 1e6 + (double)t->tv_nsec * 1e-3);
    fake_clock_us += (double)t->tv_sec * 1e6 + (double)t->tv_nsec * 1e-3;
    return 0;
}

/* Errors are kept for cudaGetLastError, the sticky one for good. */
static cudaError_t result(CUresult e) {
    if (!e) e = fake_sticky;
    if (e) last = (cudaError_t)e;
    return (cudaError_t)e;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t e = last;
    last = fake_sticky ? (cudaError_t)fake_sticky : cudaSuccess;
    return e;
}

const char *cudaGetErrorString(cudaError_t e) {
    const char *words;
    cuGetErrorString((CUresult)e, &words);
    return words;
}

cudaError_t cudaMalloc(void **p, size_t bytes) {
    size_t available, total;
    CUresult e = fake_unsafe();
    cuMemGetInfo(&available, &total);
    if (!e && bytes > available) e = CUDA_ERROR_OUT_OF_MEMORY;
    *p = e ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    return result(e || *p || !bytes ? e : CUDA_ERROR_OUT_OF_MEMORY);
}

cudaError_t cudaFree(void *p) {
    CUresult e = fake_unsafe();
    if (!e) free(p);
    return result(e);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    return result(cuMemsetD8Async((CUdeviceptr)(uintptr_t)to, (unsigned char)value, bytes, NULL));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s) {
    return result(cuMemsetD8Async((CUdeviceptr)(uintptr_t)to, (unsigned char)value, bytes, s));
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t s) {
    cudaError_t bad = cudaSuccess;
    for (size_t i = 0; i < height && !bad; i++)
        bad = cudaMemsetAsync((char *)to + i * pitch, value, width, s);
    return bad;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s) {
    return result(fake_copy(s, to, from, bytes, kind != cudaMemcpyDeviceToDevice));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t run, void *context) {
    return result(fake_host_function(s, run, context));
}

cudaError_t cudaDeviceSynchronize(void) {
    return result(cuCtxSynchronize());
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    (void)s;
    return cudaDeviceSynchronize();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
    return result(cuStreamCreate(s, flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
    return result(cuStreamDestroy(s));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    return result(cuEventCreate(event, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
    return result(cuEventRecordWithFlags(event, s, 0));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags) {
    return result(cuStreamWaitEvent(s, event, flags));
}

/* The runtime's configuration and attributes have the driver's layout and numbers. */
static cudaError_t launch(const cudaLaunchConfig_t *c, const void *func, void **args) {
    CUlaunchConfig config = {.gridDimX = c->gridDim.x,
                             .gridDimY = c->gridDim.y,
                             .gridDimZ = c->gridDim.z,
                             .blockDimX = c->blockDim.x,
                             .blockDimY = c->blockDim.y,
                             .blockDimZ = c->blockDim.z,
                             .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
                             .hStream = c->stream,
                             .attrs = (CUlaunchAttribute *)c->attrs,
                             .numAttrs = c->numAttrs};
    return result(cuLaunchKernelEx(&config, (CUfunction)(uintptr_t)func, args, NULL));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *func, void **args) {
    return launch(c, func, args);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t s) {
    cudaLaunchConfig_t c = {grid, block, shared, s, NULL, 0};
    return launch(&c, func, args);
}

/* KP_FAKE_PROFILER names a file to which the switching of the profiler is appended. */
static cudaError_t profiler(const char *word) {
    const char *path = getenv("KP_FAKE_PROFILER");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f) fprintf(f, "%s\n", word), fclose(f);
    return result(CUDA_SUCCESS);
}

cudaError_t cudaProfilerStart(void) {
    return profiler("on");
}

cudaError_t cudaProfilerStop(void) {
    return profiler("off");
}

/* Only the recorder's own is ever called. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **f, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status) {
    (void)symbol, (void)f, (void)version, (void)flags, (void)status;
    return cudaErrorNotSupported;
}
