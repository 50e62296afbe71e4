/* walk.c: where the elements of a broadcast, permuted or cut array lie: see parts.h. */
#include "define/parts.h"

/* See parts.h. */
struct walk walk_dense(const struct kp_shape *s) {
    struct walk w = {.shape = *s};
    int64_t stride = 1;
    for (int d = s->n - 1; d >= 0; d--) {
        w.stride[d] = stride;
        stride *= s->dim[d];
    }
    return w;
}

/* See parts.h. */
struct walk walk_broadcast(const struct kp_shape *from, const struct kp_shape *to) {
    struct walk dense = walk_dense(from), w = {.shape = *to};
    for (int d = 0; d < from->n; d++)
        if (from->dim[d] != 1) w.stride[d + to->n - from->n] = dense.stride[d];
    return w;
}

/* See parts.h. */
void walk_split(const struct kp_shape *s, unsigned axes, struct walk *kept, struct walk *cut) {
    struct walk dense = walk_dense(s);
    *kept = *cut = (struct walk){.shape = {.n = 0}};
    for (int d = 0; d < s->n; d++) {
        struct walk *w = axes >> d & 1 ? cut : kept;
        w->shape.dim[w->shape.n] = s->dim[d];
        w->stride[w->shape.n++] = dense.stride[d];
    }
}

/* See parts.h. */
int64_t walk_at(const struct walk *w, int64_t i) {
    int64_t at = 0;
    for (int d = w->shape.n - 1; d >= 0; d--) {
        at += i % w->shape.dim[d] * w->stride[d];
        i /= w->shape.dim[d];
    }
    return at;
}

/* See parts.h. */
const struct kp_shape *shape_in(const struct call *c, int k) {
    return &c->task->values[c->op->in[k].value].shape;
}

/* See parts.h. */
const struct kp_shape *shape_out(const struct call *c, int k) {
    return &c->task->values[c->op->out[k]].shape;
}
