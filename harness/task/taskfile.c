/* taskfile.c: types, shapes and attributes of a loaded task: see taskfile.h. */
#include "task/taskfile.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* See taskfile.h. */
const char *shape_text(const struct kp_shape *s, char out[KP_SHAPE_TEXT]) {
    int n = snprintf(out, KP_SHAPE_TEXT, "[");
    for (int i = 0; i < s->n; i++)
        n += snprintf(out + n, KP_SHAPE_TEXT - n, "%s%lld", i ? "," : "", (long long)s->dim[i]);
    snprintf(out + n, KP_SHAPE_TEXT - n, "]");
    return out;
}

/* See taskfile.h. */
int64_t kp_shape_count(const struct kp_shape *s) {
    int64_t count = 1;
    for (int i = 0; i < s->n; i++) count *= s->dim[i];
    return count;
}

/* See taskfile.h. */
bool shape_fits(const struct kp_shape *s) {
    int64_t bytes = 8;
    for (int i = 0; i < s->n; i++)
        if (__builtin_mul_overflow(bytes, s->dim[i], &bytes)) return false;
    return bytes <= (int64_t)1 << 50;
}

/* Name and size of each dtype. */
static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [KP_F64] = {"f64", 8}, [KP_F32] = {"f32", 4}, [KP_F16] = {"f16", 2},  [KP_BF16] = {"bf16", 2},
    [KP_I64] = {"i64", 8}, [KP_I32] = {"i32", 4}, [KP_BOOL] = {"bool", 1}};

/* See taskfile.h. */
size_t kp_dtype_size(enum kp_dtype t) {
    return dtypes[t].size;
}

/* See taskfile.h. */
const char *kp_dtype_name(enum kp_dtype t) {
    return dtypes[t].name;
}

/* See taskfile.h. */
bool dtype_parse(const char *name, enum kp_dtype *out) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(name, dtypes[i].name)) {
            *out = (enum kp_dtype)i;
            return true;
        }
    return false;
}

/* See taskfile.h. */
int value_find(const struct kp_task *t, const char *name) {
    for (int i = 0; i < t->nvalues; i++)
        if (!strcmp(t->values[i].name, name)) return i;
    return -1;
}

/* See taskfile.h. */
bool op_has(const struct kp_op *op, int slot) {
    return slot < op->nin && !op->in[slot].is_scalar && op->in[slot].value >= 0;
}

/* See taskfile.h. */
const struct kp_attr *op_attr(const struct kp_op *op, const char *key) {
    for (int i = 0; i < op->nattr; i++)
        if (!strcmp(op->attr[i].key, key)) return &op->attr[i];
    return NULL;
}

/* See taskfile.h. */
int64_t op_int(const struct kp_op *op, const char *key, int64_t otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? (int64_t)a->number : otherwise;
}

/* See taskfile.h. */
double op_float(const struct kp_op *op, const char *key, double otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? a->number : otherwise;
}

/* See taskfile.h. */
bool op_bool(const struct kp_op *op, const char *key, bool otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? a->number != 0 : otherwise;
}

/* See taskfile.h. */
const char *op_word(const struct kp_op *op, const char *key, const char *otherwise) {
    const struct kp_attr *a = op_attr(op, key);
    return a ? a->word : otherwise;
}

/* See taskfile.h. */
void op_list(const struct kp_op *op, const char *key, int n, int64_t otherwise, int64_t *out) {
    const struct kp_attr *a = op_attr(op, key);
    bool is_list = a && a->kind == KP_ATTR_LIST;
    if (is_list && a->n != n)
        die(KP_BUG, "op_list: %s has %d entries; %d were asked for", key, a->n, n);
    for (int i = 0; i < n; i++) out[i] = is_list ? a->list[i] : a ? (int64_t)a->number : otherwise;
}

/* See taskfile.h.  An op comes after the ops that it reads, so one pass backwards is enough. */
void task_live(const struct kp_task *t, bool *live) {
    memset(live, 0, (size_t)t->nvalues * sizeof *live);
    for (int i = 0; i < t->noutputs; i++) live[t->outputs[i]] = true;
    for (int i = t->nops - 1; i >= 0; i--) {
        const struct kp_op *op = &t->ops[i];
        bool needed = false;
        for (int k = 0; k < op->nout; k++) needed |= live[op->out[k]];
        for (int k = 0; needed && k < op->nin; k++)
            if (op_has(op, k)) live[op->in[k].value] = true;
    }
}

/* Free a task; NULL is allowed. */
void task_free(struct kp_task *t) {
    if (!t) return;
    for (int i = 0; i < t->nnotes; i++) free(t->notes[i]);
    for (int i = 0; i < t->nflags; i++) free(t->flags[i]);
    free(t->notes);
    free(t->flags);
    for (int i = 0; i < t->nops; i++) free(t->ops[i].in);
    for (int i = 0; i < t->ntensors; i++) free(t->tensors[i].fill.values);
    free(t->tensors);
    free(t->values);
    free(t->ops);
    free(t);
}
