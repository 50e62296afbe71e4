/* cost.c: what ops cost, and a task as a whole. */
#include "task/recurrent.h"
#include "task/rules.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a value. */
static double count(const struct kp_value *v) {
    return (double)kp_shape_count(&v->shape);
}

/* A view computes nothing. */
double flops_nothing(const struct kp_task *t, const struct kp_op *op) {
    (void)t, (void)op;
    return 0;
}

/* One for each element of the result. */
double flops_results(const struct kp_task *t, const struct kp_op *op) {
    return count(&t->values[op->out[0]]);
}

/* One for each element of the first operand. */
double flops_operand(const struct kp_task *t, const struct kp_op *op) {
    return count(op_operand(t, op, 0));
}

/* Mean, variance, subtract, scale, shift; or maximum, subtract, exp, sum, divide. */
double flops_five(const struct kp_task *t, const struct kp_op *op) {
    return 5 * flops_operand(t, op);
}

/* One for each place of each window. */
double flops_pool(const struct kp_task *t, const struct kp_op *op) {
    int64_t k[KP_MAX_DIMS];
    double flops = flops_results(t, op);
    op_list(op, "kernel_size", op->def->axes, 1, k);
    for (int i = 0; i < op->def->axes; i++) flops *= (double)k[i];
    return flops;
}

/* The largest number that divides both. */
static int64_t common_divisor(int64_t a, int64_t b) {
    return b ? common_divisor(b, a % b) : a;
}

/* One for each place of each window.  n windows over `size` places meet at n - 1 borders; at each
 * that lies within a place, both have it. */
double flops_adaptive_pool(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *x = &op_operand(t, op, 0)->shape, *r = &t->values[op->out[0]].shape;
    double places = (double)x->dim[0] * (double)x->dim[1];
    for (int i = 2; i < x->n; i++)
        places *= (double)(x->dim[i] + r->dim[i] - common_divisor(x->dim[i], r->dim[i]));
    return places;
}

/* Which triangle of an operand is not zero, if it is a square tensor that is filled so; else 0. */
static int triangle(const struct kp_task *t, const struct kp_op *op, int operand) {
    const struct kp_value *v = op_operand(t, op, operand);
    const int64_t *last = &v->shape.dim[v->shape.n - 1];
    if (v - t->values >= t->ntensors || v->shape.n < 2 || last[-1] != last[0]) return 0;
    return t->tensors[v - t->values].fill.wrap & (KP_WRAP_UPPER | KP_WRAP_LOWER);
}

/* A multiply-add for each element of the result and each place along the inner axis, but where a
 * triangle of an operand is zero.  Of a sum over k for n rows and columns each, an upper triangle
 * leaves k >= row on the left and k <= column on the right. */
double flops_matmul(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *a = &op_operand(t, op, 0)->shape;
    int left = triangle(t, op, 0), right = triangle(t, op, 1);
    double n = (double)a->dim[a->n - 1], all = 2 * n * flops_results(t, op);
    if (!left && !right) return all;
    if (!left || !right) return all * (n + 1) / (2 * n);
    return all * (n + 1) * (left == right ? n + 2 : 2 * n + 1) / (6 * n * n);
}

/* Scores and weighted sum: L x S x E and L x S x Ev products for each head. */
double flops_attention_products(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *k = &op_operand(t, op, 1)->shape;
    double keys = (double)k->dim[k->n - 2];
    return 2 * keys * (flops_operand(t, op) + flops_results(t, op));
}

/* The products, and a softmax of the scores. */
double flops_attention(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *q = &op_operand(t, op, 0)->shape, *k = &op_operand(t, op, 1)->shape;
    double scores = flops_operand(t, op) / (double)q->dim[q->n - 1] * (double)k->dim[k->n - 2];
    return flops_attention_products(t, op) + 5 * scores;
}

/* The sizes of a recurrent network. */
static struct kp_recurrent sizes(const struct kp_task *t, const struct kp_op *op) {
    return recurrent_of(op, op_operand(t, op, 0)->shape.dim, op_operand(t, op, 1)->shape.dim);
}

/* Cells that compute: one for each step, sample, layer, direction and hidden unit. */
static double cells(const struct kp_recurrent *r, int layers) {
    return (double)(r->steps * r->batch * r->hidden) * r->directions * layers;
}

/* Each gate of each cell multiplies what the layer reads, and h. */
double flops_recurrent_products(const struct kp_task *t, const struct kp_op *op) {
    struct kp_recurrent r = sizes(t, op);
    double sum = 0;
    for (int l = 0; l < r.layers; l++)
        sum += 2 * r.gates * cells(&r, 1) * (double)(recurrent_width(&r, l) + r.hidden);
    return sum;
}

/* The products; and six for each gate, and six that combine them. */
double flops_recurrent(const struct kp_task *t, const struct kp_op *op) {
    struct kp_recurrent r = sizes(t, op);
    return flops_recurrent_products(t, op) + (6 * r.gates + 6) * cells(&r, r.layers);
}

/* Each element of the result is a product with one filter: the weights of one output channel.
 * A row of linear's weight is such a filter, too.  Transposed, each element of the operand is
 * multiplied with the weights of its channel. */
double flops_filter(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_value *w = op_operand(t, op, 1);
    double filtered = op->def->transposed ? flops_operand(t, op) : flops_results(t, op);
    return 2 * filtered * count(w) / (double)w->shape.dim[0];
}

/* The same, and the bias where there is one. */
double flops_filter_and_bias(const struct kp_task *t, const struct kp_op *op) {
    return flops_filter(t, op) + (op_operand(t, op, 2) ? flops_results(t, op) : 0);
}

/* See taskfile.h. */
double kp_value_bytes(const struct kp_value *v) {
    return count(v) * (double)kp_dtype_size(v->dtype);
}

/* See taskfile.h. */
struct kp_cost task_cost(const struct kp_task *t) {
    struct kp_cost c = {0};
    bool *live = calloc((size_t)t->nvalues, sizeof *live);
    if (!live) die(KP_MACHINE, "task_cost: out of memory");
    task_live(t, live);
    for (int i = 0; i < t->ntensors; i++)
        if (live[i]) c.bytes_in += kp_value_bytes(&t->values[i]);
    for (int i = 0; i < t->noutputs; i++) c.bytes_out += kp_value_bytes(&t->values[t->outputs[i]]);
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        c.flops += op->def->flops(t, op);
        if (op->def->mm_flops) c.mm_flops += op->def->mm_flops(t, op);
    }
    free(live);
    return c;
}

/* ---- What falls away without a tensor ---------------------------------------------------------
 */

/* Whether a product is none without the operand in `slot`: it is no bias, and no first state. */
static bool is_factor(const struct kp_task *t, const struct kp_op *op, int slot) {
    if (op->def->gates) return slot == 0 || op_operand(t, op, slot)->shape.n == 2;
    return slot < 2 || op->def->kind == KP_KIND_ATTENTION;
}

/* Whether nothing is left of an op's result without the values that are `gone`.  What is added to
 * others, or multiplied with them element by element, leaves these. */
static bool falls_away(const struct kp_task *t, const struct kp_op *op, const bool *gone) {
    int left = 0;
    for (int k = 0; k < op->nin; k++) {
        if (!op_has(op, k)) continue;
        bool here = gone[op->in[k].value];
        if (here && op->def->mm_flops && is_factor(t, op, k)) return true;
        if (here && k == 0 && op->def->kind != KP_KIND_ELEMENTWISE && !op->def->mm_flops)
            return true;
        left += !here;
    }
    return left == 0 && op->nin > 0;
}

/* See taskfile.h. */
double task_share(const struct kp_task *t, int tensor) {
    struct kp_cost all = task_cost(t);
    bool *gone = calloc((size_t)t->nvalues, sizeof *gone);
    bool *needed = calloc((size_t)t->nvalues, sizeof *needed);
    if (!gone || !needed) die(KP_MACHINE, "task_share: out of memory");
    for (int i = 0; i < t->ntensors; i++) {
        const struct kp_fill *f = &t->tensors[i].fill;
        gone[i] = i == tensor || (f->kind == KP_FILL_TRANSPOSED && f->source == tensor);
    }
    for (int i = 0; i < t->nops; i++) {
        bool falls = falls_away(t, &t->ops[i], gone);
        for (int k = 0; k < t->ops[i].nout; k++) gone[t->ops[i].out[k]] = falls;
    }
    double flops = 0, bytes = all.bytes_out;
    for (int k = 0; k < t->noutputs; k++) needed[t->outputs[k]] = true;
    for (int i = t->nops - 1; i >= 0; i--) {
        const struct kp_op *op = &t->ops[i];
        bool stays = false, whole = true;
        for (int k = 0; k < op->nout; k++) stays |= needed[op->out[k]] && !gone[op->out[k]];
        for (int k = 0; stays && k < op->nin; k++) {
            if (!op_has(op, k)) continue;
            needed[op->in[k].value] = true;
            whole &= !gone[op->in[k].value];
        }
        /* Of an elementwise op that loses an operand nothing is left to compute. */
        if (stays && (whole || op->def->kind != KP_KIND_ELEMENTWISE))
            flops += op->def->flops(t, op);
    }
    for (int i = 0; i < t->ntensors; i++)
        if (needed[i] && !gone[i]) bytes += kp_value_bytes(&t->values[i]);
    free(gone);
    free(needed);
    double left = bytes / (all.bytes_in + all.bytes_out);
    return 1 - (all.flops > 0 ? fmin(left, flops / all.flops) : left);
}

/* ---- Floors -----------------------------------------------------------------------------------
 */

/* Three products of 16-bit halves keep fp32's error. */
static const double fp32_products = 3;

/* The rate at which products of a class can be computed.  Both of fp32: on the multipliers of that
 * type, or by products of 16-bit halves on tensor cores, whichever is faster. */
static double product_rate(const cJSON *peaks, const char *class) {
    double half = json_number(peaks, "f16_tflops", 0);
    if (!strcmp(class, "fp32") || !strcmp(class, "fp32-normwise"))
        return fmax(json_number(peaks, "fp32_tflops", 0), half / fp32_products);
    return !strcmp(class, "tf32") ? json_number(peaks, "tf32_tflops", 0) : half;
}

/* See taskfile.h.  What is written, and as much of what is read, moves at the copy rate; what is
 * read beyond that at the read rate. */
struct kp_floor task_floor(const struct kp_cost *c, const cJSON *peaks, const char *of_class) {
    double copied = c->bytes_out + fmin(c->bytes_in, c->bytes_out);
    double rest = c->bytes_in + c->bytes_out - copied, rate = product_rate(peaks, of_class);
    double copy = json_number(peaks, "copy_gbs", 0), read = json_number(peaks, "read_gbs", 0);
    bool known = copy > 0 && read > 0;
    return (struct kp_floor){.bytes_us = known ? (copied / copy + rest / read) * 1e-3 : 0,
                             .flops_us = rate > 0 ? c->mm_flops / rate * 1e-6 : 0};
}
