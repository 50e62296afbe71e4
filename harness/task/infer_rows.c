/* infer_rows.c: shapes of elementwise ops, normalisations, reductions, scans and losses.
 *
 * What no executor implements is refused here, so that no executor has to look for it. */
#include "task/infer.h"
#include "task/rules.h"

#include <string.h>

/* NULL, or a message if eps is not positive. */
static const char *eps_wrong(const struct kp_op *op) {
    return op_float(op, "eps", 1e-5) > 0 ? NULL : "eps is not positive; expected eps > 0";
}

/* A floating operand; the result looks like it. */
const char *infer_unary(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_floats(t, op);
    return wrong ? wrong : infer_like_first(t, op, out);
}

/* One of two forms. */
const char *infer_gelu(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *form = op_word(op, "approximate", "none");
    if (strcmp(form, "none") && strcmp(form, "tanh"))
        return infer_say("approximate=%s; expected none or tanh", form);
    return infer_unary(t, op, out);
}

/* Between two numbers, or on one side of one. */
const char *infer_clamp(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    if (!op_attr(op, "min") && !op_attr(op, "max")) return "expected min=, max= or both";
    return infer_unary(t, op, out);
}

/* A tensor to the power of a number. */
const char *infer_pow(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *x = op_operand(t, op, 0);
    if (!x || !infer_is_float(x)) return "operand 1 is not a floating tensor; expected one";
    if (!op->in[1].is_scalar) return "operand 2 is a tensor; expected a number";
    return infer_like_first(t, op, out);
}

/* Two tensors that broadcast, or a tensor and a number.  Integers and masks beside a floating
 * tensor count as numbers of its type. */
const char *infer_binary(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *a = op_operand(t, op, 0), *b = op_operand(t, op, 1);
    if (!a && !b) return "both operands are numbers; expected a tensor";
    const struct kp_value *x = a ? a : b, *y = b ? b : a;
    const struct kp_value *wide = infer_is_float(x) ? x : y;
    if (!infer_is_float(wide) || (infer_is_float(y) && x->dtype != y->dtype && wide == x))
        return infer_say("operands are %s and %s; expected one floating type",
                         kp_dtype_name(x->dtype), kp_dtype_name(y->dtype));
    op->nout = 1;
    out->dtype = wide->dtype;
    if (!infer_broadcast(&x->shape, &y->shape, &out->shape))
        return "shapes do not broadcast; expected equal sizes or 1, aligned at the right";
    return NULL;
}

/* Weight and bias have the shape of the normalised axes. */
const char *infer_layer_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "shape");
    const char *wrong = infer_unary(t, op, out);
    if (wrong || (wrong = eps_wrong(op))) return wrong;
    int n = out->shape.n;
    if (!a || a->n < 1 || a->n > n) return "expected shape=[...], the last axes of the operand";
    for (int i = 0; i < a->n; i++)
        if (a->list[i] != out->shape.dim[n - a->n + i])
            return "shape differs from the operand's last axes; expected them";
    if ((wrong = infer_sizes(t, op, 1, a->n, a->list))) return wrong;
    return infer_sizes(t, op, 2, a->n, a->list);
}

/* Group, instance and batch norm have a weight and bias for each channel. */
static const char *channel_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out,
                                int least_axes) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong || (wrong = eps_wrong(op))) return wrong;
    if (out->shape.n < least_axes)
        return infer_say("expected an operand of %d axes or more", least_axes);
    if ((wrong = infer_sizes(t, op, 1, 1, &out->shape.dim[1]))) return wrong;
    return infer_sizes(t, op, 2, 1, &out->shape.dim[1]);
}

/* Channels in num_groups equal groups. */
const char *infer_group_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = channel_norm(t, op, out, 2);
    int64_t groups = op_int(op, "num_groups", 0);
    if (wrong) return wrong;
    if (groups < 1 || out->shape.dim[1] % groups)
        return "expected num_groups=, a divisor of the channels";
    return NULL;
}

/* Each channel of each sample. */
const char *infer_instance_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    if (!op_bool(op, "use_input_stats", true))
        return "use_input_stats=false is not implemented; expected true";
    return channel_norm(t, op, out, 3);
}

/* Each channel of all samples, in training mode. */
const char *infer_batch_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    if (!op_bool(op, "training", true)) return "training=false is not implemented; expected true";
    return channel_norm(t, op, out, 2);
}

/* The result looks like the operand; dim is one of its axes. */
const char *infer_along_axis(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong) return wrong;
    if (op_axis(op, "dim", out->shape.n) < 0) return "expected dim=, an axis of the operand";
    return NULL;
}

/* Remove the axes in `reduced`, or keep them with size 1. */
static void reduce(struct kp_shape *s, unsigned reduced, bool keep) {
    for (int i = s->n - 1; i >= 0; i--) {
        if (!(reduced & 1u << i)) continue;
        if (keep)
            s->dim[i] = 1;
        else
            infer_drop_axis(s, i);
    }
}

/* The axes in dim go, or stay with size 1. */
const char *infer_reduce(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong) return wrong;
    unsigned reduced = op_reduced_axes(op, out->shape.n);
    if (!reduced) return "dim names no axes, or one twice; expected axes of the operand";
    reduce(&out->shape, reduced, op_bool(op, "keepdim", false));
    return NULL;
}

/* Euclidean, or the sum of sizes. */
const char *infer_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    double p = op_float(op, "p", 2);
    if (p != 1 && p != 2) return infer_say("p is %g; expected 1 or 2", p);
    return infer_reduce(t, op, out);
}

/* One axis. */
const char *infer_logsumexp(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong) return wrong;
    if (op_axis(op, "dim", out->shape.n) < 0) return "expected dim=, one axis of the operand";
    return infer_reduce(t, op, out);
}

/* The index of an extreme element along one axis. */
const char *infer_index(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_logsumexp(t, op, out);
    out->dtype = KP_I64;
    return wrong;
}

/* Two results: the extreme values, and the index of each. */
const char *infer_extreme(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_logsumexp(t, op, out);
    if (wrong) return wrong;
    out[1] = out[0];
    out[1].dtype = KP_I64;
    op->nout = 2;
    return NULL;
}

/* Scores [rows, classes] and a class for each row give a scalar.  A target that is no class would
 * make it NaN, which any kernel matches. */
const char *infer_cross_entropy(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *x = op_operand(t, op, 0), *y = op_operand(t, op, 1);
    if (!x || !infer_is_float(x) || x->shape.n != 2)
        return "expected floating scores [rows, classes]";
    if (!y || y->dtype != KP_I64 || y->shape.n != 1 || y->shape.dim[0] != x->shape.dim[0])
        return infer_say("expected target=, i64 [%lld]", (long long)x->shape.dim[0]);
    if (!infer_are_places(t, op->in[1].value, x->shape.dim[1],
                          (double)op_int(op, "ignore_index", -100)))
        return infer_say("%s may be no class; expected a tensor of integers(0,%lld)", y->name,
                         (long long)x->shape.dim[1]);
    if (strcmp(op_word(op, "reduction", "mean"), "mean"))
        return "only reduction=mean is implemented; expected mean";
    if (op_float(op, "label_smoothing", 0) != 0)
        return "label_smoothing is not implemented; expected 0";
    infer_like_first(t, op, out);
    out->shape.n = 0;
    return NULL;
}
