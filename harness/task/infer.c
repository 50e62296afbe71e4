/* infer.c: the shape and dtype that an op gives, or what it expected instead.
 * What is implemented nowhere (dropout, ceil_mode, causal attention) is refused
 * here, so that no executor needs to look. */
#include "task/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message made of numbers; lives until the next one. */
static const char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *say(const char *format, ...) {
    static _Thread_local char text[256];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return text;
}

/* Most ops give one result that looks like their first operand. */
static const char *like_first(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *x = op_operand(t, op, 0);
    if (!x) return "operand 1 is a number; expected a tensor";
    op->nout = 1;
    out[0].dtype = x->dtype;
    out[0].shape = x->shape;
    return NULL;
}

static bool is_float(const struct kp_value *v) {
    return v->dtype <= KP_BF16;
}

/* NULL if every operand from slot 0 on is a floating tensor of one dtype. */
static const char *floats(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_value *x = op_operand(t, op, 0);
    for (int i = 0; i < op->nin; i++) {
        const struct kp_value *v = op_operand(t, op, i);
        if (op->in[i].is_scalar) return say("operand %d is a number; expected a tensor", i + 1);
        if (v && !is_float(v))
            return say("%s is %s; expected f64, f32, f16 or bf16", v->name,
                       kp_dtype_name(v->dtype));
        if (v && v->dtype != x->dtype)
            return say("%s is %s; expected %s as the first operand", v->name,
                       kp_dtype_name(v->dtype), kp_dtype_name(x->dtype));
    }
    return NULL;
}

/* NULL if operand `slot` is absent or has exactly these n sizes. */
static const char *sizes(const struct kp_task *t, const struct kp_op *op, int slot, int n,
                         const int64_t *dim) {
    const struct kp_value *v = op_operand(t, op, slot);
    if (!v) return NULL;
    bool same = v->shape.n == n;
    for (int i = 0; same && i < n; i++) same = v->shape.dim[i] == dim[i];
    if (same) return NULL;
    char text[160] = "[";
    for (int i = 0, at = 1; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "," : "",
                       (long long)dim[i]);
    return say("%s has another shape; expected %s]", v->name, text);
}

static const char *eps_wrong(const struct kp_op *op) {
    return op_float(op, "eps", 1e-5) > 0 ? NULL : "eps is not positive; expected eps > 0";
}

/* One dimension of a view may be -1: whatever is left. */
const char *infer_view(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "shape");
    const char *wrong = like_first(t, op, out);
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
        return say("shape does not hold the operand's %lld elements; expected as many",
                   (long long)total);
    if (unknown >= 0) out->shape.dim[unknown] = total / known;
    return NULL;
}

/* dims as axes 0..n-1 without repetition. */
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

const char *infer_transpose(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int d[2];
    const char *wrong = like_first(t, op, out);
    if (wrong) return wrong;
    if (!read_dims(op, 2, out->shape.n, d)) return "expected dims=[a,b], two different axes";
    int64_t size = out->shape.dim[d[0]];
    out->shape.dim[d[0]] = out->shape.dim[d[1]];
    out->shape.dim[d[1]] = size;
    return NULL;
}

const char *infer_permute(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int d[KP_MAX_DIMS];
    const char *wrong = like_first(t, op, out);
    if (wrong) return wrong;
    struct kp_shape x = out->shape;
    if (!read_dims(op, x.n, x.n, d)) return "expected dims=[...], each axis once";
    for (int i = 0; i < x.n; i++) out->shape.dim[i] = x.dim[d[i]];
    return NULL;
}

const char *infer_unsqueeze(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = like_first(t, op, out);
    if (wrong) return wrong;
    int n = out->shape.n, d = op_axis(op, "dim", n + 1);
    if (n == KP_MAX_DIMS) return "expected fewer than eight axes";
    if (d < 0) return say("expected dim=, an axis of the result, -%d to %d", n + 1, n);
    memmove(&out->shape.dim[d + 1], &out->shape.dim[d], (size_t)(n - d) * sizeof out->shape.dim[0]);
    out->shape.dim[d] = 1;
    out->shape.n = n + 1;
    return NULL;
}

static void drop_axis(struct kp_shape *s, int d) {
    s->n--;
    memmove(&s->dim[d], &s->dim[d + 1], (size_t)(s->n - d) * sizeof s->dim[0]);
}

const char *infer_squeeze(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = like_first(t, op, out);
    if (wrong) return wrong;
    int d = op_axis(op, "dim", out->shape.n);
    if (d < 0 || out->shape.dim[d] != 1) return "expected dim=, an axis of size 1";
    drop_axis(&out->shape, d);
    return NULL;
}

const char *infer_flatten(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = like_first(t, op, out);
    if (wrong) return wrong;
    int n = out->shape.n;
    int start = op_attr(op, "start_dim") ? op_axis(op, "start_dim", n) : 0;
    int end = op_attr(op, "end_dim") ? op_axis(op, "end_dim", n) : n - 1;
    if (start < 0 || end < start) return "expected start_dim <= end_dim, both axes of the operand";
    for (; end > start; end--) {
        out->shape.dim[start] *= out->shape.dim[start + 1];
        drop_axis(&out->shape, start + 1);
    }
    return NULL;
}

/* The shape that two shapes broadcast to; false if they do not. */
static bool broadcast(const struct kp_shape *a, const struct kp_shape *b, struct kp_shape *out) {
    struct kp_shape r = {.n = a->n > b->n ? a->n : b->n};
    for (int i = 1; i <= r.n; i++) {
        int64_t p = i <= a->n ? a->dim[a->n - i] : 1, q = i <= b->n ? b->dim[b->n - i] : 1;
        if (p != q && p != 1 && q != 1) return false;
        r.dim[r.n - i] = p == 1 ? q : p;
    }
    *out = r;
    return true;
}

const char *infer_matmul(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = floats(t, op);
    if (wrong) return wrong;
    struct kp_shape a = op_operand(t, op, 0)->shape, b = op_operand(t, op, 1)->shape;
    if (a.n < 2 || b.n < 2) return "an operand has fewer than two axes; expected matrices";
    int64_t m = a.dim[a.n - 2], k = a.dim[a.n - 1], n = b.dim[b.n - 1];
    if (b.dim[b.n - 2] != k)
        return say("the second operand has %lld rows; expected %lld", (long long)b.dim[b.n - 2],
                   (long long)k);
    like_first(t, op, out);
    a.n -= 2, b.n -= 2;
    if (!broadcast(&a, &b, &out->shape)) return "leading axes differ; expected equal ones or 1";
    out->shape.dim[out->shape.n++] = m;
    out->shape.dim[out->shape.n++] = n;
    return NULL;
}

const char *infer_linear(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = floats(t, op);
    if (wrong) return wrong;
    const struct kp_shape *x = &op_operand(t, op, 0)->shape, *w = &op_operand(t, op, 1)->shape;
    if (x->n < 1 || w->n != 2 || w->dim[1] != x->dim[x->n - 1])
        return "weight does not fit; expected [out, last axis of the operand]";
    if ((wrong = sizes(t, op, 2, 1, w->dim))) return wrong;
    like_first(t, op, out);
    out->shape.dim[out->shape.n - 1] = w->dim[0];
    return NULL;
}

const char *infer_attention(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = floats(t, op);
    if (wrong) return wrong;
    const struct kp_shape *q = &op_operand(t, op, 0)->shape, *k = &op_operand(t, op, 1)->shape,
                          *v = &op_operand(t, op, 2)->shape;
    if (op_float(op, "dropout_p", 0) != 0)
        return "dropout_p is not 0; expected 0, dropout is random";
    if (op_bool(op, "is_causal", false)) return "is_causal=true is not implemented; expected false";
    if (q->n < 2 || k->n != q->n || v->n != q->n) return "expected query, key, value of equal rank";
    for (int i = 0; i < q->n - 2; i++)
        if (q->dim[i] != k->dim[i] || q->dim[i] != v->dim[i])
            return "leading axes differ; expected the same batch and heads";
    if (q->dim[q->n - 1] != k->dim[q->n - 1])
        return "key width differs; expected that of the query";
    if (k->dim[q->n - 2] != v->dim[q->n - 2])
        return "value length differs; expected that of the key";
    like_first(t, op, out);
    out->shape.dim[q->n - 1] = v->dim[q->n - 1];
    return NULL;
}

/* NULL if `key` is absent, a number or a list of n entries, all at least `least`. */
static const char *spatial(const struct kp_op *op, const char *key, int n, int64_t least,
                           int64_t otherwise, int64_t *out) {
    const struct kp_attr *a = op_attr(op, key);
    if (a && a->kind == KP_ATTR_LIST && a->n != n)
        return say("%s has %d entries; expected %d or a single number", key, a->n, n);
    op_list(op, key, n, otherwise, out);
    for (int i = 0; i < n; i++)
        if (out[i] < least || out[i] > INT32_MAX)
            return say("%s is %lld; expected at least %lld", key, (long long)out[i],
                       (long long)least);
    return NULL;
}

/* Size of a window's output, floor((size + 2p - d(k-1) - 1) / s) + 1; 0 if none fits. */
static int64_t windows(int64_t size, int64_t k, int64_t stride, int64_t padding, int64_t dilation) {
    if (k > INT32_MAX) return 0;
    int64_t room = size + 2 * padding - dilation * (k - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

const char *infer_conv(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int n = op->def->id == KP_OP_CONV1D ? 1 : op->def->id == KP_OP_CONV2D ? 2 : 3;
    int64_t stride[3], padding[3], dilation[3], groups = op_int(op, "groups", 1);
    const char *wrong = floats(t, op);
    if (wrong || (wrong = spatial(op, "stride", n, 1, 1, stride)) ||
        (wrong = spatial(op, "padding", n, 0, 0, padding)) ||
        (wrong = spatial(op, "dilation", n, 1, 1, dilation)))
        return wrong;
    const struct kp_shape *x = &op_operand(t, op, 0)->shape, *w = &op_operand(t, op, 1)->shape;
    if (x->n != n + 2 || w->n != n + 2)
        return say("expected an operand and a weight of %d axes", n + 2);
    if (groups < 1 || x->dim[1] % groups || w->dim[0] % groups)
        return "groups does not divide the channels; expected a divisor of both";
    if (w->dim[1] != x->dim[1] / groups)
        return say("weight has %lld input channels; expected %lld", (long long)w->dim[1],
                   (long long)(x->dim[1] / groups));
    if ((wrong = sizes(t, op, 2, 1, w->dim))) return wrong;
    like_first(t, op, out);
    out->shape.dim[1] = w->dim[0];
    for (int i = 0; i < n; i++) {
        int64_t size = windows(x->dim[i + 2], w->dim[i + 2], stride[i], padding[i], dilation[i]);
        if (size < 1) return "the filter is larger than the padded operand; expected one that fits";
        out->shape.dim[i + 2] = size;
    }
    return NULL;
}

/* As in PyTorch, stride defaults to kernel_size and padding is at most half of it. */
const char *infer_max_pool2d(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int64_t k[2], stride[2], padding[2], dilation[2];
    const char *wrong = floats(t, op);
    if (wrong) return wrong;
    if (!op_attr(op, "kernel_size")) return "expected kernel_size=";
    if (op_bool(op, "ceil_mode", false)) return "ceil_mode=true is not implemented; expected false";
    if (op_bool(op, "return_indices", false))
        return "return_indices=true is not implemented; expected false";
    if (!op_attr(op, "stride")) return "expected stride=";
    if ((wrong = spatial(op, "kernel_size", 2, 1, 1, k)) ||
        (wrong = spatial(op, "stride", 2, 1, 1, stride)) ||
        (wrong = spatial(op, "padding", 2, 0, 0, padding)) ||
        (wrong = spatial(op, "dilation", 2, 1, 1, dilation)))
        return wrong;
    like_first(t, op, out);
    if (out->shape.n != 4) return "expected an operand of four axes";
    for (int i = 0; i < 2; i++) {
        int64_t size = windows(out->shape.dim[i + 2], k[i], stride[i], padding[i], dilation[i]);
        if (padding[i] > k[i] / 2) return "padding is too large; expected at most half the window";
        if (size < 1) return "the window is larger than the padded operand; expected one that fits";
        out->shape.dim[i + 2] = size;
    }
    return NULL;
}

const char *infer_unary(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = floats(t, op);
    return wrong ? wrong : like_first(t, op, out);
}

const char *infer_gelu(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *form = op_word(op, "approximate", "none");
    if (strcmp(form, "none") && strcmp(form, "tanh"))
        return say("approximate=%s; expected none or tanh", form);
    return infer_unary(t, op, out);
}

const char *infer_pow(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *x = op_operand(t, op, 0);
    if (!x || !is_float(x)) return "operand 1 is not a floating tensor; expected one";
    if (!op->in[1].is_scalar) return "operand 2 is a tensor; expected a number";
    return like_first(t, op, out);
}

const char *infer_binary(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *a = op_operand(t, op, 0), *b = op_operand(t, op, 1);
    if (!a && !b) return "both operands are numbers; expected a tensor";
    const struct kp_value *x = a ? a : b, *y = b ? b : a;
    if (!is_float(x) || x->dtype != y->dtype)
        return say("operands are %s and %s; expected one floating type", kp_dtype_name(x->dtype),
                   kp_dtype_name(y->dtype));
    op->nout = 1;
    out->dtype = x->dtype;
    if (!broadcast(&x->shape, &y->shape, &out->shape))
        return "shapes do not broadcast; expected equal sizes or 1, aligned at the right";
    return NULL;
}

const char *infer_layer_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_attr *a = op_attr(op, "shape");
    const char *wrong = infer_unary(t, op, out);
    if (wrong || (wrong = eps_wrong(op))) return wrong;
    int n = out->shape.n;
    if (!a || a->n < 1 || a->n > n) return "expected shape=[...], the last axes of the operand";
    for (int i = 0; i < a->n; i++)
        if (a->list[i] != out->shape.dim[n - a->n + i])
            return "shape differs from the operand's last axes; expected them";
    if ((wrong = sizes(t, op, 1, a->n, a->list))) return wrong;
    return sizes(t, op, 2, a->n, a->list);
}

/* Group, instance and batch norm have a weight and bias for each channel. */
static const char *channel_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out,
                                int least_axes) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong || (wrong = eps_wrong(op))) return wrong;
    if (out->shape.n < least_axes) return say("expected an operand of %d axes or more", least_axes);
    if ((wrong = sizes(t, op, 1, 1, &out->shape.dim[1]))) return wrong;
    return sizes(t, op, 2, 1, &out->shape.dim[1]);
}

const char *infer_group_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = channel_norm(t, op, out, 2);
    int64_t groups = op_int(op, "num_groups", 0);
    if (wrong) return wrong;
    if (groups < 1 || out->shape.dim[1] % groups)
        return "expected num_groups=, a divisor of the channels";
    return NULL;
}

const char *infer_instance_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    if (!op_bool(op, "use_input_stats", true))
        return "use_input_stats=false is not implemented; expected true";
    return channel_norm(t, op, out, 3);
}

const char *infer_batch_norm(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    if (!op_bool(op, "training", true)) return "training=false is not implemented; expected true";
    return channel_norm(t, op, out, 2);
}

/* softmax, cumsum */
const char *infer_along_axis(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong) return wrong;
    if (op_axis(op, "dim", out->shape.n) < 0) return "expected dim=, an axis of the operand";
    return NULL;
}

/* Remove the axes of `reduced`, or leave them with size 1. */
static void reduce(struct kp_shape *s, unsigned reduced, bool keep) {
    for (int i = s->n - 1; i >= 0; i--) {
        if (!(reduced & 1u << i)) continue;
        if (keep)
            s->dim[i] = 1;
        else
            drop_axis(s, i);
    }
}

const char *infer_reduce(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong) return wrong;
    unsigned reduced = op_reduced_axes(op, out->shape.n);
    if (!reduced) return "dim names no axes, or one twice; expected axes of the operand";
    reduce(&out->shape, reduced, op_bool(op, "keepdim", false));
    return NULL;
}

/* Two results: the largest values, and where each was first. */
const char *infer_max(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_unary(t, op, out);
    if (wrong) return wrong;
    int axis = op_axis(op, "dim", out->shape.n);
    if (axis < 0) return "expected dim=, one axis of the operand";
    reduce(&out->shape, 1u << axis, op_bool(op, "keepdim", false));
    out[1] = out[0];
    out[1].dtype = KP_I64;
    op->nout = 2;
    return NULL;
}

const char *infer_cross_entropy(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *x = op_operand(t, op, 0), *y = op_operand(t, op, 1);
    if (!x || !is_float(x) || x->shape.n != 2) return "expected floating scores [rows, classes]";
    if (!y || y->dtype != KP_I64 || y->shape.n != 1 || y->shape.dim[0] != x->shape.dim[0])
        return say("expected target=, i64 [%lld]", (long long)x->shape.dim[0]);
    if (strcmp(op_word(op, "reduction", "mean"), "mean"))
        return "only reduction=mean is implemented; expected mean";
    if (op_float(op, "label_smoothing", 0) != 0)
        return "label_smoothing is not implemented; expected 0";
    like_first(t, op, out);
    out->shape.n = 0;
    return NULL;
}
