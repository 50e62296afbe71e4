/* conv.c: convolution over 1, 2 or 3 spatial axes, as one loop over three; absent axes come first
 * and have size 1.
 *
 * It is a cross-correlation: the filter is not flipped.  Padding is zeros. */
#include "define/parts.h"

enum { AXES = 3 }; /* the most spatial axes */

struct geometry { /* of one convolution, by spatial axis */
    int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], padding[AXES], dilation[AXES];
    int64_t channels; /* input channels that one filter reads: all of its group */
};

/* Copy n sizes to the last n of three; the others are `otherwise`. */
static void last_dims(int64_t to[AXES], int n, const int64_t *from, int64_t otherwise) {
    for (int d = 0; d < AXES; d++) to[d] = d < AXES - n ? otherwise : from[d - (AXES - n)];
}

/* The same for an attribute. */
static void last_attr(int64_t to[AXES], int n, const struct kp_op *op, const char *key,
                      int64_t otherwise) {
    int64_t list[AXES];
    op_list(op, key, n, otherwise, list);
    last_dims(to, n, list, otherwise);
}

/* Elements of a box. */
static int64_t volume(const int64_t d[AXES]) {
    return d[0] * d[1] * d[2];
}

/* One filter at output place o: sum over its channels and kernel places of
 * x[o * stride - padding + k * dilation] * filter[k]. */
static double apply(const struct geometry *g, const double *x, const double *filter,
                    const int64_t o[AXES]) {
    double sum = 0;
    int64_t k[AXES], i[AXES];
    for (int64_t channel = 0; channel < g->channels; channel++)
        for (k[0] = 0; k[0] < g->kernel[0]; k[0]++)
            for (k[1] = 0; k[1] < g->kernel[1]; k[1]++)
                for (k[2] = 0; k[2] < g->kernel[2]; k[2]++, filter++) {
                    bool inside = true;
                    for (int d = 0; d < AXES; d++) {
                        i[d] = o[d] * g->stride[d] - g->padding[d] + k[d] * g->dilation[d];
                        inside = inside && i[d] >= 0 && i[d] < g->in[d];
                    }
                    if (inside)
                        sum += *filter *
                               x[((channel * g->in[0] + i[0]) * g->in[1] + i[1]) * g->in[2] + i[2]];
                }
    return sum;
}

/* conv: out[n,co,o] = bias[co] + sum_ci,k weight[co,ci,k] x[n,group(co)+ci,...],
 * where output channels and input channels are cut into `groups` equal parts */
static void convolve(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0), *weight = shape_in(c, 1), *to = shape_out(c, 0);
    int n = x->n - 2;
    struct geometry g = {.channels = weight->dim[1]};
    last_dims(g.in, n, x->dim + 2, 1);
    last_dims(g.out, n, to->dim + 2, 1);
    last_dims(g.kernel, n, weight->dim + 2, 1);
    last_attr(g.stride, n, c->op, "stride", 1);
    last_attr(g.padding, n, c->op, "padding", 0);
    last_attr(g.dilation, n, c->op, "dilation", 1);
    for (int d = 0; d < AXES - n; d++) g.padding[d] = 0;
    int64_t outputs = to->dim[1], groups = op_int(c->op, "groups", 1);
    double *out = c->out[0];
    int64_t o[AXES];
    for (int64_t sample = 0; sample < x->dim[0]; sample++)
        for (int64_t co = 0; co < outputs; co++) {
            int64_t first = co / (outputs / groups) * g.channels; /* input channel of the group */
            const double *from = c->in[0] + (sample * x->dim[1] + first) * volume(g.in);
            const double *filter = c->in[1] + co * g.channels * volume(g.kernel);
            for (o[0] = 0; o[0] < g.out[0]; o[0]++)
                for (o[1] = 0; o[1] < g.out[1]; o[1]++)
                    for (o[2] = 0; o[2] < g.out[2]; o[2]++)
                        *out++ = apply(&g, from, filter, o) + (c->in[2] ? c->in[2][co] : 0);
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
