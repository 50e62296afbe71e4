/* infer_views.c: shapes of views, and which part of their operand they show; shapes of ops that put
 * elements together, replace some, or choose by them. */
#include "task/infer.h"
#include "task/rules.h"

#include <string.h>

/* The same elements under shape=; one entry may be -1, which stands for what is left. */
const char *infer_view(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "shape");
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    if (!a) return "expected shape=[...]";
    int64_t total = kp_shape_count(&out->shape), known = 1;
    int unknown = -1;
    out->shape.n = a->n;
    for (int i = 0; i < a->n; i++) {
        out->shape.dim[i] = a->list[i];
        if (a->list[i] == -1 && unknown < 0)
            unknown = i;
        else if (a->list[i] < 1 || __builtin_mul_overflow(known, a->list[i], &known))
            return "shape has a size below 1 or too large; expected positive sizes, one of "
                   "which may be -1";
    }
    if (unknown < 0 ? known != total : total % known != 0)
        return infer_say("shape does not hold the operand's %lld elements; expected as many",
                         (long long)total);
    if (unknown >= 0) out->shape.dim[unknown] = total / known;
    return NULL;
}

/* Attribute dims as `count` different axes of 0..n-1.  False if it is not that. */
static bool read_dims(const struct kp_op *op, int count, int n, int *dim) {
    const struct kp_attr *a = op_attr(op, "dims");
    unsigned seen = 0;
    if (!a || a->n != count) return false;
    for (int i = 0; i < count; i++) {
        if (a->list[i] < -n || a->list[i] >= n) return false;
        dim[i] = (int)a->list[i] + (a->list[i] < 0 ? n : 0);
        if (seen & 1u << dim[i]) return false;
        seen |= 1u << dim[i];
    }
    return true;
}

/* Two axes change places. */
const char *infer_transpose(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int d[2];
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    if (!read_dims(op, 2, out->shape.n, d)) return "expected dims=[a,b], two different axes";
    int64_t size = out->shape.dim[d[0]];
    out->shape.dim[d[0]] = out->shape.dim[d[1]];
    out->shape.dim[d[1]] = size;
    return NULL;
}

/* Result axis i is operand axis dims[i]. */
const char *infer_permute(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int d[KP_MAX_DIMS];
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    struct kp_shape x = out->shape;
    if (!read_dims(op, x.n, x.n, d)) return "expected dims=[...], each axis once";
    for (int i = 0; i < x.n; i++) out->shape.dim[i] = x.dim[d[i]];
    return NULL;
}

/* A new axis of size 1. */
const char *infer_unsqueeze(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    int n = out->shape.n, d = op_axis(op, "dim", n + 1);
    if (n == KP_MAX_DIMS) return "expected fewer than eight axes";
    if (d < 0) return infer_say("expected dim=, an axis of the result, -%d to %d", n + 1, n);
    memmove(&out->shape.dim[d + 1], &out->shape.dim[d], (size_t)(n - d) * sizeof out->shape.dim[0]);
    out->shape.dim[d] = 1;
    out->shape.n = n + 1;
    return NULL;
}

/* An axis of size 1 goes. */
const char *infer_squeeze(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    int d = op_axis(op, "dim", out->shape.n);
    if (d < 0 || out->shape.dim[d] != 1) return "expected dim=, an axis of size 1";
    infer_drop_axis(&out->shape, d);
    return NULL;
}

/* Axes start_dim to end_dim become one. */
const char *infer_flatten(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    int n = out->shape.n;
    int start = op_attr(op, "start_dim") ? op_axis(op, "start_dim", n) : 0;
    int end = op_attr(op, "end_dim") ? op_axis(op, "end_dim", n) : n - 1;
    if (start < 0 || end < start) return "expected start_dim <= end_dim, both axes of the operand";
    for (; end > start; end--) {
        out->shape.dim[start] *= out->shape.dim[start + 1];
        infer_drop_axis(&out->shape, start + 1);
    }
    return NULL;
}

/* Attribute `key` as a place along an axis of `size`, negative ones counted from the end. */
static int64_t place(const struct kp_op *op, const char *key, int64_t size, int64_t otherwise) {
    int64_t at = op_int(op, key, otherwise);
    return at < 0 ? at + size : at;
}

/* slice: places from start (default 0) up to end (default the axis's size), step apart. */
const char *part_slice(const struct kp_op *op, const struct kp_shape *x, struct kp_part *out) {
    out->axis = op_axis(op, "dim", x->n);
    if (out->axis < 0) return "expected dim=, an axis of the operand";
    int64_t size = x->dim[out->axis], end = place(op, "end", size, size);
    out->start = place(op, "start", size, 0);
    out->step = op_int(op, "step", 1);
    if (out->start < 0 || out->start >= end || end > size)
        return infer_say("expected start < end, both within axis %d of size %lld", out->axis,
                         (long long)size);
    if (out->step < 1) return "step is below 1; expected 1 or more";
    out->count = (end - out->start - 1) / out->step + 1;
    return NULL;
}

/* flip: all places, the last one first. */
const char *part_flip(const struct kp_op *op, const struct kp_shape *x, struct kp_part *out) {
    out->axis = op_axis(op, "dim", x->n);
    if (out->axis < 0) return "expected dim=, an axis of the operand";
    out->count = x->dim[out->axis];
    out->start = out->count - 1;
    out->step = -1;
    return NULL;
}

/* Some places along one axis. */
const char *infer_part(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    struct kp_part part;
    const char *wrong = infer_like_first(t, op, out);
    if (wrong || (wrong = op->def->part(op, &out->shape, &part))) return wrong;
    out->shape.dim[part.axis] = part.count;
    return NULL;
}

/* The operand's axes of size 1, and axes that it lacks at the left, get the sizes of shape=. */
const char *infer_expand(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "shape");
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    if (!a) return "expected shape=[...]";
    int first = a->n - out->shape.n; /* axes that the operand lacks */
    struct kp_shape to = {.n = a->n};
    for (int i = 0; i < a->n; i++) {
        to.dim[i] = a->list[i];
        int64_t from = i < first || first < 0 ? 1 : out->shape.dim[i - first];
        if (first < 0 || to.dim[i] < 1 || (from != 1 && from != to.dim[i]))
            return "shape does not follow by repeating; expected the operand's sizes, other ones "
                   "only where it has 1 or no axis";
    }
    out->shape = to;
    return NULL;
}

/* Tensors of one type, whose sizes differ along dim alone, one after the other. */
const char *infer_cat(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    int axis = op_axis(op, "dim", out->shape.n);
    if (axis < 0) return "expected dim=, an axis of the operands";
    for (int k = 1; k < op->nin; k++) {
        const struct kp_value *x = op_operand(t, op, k);
        if (!x) return infer_say("operand %d is a number; expected a tensor", k + 1);
        if (x->dtype != out->dtype)
            return infer_say("%s is %s; expected %s as the first operand", x->name,
                             kp_dtype_name(x->dtype), kp_dtype_name(out->dtype));
        bool same = x->shape.n == out->shape.n;
        for (int d = 0; same && d < out->shape.n; d++)
            same = d == axis || x->shape.dim[d] == out->shape.dim[d];
        if (!same)
            return infer_say("%s has another shape; expected the first operand's but for axis %d",
                             x->name, axis);
        if (__builtin_add_overflow(out->shape.dim[axis], x->shape.dim[axis], &out->shape.dim[axis]))
            return "the result has more than 2^63 places; expected fewer";
    }
    return NULL;
}

/* NULL if an element of this type can be `value`, or a message. */
static const char *value_wrong(enum kp_dtype type, double value) {
    bool whole = value >= INT32_MIN && value <= INT32_MAX && value == (double)(int64_t)value;
    bool fits = type == KP_BOOL ? value == 0 || value == 1 : type < KP_I64 || whole;
    return fits ? NULL
                : infer_say("value does not fit %s; expected one of its values",
                            kp_dtype_name(type));
}

/* More places before and after each of the last axes: pad= has two numbers an axis, the last axis
 * first. */
const char *infer_pad(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "pad");
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    if (!a || a->n % 2 || a->n > 2 * out->shape.n)
        return "expected pad=[before,after,...], two numbers an axis, the last axis first";
    for (int i = 0; i < a->n; i++) {
        int64_t *size = &out->shape.dim[out->shape.n - 1 - i / 2];
        if (a->list[i] < 0 || __builtin_add_overflow(*size, a->list[i], size))
            return "pad has a number below 0 or too large; expected 0 or more";
    }
    return value_wrong(out->dtype, op_float(op, "value", 0));
}

/* A matrix in the last two axes. */
const char *infer_triangle(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    return out->shape.n < 2 ? "expected an operand of 2 axes or more" : NULL;
}

/* A mask that broadcasts to the operand. */
const char *infer_masked_fill(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *mask = op_operand(t, op, 1);
    struct kp_shape all;
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    if (!mask || mask->dtype != KP_BOOL) return "expected mask=, a bool tensor";
    if (!infer_broadcast(&out->shape, &mask->shape, &all) || all.n != out->shape.n ||
        memcmp(all.dim, out->shape.dim, (size_t)all.n * sizeof *all.dim))
        return "mask does not broadcast to the operand; expected sizes equal to its, or 1";
    if (!op_attr(op, "value")) return "expected value=";
    return value_wrong(out->dtype, op_float(op, "value", 0));
}

/* Two tensors of one type that broadcast, or a tensor and a number; the result is a mask. */
const char *infer_compare(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *a = op_operand(t, op, 0), *b = op_operand(t, op, 1);
    if (!a && !b) return "both operands are numbers; expected a tensor";
    const struct kp_value *x = a ? a : b, *y = b ? b : a;
    if (x->dtype != y->dtype)
        return infer_say("operands are %s and %s; expected one type", kp_dtype_name(x->dtype),
                         kp_dtype_name(y->dtype));
    const char *wrong = a && b ? NULL : value_wrong(x->dtype, op->in[a ? 1 : 0].scalar);
    if (wrong) return wrong;
    op->nout = 1;
    out->dtype = KP_BOOL;
    if (!infer_broadcast(&x->shape, &y->shape, &out->shape))
        return "shapes do not broadcast; expected equal sizes or 1, aligned at the right";
    return NULL;
}

/* Places along dim, by their numbers.  They come from a tensor that holds no others, so that no
 * executor has to look for it. */
const char *infer_index_select(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *index = op_operand(t, op, 1);
    const char *wrong = infer_like_first(t, op, out);
    if (wrong) return wrong;
    int axis = op_axis(op, "dim", out->shape.n);
    if (axis < 0) return "expected dim=, an axis of the operand";
    if (!index || index->dtype != KP_I64 || index->shape.n != 1)
        return "expected index=, an i64 tensor of one axis";
    int64_t size = out->shape.dim[axis];
    if (!infer_are_places(t, op->in[1].value, size, 0))
        return infer_say("%s may be beyond axis %d; expected a tensor of integers(0,%lld)",
                         index->name, axis, (long long)size);
    out->shape.dim[axis] = index->shape.dim[0];
    return NULL;
}

/* One number everywhere; the result is f32 unless dtype= says otherwise. */
const char *infer_full(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "shape");
    (void)t;
    op->nout = 1;
    if (!a) return "expected shape=[...]";
    if (!op_attr(op, "value")) return "expected value=";
    if (!dtype_parse(op_word(op, "dtype", "f32"), &out->dtype) || out->dtype == KP_F64)
        return "dtype is unknown; expected f32, f16, bf16, i64, i32 or bool";
    const char *wrong = value_wrong(out->dtype, op_float(op, "value", 0));
    if (wrong) return wrong;
    out->shape.n = a->n;
    for (int i = 0; i < a->n; i++) {
        if (a->list[i] < 1) return "shape has a size below 1; expected positive sizes";
        out->shape.dim[i] = a->list[i];
    }
    return NULL;
}
