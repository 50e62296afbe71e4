/* parts.h: what the files of define/ share.  Nothing outside includes it.
 *
 * Arrays are dense, but an op rarely walks them in order: it reads an operand
 * broadcast, permuted, or one row at a time.  A walk says where the elements of
 * such a shape lie; every op is then a plain loop over element numbers. */
#ifndef KP_DEFINE_PARTS_H
#define KP_DEFINE_PARTS_H

#include "define/define.h"

struct walk {
    struct kp_shape shape;       /* what is walked, row-major */
    int64_t stride[KP_MAX_DIMS]; /* in elements of the array walked over; 0 repeats */
};

/* An array of shape *s in its own order. */
struct walk walk_dense(const struct kp_shape *s);

/* An array of shape *from, broadcast to *to as NumPy does: axes are aligned at
 * the last one, missing axes and axes of size 1 repeat. */
struct walk walk_broadcast(const struct kp_shape *from, const struct kp_shape *to);

/* The axes of *s that are in the bit set `axes`, and those that are not.  An
 * element of the array is then kept->at + cut->at. */
void walk_split(const struct kp_shape *s, unsigned axes, struct walk *kept, struct walk *cut);

/* Where element i of the walk lies in the array. */
int64_t walk_at(const struct walk *w, int64_t i);

/* One op on concrete arrays. */
struct call {
    const struct kp_task *task;
    const struct kp_op *op;
    const double *const *in; /* NULL where an operand is absent or a number */
    double *const *out;
};

/* Shapes of operand k (not absent, no number) and of result k. */
const struct kp_shape *shape_in(const struct call *c, int k);
const struct kp_shape *shape_out(const struct call *c, int k);

/* product.c */
void define_matmul(const struct call *c);
void define_linear(const struct call *c);
void define_attention(const struct call *c);

/* conv.c */
void define_conv(const struct call *c);

/* pool.c */
void define_max_pool2d(const struct call *c);

/* elementwise.c */
void define_unary(const struct call *c);
void define_binary(const struct call *c);

/* norm.c */
void define_layer_norm(const struct call *c);
void define_group_norm(const struct call *c);
void define_instance_norm(const struct call *c);
void define_batch_norm(const struct call *c);

/* reduce.c */
void define_softmax(const struct call *c);
void define_sum(const struct call *c);
void define_mean(const struct call *c);
void define_max(const struct call *c);
void define_cumsum(const struct call *c);
const char *define_cross_entropy(const struct call *c); /* NULL, or a message */

/* views.c */
void define_view(const struct call *c);
void define_transpose(const struct call *c);
void define_permute(const struct call *c);

#endif
