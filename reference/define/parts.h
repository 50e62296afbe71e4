/* parts.h: what the files of define/ share.  Nothing outside includes it.
 *
 * Arrays are dense, but an op may read an operand broadcast, permuted or row by row.  A walk says
 * where the elements lie in that order, so that every op is a plain loop over element numbers. */
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
    const char **message; /* set by an op that cannot go on */
};

/* Shapes of operand k (not absent, no number) and of result k. */
const struct kp_shape *shape_in(const struct call *c, int k);
const struct kp_shape *shape_out(const struct call *c, int k);

/* The meaning of each op: define_relu and so on.  It computes every result. */
typedef void define_op_rule(const struct call *c);
#define OP(name, ...)   define_op_rule define_##name;
#define VIEW(name, ...) define_op_rule define_##name;
#include "task/op_table.h"

#endif
