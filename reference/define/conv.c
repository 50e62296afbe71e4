/* conv.c: convolution over 1, 2 or 3 spatial axes, and its way back.
 *
 * It is a cross-correlation: the filter is not flipped.  Padding is zeros. */
#include "define/spatial.h"

struct geometry { /* of one convolution, by spatial axis */
    int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], padding[AXES], dilation[AXES];
};

/* The geometry of a call. */
static struct geometry geometry_of(const struct call *c) {
    int n = c->op->def->axes;
    struct geometry g;
    last_dims(g.in, n, shape_in(c, 0)->dim + 2, 1);
    last_dims(g.out, n, shape_out(c, 0)->dim + 2, 1);
    last_dims(g.kernel, n, shape_in(c, 1)->dim + 2, 1);
    last_attr(g.stride, c->op, "stride", 1, 1);
    last_attr(g.padding, c->op, "padding", 0, 0);
    last_attr(g.dilation, c->op, "dilation", 1, 1);
    return g;
}

/* Where tap k of the window at place o lies: o * stride - padding + k * dilation. */
static void tap(const struct geometry *g, const int64_t o[AXES], const int64_t k[AXES],
                int64_t i[AXES]) {
    for (int d = 0; d < AXES; d++)
        i[d] = o[d] * g->stride[d] - g->padding[d] + k[d] * g->dilation[d];
}

/* One filter at output place o: sum over its channels and taps of x[tap] * filter[k]. */
static double apply(const struct geometry *g, const double *x, const double *filter,
                    int64_t channels, const int64_t o[AXES]) {
    double sum = 0;
    int64_t k[AXES], i[AXES];
    for (int64_t channel = 0; channel < channels; channel++, x += volume(g->in))
        FOR_EACH_PLACE(k, g->kernel) {
            tap(g, o, k, i);
            if (is_inside(g->in, i)) sum += *filter * x[place_at(g->in, i)];
            filter++;
        }
    return sum;
}

/* conv: out[n,co,o] = bias[co] + sum_ci,k weight[co,ci,k] x[n,group(co)+ci,...],
 * where output channels and input channels are cut into `groups` equal parts */
static void convolve(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0), *to = shape_out(c, 0);
    struct geometry g = geometry_of(c);
    int64_t outputs = to->dim[1], groups = op_int(c->op, "groups", 1);
    int64_t channels = x->dim[1] / groups; /* that one filter reads: all of its group */
    double *out = c->out[0];
    int64_t o[AXES];
    for (int64_t sample = 0; sample < x->dim[0]; sample++)
        for (int64_t co = 0; co < outputs; co++) {
            int64_t first = co / (outputs / groups) * channels; /* input channel of the group */
            const double *from = c->in[0] + (sample * x->dim[1] + first) * volume(g.in);
            const double *filter = c->in[1] + co * channels * volume(g.kernel);
            FOR_EACH_PLACE(o, g.out)
            *out++ = apply(&g, from, filter, channels, o) + (c->in[2] ? c->in[2][co] : 0);
        }
}

/* Add x[i] * filter[k] to out[tap] for each place i and tap k of one pair of channels: what the
 * window at i of a convolution of `out` would read, it gives. */
static void give_back(const struct geometry *g, const double *x, const double *filter,
                      double *out) {
    int64_t i[AXES], k[AXES], o[AXES];
    FOR_EACH_PLACE(i, g->in)
    FOR_EACH_PLACE(k, g->kernel) {
        tap(g, i, k, o);
        if (is_inside(g->out, o))
            out[place_at(g->out, o)] += x[place_at(g->in, i)] * filter[place_at(g->kernel, k)];
    }
}

/* conv_transpose: out[n,co,o] = bias[co] + sum of x[n,ci,i] weight[ci,co,k] over the ci of co's
 * group and over all i and k with i * stride - padding + k * dilation = o */
static void convolve_back(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0), *to = shape_out(c, 0);
    struct geometry g = geometry_of(c);
    int64_t groups = op_int(c->op, "groups", 1), inputs = x->dim[1] / groups;
    int64_t outputs = to->dim[1] / groups; /* of a group, as inputs */
    for (int64_t sample = 0; sample < x->dim[0]; sample++)
        for (int64_t co = 0; co < to->dim[1]; co++) {
            double *out = c->out[0] + (sample * to->dim[1] + co) * volume(g.out);
            for (int64_t o = 0; o < volume(g.out); o++) out[o] = c->in[2] ? c->in[2][co] : 0;
            for (int64_t ci = co / outputs * inputs; ci < (co / outputs + 1) * inputs; ci++)
                give_back(&g, c->in[0] + (sample * x->dim[1] + ci) * volume(g.in),
                          c->in[1] + (ci * outputs + co % outputs) * volume(g.kernel), out);
        }
}

/* The ops, by their spatial axes. */
void define_conv1d(const struct call *c) {
    convolve(c);
}
void define_conv2d(const struct call *c) {
    convolve(c);
}
void define_conv3d(const struct call *c) {
    convolve(c);
}
void define_conv_transpose1d(const struct call *c) {
    convolve_back(c);
}
void define_conv_transpose2d(const struct call *c) {
    convolve_back(c);
}
void define_conv_transpose3d(const struct call *c) {
    convolve_back(c);
}
