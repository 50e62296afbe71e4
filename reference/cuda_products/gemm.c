/* gemm.c: one matrix product by cuBLAS or cuBLASLt.
 *
 * The libraries think in columns.  A row-major matrix is its own transpose to
 * them, so C = A B is asked for as C' = B' A': the operands change places. */
#include "cuda_products/gemm.h"
#include "cuda_base/check.h"
#include "base/error.h"
#include <cublasLt.h>
#include <cublas_v2.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kp_lt {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
};

/* The libraries' name of an element type. */
static cudaDataType_t type_of(enum kp_dtype t) {
    switch (t) {
    case KP_F64: return CUDA_R_64F;
    case KP_F32: return CUDA_R_32F;
    case KP_F16: return CUDA_R_16F;
    case KP_BF16: return CUDA_R_16BF;
    default: die(KP_BUG, "a matrix product of %s values", kp_dtype_name(t));
    }
}

/* FP32 is CUBLAS_COMPUTE_32F in the default math mode, which does not use TF32. */
static cublasComputeType_t compute_of(const struct kp_gemm *g) {
    if (g->dtype == KP_F64) return CUBLAS_COMPUTE_64F;
    bool tf32 = g->math == KP_MATH_TF32 && g->dtype == KP_F32;
    return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* See gemm.h.  The 64-bit calls: a task has rows of 2^20 and 2^31 elements. */
void kp_gemm_run(const struct kp_gemm *g, double alpha, double beta, const void *a, const void *b,
                 void *c, void *workspace, cudaStream_t stream) {
    cublasHandle_t h = kp_cublas();
    KP_CUBLAS(cublasSetStream(h, stream));
    KP_CUBLAS(cublasSetWorkspace(h, workspace, KP_GEMM_WORKSPACE));
    KP_CUBLAS(cublasSetMathMode(h, CUBLAS_DEFAULT_MATH));
    float alpha32 = (float)alpha, beta32 = (float)beta;
    bool f64 = g->dtype == KP_F64;
    const void *x = f64 ? (const void *)&alpha : &alpha32, *y = f64 ? (const void *)&beta : &beta32;
    cublasOperation_t ta = g->ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                      tb = g->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType_t t = type_of(g->dtype);
    if (g->batch == 1)
        KP_CUBLAS(cublasGemmEx_64(h, tb, ta, g->n, g->m, g->k, x, b, t, g->ldb, a, t, g->lda, y, c,
                                  t, g->n, compute_of(g), CUBLAS_GEMM_DEFAULT));
    else
        KP_CUBLAS(cublasGemmStridedBatchedEx_64(h, tb, ta, g->n, g->m, g->k, x, b, t, g->ldb, g->sb,
                                                a, t, g->lda, g->sa, y, c, t, g->n, g->sc, g->batch,
                                                compute_of(g), CUBLAS_GEMM_DEFAULT));
}

/* The layout of a matrix stored row by row (or, transposed, column by column),
 * as columns. */
static cublasLtMatrixLayout_t layout(enum kp_dtype t, int64_t rows, int64_t columns,
                                     bool transposed, int64_t ld) {
    cublasLtMatrixLayout_t l;
    uint64_t r = (uint64_t)(transposed ? rows : columns),
             c = (uint64_t)(transposed ? columns : rows);
    KP_CUBLAS(cublasLtMatrixLayoutCreate(&l, type_of(t), r, c, ld));
    return l;
}

/* Set one attribute of a product's description. */
static void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t key, const void *value,
                size_t size) {
    KP_CUBLAS(cublasLtMatmulDescSetAttribute(d, key, value, size));
}

/* Describe the product; no algorithm yet. */
static struct kp_lt *describe(const struct kp_gemm *g, bool bias) {
    struct kp_lt *lt = calloc(1, sizeof *lt);
    if (!lt) die(KP_MACHINE, "out of memory; free some and try again");
    cublasOperation_t ta = g->ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                      tb = g->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    KP_CUBLAS(cublasLtMatmulDescCreate(&lt->product, compute_of(g),
                                       g->dtype == KP_F64 ? CUDA_R_64F : CUDA_R_32F));
    set(lt->product, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    set(lt->product, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    set(lt->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    lt->a = layout(g->dtype, g->k, g->n, g->tb, g->ldb);
    lt->b = layout(g->dtype, g->m, g->k, g->ta, g->lda);
    lt->c = layout(g->dtype, g->m, g->n, false, g->n);
    return lt;
}

/* See gemm.h.  Buffers are 256-byte aligned, which the heuristic supposes. */
int kp_lt_find(const struct kp_gemm *g, bool bias, size_t workspace, struct kp_lt *found[],
               int want) {
    enum { MOST = 128 };
    cublasLtMatmulHeuristicResult_t offer[MOST];
    cublasLtHandle_t h = (cublasLtHandle_t)kp_cublas(); /* one contains the other */
    struct kp_lt *lt = describe(g, bias);
    cublasLtMatmulPreference_t p;
    KP_CUBLAS(cublasLtMatmulPreferenceCreate(&p));
    KP_CUBLAS(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace, sizeof workspace));
    /* Parts of a sum are added in fp32, never in a result's 16 bits. */
    uint32_t reductions =
        g->dtype == KP_F16 || g->dtype == KP_BF16
            ? CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
            : CUBLASLT_REDUCTION_SCHEME_MASK;
    KP_CUBLAS(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                   &reductions, sizeof reductions));
    int n = 0, kept = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        h, lt->product, lt->a, lt->b, lt->c, lt->c, p, want < MOST ? want : MOST, offer, &n);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) KP_CUBLAS(status);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < n; i++) {
        if (offer[i].state != CUBLAS_STATUS_SUCCESS) continue;
        found[kept] = describe(g, bias);
        found[kept++]->algo = offer[i].algo;
    }
    KP_CUBLAS(cublasLtMatmulPreferenceDestroy(p));
    kp_lt_free(lt);
    return kept;
}

/* See gemm.h. */
void kp_lt_run(struct kp_lt *lt, const void *a, const void *b, const void *bias, void *c,
               void *workspace, cudaStream_t stream) {
    const float one = 1, zero = 0;
    if (bias) set(lt->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    KP_CUBLAS(cublasLtMatmul((cublasLtHandle_t)kp_cublas(), lt->product, &one, b, lt->a, a, lt->b,
                             &zero, c, lt->c, c, lt->c, &lt->algo, workspace, KP_GEMM_WORKSPACE,
                             stream));
}

/* See gemm.h. */
void kp_lt_free(struct kp_lt *lt) {
    if (!lt) return;
    cublasLtMatrixLayoutDestroy(lt->a);
    cublasLtMatrixLayoutDestroy(lt->b);
    cublasLtMatrixLayoutDestroy(lt->c);
    cublasLtMatmulDescDestroy(lt->product);
    free(lt);
}

/* See gemm.h.  An algorithm is opaque words that may be kept. */
void kp_lt_text(const struct kp_lt *lt, char text[KP_LT_TEXT]) {
    unsigned char byte[sizeof lt->algo];
    static_assert(2 * sizeof byte + 1 == KP_LT_TEXT, "two digits a byte");
    memcpy(byte, &lt->algo, sizeof byte);
    for (size_t i = 0; i < sizeof byte; i++) snprintf(text + 2 * i, 3, "%02x", byte[i]);
}

/* See gemm.h. */
struct kp_lt *kp_lt_of(const struct kp_gemm *g, const char *text) {
    struct kp_lt *lt = describe(g, false);
    unsigned char byte[sizeof lt->algo];
    unsigned digit;
    cublasLtMatmulHeuristicResult_t result;
    size_t n = strlen(text) + 1 == KP_LT_TEXT ? sizeof byte : 0, i = 0;
    while (i < n && sscanf(text + 2 * i, "%2x", &digit) == 1) byte[i++] = (unsigned char)digit;
    if (i == sizeof byte) {
        memcpy(&lt->algo, byte, sizeof byte);
        if (cublasLtMatmulAlgoCheck((cublasLtHandle_t)kp_cublas(), lt->product, lt->a, lt->b, lt->c,
                                    lt->c, &lt->algo, &result) == CUBLAS_STATUS_SUCCESS &&
            result.workspaceSize <= KP_GEMM_WORKSPACE)
            return lt;
    }
    kp_lt_free(lt);
    return NULL;
}
