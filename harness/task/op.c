/* op.c: questions about one op of a task: see op.h. */
#include "task/op.h"

#include <string.h>

/* See op.h. */
const struct kp_attr_def *op_takes(const struct kp_op_def *def, const char *key) {
    for (const struct kp_attr_def *a = def->attr; a->key; a++)
        if (!strcmp(a->key, key)) return a;
    return NULL;
}

/* See op.h. */
const char *op_keyword(const struct kp_op_def *def, int slot) {
    return slot < KP_SLOTS ? def->in_name[slot] : NULL;
}

/* See op.h. */
const struct kp_value *op_operand(const struct kp_task *t, const struct kp_op *op, int slot) {
    return op_has(op, slot) ? &t->values[op->in[slot].value] : NULL;
}

/* See op.h. */
int op_axis(const struct kp_op *op, const char *key, int n) {
    const struct kp_attr *a = op_attr(op, key);
    if (!a || a->kind != KP_ATTR_INT || a->number < -n || a->number >= n) return -1;
    return (int)a->number + (a->number < 0 ? n : 0);
}

/* See op.h. */
unsigned op_reduced_axes(const struct kp_op *op, int n) {
    const struct kp_attr *a = op_attr(op, "dim");
    unsigned axes = 0;
    if (!a) return (1u << n) - 1;
    if (a->kind != KP_ATTR_LIST) return op_axis(op, "dim", n) < 0 ? 0 : 1u << op_axis(op, "dim", n);
    for (int i = 0; i < a->n; i++) {
        int64_t axis = a->list[i] + (a->list[i] < 0 ? n : 0);
        if (axis < 0 || axis >= n || (axes & 1u << axis)) return 0;
        axes |= 1u << axis;
    }
    return axes;
}

/* See op.h. */
void op_arguments(const struct kp_op *op, double number[KP_MAX_ARGUMENTS]) {
    int n = 0;
    for (; n < op->def->max_in && n < KP_MAX_ARGUMENTS; n++)
        number[n] = op->in[n].is_scalar ? op->in[n].scalar : 0;
    for (const struct kp_attr_def *a = op->def->attr; a->key && n < KP_MAX_ARGUMENTS; a++)
        if (a->kinds & 1 << KP_ATTR_FLOAT) number[n++] = op_float(op, a->key, a->otherwise);
    while (n < KP_MAX_ARGUMENTS) number[n++] = 0;
}

/* See op.h. */
enum kp_dtype task_float_type(const struct kp_task *t) {
    for (int i = 0; i < t->ntensors; i++)
        if (t->tensors[i].dtype == KP_F16 || t->tensors[i].dtype == KP_BF16)
            return t->tensors[i].dtype;
    return KP_F32;
}

/* See op.h. */
enum kp_op_kind task_kind(const struct kp_task *t) {
    enum kp_op_kind kind = KP_KIND_ELEMENTWISE;
    for (int i = 0; i < t->nops; i++)
        if (t->ops[i].def->kind > kind) kind = t->ops[i].def->kind;
    return kind;
}

/* See op.h. */
const char *kp_kind_name(enum kp_op_kind kind) {
    static const char *const name[KP_OP_KINDS] = {"elementwise", "reductions",   "norms",
                                                  "products",    "convolutions", "attention"};
    return name[kind];
}
