/* infer_products.c: shapes of products.
 *
 * What no executor implements (dropout, causal attention) is refused here, so that no executor has
 * to look for it. */
#include "task/infer.h"
#include "task/rules.h"

/* [..,m,k] by [..,k,n]; leading axes broadcast. */
const char *infer_matmul(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_floats(t, op);
    if (wrong) return wrong;
    struct kp_shape a = op_operand(t, op, 0)->shape, b = op_operand(t, op, 1)->shape;
    if (a.n < 2 || b.n < 2) return "an operand has fewer than two axes; expected matrices";
    int64_t m = a.dim[a.n - 2], k = a.dim[a.n - 1], n = b.dim[b.n - 1];
    if (b.dim[b.n - 2] != k)
        return infer_say("the second operand has %lld rows; expected %lld",
                         (long long)b.dim[b.n - 2], (long long)k);
    infer_like_first(t, op, out);
    a.n -= 2, b.n -= 2;
    if (!infer_broadcast(&a, &b, &out->shape))
        return "leading axes differ; expected equal ones or 1";
    out->shape.dim[out->shape.n++] = m;
    out->shape.dim[out->shape.n++] = n;
    return NULL;
}

/* [..,k] by the transpose of a weight [n,k]. */
const char *infer_linear(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_floats(t, op);
    if (wrong) return wrong;
    const struct kp_shape *x = &op_operand(t, op, 0)->shape, *w = &op_operand(t, op, 1)->shape;
    if (x->n < 1 || w->n != 2 || w->dim[1] != x->dim[x->n - 1])
        return "weight does not fit; expected [out, last axis of the operand]";
    if ((wrong = infer_sizes(t, op, 2, 1, w->dim))) return wrong;
    infer_like_first(t, op, out);
    out->shape.dim[out->shape.n - 1] = w->dim[0];
    return NULL;
}

/* Queries [..,L,E], keys [..,S,E], values [..,S,Ev]. */
const char *infer_attention(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_floats(t, op);
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
    infer_like_first(t, op, out);
    out->shape.dim[q->n - 1] = v->dim[q->n - 1];
    return NULL;
}
