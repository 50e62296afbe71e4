/* product.h: matrix products of strided arrays, by cuBLAS or cuBLASLt: what ops are made of. */
#ifndef KP_PRODUCT_H
#define KP_PRODUCT_H

#include "cuda_base/impl.h"
#include "cuda_base/strided.h"
#include "cuda_products/gemm.h"

struct kp_rough;

struct kp_product {
    struct kp_gemm gemm;
    struct kp_array a, b;     /* as they are multiplied */
    bool copy_a, copy_b;      /* first made dense, at these offsets of the scratch */
    size_t at_a, at_b, bytes; /* bytes: scratch in all */
    struct kp_walk batch;     /* the last axis is the library's, the others are looped over */
    struct kp_lt *lt;         /* or NULL: cuBLAS */
    bool second;              /* reads operand 2, the transpose of operand 1, in its place */
    struct kp_rough *rough;   /* float64 only */
};

/* Plan out[..., m, n] = a[..., m, k] b[..., k, n]. */
void kp_product_plan(struct kp_product *p, enum kp_math math, const struct kp_array *a,
                     const struct kp_array *b, const struct kp_array *out);

/* Enqueue a planned product on operands in their original arrays. */
void kp_product_run(const struct kp_product *p, double alpha, double beta, struct kp_array a,
                    struct kp_array b, const void *bias, void *out, char *scratch,
                    cudaStream_t stream);

/* Plan the same with noise, in float64, as kp_product_plan() was called for p; its memory lies
 * behind p's. */
void kp_product_plan_rough(struct kp_product *p, enum kp_math math, const struct kp_array *a,
                           const struct kp_array *b, const struct kp_array *out);

/* out = alpha a b + what bias has, with noise.  bias: NULL, or an array that broadcasts.  exact:
 * the result without noise, if the operands have none, else NULL.  first: the product of squares
 * is not in the scratch yet; noise on the operands changes it too little to matter. */
void kp_product_rough(const struct kp_product *p, double alpha, const struct kp_array *from[2],
                      const struct kp_array *bias, const struct kp_array *out,
                      const struct kp_noise *noise, const void *exact, bool first, char *scratch,
                      cudaStream_t stream);

/* All draws of the product that c[0] is, from its exact result, which is there. */
void kp_product_together(const struct kp_product *p, const struct kp_array *from[2],
                         const struct kp_call *c, char *scratch, cudaStream_t stream);

#endif
