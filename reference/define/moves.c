/* moves.c: ops that put elements together, replace some, or choose by them. */
#include "define/parts.h"

/* cat: the operands one after the other along axis dim */
void define_cat(const struct call *c) {
    const struct kp_shape *to = shape_out(c, 0);
    int axis = op_axis(c->op, "dim", to->n);
    int64_t first = 0, inner = 1;
    for (int d = axis + 1; d < to->n; d++) inner *= to->dim[d];
    for (int k = 0; k < c->op->nin; k++) {
        int64_t row = shape_in(c, k)->dim[axis] * inner, count = kp_shape_count(shape_in(c, k));
        for (int64_t i = 0; i < count; i++)
            c->out[0][i / row * to->dim[axis] * inner + first + i % row] = c->in[k][i];
        first += row;
    }
}

/* pad: `value` before and after the operand along the last axes */
void define_pad(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0), *to = shape_out(c, 0);
    const struct kp_attr *pad = op_attr(c->op, "pad");
    int64_t count = kp_shape_count(to);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0, stride = 1;
        bool inside = true;
        for (int d = x->n - 1; d >= 0; rest /= to->dim[d--]) {
            int k = 2 * (x->n - 1 - d);
            int64_t place = rest % to->dim[d] - (k < pad->n ? pad->list[k] : 0);
            inside = inside && place >= 0 && place < x->dim[d];
            at += place * stride;
            stride *= x->dim[d];
        }
        c->out[0][i] = inside ? c->in[0][at] : op_float(c->op, "value", 0);
    }
}

/* Keep columns up to row + diagonal, or from there on; the others become 0. */
static void triangle(const struct call *c, bool lower) {
    const struct kp_shape *x = shape_in(c, 0);
    int64_t rows = x->dim[x->n - 2], columns = x->dim[x->n - 1], count = kp_shape_count(x);
    for (int64_t i = 0; i < count; i++) {
        int64_t edge = i / columns % rows + op_int(c->op, "diagonal", 0), column = i % columns;
        bool kept = lower ? column <= edge : column >= edge;
        c->out[0][i] = kept ? c->in[0][i] : 0;
    }
}

/* tril, triu: what is below, or above, a diagonal, itself included */
void define_tril(const struct call *c) {
    triangle(c, true);
}
void define_triu(const struct call *c) {
    triangle(c, false);
}

/* masked_fill: `value` where the mask, broadcast, is true */
void define_masked_fill(const struct call *c) {
    struct walk mask = walk_broadcast(shape_in(c, 1), shape_out(c, 0));
    int64_t count = kp_shape_count(shape_out(c, 0));
    for (int64_t i = 0; i < count; i++)
        c->out[0][i] = c->in[1][walk_at(&mask, i)] != 0 ? op_float(c->op, "value", 0) : c->in[0][i];
}

/* eq: whether elements are equal, broadcast; NaN equals nothing */
void define_eq(const struct call *c) {
    const struct kp_shape *to = shape_out(c, 0);
    double v[2];
    struct walk w[2];
    for (int k = 0; k < 2; k++) {
        v[k] = c->op->in[k].scalar;
        if (c->in[k]) w[k] = walk_broadcast(shape_in(c, k), to);
    }
    int64_t count = kp_shape_count(to);
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < 2; k++)
            if (c->in[k]) v[k] = c->in[k][walk_at(&w[k], i)];
        c->out[0][i] = v[0] == v[1];
    }
}

/* index_select: result place i along axis dim is operand place index[i] */
void define_index_select(const struct call *c) {
    const struct kp_shape *x = shape_in(c, 0), *to = shape_out(c, 0);
    int axis = op_axis(c->op, "dim", x->n);
    int64_t inner = 1, count = kp_shape_count(to), size = x->dim[axis];
    for (int d = axis + 1; d < x->n; d++) inner *= x->dim[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t place = (int64_t)c->in[1][i / inner % to->dim[axis]];
        if (place < 0 || place >= size) {
            *c->message = "index_select: an index is beyond the axis; expected 0 to its size - 1";
            return;
        }
        c->out[0][i] = c->in[0][(i / inner / to->dim[axis] * size + place) * inner + i % inner];
    }
}

/* full: one number everywhere */
void define_full(const struct call *c) {
    int64_t count = kp_shape_count(shape_out(c, 0));
    for (int64_t i = 0; i < count; i++) c->out[0][i] = op_float(c->op, "value", 0);
}
