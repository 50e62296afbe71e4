/* check.c: status checks of the CUDA libraries, and their handles. */
#include "cuda/impl.h"
#include "base/error.h"
#include <cublas_v2.h>
#ifndef KP_NO_CUDNN
#include <cudnn.h>
#endif

/* Dies unless the runtime call succeeded. */
void kp_check_cuda(cudaError_t e, const char *call, const char *function) {
    if (e == cudaSuccess) return;
    die(KP_MACHINE, "%s: %s: %s (%s); check the GPU with nvidia-smi", function, call,
        cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Dies unless the cuBLAS or cuBLASLt call succeeded. */
void kp_check_cublas(int status, const char *call, const char *function) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    die(KP_MACHINE, "%s: %s: %s (%s); check that cuBLAS fits the driver", function, call,
        cublasGetStatusString((cublasStatus_t)status), cublasGetStatusName((cublasStatus_t)status));
}

/* Dies unless the cuDNN call succeeded; cuDNN's last message says more than its
 * status does. */
void kp_check_cudnn(int status, const char *call, const char *function) {
    if (status == 0) return;
#ifdef KP_NO_CUDNN
    die(KP_BUG, "%s: %s: status %d in a build without cuDNN", function, call, status);
#else
    char detail[512] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    die(KP_MACHINE, "%s: %s: %s%s%s; check that cuDNN fits the driver", function, call,
        cudnnGetErrorString((cudnnStatus_t)status), *detail ? ": " : "", detail);
#endif
}

/* The process's cuBLAS handle, made at first use.  Stream, workspace and math
 * mode are set by each caller, in this order: setting the stream resets the
 * workspace. */
struct cublasContext *kp_cublas(void) {
    static cublasHandle_t handle;
    if (!handle) KP_CUBLAS(cublasCreate(&handle));
    return handle;
}

/* The process's cuDNN handle, made at first use; NULL if built without cuDNN. */
struct cudnnContext *kp_cudnn(void) {
#ifdef KP_NO_CUDNN
    return NULL;
#else
    static cudnnHandle_t handle;
    if (!handle) KP_CUDNN(cudnnCreate(&handle));
    return handle;
#endif
}
