/* norm.c: normalisations.  All four are one formula over different sets S:
 *
 *   out = (x - mean_S) / sqrt(var_S + eps) * weight + bias
 *
 * where var is the biased variance (divided by the size of S).  S is, for
 * layer_norm, the axes named by `shape`; for group_norm, the channels of one
 * group of one sample; for instance_norm, one channel of one sample; for
 * batch_norm (training mode), one channel of all samples. */
#include "define/parts.h"

#include <math.h>

/* Normalise one set: `runs` runs of `length` elements, `stride` apart.  The
 * variance is summed in a second pass, so that a large mean costs no digits. */
static void standardise(const double *x, double *out, int64_t runs, int64_t stride, int64_t length,
                        double eps) {
    double mean = 0, var = 0, count = (double)(runs * length);
    for (int64_t r = 0; r < runs; r++)
        for (int64_t i = 0; i < length; i++) mean += x[r * stride + i];
    mean /= count;
    for (int64_t r = 0; r < runs; r++)
        for (int64_t i = 0; i < length; i++)
            var += (x[r * stride + i] - mean) * (x[r * stride + i] - mean);
    var /= count;
    for (int64_t r = 0; r < runs; r++)
        for (int64_t i = 0; i < length; i++)
            out[r * stride + i] = (x[r * stride + i] - mean) / sqrt(var + eps);
}

/* out * weight + bias, in place; `repeat` neighbours share one of the n weights. */
static void affine(const struct call *c, int64_t n, int64_t repeat) {
    int64_t count = kp_shape_count(shape_out(c, 0));
    for (int64_t i = 0; i < count; i++) {
        int64_t k = i / repeat % n;
        if (c->in[1]) c->out[0][i] *= c->in[1][k];
        if (c->in[2]) c->out[0][i] += c->in[2][k];
    }
}

/* Elements of one channel of one sample. */
static int64_t plane_of(const struct kp_shape *x) {
    return kp_shape_count(x) / (x->dim[0] * x->dim[1]);
}

/* Sets that are runs of `length` neighbours, one after the other. */
static void standardise_runs(const struct call *c, int64_t length) {
    int64_t count = kp_shape_count(shape_in(c, 0));
    for (int64_t at = 0; at < count; at += length)
        standardise(c->in[0] + at, c->out[0] + at, 1, 0, length, op_float(c->op, "eps", 1e-5));
}

/* layer_norm: S = the trailing axes in `shape`; weight and bias of that shape */
void define_layer_norm(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0);
    int64_t length = 1;
    for (int d = x->n - op_attr(c->op, "shape")->n; d < x->n; d++) length *= x->dim[d];
    standardise_runs(c, length);
    affine(c, length, 1);
}

/* group_norm: S = channels/num_groups neighbouring channels of a sample; weight
 * and bias by channel */
void define_group_norm(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0);
    standardise_runs(c, x->dim[1] / op_int(c->op, "num_groups", 1) * plane_of(x));
    affine(c, x->dim[1], plane_of(x));
}

/* instance_norm: S = one channel of a sample; weight and bias by channel */
void define_instance_norm(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0);
    standardise_runs(c, plane_of(x));
    affine(c, x->dim[1], plane_of(x));
}

/* batch_norm: S = one channel of all samples; weight and bias by channel.  The
 * running statistics, a side effect in PyTorch, do not exist here. */
void define_batch_norm(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0);
    int64_t channels = x->dim[1], plane = plane_of(x);
    for (int64_t k = 0; k < channels; k++)
        standardise(c->in[0] + k * plane, c->out[0] + k * plane, x->dim[0], channels * plane, plane,
                    op_float(c->op, "eps", 1e-5));
    affine(c, channels, plane);
}
