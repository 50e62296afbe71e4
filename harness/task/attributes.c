/* attributes.c: attributes of an op, and what the graph as a whole costs. */
#include "task/parse.h"
#include "base/error.h"
#include "task/ops.h"

#include <stdlib.h>
#include <string.h>

const struct kp_attr *op_attr(const struct kp_op *op, const char *key) {
    for (int i = 0; i < op->nattr; i++)
        if (!strcmp(op->attr[i].key, key)) return &op->attr[i];
    return NULL;
}

int64_t op_int(const struct kp_op *op, const char *key, int64_t otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? (int64_t)a->number : otherwise;
}

double op_float(const struct kp_op *op, const char *key, double otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? a->number : otherwise;
}

bool op_bool(const struct kp_op *op, const char *key, bool otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? a->number != 0 : otherwise;
}

const char *op_word(const struct kp_op *op, const char *key, const char *otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? a->word : otherwise;
}

void op_list(const struct kp_op *op, const char *key, int n, int64_t otherwise, int64_t *out) {
    const struct kp_attr *a = op_attr(op, key);
    bool is_list = a && a->kind == KP_ATTR_LIST;
    if (is_list && a->n != n)
        die(KP_BUG, "op_list: %s has %d entries; %d were asked for", key, a->n, n);
    for (int i = 0; i < n; i++) out[i] = is_list ? a->list[i] : a ? (int64_t)a->number : otherwise;
}

/* Ops are in order of definition, so one pass from the last to the first does. */
void task_live(const struct kp_task *t, bool *live) {
    memset(live, 0, (size_t)t->nvalues * sizeof *live);
    for (int i = 0; i < t->noutputs; i++) live[t->outputs[i]] = true;
    for (int i = t->nops - 1; i >= 0; i--) {
        const struct kp_op *op = &t->ops[i];
        bool needed = false;
        for (int k = 0; k < op->nout; k++) needed |= live[op->out[k]];
        for (int k = 0; needed && k < op->nin; k++)
            if (op->in[k].value >= 0) live[op->in[k].value] = true;
    }
}

static double bytes_of(const struct kp_value *v) {
    return (double)kp_shape_count(&v->shape) * (double)kp_dtype_size(v->dtype);
}

struct kp_cost task_cost(const struct kp_task *t) {
    struct kp_cost c = {0};
    bool *live = calloc((size_t)t->nvalues, sizeof *live);
    if (!live) die(KP_MACHINE, "task_cost: out of memory");
    task_live(t, live);
    for (int i = 0; i < t->ntensors; i++)
        if (live[i]) c.bytes_in += bytes_of(&t->values[i]);
    for (int i = 0; i < t->noutputs; i++) c.bytes_out += bytes_of(&t->values[t->outputs[i]]);
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        c.flops += op->def->flops(t, op);
        if (op->def->mm_flops) c.mm_flops += op->def->mm_flops(t, op);
    }
    free(live);
    return c;
}
