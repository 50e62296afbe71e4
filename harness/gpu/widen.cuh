/* widen.cuh: an element of any type as a double. */
#ifndef KP_WIDEN_CUH
#define KP_WIDEN_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> __device__ inline double widen(T x) {
    return (double)x;
}
template <> __device__ inline double widen<__half>(__half x) {
    return (double)__half2float(x);
}
template <> __device__ inline double widen<__nv_bfloat16>(__nv_bfloat16 x) {
    return (double)__bfloat162float(x);
}

#endif
