/* driver.h: the CUDA driver, opened at run time.
 *
 * Nothing here links libcuda, so every program starts on a machine without a driver and can say
 * so.  Names go through cuda.h's macros: cu.cuMemcpyDtoH is looked up as cuMemcpyDtoH_v2, its
 * current version. */
#ifndef KP_DRIVER_H
#define KP_DRIVER_H

#include <cuda.h>

/* A name has its _v2 or _v3 where CUDA 12 and 13 mean different versions by the plain name. */
/* clang-format off */
#define KP_DRIVER_CALLS(X) \
    X(cuInit) X(cuGetErrorString) X(cuGetErrorName) X(cuDriverGetVersion) X(cuDeviceGet) X(cuDeviceGetName) \
    X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuCtxSynchronize) \
    X(cuCtxResetPersistingL2Cache) X(cuMemGetInfo) X(cuMemAddressReserve) X(cuMemAddressFree) \
    X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) \
    X(cuMemGetAllocationGranularity) X(cuMemExportToShareableHandle) \
    X(cuMemImportFromShareableHandle) X(cuMemcpyDtoH) X(cuMemsetD8Async) X(cuMemsetD16Async) \
    X(cuMemsetD32Async) X(cuMemsetD2D8Async) X(cuMemsetD2D16Async) X(cuMemsetD2D32Async) \
    X(cuMemcpyDtoDAsync) X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal) \
    X(cuFuncGetName) X(cuFuncGetParamInfo) X(cuFuncGetAttribute) X(cuFuncSetAttribute) \
    X(cuKernelGetFunction) X(cuStreamCreate) X(cuStreamBeginCapture) X(cuStreamEndCapture) \
    X(cuStreamGetCaptureInfo_v3) X(cuStreamUpdateCaptureDependencies_v2) X(cuEventCreate) \
    X(cuEventDestroy) X(cuStreamDestroy) X(cuGraphExecDestroy) X(cuEventRecordWithFlags) X(cuEventElapsedTime) X(cuEventQuery) X(cuLaunchKernelEx) \
    X(cuGraphLaunch) X(cuGraphInstantiate) X(cuGraphUpload) X(cuGraphDestroy) X(cuGraphGetNodes) \
    X(cuGraphNodeGetType) X(cuGraphGetEdges_v2) X(cuGraphKernelNodeGetParams) \
    X(cuGraphKernelNodeGetAttribute) X(cuGraphMemsetNodeGetParams) X(cuGraphMemcpyNodeGetParams) \
    X(cuTensorMapEncodeTiled)
/* clang-format on */

struct kp_driver {
#define X(name) __typeof__(name) *name;
    KP_DRIVER_CALLS(X)
#undef X
};
extern struct kp_driver cu;

/* Once in a process: open libcuda.so.1, look up every call, call cuInit, and make device 0's
 * primary context current.  Ends the program with KP_MACHINE and one line if there is no driver or
 * no GPU, if the driver is older than the toolkit, or the GPU older than sm_80 or of another kind
 * than KP_GPU names. */
void driver_open(void);

/* Check a driver call: if it failed, end the program with KP_MACHINE, the function, the call and
 * the driver's words.  (No line number: it would change the program whenever a comment above it
 * grows, and every result depends on the programs that measure.) */
#define KP_CU(call) driver_check((call), #call, __func__)
void driver_check(CUresult e, const char *call, const char *function);
const char *driver_error(CUresult e);

#endif
