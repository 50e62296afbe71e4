/* reduce.c: ops along one axis or over several: sums, maxima, scans, softmax, loss.
 *
 * Each splits its operand's axes into those that are kept and those that are cut.  A row runs
 * over the cut axes; there is a row for each element of the kept ones. */
#include "define/parts.h"

#include <math.h>

/* softmax: out_i = exp(x_i - m) / sum_j exp(x_j - m), m the row's maximum */
void define_softmax(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = c->in[0] + walk_at(&kept, r);
        double *out = c->out[0] + walk_at(&kept, r);
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < length; i++) top = fmax(top, x[walk_at(&cut, i)]);
        for (int64_t i = 0; i < length; i++) sum += exp(x[walk_at(&cut, i)] - top);
        for (int64_t i = 0; i < length; i++)
            out[walk_at(&cut, i)] = exp(x[walk_at(&cut, i)] - top) / sum;
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

/* max: the largest element of a row and its first index; a NaN is larger than any number, and the
 * first NaN wins */
void define_max(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = c->in[0] + walk_at(&kept, r);
        int64_t best = 0;
        for (int64_t i = 1; i < length; i++) {
            double value = x[walk_at(&cut, i)], top = x[walk_at(&cut, best)];
            if (!isnan(top) && (value > top || isnan(value))) best = i;
        }
        c->out[0][r] = x[walk_at(&cut, best)];
        if (c->op->nout > 1) c->out[1][r] = (double)best;
    }
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
        double target = c->in[1][r], top = -INFINITY, sum = 0;
        if (target == (double)ignored) continue;
        if (!(target >= 0 && target < (double)classes)) {
            *c->message =
                "cross_entropy: a target is no class: expected 0 to the number of classes - 1";
            return;
        }
        for (int64_t i = 0; i < classes; i++) top = fmax(top, row[walk_at(&cut, i)]);
        for (int64_t i = 0; i < classes; i++) sum += exp(row[walk_at(&cut, i)] - top);
        total += log(sum) + top - row[walk_at(&cut, (int64_t)target)];
        counted++;
    }
    c->out[0][0] = total / (double)counted;
}
