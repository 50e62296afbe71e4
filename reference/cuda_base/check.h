/* check.h: status checks of the CUDA libraries, and their handles. */
#ifndef KP_CHECK_H
#define KP_CHECK_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Check a CUDA runtime, cuBLAS or cuDNN status.  A failure ends the program through
 * die(KP_MACHINE) with the function, the call's text and the library's own words.  The line number
 * is left out: with it an edited comment would change the program, and so every measurement. */
#define KP_CUDA(x)   kp_check_cuda((x), #x, __func__)
#define KP_CUBLAS(x) kp_check_cublas((int)(x), #x, __func__)
#define KP_CUDNN(x)  kp_check_cudnn((int)(x), #x, __func__)
void kp_check_cuda(cudaError_t e, const char *call, const char *function);
void kp_check_cublas(int status, const char *call, const char *function);
void kp_check_cudnn(int status, const char *call, const char *function);

/* The handles of this process, created at first use.  Each caller sets stream, workspace and math
 * mode, in this order: setting the stream resets the workspace. */
struct cublasContext *kp_cublas(void);
struct cudnnContext *kp_cudnn(void); /* NULL in a build without cuDNN (KP_NO_CUDNN) */

#ifdef __cplusplus
}
#endif
#endif
