/* product.c: see product.h.
 *
 * Strides that the libraries take are passed on, so a transposed matrix costs nothing.  Leading
 * axes become one batch where strides allow it, or more rows of one product where the second
 * operand does not have them.  The other axes are looped over, unless dense copies, which are one
 * batch, cost less than so many calls. */
#include "cuda_products/product.h"
#include "cuda_base/check.h"
#include "cuda_base/copy.h"
#include "cuda_base/impl.h"
#include "cuda_base/strided.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

/* A call costs about as much as copying so much: 3 us. */
static const size_t bytes_a_call = (size_t)4 << 20;

/* How the last two axes lie: row by row, or transposed; false if neither. */
static bool lies(const struct kp_array *x, bool *transposed, int64_t *ld) {
    int64_t rows = x->dim[x->n - 2], columns = x->dim[x->n - 1];
    int64_t down = x->stride[x->n - 2], right = x->stride[x->n - 1];
    if ((right == 1 || columns == 1) && (rows == 1 || down >= columns)) {
        *transposed = false;
        *ld = rows == 1 ? columns : down;
        return true;
    }
    *transposed = true;
    *ld = columns == 1 ? rows : right;
    return (down == 1 || rows == 1) && (columns == 1 || right >= rows);
}

/* Room for `bytes` in the scratch. */
static size_t reserve(struct kp_product *p, size_t bytes) {
    size_t at = p->bytes;
    p->bytes += kp_align(bytes);
    return at;
}

/* A dense array of the shape of x. */
static struct kp_array dense_like(const struct kp_array *x) {
    struct kp_shape shape = {.n = x->n};
    memcpy(shape.dim, x->dim, sizeof shape.dim);
    return kp_array_dense(x->dtype, &shape);
}

/* Whether the axes before the last two are one, to go along. */
static bool is_one_batch(const struct kp_array *x) {
    int64_t next = -1;
    for (int d = x->n - 3; d >= 0; d--) {
        if (x->dim[d] == 1) continue;
        if (next >= 0 && x->stride[d] != next) return false;
        next = x->stride[d] * x->dim[d];
    }
    return true;
}

/* Take an operand as it is or, if its strides do not suit or it is no batch though `batch` asks for
 * one, as a dense copy. */
static void take(struct kp_product *p, struct kp_array *x, bool batch, bool *copy, size_t *at,
                 bool *transposed, int64_t *ld) {
    *copy = !lies(x, transposed, ld) || (batch && !is_one_batch(x));
    if (!*copy) return;
    *x = dense_like(x);
    *at = reserve(p, kp_array_bytes(x));
    lies(x, transposed, ld);
}

/* An array without its last two axes. */
static struct kp_array leading(struct kp_array x) {
    x.n -= 2;
    return x;
}

/* Plan the product, of operands that are copied where they are no batch if so. */
static void plan(struct kp_product *p, enum kp_math math, const struct kp_array *a,
                 const struct kp_array *b, const struct kp_array *out, bool batch) {
    memset(p, 0, sizeof *p);
    struct kp_gemm *g = &p->gemm;
    reserve(p, KP_GEMM_WORKSPACE);
    p->a = *a;
    p->b = *b;
    take(p, &p->a, batch, &p->copy_a, &p->at_a, &g->ta, &g->lda);
    take(p, &p->b, batch, &p->copy_b, &p->at_b, &g->tb, &g->ldb);
    g->dtype = a->dtype;
    g->math = math;
    g->m = a->dim[a->n - 2];
    g->k = a->dim[a->n - 1];
    g->n = b->dim[b->n - 1];
    struct kp_array over = leading(*out), over_a = leading(p->a), over_b = leading(p->b);
    const struct kp_array *x[KP_WALKERS] = {&over_a, &over_b};
    p->batch = kp_walk_make(&over, x);
    struct kp_walk *w = &p->batch;
    g->sc = g->m * g->n;
    while (w->n > 0 && w->stride[1][w->n - 1] == 0 && !g->ta &&
           (w->dim[w->n - 1] == 1 || w->stride[0][w->n - 1] == g->m * g->lda)) {
        g->m *= w->dim[--w->n]; /* rows of one product */
        g->sc = g->m * g->n;
    }
    if (w->n == 0) w->dim[w->n++] = 1;
    g->batch = w->dim[w->n - 1];
    g->sa = w->stride[0][w->n - 1];
    g->sb = w->stride[1][w->n - 1];
}

/* How many calls of the library the product takes. */
static int64_t calls(const struct kp_product *p) {
    int64_t n = 1;
    for (int d = 0; d + 1 < p->batch.n; d++) n *= p->batch.dim[d];
    return n;
}

/* See product.h. */
void kp_product_plan(struct kp_product *p, enum kp_math math, const struct kp_array *a,
                     const struct kp_array *b, const struct kp_array *out) {
    plan(p, math, a, b, out, false);
    struct kp_product on_copies;
    if (calls(p) == 1) return;
    plan(&on_copies, math, a, b, out, true);
    if ((on_copies.bytes - p->bytes) / bytes_a_call < (size_t)(calls(p) - calls(&on_copies)))
        *p = on_copies;
}

/* How a float64 product is multiplied with noise: the squares of its operands are multiplied, too
 * (cuda_base/noise.h), and operands with noise of one scale; both are dense copies. */
struct kp_rough {
    struct kp_product on_copies;
    size_t at_library, at_a, at_b, at_q, at_most; /* in the scratch */
};

/* Where operand i has its dense copy, in the scratch. */
static struct kp_array copy_of(const struct kp_rough *r, const struct kp_array *from[2], int i,
                               char *scratch) {
    struct kp_array copy = dense_like(from[i]);
    copy.data = scratch + (i ? r->at_b : r->at_a);
    return copy;
}

/* See product.h. */
void kp_product_run(const struct kp_product *p, double alpha, double beta, struct kp_array a,
                    struct kp_array b, const void *bias, void *out, char *scratch,
                    cudaStream_t stream) {
    struct kp_array to_a = p->a, to_b = p->b;
    to_a.data = p->copy_a ? scratch + p->at_a : a.data;
    to_b.data = p->copy_b ? scratch + p->at_b : b.data;
    if (p->copy_a) kp_copy(&a, &to_a, stream);
    if (p->copy_b) kp_copy(&b, &to_b, stream);
    if (p->lt) {
        kp_lt_run(p->lt, to_a.data, to_b.data, bias, out, scratch, stream);
        return;
    }
    const struct kp_walk *w = &p->batch;
    size_t size = kp_dtype_size(p->gemm.dtype);
    for (int64_t i = 0; i < calls(p); i++) {
        int64_t rest = i, at_a = 0, at_b = 0;
        for (int d = w->n - 2; d >= 0; rest /= w->dim[d--]) {
            at_a += rest % w->dim[d] * w->stride[0][d];
            at_b += rest % w->dim[d] * w->stride[1][d];
        }
        kp_gemm_run(&p->gemm, alpha, beta, (char *)to_a.data + at_a * (int64_t)size,
                    (char *)to_b.data + at_b * (int64_t)size,
                    (char *)out + i * p->gemm.batch * p->gemm.sc * (int64_t)size, scratch, stream);
    }
}

/* ---- with noise ---- */

/* See product.h. */
void kp_product_plan_rough(struct kp_product *p, enum kp_math math, const struct kp_array *a,
                           const struct kp_array *b, const struct kp_array *out) {
    if (math != KP_MATH_F64) return;
    struct kp_rough *r = p->rough = calloc(1, sizeof *r);
    if (!r) die(KP_MACHINE, "out of memory; free some and try again");
    struct kp_array da = dense_like(a), db = dense_like(b);
    kp_product_plan(&r->on_copies, math, &da, &db, out);
    r->at_library = reserve(p, r->on_copies.bytes);
    r->at_a = reserve(p, kp_array_bytes(&da));
    r->at_b = reserve(p, kp_array_bytes(&db));
    r->at_q = reserve(p, kp_array_bytes(out));
    r->at_most = reserve(p, sizeof(double));
}

/* The product of the operands' squares, in the scratch. */
static const double *multiply_squares(const struct kp_product *p, double alpha,
                                      const struct kp_array *from[2], char *scratch,
                                      cudaStream_t stream) {
    const struct kp_rough *r = p->rough;
    struct kp_array copy[2];
    double *q = (double *)(scratch + r->at_q);
    for (int i = 0; i < 2; i++) {
        copy[i] = copy_of(r, from, i, scratch);
        bool dense = kp_array_is_dense(from[i]);
        if (!dense) kp_copy(from[i], &copy[i], stream);
        kp_noise_square(dense ? from[i]->data : copy[i].data, copy[i].data,
                        kp_array_count(&copy[i]), stream);
    }
    kp_product_run(&r->on_copies, alpha * alpha, 0, copy[0], copy[1], NULL, q,
                   scratch + r->at_library, stream);
    return q;
}

/* See product.h. */
void kp_product_together(const struct kp_product *p, const struct kp_array *from[2],
                         const struct kp_call *c, char *scratch, cudaStream_t stream) {
    const double *q = multiply_squares(p, 1, from, scratch, stream);
    struct kp_noisy draws = kp_noisy_of(c);
    kp_noise_products(&draws, c->out[0].data, 0, q, kp_array_count(&c->out[0]), (double)p->gemm.k,
                      c[1].noise, stream);
}

/* The product of the operands, as they are or with noise of one scale. */
static void multiply_rough(const struct kp_product *p, double alpha, const struct kp_array *from[2],
                           double beta, void *out, const struct kp_noise *noise, char *scratch,
                           cudaStream_t stream) {
    const struct kp_rough *r = p->rough;
    struct kp_array copy[2];
    struct kp_noise n = *noise;
    if (!(n.largest > 0)) {
        kp_product_run(p, alpha, beta, *from[0], *from[1], NULL, out, scratch, stream);
        return;
    }
    for (int i = 0; i < 2; i++) {
        copy[i] = copy_of(r, from, i, scratch);
        kp_copy(from[i], &copy[i], stream);
        n.seed = kp_noise_seed(noise->seed, i + 1);
        kp_noise_largest(copy[i].data, kp_array_count(&copy[i]), &n,
                         (double *)(scratch + r->at_most), stream);
    }
    kp_product_run(&r->on_copies, alpha, beta, copy[0], copy[1], NULL, out, scratch + r->at_library,
                   stream);
}

/* See product.h. */
void kp_product_rough(const struct kp_product *p, double alpha, const struct kp_array *from[2],
                      const struct kp_array *bias, const struct kp_array *out,
                      const struct kp_noise *noise, const void *exact, bool first, char *scratch,
                      cudaStream_t stream) {
    const double *q = (double *)(scratch + p->rough->at_q);
    if (first) multiply_squares(p, alpha, from, scratch, stream);
    if (exact && !(noise->largest > 0)) {
        KP_CUDA(cudaMemcpyAsync(out->data, exact, kp_array_bytes(out), cudaMemcpyDeviceToDevice,
                                stream));
    } else {
        if (bias) kp_copy(bias, out, stream);
        multiply_rough(p, alpha, from, bias ? 1 : 0, out->data, noise, scratch, stream);
    }
    kp_noise_product(out->data, q, kp_array_count(out), (double)p->gemm.k, noise, stream);
}
