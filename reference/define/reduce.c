/* reduce.c: ops along one axis or over several: sums, maxima, scans, softmax, loss.
 *
 * Each splits its operand into the axes that are kept and those that are cut;
 * the latter make the rows that it works on. */
#include "define/parts.h"
#include "task/rules.h"

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

/* sum: over the axes in `dim`, all of them if it is absent.  Returns the size of
 * a row.  (keepdim changes the shape of the result, not its elements.) */
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

void define_sum(const struct call *c) {
    sum_rows(c);
}

/* mean: the sum, divided by how many were summed */
void define_mean(const struct call *c) {
    int64_t length = sum_rows(c), rows = kp_shape_count(shape_out(c, 0));
    for (int64_t r = 0; r < rows; r++) c->out[0][r] /= (double)length;
}

/* max: the largest element of a row and the first place where it stands; a NaN
 * is larger than anything, the first one wins */
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

/* cumsum: out_i = x_0 + ... + x_i along one axis */
void define_cumsum(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), op_reduced_axes(c->op, shape_in(c, 0)->n), &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), length = kp_shape_count(&cut.shape);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < length; i++) {
            int64_t at = walk_at(&kept, r) + walk_at(&cut, i);
            sum += c->in[0][at];
            c->out[0][at] = sum;
        }
    }
}

/* cross_entropy: mean over rows of log(sum_j exp(x_j)) - x_target, where a row
 * runs over axis 1 (classes).  Rows whose target is ignore_index do not count;
 * if none counts the mean is NaN, as 0/0 is. */
const char *define_cross_entropy(const struct call *c) {
    struct walk kept, cut;
    walk_split(shape_in(c, 0), 1u << 1, &kept, &cut);
    int64_t rows = kp_shape_count(&kept.shape), classes = kp_shape_count(&cut.shape), counted = 0;
    int64_t ignored = op_int(c->op, "ignore_index", -100);
    double total = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *row = c->in[0] + walk_at(&kept, r);
        double target = c->in[1][r], top = -INFINITY, sum = 0;
        if (target == (double)ignored) continue;
        if (!(target >= 0 && target < (double)classes))
            return "cross_entropy: a target is no class: expected 0 to the number of classes - 1";
        for (int64_t i = 0; i < classes; i++) top = fmax(top, row[walk_at(&cut, i)]);
        for (int64_t i = 0; i < classes; i++) sum += exp(row[walk_at(&cut, i)] - top);
        total += log(sum) + top - row[walk_at(&cut, (int64_t)target)];
        counted++;
    }
    c->out[0][0] = total / (double)counted;
    return NULL;
}
