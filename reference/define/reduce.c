/* reduce.c: ops along one axis or over several: sums, maxima, scans, softmax, loss.
 *
 * Each splits its operand's axes into those that are kept and those that are cut.  A row runs
 * over the cut axes; there is a row for each element of the kept ones. */
#include "define/parts.h"

#include <math.h>

/* The largest number of a row, and the sum of exp(x - origin), which a NaN makes NaN. */
static double largest(const double *x, const struct walk *cut) {
    int64_t length = kp_shape_count(&cut->shape);
    double top = -INFINITY;
    for (int64_t i = 0; i < length; i++) top = fmax(top, x[walk_at(cut, i)]);
    return top;
}
static double sum_exp(const double *x, const struct walk *cut, double origin) {
    int64_t length = kp_shape_count(&cut->shape);
    double sum = 0;
    for (int64_t i = 0; i < length; i++) sum += exp(x[walk_at(cut, i)] - origin);
    return sum;
}

/* out_i = exp(x_i - m) / sum_j exp(x_j - m), m the row's maximum; or its logarithm */
static void softmax(const struct call *c, bool logarithm) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = c->in[0] + walk_at(&kept, r);
        double *out = c->out[0] + walk_at(&kept, r);
        double top = largest(x, &cut), sum = sum_exp(x, &cut, top);
        for (int64_t i = 0; i < length; i++) {
            double below = x[walk_at(&cut, i)] - top;
            out[walk_at(&cut, i)] = logarithm ? below - log(sum) : exp(below) / sum;
        }
    }
}
void define_softmax(const struct call *c) {
    softmax(c, false);
}
void define_log_softmax(const struct call *c) {
    softmax(c, true);
}

/* logsumexp: log sum_j exp(x_j); an infinity that is the largest x is the result */
void define_logsumexp(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = c->in[0] + walk_at(&kept, r);
        double top = largest(x, &cut), origin = isinf(top) ? 0 : top;
        c->out[0][r] = origin + log(sum_exp(x, &cut, origin));
    }
}

/* The sum of each row.  Returns the size of a row.  (keepdim changes the shape of the result, not
 * its elements.) */
static int64_t sum_rows(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < length; i++) sum += c->in[0][walk_at(&kept, r) + walk_at(&cut, i)];
        c->out[0][r] = sum;
    }
    return length;
}

/* sum: over the axes in `dim`, or over all of them */
void define_sum(const struct call *c) {
    sum_rows(c);
}

/* mean: the sum, divided by how many were summed */
void define_mean(const struct call *c) {
    int64_t length = sum_rows(c), rows = kp_shape_count(shape_out(c, 0));
    for (int64_t r = 0; r < rows; r++) c->out[0][r] /= (double)length;
}

/* norm: the root of the sum of squares; with p = 1 the sum of sizes */
void define_norm(const struct call *c) {
    bool sizes = op_float(c->op, "p", 2) == 1;
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < length; i++) {
            double x = c->in[0][walk_at(&kept, r) + walk_at(&cut, i)];
            sum += sizes ? fabs(x) : x * x;
        }
        c->out[0][r] = sizes ? sum : sqrt(sum);
    }
}

/* The place in its row of the first element than which none is larger (sign 1) or smaller
 * (sign -1); of the first NaN if there is one. */
static int64_t extreme(const double *x, const struct walk *cut, int64_t length, double sign) {
    int64_t best = 0;
    for (int64_t i = 1; i < length; i++) {
        double value = x[walk_at(cut, i)], top = x[walk_at(cut, best)];
        if (!isnan(top) && (sign * value > sign * top || isnan(value))) best = i;
    }
    return best;
}

/* Write the extreme value and its place of each row; NULL: not wanted. */
static void extremes(const struct call *c, double sign, double *values, double *indices) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = c->in[0] + walk_at(&kept, r);
        int64_t best = extreme(x, &cut, length, sign);
        if (values) values[r] = x[walk_at(&cut, best)];
        if (indices) indices[r] = (double)best;
    }
}

/* max: the largest element of a row and its first index; a NaN is larger than any number */
void define_max(const struct call *c) {
    extremes(c, 1, c->out[0], c->op->nout > 1 ? c->out[1] : NULL);
}

/* min: the smallest, where a NaN is smaller than any number */
void define_min(const struct call *c) {
    extremes(c, -1, c->out[0], c->op->nout > 1 ? c->out[1] : NULL);
}

/* argmax, argmin: the index alone */
void define_argmax(const struct call *c) {
    extremes(c, 1, NULL, c->out[0]);
}
void define_argmin(const struct call *c) {
    extremes(c, -1, NULL, c->out[0]);
}

/* What scans combine with. */
static double sum_of(double a, double b) {
    return a + b;
}
static double product_of(double a, double b) {
    return a * b;
}

/* out_i = x_0 with x_1 with ... x_i, combined from the left, along one axis. */
static void scan(const struct call *c, double combine(double, double)) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        double so_far = 0;
        for (int64_t i = 0; i < length; i++) {
            int64_t at = walk_at(&kept, r) + walk_at(&cut, i);
            so_far = i ? combine(so_far, c->in[0][at]) : c->in[0][at];
            c->out[0][at] = so_far;
        }
    }
}

/* cumsum: out_i = x_0 + ... + x_i along one axis */
void define_cumsum(const struct call *c) {
    scan(c, sum_of);
}

/* cumprod: out_i = x_0 * ... * x_i along one axis */
void define_cumprod(const struct call *c) {
    scan(c, product_of);
}

/* cross_entropy: mean over rows of log(sum_j exp(x_j)) - x_target; a row runs over axis 1
 * (classes).  Rows whose target is ignore_index do not count; if none counts, the mean is 0/0.
 * A target that is no class is an error. */
void define_cross_entropy(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), 1u << 1, &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), classes = kp_shape_count(&cut.shape), counted = 0;
    int64_t ignored = op_int(c->op, "ignore_index", -100);
    double total = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *row = c->in[0] + walk_at(&kept, r);
        double target = c->in[1][r], top = largest(row, &cut);
        if (target == (double)ignored) continue;
        if (!(target >= 0 && target < (double)classes)) {
            *c->message =
                "cross_entropy: a target is no class: expected 0 to the number of classes - 1";
            return;
        }
        total += log(sum_exp(row, &cut, top)) + top - row[walk_at(&cut, (int64_t)target)];
        counted++;
    }
    c->out[0][0] = total / (double)counted;
}
