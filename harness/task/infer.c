/* infer.c: what the rules of inference share: see infer.h. */
#include "task/infer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* See infer.h. */
const char *infer_say(const char *format, ...) {
    static _Thread_local char text[256];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return text;
}

/* See infer.h. */
const char *infer_like_first(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const struct kp_value *x = op_operand(t, op, 0);
    if (!x) return "operand 1 is a number; expected a tensor";
    op->nout = 1;
    out[0].dtype = x->dtype;
    out[0].shape = x->shape;
    return NULL;
}

/* See infer.h. */
bool infer_is_float(const struct kp_value *v) {
    return v->dtype <= KP_BF16;
}

/* See infer.h. */
const char *infer_floats(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_value *x = op_operand(t, op, 0);
    for (int i = 0; i < op->nin; i++) {
        const struct kp_value *v = op_operand(t, op, i);
        if (op->in[i].is_scalar)
            return infer_say("operand %d is a number; expected a tensor", i + 1);
        if (v && !infer_is_float(v))
            return infer_say("%s is %s; expected f64, f32, f16 or bf16", v->name,
                             kp_dtype_name(v->dtype));
        if (v && v->dtype != x->dtype)
            return infer_say("%s is %s; expected %s as the first operand", v->name,
                             kp_dtype_name(v->dtype), kp_dtype_name(x->dtype));
    }
    return NULL;
}

/* See infer.h. */
const char *infer_sizes(const struct kp_task *t, const struct kp_op *op, int slot, int n,
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
    return infer_say("%s has another shape; expected %s]", v->name, text);
}

/* The task tensor that value v shows; NULL if it is computed. */
static const struct kp_tensor *tensor_behind(const struct kp_task *t, int v) {
    for (int i = t->nops - 1; i >= 0 && v >= t->ntensors; i--)
        if (t->ops[i].out[0] == v && t->ops[i].def->view) v = t->ops[i].in[0].value;
    return v < t->ntensors ? &t->tensors[v] : NULL;
}

/* See infer.h. */
bool infer_are_places(const struct kp_task *t, int value, int64_t size, double besides) {
    const struct kp_tensor *x = tensor_behind(t, value);
    if (!x) return false;
    const struct kp_fill *f = &x->fill;
    if (f->kind == KP_FILL_INTEGERS) return f->a >= 0 && f->b <= (double)size;
    if (f->kind != KP_FILL_VALUES) return false;
    for (int64_t i = 0; i < kp_shape_count(&x->shape); i++) {
        double v = f->values[i];
        if (!(v >= 0 && v < (double)size) && v != besides) return false;
    }
    return true;
}

/* See infer.h. */
void infer_drop_axis(struct kp_shape *s, int d) {
    s->n--;
    memmove(&s->dim[d], &s->dim[d + 1], (size_t)(s->n - d) * sizeof s->dim[0]);
}

/* See infer.h. */
bool infer_broadcast(const struct kp_shape *a, const struct kp_shape *b, struct kp_shape *out) {
    struct kp_shape r = {.n = a->n > b->n ? a->n : b->n};
    for (int i = 1; i <= r.n; i++) {
        int64_t p = i <= a->n ? a->dim[a->n - i] : 1, q = i <= b->n ? b->dim[b->n - i] : 1;
        if (p != q && p != 1 && q != 1) return false;
        r.dim[r.n - i] = p == 1 ? q : p;
    }
    *out = r;
    return true;
}
