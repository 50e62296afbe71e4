/* pool.c: pooling over windows of the last two axes. */
#include "define/parts.h"

#include <math.h>

/* max_pool2d: out[n,c,i,j] = max of x[n,c,...] over the window that begins at
 * (i,j) * stride - padding; places outside x do not take part, a NaN inside wins */
void define_max_pool2d(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0), *to = shape_out(c, 0);
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    op_list(c->op, "kernel_size", 2, 1, kernel);
    op_list(c->op, "padding", 2, 0, padding);
    op_list(c->op, "dilation", 2, 1, dilation);
    op_list(c->op, "stride", 2, 1, stride);
    int64_t h = x->dim[x->n - 2], w = x->dim[x->n - 1];
    int64_t oh = to->dim[to->n - 2], ow = to->dim[to->n - 1];
    int64_t count = kp_shape_count(to);
    for (int64_t t = 0; t < count; t++) {
        const double *plane = c->in[0] + t / (oh * ow) * h * w;
        double top = -INFINITY;
        for (int64_t a = 0; a < kernel[0]; a++)
            for (int64_t b = 0; b < kernel[1]; b++) {
                int64_t i = t / ow % oh * stride[0] - padding[0] + a * dilation[0];
                int64_t j = t % ow * stride[1] - padding[1] + b * dilation[1];
                if (i < 0 || i >= h || j < 0 || j >= w) continue;
                if (plane[i * w + j] > top || isnan(plane[i * w + j])) top = plane[i * w + j];
            }
        c->out[0][t] = top;
    }
}
