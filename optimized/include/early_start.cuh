/* early_start.cuh: kernels that start while the one before them ends (programmatic dependent
 * launch), from sm_90 on.
 *
 * Idea: many short kernels in a row lose a microsecond or two each where one ends and the next
 * begins. A kernel enqueued by launch_early() may start once all blocks of the one before have
 * called let_next_start() or ended; before it touches what others write it calls wait_for_before(),
 * which returns when the one before is done and what it wrote is there. Every thread of such a
 * kernel calls it, also one that reads nothing: so whoever comes later finds all done that was
 * before.
 *
 * What comes from the kernel before is no constant: it is read neither by __ldg() nor through a
 * pointer that is const and __restrict__.
 * Reaches: see l3_007 (no share of its own was measured). */
#pragma once
#include <cuda_runtime.h>

namespace kp {

__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait_for_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class... Parameters, class... Arguments>
static void launch_early(void (*kernel)(Parameters...), dim3 grid, int threads, int shared,
                         cudaStream_t stream, const Arguments &...arguments) {
    int device = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = major >= 9 ? 1 : 0;
    cudaLaunchKernelEx(&config, kernel, arguments...);
}

} // namespace kp
