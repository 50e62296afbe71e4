/* slice.c: the rows of each operand that rows [lo,hi) of a result need.
 *
 * A rule returns the operand's axis along which the same rows are needed; KP_WHOLE if all of it
 * is; KP_NEVER if the result cannot be cut along that axis.  The float64 oracle computes large
 * outputs slice by slice and so fits in memory. */
#include "task/rules.h"

/* Axes of operand `slot`; 0 if it is absent or a number. */
static int axes_of(const struct kp_task *t, const struct kp_op *op, int slot) {
    const struct kp_value *v = op_operand(t, op, slot);
    return v ? v->shape.n : 0;
}

/* Axes of the result. */
static int result_axes(const struct kp_task *t, const struct kp_op *op) {
    return t->values[op->out[0]].shape.n;
}

/* Operand axis that NumPy's broadcasting pairs with result axis `axis`. */
int slice_elementwise(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    const struct kp_value *v = op_operand(t, op, slot);
    if (!v) return KP_WHOLE;
    const struct kp_shape *r = &t->values[op->out[0]].shape;
    int mine = axis - (r->n - v->shape.n);
    if (mine < 0 || (v->shape.dim[mine] == 1 && r->dim[axis] != 1)) return KP_WHOLE;
    return mine;
}

/* A view that keeps axis 0 can be cut there; its other axes may be mixed with each other. */
int slice_view(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    const struct kp_shape *x = &op_operand(t, op, slot)->shape;
    const struct kp_shape *r = &t->values[op->out[0]].shape;
    return axis == 0 && x->n > 0 && x->dim[0] == r->dim[0] ? 0 : KP_NEVER;
}

/* Every axis but the one that several became. */
int slice_flatten(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int n = axes_of(t, op, slot);
    int start = op_attr(op, "start_dim") ? op_axis(op, "start_dim", n) : 0;
    int end = op_attr(op, "end_dim") ? op_axis(op, "end_dim", n) : n - 1;
    if (axis == start && start < end) return KP_NEVER;
    return axis <= start ? axis : axis + end - start;
}

/* The axis that it changed places with. */
int slice_transpose(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int n = axes_of(t, op, slot);
    int64_t d[2];
    op_list(op, "dims", 2, 0, d);
    int a = (int)(d[0] < 0 ? d[0] + n : d[0]), b = (int)(d[1] < 0 ? d[1] + n : d[1]);
    return axis == a ? b : axis == b ? a : axis;
}

/* The axis that it was. */
int slice_permute(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int n = axes_of(t, op, slot);
    int64_t d[KP_MAX_DIMS];
    op_list(op, "dims", n, 0, d);
    return (int)(d[axis] < 0 ? d[axis] + n : d[axis]);
}

/* Every axis but the new one. */
int slice_unsqueeze(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int d = op_axis(op, "dim", axes_of(t, op, slot) + 1);
    return axis == d ? KP_NEVER : axis < d ? axis : axis - 1;
}

/* Every axis. */
int slice_squeeze(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int d = op_axis(op, "dim", axes_of(t, op, slot));
    return axis < d ? axis : axis + 1;
}

/* Every axis that is not padded. */
int slice_pad(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    const struct kp_attr *a = op_attr(op, "pad");
    int at = 2 * (axes_of(t, op, slot) - 1 - axis); /* of its two numbers */
    return at < a->n && (a->list[at] || a->list[at + 1]) ? KP_NEVER : axis;
}

/* Matrices are independent of each other. */
int slice_triangle(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    return axis < axes_of(t, op, slot) - 2 ? axis : KP_NEVER;
}

/* Along dim, places of the index; along other axes, the operand's. */
int slice_index_select(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    bool along = axis == op_axis(op, "dim", axes_of(t, op, 0));
    if (slot == 0) return along ? KP_WHOLE : axis;
    return along ? 0 : KP_WHOLE;
}

/* Rows of the result come from rows of the first operand, columns from columns
 * of the second; leading axes broadcast. */
int slice_matmul(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int n = result_axes(t, op), mine = axes_of(t, op, slot);
    if (axis == n - 2) return slot == 0 ? mine - 2 : KP_WHOLE;
    if (axis == n - 1) return slot == 1 ? mine - 1 : KP_WHOLE;
    return slice_elementwise(t, op, axis, slot);
}

/* Rows of the operand, or rows of the weight for features of the result. */
int slice_linear(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    bool features = axis == result_axes(t, op) - 1;
    if (slot == 0) return features ? KP_WHOLE : axis;
    return features && op_operand(t, op, slot) ? 0 : KP_WHOLE;
}

/* Queries give rows, values give columns; heads and batch are independent. */
int slice_attention(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int n = result_axes(t, op);
    if (axis == n - 2) return slot == 0 ? axis : KP_WHOLE;
    if (axis == n - 1) return slot == 2 ? axis : KP_WHOLE;
    return axis;
}

/* Samples are independent.  So are output channels, but with groups a cut would
 * change which inputs a channel reads. */
int slice_conv(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    if (axis == 0) return slot == 0 ? 0 : KP_WHOLE;
    if (axis == 1 && op_int(op, "groups", 1) == 1)
        return slot > 0 && op_operand(t, op, slot) ? 0 : KP_WHOLE;
    return KP_NEVER;
}

/* The same, but its weight has output channels on axis 1. */
int slice_conv_transpose(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int mine = slice_conv(t, op, axis, slot);
    return axis == 1 && slot == 1 && mine == 0 ? 1 : mine;
}

/* A pool: samples and channels are independent; places share windows. */
int slice_planes(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    (void)t, (void)op, (void)slot;
    return axis < 2 ? axis : KP_NEVER;
}

/* The axes before the normalised ones. */
int slice_layer_norm(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    if (axis >= result_axes(t, op) - op_attr(op, "shape")->n) return KP_NEVER;
    return slot == 0 ? axis : KP_WHOLE;
}

/* Samples. */
int slice_group_norm(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    (void)t, (void)op;
    if (axis != 0) return KP_NEVER;
    return slot == 0 ? 0 : KP_WHOLE;
}

/* Samples and channels. */
int slice_instance_norm(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    if (axis > 1) return KP_NEVER;
    if (slot == 0) return axis;
    return axis == 1 && op_operand(t, op, slot) ? 0 : KP_WHOLE;
}

/* Channels. */
int slice_batch_norm(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    if (axis != 1) return KP_NEVER;
    if (slot == 0) return 1;
    return op_operand(t, op, slot) ? 0 : KP_WHOLE;
}

/* Every axis but dim. */
int slice_along_axis(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    return axis == op_axis(op, "dim", axes_of(t, op, slot)) ? KP_NEVER : axis;
}

/* The axes that are left, which keep their order; not those of size 1 that keepdim leaves. */
int slice_reduce(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    int n = axes_of(t, op, slot);
    unsigned reduced = op_reduced_axes(op, n);
    if (op_bool(op, "keepdim", false)) return reduced & 1u << axis ? KP_NEVER : axis;
    for (int i = 0; i < n; i++)
        if (!(reduced & 1u << i) && axis-- == 0) return i;
    return KP_NEVER;
}

/* A result of one number. */
int slice_never(const struct kp_task *t, const struct kp_op *op, int axis, int slot) {
    (void)t, (void)op, (void)axis, (void)slot;
    return KP_NEVER;
}
