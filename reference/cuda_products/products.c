/* products.c: matmul and linear as matrix products; attention.c has more of them. */
#include "cuda_products/vendor.h"
#include "cuda_base/copy.h"
#include "base/error.h"
#include "cuda_base/impl.h"

#include <stdlib.h>

/* Memory for one planned product, or no return. */
static struct kp_product *new_product(void) {
    struct kp_product *p = calloc(1, sizeof *p);
    if (!p) die(KP_MACHINE, "out of memory; free some and try again");
    return p;
}

/* Free a planned product. */
static void destroy(void *state) {
    struct kp_product *p = state;
    kp_lt_free(p->lt);
    free(p->rough);
    free(p);
}

/* ---- matmul ---- */

/* Plan the product; by the libraries' fastest call where operands are 16-bit matrices. */
static void *matmul_prepare(const struct kp_call *c, size_t *scratch) {
    struct kp_product *p = new_product();
    kp_product_plan(p, c->math, &c->in[0], &c->in[1], &c->out[0]);
    bool half = c->in[0].dtype == KP_F16 || c->in[0].dtype == KP_BF16;
    if (half && c->in[0].n == 2 && c->in[1].n == 2 && !p->copy_a && !p->copy_b)
        kp_vendor_plan(p, c->in, c->present[2] ? &c->in[2] : NULL, &c->out[0]);
    kp_product_plan_rough(p, c->math, &c->in[0], &c->in[1], &c->out[0]);
    *scratch = p->bytes;
    return p;
}

/* Enqueue the product. */
static void matmul_run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    const struct kp_product *p = state;
    struct kp_array b = p->second ? kp_array_swap(c->in[2], 0, 1) : c->in[1];
    kp_product_run(p, 1, 0, c->in[0], b, NULL, c->out[0].data, scratch, stream);
}

static void matmul_rough(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    const struct kp_array *from[2] = {&c->in[0], &c->in[1]};
    kp_product_rough(state, 1, from, NULL, &c->out[0], c->noise,
                     c->exact_operands ? c->exact[0] : NULL, c->first, scratch, stream);
}

static bool matmul_together(const struct kp_call *c, void *state, void *scratch,
                            cudaStream_t stream) {
    const struct kp_array *from[2] = {&c->in[0], &c->in[1]};
    if (!kp_noise_is_last(c)) return false;
    matmul_run(c, state, scratch, stream);
    kp_product_together(state, from, c, scratch, stream);
    return true;
}

KP_IMPL(matmul, matmul_prepare, matmul_run, matmul_rough, destroy, KP_GIVEN_TRANSPOSE,
        matmul_together);

/* ---- linear ---- */

/* An array with a leading axis of 1, for a vector that is multiplied. */
static struct kp_array as_row(struct kp_array x) {
    if (x.n > 1) return x;
    x.n = 2;
    x.dim[1] = x.dim[0];
    x.stride[1] = x.stride[0];
    x.dim[0] = 1;
    return x;
}

/* The bias is added by cuBLASLt's epilogue, as PyTorch's addmm does, or is spread over the result
 * first, and the product added to it. */
static void *linear_prepare(const struct kp_call *c, size_t *scratch) {
    struct kp_product *p = new_product();
    struct kp_array in[2] = {as_row(c->in[0]), kp_array_swap(c->in[1], 0, 1)};
    struct kp_array out = as_row(c->out[0]);
    kp_product_plan(p, c->math, &in[0], &in[1], &out);
    bool one = p->gemm.batch == 1 && p->batch.n == 1;
    if (c->present[2] && one && c->math != KP_MATH_F64 && kp_array_is_dense(&c->in[2]))
        kp_vendor_plan_linear(p, in, &c->in[2], &out);
    kp_product_plan_rough(p, c->math, &in[0], &in[1], &out);
    *scratch = p->bytes;
    return p;
}

/* Enqueue the product and the bias. */
static void linear_run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    const struct kp_product *p = state;
    struct kp_array w = kp_array_swap(c->in[1], 0, 1);
    bool spread = c->present[2] && !p->lt;
    if (spread) kp_copy(&c->in[2], &c->out[0], stream);
    kp_product_run(p, 1, spread ? 1 : 0, as_row(c->in[0]), w, c->present[2] ? c->in[2].data : NULL,
                   c->out[0].data, scratch, stream);
}

static void linear_rough(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    struct kp_array x = as_row(c->in[0]), out = as_row(c->out[0]);
    struct kp_array w = kp_array_swap(c->in[1], 0, 1);
    const struct kp_array *from[2] = {&x, &w};
    kp_product_rough(state, 1, from, c->present[2] ? &c->in[2] : NULL, &out, c->noise,
                     c->exact_operands ? c->exact[0] : NULL, c->first, scratch, stream);
}

static bool linear_together(const struct kp_call *c, void *state, void *scratch,
                            cudaStream_t stream) {
    struct kp_array x = as_row(c->in[0]), w = kp_array_swap(c->in[1], 0, 1);
    const struct kp_array *from[2] = {&x, &w};
    if (!kp_noise_is_last(c)) return false;
    linear_run(c, state, scratch, stream);
    kp_product_together(state, from, c, scratch, stream);
    return true;
}

KP_IMPL(linear, linear_prepare, linear_run, linear_rough, destroy, KP_STRIDED, linear_together);
