/* views.c: ops that move elements and change none. */
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

/* Result axis d is operand axis dims[d]. */
static void rearrange(const struct call *c, const int64_t dims[]) {
    struct walk dense = walk_dense(shape_in(c, 0)), w = {.shape = *shape_out(c, 0)};
    for (int d = 0; d < w.shape.n; d++)
        w.stride[d] = dense.stride[dims[d] < 0 ? dims[d] + w.shape.n : dims[d]];
    int64_t count = kp_shape_count(&w.shape);
    for (int64_t i = 0; i < count; i++) c->out[0][i] = c->in[0][walk_at(&w, i)];
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
