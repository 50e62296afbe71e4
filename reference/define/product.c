/* product.c: matrix products, and attention: two products with a softmax between. */
#include "define/parts.h"

#include <math.h>

/* The axes before the last two: those that count the matrices of an array. */
static struct kp_shape batch_of(const struct kp_shape *s) {
    struct kp_shape batch = *s;
    batch.n -= 2;
    return batch;
}

/* matmul: out[..,i,j] = sum_k a[..,i,k] b[..,k,j], leading axes broadcast */
void define_matmul(const struct call *c) {
    const struct kp_shape *a = shape_in(c, 0), *b = shape_in(c, 1), *to = shape_out(c, 0);
    int64_t m = to->dim[to->n - 2], n = to->dim[to->n - 1], kk = a->dim[a->n - 1];
    struct kp_shape batch_a = batch_of(a), batch_b = batch_of(b), batch = batch_of(to);
    struct walk wa = walk_broadcast(&batch_a, &batch), wb = walk_broadcast(&batch_b, &batch);
    int64_t count = kp_shape_count(&batch);
    for (int64_t t = 0; t < count; t++) {
        const double *x = c->in[0] + walk_at(&wa, t) * m * kk;
        const double *y = c->in[1] + walk_at(&wb, t) * kk * n;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < kk; k++) sum += x[i * kk + k] * y[k * n + j];
                c->out[0][(t * m + i) * n + j] = sum;
            }
    }
}

/* sum_k x[k] y[k] */
static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += x[k] * y[k];
    return sum;
}

/* linear: out[..,j] = bias[j] + sum_k x[..,k] weight[j,k] */
void define_linear(const struct call *c) {
    const struct kp_shape *weight = shape_in(c, 1);
    int64_t n = weight->dim[0], kk = weight->dim[1];
    int64_t rows = kp_shape_count(shape_in(c, 0)) / kk;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            c->out[0][i * n + j] =
                dot(c->in[0] + i * kk, c->in[1] + j * kk, kk) + (c->in[2] ? c->in[2][j] : 0);
}

/* One query q[e] against keys[s,e] and values[s,v]:
 * out = sum_i p_i values[i], p = softmax(scale q . keys[i]).  The scores are
 * computed twice, first for their maximum, so that no memory is needed. */
static void attend(const double *q, const double *keys, const double *values, int64_t s, int64_t e,
                   int64_t v, double scale, double *out) {
    double top = -INFINITY, total = 0;
    for (int64_t i = 0; i < s; i++) top = fmax(top, scale * dot(q, keys + i * e, e));
    for (int64_t j = 0; j < v; j++) out[j] = 0;
    for (int64_t i = 0; i < s; i++) {
        double p = exp(scale * dot(q, keys + i * e, e) - top);
        total += p;
        for (int64_t j = 0; j < v; j++) out[j] += p * values[i * v + j];
    }
    for (int64_t j = 0; j < v; j++) out[j] /= total;
}

/* scaled_dot_product_attention: softmax(scale q k^T) v over the last two axes;
 * scale is 1/sqrt(E) unless given.  No mask. */
void define_scaled_dot_product_attention(const struct call *c) {
    const struct kp_shape *q = shape_in(c, 0), *k = shape_in(c, 1), *to = shape_out(c, 0);
    int64_t l = q->dim[q->n - 2], e = q->dim[q->n - 1], s = k->dim[k->n - 2];
    int64_t v = to->dim[to->n - 1], heads = kp_shape_count(q) / (l * e);
    double scale = op_float(c->op, "scale", 1 / sqrt((double)e));
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < l; i++)
            attend(c->in[0] + (h * l + i) * e, c->in[1] + h * s * e, c->in[2] + h * s * v, s, e, v,
                   scale, c->out[0] + (h * l + i) * v);
}
