/* infer_views.c: shapes of views: the same elements under other axes. */
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
            return "shape has a size below 1; expected positive sizes, one of which may be -1";
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
