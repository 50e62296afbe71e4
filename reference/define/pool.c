/* pool.c: pools: a number for each window of each plane. */
#include "define/spatial.h"

#include <math.h>

/* The places begin, begin + step, ... before end along each axis, of which those from 0 to size - 1
 * are in the operand. */
struct window {
    int64_t begin[AXES], end[AXES], step[AXES];
};

/* What a pool makes of one plane of `size` and a window. */
typedef double pool_rule(const struct kp_op *op, const double *plane, const int64_t size[AXES],
                         const struct window *w);

/* Where the window of output place o lies, in a plane of `in` of which `out` is made. */
typedef void window_rule(const struct kp_op *op, const int64_t in[AXES], const int64_t out[AXES],
                         const int64_t o[AXES], struct window *w);

/* Windows that begin at o * stride - padding. */
static void sliding(const struct kp_op *op, const int64_t in[AXES], const int64_t out[AXES],
                    const int64_t o[AXES], struct window *w) {
    int64_t kernel[AXES], stride[AXES], padding[AXES];
    (void)in, (void)out;
    last_attr(kernel, op, "kernel_size", 1, 1);
    last_attr(stride, op, "stride", 1, 1);
    last_attr(padding, op, "padding", 0, 0);
    last_attr(w->step, op, "dilation", 1, 1);
    for (int d = 0; d < AXES; d++) {
        w->begin[d] = o[d] * stride[d] - padding[d];
        w->end[d] = w->begin[d] + kernel[d] * w->step[d];
    }
}

/* `out` windows that cover `in` places evenly: they may share a place at each border. */
static void adaptive(const struct kp_op *op, const int64_t in[AXES], const int64_t out[AXES],
                     const int64_t o[AXES], struct window *w) {
    (void)op;
    for (int d = 0; d < AXES; d++) {
        w->begin[d] = o[d] * in[d] / out[d];
        w->end[d] = ((o[d] + 1) * in[d] + out[d] - 1) / out[d];
        w->step[d] = 1;
    }
}

/* The largest: places outside do not take part, a NaN inside wins. */
static double largest(const struct kp_op *op, const double *plane, const int64_t size[AXES],
                      const struct window *w) {
    double top = -INFINITY;
    int64_t i[AXES];
    (void)op;
    for (i[0] = w->begin[0]; i[0] < w->end[0]; i[0] += w->step[0])
        for (i[1] = w->begin[1]; i[1] < w->end[1]; i[1] += w->step[1])
            for (i[2] = w->begin[2]; i[2] < w->end[2]; i[2] += w->step[2]) {
                if (!is_inside(size, i)) continue;
                double v = plane[place_at(size, i)];
                if (v > top || isnan(v)) top = v;
            }
    return top;
}

/* The mean.  Places in the padding are zeros that count, unless count_include_pad=false; those
 * beyond it, which ceil_mode's last window may reach, never count. */
static double mean(const struct kp_op *op, const double *plane, const int64_t size[AXES],
                   const struct window *w) {
    bool include = op_bool(op, "count_include_pad", true);
    double sum = 0, count = 0;
    int64_t i[AXES], padding[AXES];
    last_attr(padding, op, "padding", 0, 0);
    for (i[0] = w->begin[0]; i[0] < w->end[0]; i[0]++)
        for (i[1] = w->begin[1]; i[1] < w->end[1]; i[1]++)
            for (i[2] = w->begin[2]; i[2] < w->end[2]; i[2]++) {
                bool inside = is_inside(size, i), padded = true;
                for (int d = 0; d < AXES; d++) padded = padded && i[d] < size[d] + padding[d];
                if (inside) sum += plane[place_at(size, i)];
                count += inside || (include && padded);
            }
    return sum / count;
}

/* A pool over the axes after samples and channels. */
static void pool(const struct call *c, window_rule *at, pool_rule *of) {
    int n = c->op->def->axes;
    const struct kp_shape *x = shape_in(c, 0);
    int64_t in[AXES], out[AXES], o[AXES];
    struct window w;
    double *to = c->out[0];
    last_dims(in, n, x->dim + 2, 1);
    last_dims(out, n, shape_out(c, 0)->dim + 2, 1);
    for (int64_t plane = 0; plane < x->dim[0] * x->dim[1]; plane++) FOR_EACH_PLACE(o, out) {
            at(c->op, in, out, o, &w);
            *to++ = of(c->op, c->in[0] + plane * volume(in), in, &w);
        }
}

/* The ops, by their spatial axes. */
void define_max_pool1d(const struct call *c) {
    pool(c, sliding, largest);
}
void define_max_pool2d(const struct call *c) {
    pool(c, sliding, largest);
}
void define_max_pool3d(const struct call *c) {
    pool(c, sliding, largest);
}
void define_avg_pool1d(const struct call *c) {
    pool(c, sliding, mean);
}
void define_avg_pool2d(const struct call *c) {
    pool(c, sliding, mean);
}
void define_avg_pool3d(const struct call *c) {
    pool(c, sliding, mean);
}
void define_adaptive_avg_pool1d(const struct call *c) {
    pool(c, adaptive, mean);
}
void define_adaptive_avg_pool2d(const struct call *c) {
    pool(c, adaptive, mean);
}
void define_adaptive_avg_pool3d(const struct call *c) {
    pool(c, adaptive, mean);
}
