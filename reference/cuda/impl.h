/* impl.h: what an op's CUDA implementation offers to the executor.
 *
 * exec.c walks the graph, resolves views to strided arrays, plans memory and
 * calls these.  Products are in products.c, convolutions in conv.c, the rest in
 * .cu files, one subject each.  Nothing outside reference/cuda includes this. */
#ifndef KP_IMPL_H
#define KP_IMPL_H

#include "cuda/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kp_array { /* a strided view of device memory */
    void *data;   /* NULL while planning */
    enum kp_dtype dtype;
    int n; /* axes */
    int64_t dim[KP_MAX_DIMS];
    int64_t stride[KP_MAX_DIMS]; /* in elements; 0 broadcasts */
};

struct kp_call { /* one op on concrete arrays */
    const struct kp_task *task;
    const struct kp_op *op;
    enum kp_math math;
    int nin;
    bool present[KP_MAX_OPERANDS]; /* false: absent optional operand, or a scalar (op->in[k].scalar)
                                    */
    struct kp_array in[KP_MAX_OPERANDS];
    int nout;
    struct kp_array out[KP_MAX_RESULTS]; /* always dense; data NULL if nobody reads that result */
};

struct kp_impl {
    /* Chooses algorithms for these shapes and strides (data pointers are NULL).
     * Sets *scratch to the bytes that run() needs.  May return NULL (no state), and
     * may itself be NULL: nothing to choose, no scratch. */
    void *(*prepare)(const struct kp_call *c, size_t *scratch);
    /* Enqueues the op; only kernel launches, library calls and memsets on `stream`. */
    void (*run)(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream);
    void (*destroy)(void *state); /* may be NULL */
    /* True: operands must be dense (the executor copies strided ones first). */
    bool dense;
};

/* Element types: F64 math stores f64 throughout (task tensors are converted as
 * they are read, slice by slice); FP32 and TF32 store f32; HALF stores f16/bf16. */

extern const struct kp_impl kp_impl_matmul, kp_impl_linear, kp_impl_attention; /* products.c */
extern const struct kp_impl kp_impl_conv; /* conv.c: 1d, 2d, 3d */
extern const struct kp_impl kp_impl_pool; /* pool.cu */
extern const struct kp_impl
    kp_impl_elementwise;                     /* elementwise.cu: unary, binary, strided, broadcast */
extern const struct kp_impl kp_impl_norm;    /* norm.cu: layer, group, instance, batch */
extern const struct kp_impl kp_impl_softmax; /* softmax.cu */
extern const struct kp_impl kp_impl_reduce;  /* reduce.cu: sum, mean, max */
extern const struct kp_impl kp_impl_scan;    /* scan.cu: cumsum */
extern const struct kp_impl kp_impl_loss;    /* loss.cu: cross_entropy */

/* Enqueue a copy of a strided array of any dtype into a dense one, converting
 * (elementwise.cu). */
void kp_copy(const struct kp_array *from, const struct kp_array *to, cudaStream_t stream);

/* Handles of this process, created at first use; math mode set by the caller. */
struct cublasContext *kp_cublas(void);
struct cudnnContext *kp_cudnn(void); /* NULL if built without cuDNN (KP_NO_CUDNN) */

/* Check a CUDA runtime / cuBLAS / cuDNN status: dies with KP_MACHINE, the function, the call's
 * text and the library's own words.  No line number: it would make an edited comment a change of
 * the program, and so of every measurement. */
#define KP_CUDA(x)   kp_check_cuda((x), #x, __func__)
#define KP_CUBLAS(x) kp_check_cublas((int)(x), #x, __func__)
#define KP_CUDNN(x)  kp_check_cudnn((int)(x), #x, __func__)
void kp_check_cuda(cudaError_t e, const char *call, const char *function);
void kp_check_cublas(int status, const char *call, const char *function);
void kp_check_cudnn(int status, const char *call, const char *function);

#ifdef __cplusplus
}
#endif
#endif
