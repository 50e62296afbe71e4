/* views.c: ops that show elements of their operand and change none. */
#include "define/parts.h"
#include <string.h>

/* view: the same elements in the same row-major order, under another shape */
void define_view(const struct call *c) {
    size_t count = (size_t)kp_shape_count(shape_out(c, 0));
    memcpy(c->out[0], c->in[0], count * sizeof(double));
}

/* The same for the other views that keep the order. */
void define_flatten(const struct call *c) {
    define_view(c);
}
void define_squeeze(const struct call *c) {
    define_view(c);
}
void define_unsqueeze(const struct call *c) {
    define_view(c);
}

/* The elements of the operand, in the order of a walk that begins at element `first`. */
static void show(const struct call *c, const struct walk *w, int64_t first) {
    int64_t count = kp_shape_count(&w->shape);
    for (int64_t i = 0; i < count; i++) c->out[0][i] = c->in[0][first + walk_at(w, i)];
}

/* Result axis d is operand axis dims[d]. */
static void rearrange(const struct call *c, const int64_t dims[]) {
    struct walk dense = walk_dense(shape_in(c, 0)), w = {.shape = *shape_out(c, 0)};
    for (int d = 0; d < w.shape.n; d++)
        w.stride[d] = dense.stride[dims[d] < 0 ? dims[d] + w.shape.n : dims[d]];
    show(c, &w, 0);
}

/* permute: out[i0,i1,...] = x with index i_d on axis dims[d] */
void define_permute(const struct call *c) {
    int64_t dims[KP_MAX_DIMS];
    op_list(c->op, "dims", shape_out(c, 0)->n, 0, dims);
    rearrange(c, dims);
}

/* transpose: the permutation that swaps two axes */
void define_transpose(const struct call *c) {
    int64_t swap[2], dims[KP_MAX_DIMS];
    int n = shape_out(c, 0)->n;
    op_list(c->op, "dims", 2, 0, swap);
    for (int k = 0; k < 2; k++) swap[k] += swap[k] < 0 ? n : 0;
    for (int d = 0; d < n; d++) dims[d] = d == swap[0] ? swap[1] : d == swap[1] ? swap[0] : d;
    rearrange(c, dims);
}

/* slice, flip: result place i along axis dim is operand place start + i * step */
void define_slice(const struct call *c) {
    struct kp_part part;
    struct walk w = walk_dense(shape_in(c, 0));
    c->op->def->part(c->op, shape_in(c, 0), &part);
    int64_t first = part.start * w.stride[part.axis];
    w.stride[part.axis] *= part.step;
    w.shape = *shape_out(c, 0);
    show(c, &w, first);
}
void define_flip(const struct call *c) {
    define_slice(c);
}

/* expand: the operand, repeated along axes in which it has size 1, or which it lacks */
void define_expand(const struct call *c) {
    struct walk w = walk_broadcast(shape_in(c, 0), shape_out(c, 0));
    show(c, &w, 0);
}
