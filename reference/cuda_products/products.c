/* products.c: matmul and linear as matrix products; attention.c has more of them.
 *
 * Strides that the libraries take are passed on, so a transposed matrix costs nothing.  Leading
 * axes become one batch where strides allow it, or more rows of one product where the second
 * operand does not have them.  The other axes are looped over. */
#include "cuda_products/product.h"
#include "cuda_base/check.h"
#include "cuda_base/copy.h"
#include "cuda_base/impl.h"
#include "cuda_base/strided.h"
#include "base/error.h"
#include "task/ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the search for the fastest call.  BUFFERS: two operands, result, scratch. */
enum { LT_TRIED = 5, ROUNDS = 3, LAUNCHES = 10, BUFFERS = 4 };

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

/* Take an operand as it is or, if its strides do not suit, as a dense copy. */
static void take(struct kp_product *p, struct kp_array *x, bool *copy, size_t *at, bool *transposed,
                 int64_t *ld) {
    *copy = !lies(x, transposed, ld);
    if (!*copy) return;
    struct kp_shape shape = {.n = x->n};
    memcpy(shape.dim, x->dim, sizeof shape.dim);
    *x = kp_array_dense(x->dtype, &shape);
    *at = reserve(p, kp_array_bytes(x));
    lies(x, transposed, ld);
}

/* An array without its last two axes. */
static struct kp_array leading(struct kp_array x) {
    x.n -= 2;
    return x;
}

/* See product.h. */
void kp_product_plan(struct kp_product *p, enum kp_math math, const struct kp_array *a,
                     const struct kp_array *b, const struct kp_array *out) {
    memset(p, 0, sizeof *p);
    struct kp_gemm *g = &p->gemm;
    reserve(p, KP_GEMM_WORKSPACE);
    p->a = *a;
    p->b = *b;
    take(p, &p->a, &p->copy_a, &p->at_a, &g->ta, &g->lda);
    take(p, &p->b, &p->copy_b, &p->at_b, &g->tb, &g->ldb);
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
    int64_t loops = 1;
    for (int d = 0; d + 1 < w->n; d++) loops *= w->dim[d];
    for (int64_t i = 0; i < loops; i++) {
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

/* ---- with noise ---- */

/* How a float64 product is multiplied with noise: dense copies of the operands, whose squares are
 * multiplied, too (cuda_base/noise.h). */
struct kp_rough {
    struct kp_product on_copies;
    size_t at_library, at_a, at_b, at_q, at_most; /* in the scratch */
};

/* A dense array of the shape of x. */
static struct kp_array dense_like(const struct kp_array *x) {
    struct kp_shape shape = {.n = x->n};
    memcpy(shape.dim, x->dim, sizeof shape.dim);
    return kp_array_dense(x->dtype, &shape);
}

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

/* The operands as dense copies, in the scratch. */
static void copy_operands(const struct kp_rough *r, const struct kp_array *from[2],
                          struct kp_array copy[2], char *scratch, cudaStream_t stream) {
    for (int i = 0; i < 2; i++) {
        copy[i] = dense_like(from[i]);
        copy[i].data = scratch + (i ? r->at_b : r->at_a);
        kp_copy(from[i], &copy[i], stream);
    }
}

/* The product of the operands' squares, in the scratch. */
static const double *multiply_squares(const struct kp_product *p, double alpha,
                                      const struct kp_array *from[2], char *scratch,
                                      cudaStream_t stream) {
    const struct kp_rough *r = p->rough;
    struct kp_array copy[2];
    double *q = (double *)(scratch + r->at_q);
    copy_operands(r, from, copy, scratch, stream);
    for (int i = 0; i < 2; i++)
        kp_noise_square(copy[i].data, copy[i].data, kp_array_count(&copy[i]), stream);
    kp_product_run(&r->on_copies, alpha * alpha, 0, copy[0], copy[1], NULL, q,
                   scratch + r->at_library, stream);
    return q;
}

/* All draws from the exact result, which is there. */
static void draw_together(const struct kp_product *p, const struct kp_array *from[2],
                          const struct kp_call *c, char *scratch, cudaStream_t stream) {
    const double *q = multiply_squares(p, 1, from, scratch, stream);
    struct kp_noisy draws = kp_noisy_of(c);
    kp_noise_products(&draws, c->out[0].data, q, kp_array_count(&c->out[0]), (double)p->gemm.k,
                      c[1].noise, stream);
}

/* See product.h. */
void kp_product_rough(const struct kp_product *p, double alpha, const struct kp_array *from[2],
                      const struct kp_array *bias, const struct kp_array *out,
                      const struct kp_noise *noise, const void *exact, bool first, char *scratch,
                      cudaStream_t stream) {
    const struct kp_rough *r = p->rough;
    struct kp_array copy[2];
    struct kp_noise n = *noise;
    double *q = (double *)(scratch + r->at_q), *most = (double *)(scratch + r->at_most);
    if (first) multiply_squares(p, alpha, from, scratch, stream);
    if (exact && !(n.largest > 0)) {
        KP_CUDA(cudaMemcpyAsync(out->data, exact, kp_array_bytes(out), cudaMemcpyDeviceToDevice,
                                stream));
    } else {
        copy_operands(r, from, copy, scratch, stream);
        for (int i = 0; i < 2 && n.largest > 0; i++) {
            n.seed = kp_noise_seed(noise->seed, i + 1);
            kp_noise_largest(copy[i].data, kp_array_count(&copy[i]), &n, most, stream);
        }
        if (bias) kp_copy(bias, out, stream);
        kp_product_run(&r->on_copies, alpha, bias ? 1 : 0, copy[0], copy[1], NULL, out->data,
                       scratch + r->at_library, stream);
    }
    kp_noise_product(out->data, q, kp_array_count(out), (double)p->gemm.k, noise, stream);
}

/* ---- matmul ---- */

/* Device memory that holds array x, full of 16-bit floats of either sign
 * between 0.5 and 1: constants would switch fewer transistors, and clock higher. */
static void *filled(const struct kp_array *x) {
    enum { CHUNK = 1 << 16 };
    static uint16_t noise[CHUNK];
    uint16_t keep = x->dtype == KP_BF16 ? 0x807f : 0x83ff;
    uint16_t half = x->dtype == KP_BF16 ? 0x3f00 : 0x3800;
    uint32_t seed = 1;
    for (int i = 0; i < CHUNK; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (uint16_t)((seed >> 16 & keep) | half);
    }
    int64_t span = 1;
    for (int i = 0; i < x->n; i++) span += (x->dim[i] - 1) * x->stride[i];
    size_t bytes = (size_t)span * sizeof *noise;
    char *data;
    KP_CUDA(cudaMalloc((void **)&data, bytes));
    for (size_t at = 0; at < bytes; at += sizeof noise) {
        size_t n = bytes - at < sizeof noise ? bytes - at : sizeof noise;
        KP_CUDA(cudaMemcpy(data + at, noise, n, cudaMemcpyHostToDevice));
    }
    return data;
}

/* Milliseconds of one launch: the best mean of a few rounds. */
static float measure(const struct kp_product *p, struct kp_array a, struct kp_array b, void *out,
                     char *scratch, cudaStream_t stream) {
    cudaEvent_t start, stop;
    KP_CUDA(cudaEventCreate(&start));
    KP_CUDA(cudaEventCreate(&stop));
    float best = INFINITY;
    for (int r = 0; r <= ROUNDS; r++) { /* the first is a warm-up */
        float ms;
        KP_CUDA(cudaEventRecord(start, stream));
        for (int i = 0; i < LAUNCHES; i++)
            kp_product_run(p, 1, 0, a, b, NULL, out, scratch, stream);
        KP_CUDA(cudaEventRecord(stop, stream));
        KP_CUDA(cudaEventSynchronize(stop));
        KP_CUDA(cudaEventElapsedTime(&ms, start, stop));
        if (r && ms < best) best = ms;
    }
    KP_CUDA(cudaEventDestroy(start));
    KP_CUDA(cudaEventDestroy(stop));
    return best / LAUNCHES;
}

/* Keep in *best the fastest of cuBLAS's own choice and cuBLASLt's first few, for
 * one layout of the second operand. */
static void try_layout(struct kp_product *best, float *best_ms, const struct kp_product *layout,
                       const struct kp_array *b, void *const data[BUFFERS], cudaStream_t stream) {
    struct kp_array a = layout->a, by = *b;
    a.data = data[0];
    by.data = data[1];
    struct kp_lt *ways[LT_TRIED];
    int n = kp_lt_find(&layout->gemm, false, ways, LT_TRIED);
    for (int i = -1; i < n; i++) {
        struct kp_product one = *layout;
        one.lt = i < 0 ? NULL : ways[i];
        float ms = measure(&one, a, by, data[2], data[3], stream);
        if (ms >= *best_ms) {
            kp_lt_free(one.lt);
            continue;
        }
        kp_lt_free(best->lt);
        *best = one;
        *best_ms = ms;
    }
}

/* For 16-bit products the baseline is the best call that the libraries have:
 * their first choices are timed, with the given transpose of the second operand
 * too where the task has one.  Takes and frees device memory. */
static void tune(struct kp_product *p, const struct kp_call *c) {
    cudaStream_t stream;
    KP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *data[BUFFERS] = {filled(&c->in[0]), filled(&c->in[1]), filled(&c->out[0]), NULL};
    KP_CUDA(cudaMalloc(&data[3], p->bytes));
    KP_CUDA(cudaDeviceSynchronize());
    struct kp_product layout = *p;
    float ms = INFINITY;
    try_layout(p, &ms, &layout, &c->in[1], data, stream);
    if (c->present[2]) {
        struct kp_array b = kp_array_swap(c->in[2], 0, 1);
        kp_product_plan(&layout, c->math, &c->in[0], &b, &c->out[0]);
        layout.second = true;
        try_layout(p, &ms, &layout, &b, data, stream);
    }
    KP_CUDA(cudaStreamDestroy(stream));
    for (int i = 0; i < BUFFERS; i++) KP_CUDA(cudaFree(data[i]));
}

/* Plan the product; time the libraries' choices where operands are 16-bit matrices. */
static void *matmul_prepare(const struct kp_call *c, size_t *scratch) {
    struct kp_product *p = new_product();
    kp_product_plan(p, c->math, &c->in[0], &c->in[1], &c->out[0]);
    bool half = c->in[0].dtype == KP_F16 || c->in[0].dtype == KP_BF16;
    if (half && c->in[0].n == 2 && c->in[1].n == 2 && !p->copy_a && !p->copy_b) tune(p, c);
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
    draw_together(state, from, c, scratch, stream);
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

/* The bias is added by cuBLASLt's epilogue, as PyTorch's addmm does; otherwise
 * it is spread over the result first, and the product added to it. */
static void *linear_prepare(const struct kp_call *c, size_t *scratch) {
    struct kp_product *p = new_product();
    struct kp_array x = as_row(c->in[0]), out = as_row(c->out[0]);
    struct kp_array w = kp_array_swap(c->in[1], 0, 1);
    kp_product_plan(p, c->math, &x, &w, &out);
    bool one = p->gemm.batch == 1 && p->batch.n == 1;
    if (c->present[2] && one && c->math != KP_MATH_F64 && kp_array_is_dense(&c->in[2]))
        kp_lt_find(&p->gemm, true, &p->lt, 1);
    kp_product_plan_rough(p, c->math, &x, &w, &out);
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
    draw_together(state, from, c, scratch, stream);
    return true;
}

KP_IMPL(linear, linear_prepare, linear_run, linear_rough, destroy, KP_STRIDED, linear_together);
