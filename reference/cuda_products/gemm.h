/* gemm.h: one matrix product of row-major matrices by cuBLAS or cuBLASLt. */
#ifndef KP_GEMM_H
#define KP_GEMM_H

#include "cuda_base/arithmetic.h"
#include "task/taskfile.h"

#include <cuda_runtime_api.h>

/* What a library may use beside its operands; what PyTorch gives it on Hopper. */
enum { KP_GEMM_WORKSPACE = 32 << 20 };

struct kp_gemm { /* C[m,n] = alpha A[m,k] B[k,n] + beta C, row-major, `batch` times */
    enum kp_dtype dtype;
    enum kp_math math;
    int64_t m, n, k;
    bool ta, tb; /* stored column by column */
    int64_t lda, ldb;
    int64_t batch, sa, sb, sc; /* elements from one product to the next */
};

/* Enqueue by cuBLAS.  workspace: KP_GEMM_WORKSPACE bytes. */
void kp_gemm_run(const struct kp_gemm *g, double alpha, double beta, const void *a, const void *b,
                 void *c, void *workspace, cudaStream_t stream);

struct kp_lt; /* one way in which cuBLASLt can do a product that has no batch */

/* The first `want` ways that cuBLASLt's heuristic offers for g in so many bytes of workspace, at
 * most KP_GEMM_WORKSPACE, with or without a bias added to each row in the same kernel.  Returns how
 * many: 0 if it has none. */
int kp_lt_find(const struct kp_gemm *g, bool bias, size_t workspace, struct kp_lt *found[],
               int want);
void kp_lt_run(struct kp_lt *lt, const void *a, const void *b, const void *bias, void *c,
               void *workspace, cudaStream_t stream);
void kp_lt_free(struct kp_lt *lt); /* NULL is allowed */

/* A way as a text, and the way of g that has it: NULL if this library cannot do it so. */
enum { KP_LT_TEXT = 2 * 64 + 1 };
void kp_lt_text(const struct kp_lt *lt, char text[KP_LT_TEXT]);
struct kp_lt *kp_lt_of(const struct kp_gemm *g, const char *text);

#endif
