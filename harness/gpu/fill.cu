/* fill.cu: device_fill: see device.h.  Which values, values.h says. */
#include "gpu/device.h"
#include "base/error.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdlib.h>

static const int kThreads = 256;
static const size_t kMostBlocks = 132 * 32; /* 32 for each multiprocessor of an H200 */

template <class T, class S> __host__ __device__ static T narrow(S x) {
    if constexpr (sizeof(T) == 2)
        return (T)(float)x; /* to the nearest */
    else
        return (T)x;
}

template <class T> __global__ void fill_kernel(T *data, size_t n, kp_values w) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        data[i] = narrow<T>(kp_value_at(&w, i));
}

/* The same values, where they are of a continuous law without scales: float suffices for those. */
template <class T, int KIND> __global__ void fill_continuous(T *data, size_t n, kp_values w) {
#pragma unroll 4
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        data[i] = narrow<T>(kp_value_continuous(KIND, &w, kp_mix(w.seed, i)) * w.factor);
}

/* Softmax of each row in place, one block for each row: for fills that are probabilities. */
__global__ void softmax_rows(float *data, int64_t cols) {
    __shared__ float part[kThreads];
    float *row = data + blockIdx.x * cols, s = 0;
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) s += __expf(row[c]);
    part[threadIdx.x] = s;
    __syncthreads();
    for (int k = kThreads / 2; k; k /= 2) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) row[c] = __expf(row[c]) / part[0];
}

/* Values that the task file lists: from the host. */
template <class T> static void copy(void *data, size_t n, const kp_values &w, cudaStream_t stream) {
    T *host = (T *)malloc(n * sizeof *host);
    if (!host) die(KP_MACHINE, "out of memory for %zu values; free some and try again", n);
    for (size_t i = 0; i < n; i++) host[i] = narrow<T>(kp_value_at(&w, i));
    device_check(cudaMemcpyAsync(data, host, n * sizeof *host, cudaMemcpyHostToDevice, stream),
                 "filling a tensor");
    device_check(cudaStreamSynchronize(stream), "filling a tensor");
    free(host);
}

/* The kernel that fills with these values. */
template <class T> static void (*kernel_of(const kp_values &w))(T *, size_t, kp_values) {
    bool scaled = w.wrap || w.transposed || w.spread > 0 || w.steps || w.special >= 0;
    if (scaled || sizeof(T) == 1 || sizeof(T) == 8) return fill_kernel<T>;
    switch (w.kind) {
    case KP_FILL_UNIFORM: return fill_continuous<T, KP_FILL_UNIFORM>;
    case KP_FILL_FAN_IN: return fill_continuous<T, KP_FILL_FAN_IN>;
    case KP_FILL_NORMAL: return fill_continuous<T, KP_FILL_NORMAL>;
    }
    return fill_kernel<T>;
}

template <class T> static void fill(void *data, size_t n, const kp_values &w, cudaStream_t stream) {
    if (w.kind == KP_FILL_VALUES) return copy<T>(data, n, w, stream);
    size_t blocks = (n + kThreads * 4 - 1) / (kThreads * 4);
    if (blocks > kMostBlocks) blocks = kMostBlocks;
    kernel_of<T>(w)<<<(unsigned)blocks, kThreads, 0, stream>>>((T *)data, n, w);
    device_check(cudaGetLastError(), "filling a tensor");
}

void device_fill(const struct kp_task *t, int index, void *data, enum kp_distribution d,
                 uint64_t seed, cudaStream_t stream) {
    const struct kp_tensor *x = &t->tensors[index];
    bool transposed = x->fill.kind == KP_FILL_TRANSPOSED;
    const struct kp_tensor *from = transposed ? &t->tensors[x->fill.source] : x;
    kp_values w = kp_values_of(t, index, d, seed);
    size_t count = (size_t)kp_shape_count(&x->shape);
    switch (x->dtype) {
    case KP_F64: fill<double>(data, count, w, stream); break;
    case KP_F32: fill<float>(data, count, w, stream); break;
    case KP_F16: fill<__half>(data, count, w, stream); break;
    case KP_BF16: fill<__nv_bfloat16>(data, count, w, stream); break;
    case KP_I64: fill<long long>(data, count, w, stream); break;
    case KP_I32: fill<int>(data, count, w, stream); break;
    case KP_BOOL: fill<unsigned char>(data, count, w, stream); break;
    }
    if (from->fill.wrap & KP_WRAP_SOFTMAX && x->dtype == KP_F32)
        softmax_rows<<<(unsigned)(count / w.cols), kThreads, 0, stream>>>((float *)data, w.cols);
    device_check(cudaGetLastError(), "filling a tensor");
}
