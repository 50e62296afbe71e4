/* infer_products.c: shapes of products, convolutions and pools.
 *
 * What no executor implements (dropout, causal attention, return_indices) is refused here, so that
 * no executor has to look for it. */
#include "task/infer.h"
#include "task/recurrent.h"
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

/* The weights of a layer in one direction.  Returns NULL, or a message. */
static const char *cell_weights(const struct kp_task *t, const struct kp_op *op,
                                const struct kp_recurrent *r, int l, int direction) {
    int64_t rows = r->gates * r->hidden;
    int64_t dim[KP_CELL_WEIGHTS][2] = {
        {rows, recurrent_width(r, l)}, {rows, r->hidden}, {rows}, {rows}};
    const char *wrong = NULL;
    for (int w = 0; w < KP_CELL_WEIGHTS && !wrong; w++)
        wrong = infer_sizes(t, op, recurrent_slot(r, l, direction, w), w < KP_B_IH ? 2 : 1, dim[w]);
    return wrong;
}

/* A sequence, the states before it, and the weights of each layer and direction: task/recurrent.h.
 * Results: the last layer's sequence, and the states after it. */
const char *infer_recurrent(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    const char *wrong = infer_floats(t, op);
    if (wrong) return wrong;
    const struct kp_value *x = op_operand(t, op, 0), *h = op_operand(t, op, 1);
    int64_t layers = op_int(op, "num_layers", 1);
    if (x->shape.n != 3 || h->shape.n != 3)
        return "expected a sequence [steps,batch,input] and states [layers,batch,hidden]";
    if (layers < 1 || layers > INT16_MAX) return "expected num_layers=, 1 or more";
    struct kp_recurrent r = recurrent_of(op, x->shape.dim, h->shape.dim);
    int64_t state[] = {r.layers * r.directions, r.batch, r.hidden};
    int operands = recurrent_slot(&r, r.layers, 0, 0);
    for (int s = 1; s <= r.states; s++)
        if ((wrong = infer_sizes(t, op, s, 3, state))) return wrong;
    if (op->nin != operands)
        return infer_say("%d operands; expected %d, with four weights for each layer and direction",
                         op->nin, operands);
    for (int l = 0; l < r.layers; l++)
        for (int d = 0; d < r.directions; d++)
            if ((wrong = cell_weights(t, op, &r, l, d))) return wrong;
    op->nout = 1 + r.states;
    out[0] = *x;
    out[0].shape.dim[2] = r.directions * r.hidden;
    for (int s = 1; s <= r.states; s++) out[s] = *h;
    return NULL;
}

/* Where a window lies, by spatial axis. */
struct window {
    int64_t stride[KP_MAX_DIMS], padding[KP_MAX_DIMS], dilation[KP_MAX_DIMS];
};

/* Attribute `key` for n spatial axes: a number, a list of n, or `otherwise`; each at least
 * `least`.  Returns NULL, or a message. */
static const char *spatial(const struct kp_op *op, const char *key, int n, int64_t least,
                           int64_t otherwise, int64_t *out) {
    const struct kp_attr *a = op_attr(op, key);
    if (a && a->kind == KP_ATTR_LIST && a->n != n)
        return infer_say("%s has %d entries; expected %d or a single number", key, a->n, n);
    op_list(op, key, n, otherwise, out);
    for (int i = 0; i < n; i++)
        if (out[i] < least || out[i] > INT32_MAX)
            return infer_say("%s is %lld; expected %lld to %d", key, (long long)out[i],
                             (long long)least, INT32_MAX);
    return NULL;
}

/* stride, padding and dilation of an op; 1, 0 and 1 where it says nothing.  Returns NULL, or a
 * message. */
static const char *window_of(const struct kp_op *op, struct window *w) {
    int n = op->def->axes;
    const char *wrong = spatial(op, "stride", n, 1, 1, w->stride);
    if (!wrong) wrong = spatial(op, "padding", n, 0, 0, w->padding);
    if (!wrong) wrong = spatial(op, "dilation", n, 1, 1, w->dilation);
    return wrong;
}

/* How many windows of k fit along axis i of `size`: floor((size + 2p - d(k-1) - 1) / s) + 1, or 0.
 * ceil: one more for what the stride leaves over, if it begins in the operand or its left padding;
 * so one that is too large by less than a stride fits. */
static int64_t windows(const struct window *w, int i, int64_t size, int64_t k, bool ceil) {
    if (k > INT32_MAX) return 0;
    int64_t padded = size + 2 * w->padding[i], s = w->stride[i];
    int64_t room = padded - w->dilation[i] * (k - 1) - 1 + (ceil ? s - 1 : 0);
    if (room < 0) return 0;
    int64_t n = room / s + 1;
    return ceil && (n - 1) * s >= size + w->padding[i] ? n - 1 : n;
}

/* NULL if the operand and the weight have n spatial axes and `groups` divides the channels, or a
 * message. */
static const char *channels_fit(const struct kp_shape *x, const struct kp_shape *w, int n,
                                int64_t groups) {
    if (x->n != n + 2 || w->n != n + 2)
        return infer_say("expected an operand and a weight of %d axes", n + 2);
    if (groups < 1 || x->dim[1] % groups || w->dim[0] % groups)
        return "groups does not divide the channels; expected a divisor of both";
    return NULL;
}

/* [N,C,spatial] by weights [Cout,C/groups,spatial]. */
const char *infer_conv(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int n = op->def->axes;
    int64_t groups = op_int(op, "groups", 1);
    struct window at;
    const char *wrong = infer_floats(t, op);
    if (wrong || (wrong = window_of(op, &at))) return wrong;
    const struct kp_shape *x = &op_operand(t, op, 0)->shape, *w = &op_operand(t, op, 1)->shape;
    if ((wrong = channels_fit(x, w, n, groups))) return wrong;
    if (w->dim[1] != x->dim[1] / groups)
        return infer_say("weight has %lld input channels; expected %lld", (long long)w->dim[1],
                         (long long)(x->dim[1] / groups));
    if ((wrong = infer_sizes(t, op, 2, 1, w->dim))) return wrong;
    infer_like_first(t, op, out);
    out->shape.dim[1] = w->dim[0];
    for (int i = 0; i < n; i++) {
        int64_t size = windows(&at, i, x->dim[i + 2], w->dim[i + 2], false);
        if (size < 1) return "the filter is larger than the padded operand; expected one that fits";
        out->shape.dim[i + 2] = size;
    }
    return NULL;
}

/* Size along axis i of what a transposed convolution makes of `size` places:
 * (size-1)s - 2p + d(k-1) + 1; less than 1 if nothing is left or 64 bits cannot hold it. */
static int64_t spread(const struct window *w, int i, int64_t size, int64_t k) {
    int64_t places;
    if (k > INT32_MAX || __builtin_mul_overflow(size - 1, w->stride[i], &places)) return 0;
    return places > INT64_MAX / 2 ? 0 : places - 2 * w->padding[i] + w->dilation[i] * (k - 1) + 1;
}

/* [N,C,spatial] by weights [C,Cout/groups,spatial]: the way back of a convolution, from its result
 * to its operand.  Of the sizes that give the same result, output_padding names one. */
const char *infer_conv_transpose(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int n = op->def->axes;
    int64_t more[KP_MAX_DIMS], groups = op_int(op, "groups", 1);
    struct window at;
    const char *wrong = infer_floats(t, op);
    if (wrong || (wrong = window_of(op, &at)) ||
        (wrong = spatial(op, "output_padding", n, 0, 0, more)))
        return wrong;
    const struct kp_shape *x = &op_operand(t, op, 0)->shape, *w = &op_operand(t, op, 1)->shape;
    if ((wrong = channels_fit(x, w, n, groups))) return wrong;
    if (w->dim[0] != x->dim[1])
        return infer_say("weight has %lld input channels; expected %lld", (long long)w->dim[0],
                         (long long)x->dim[1]);
    int64_t outputs = w->dim[1] * groups;
    if ((wrong = infer_sizes(t, op, 2, 1, &outputs))) return wrong;
    infer_like_first(t, op, out);
    out->shape.dim[1] = outputs;
    for (int i = 0; i < n; i++) {
        if (more[i] >= at.stride[i])
            return infer_say("output_padding is %lld; expected less than the stride, %lld",
                             (long long)more[i], (long long)at.stride[i]);
        int64_t size = spread(&at, i, x->dim[i + 2], w->dim[i + 2]) + more[i];
        if (size < 1 + more[i])
            return "the padding leaves nothing of the result, or it is too large; expected sizes "
                   "that fit";
        out->shape.dim[i + 2] = size;
    }
    return NULL;
}

/* Windows over the last axes.  Padding is at most half a window, as in PyTorch. */
const char *infer_pool(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int n = op->def->axes;
    int64_t k[KP_MAX_DIMS];
    struct window at;
    const char *wrong = infer_floats(t, op);
    if (wrong) return wrong;
    if (!op_attr(op, "kernel_size")) return "expected kernel_size=";
    if (op_bool(op, "return_indices", false))
        return "return_indices=true is not implemented; expected false";
    if (!op_attr(op, "stride")) return "expected stride=";
    if ((wrong = spatial(op, "kernel_size", n, 1, 1, k)) || (wrong = window_of(op, &at)))
        return wrong;
    infer_like_first(t, op, out);
    if (out->shape.n != n + 2) return infer_say("expected an operand of %d axes", n + 2);
    for (int i = 0; i < n; i++) {
        int64_t size =
            windows(&at, i, out->shape.dim[i + 2], k[i], op_bool(op, "ceil_mode", false));
        if (at.padding[i] > k[i] / 2)
            return "padding is too large; expected at most half the window";
        if (size < 1) return "the window is larger than the padded operand; expected one that fits";
        out->shape.dim[i + 2] = size;
    }
    return NULL;
}

/* As many windows along each of the last axes as output_size says. */
const char *infer_adaptive_pool(const struct kp_task *t, struct kp_op *op, struct kp_value *out) {
    int n = op->def->axes;
    int64_t size[KP_MAX_DIMS];
    const char *wrong = infer_floats(t, op);
    if (wrong) return wrong;
    if (!op_attr(op, "output_size")) return "expected output_size=";
    if ((wrong = spatial(op, "output_size", n, 1, 1, size))) return wrong;
    infer_like_first(t, op, out);
    if (out->shape.n != n + 2) return infer_say("expected an operand of %d axes", n + 2);
    for (int i = 0; i < n; i++) out->shape.dim[i + 2] = size[i];
    return NULL;
}
