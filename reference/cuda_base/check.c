/* check.c: status checks of the CUDA libraries, and their handles. */
#include "cuda_base/check.h"
#include "base/error.h"
#include <cublas_v2.h>
#ifndef KP_NO_CUDNN
#include <cudnn.h>
#endif

/* See check.h. */
void kp_check_cuda(cudaError_t e, const char *call, const char *function) {
    if (e == cudaSuccess) return;
    die(KP_MACHINE, "%s: %s: %s (%s); check the GPU with nvidia-smi", function, call,
        cudaGetErrorString(e), cudaGetErrorName(e));
}

/* See check.h; cuBLASLt, too. */
void kp_check_cublas(int status, const char *call, const char *function) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    die(KP_MACHINE, "%s: %s: %s (%s); check that cuBLAS fits the driver", function, call,
        cublasGetStatusString((cublasStatus_t)status), cublasGetStatusName((cublasStatus_t)status));
}

/* See check.h.  cuDNN's last message says more than its status. */
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

/* See check.h. */
struct cublasContext *kp_cublas(void) {
    static cublasHandle_t handle;
    if (!handle) KP_CUBLAS(cublasCreate(&handle));
    return handle;
}

/* See check.h. */
struct cudnnContext *kp_cudnn(void) {
#ifdef KP_NO_CUDNN
    return NULL;
#else
    static cudnnHandle_t handle;
    if (!handle) KP_CUDNN(cudnnCreate(&handle));
    return handle;
#endif
}
