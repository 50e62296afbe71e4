/* run.c: runs an op, and a graph.  A value lives from the op that makes it to the last one that
 * reads it. */
#include "define/parts.h"

#include <stdlib.h>
#include <string.h>

static define_op_rule *const meaning[KP_OP_COUNT] = {
#define OP(name, ...)   [KP_OP_##name] = define_##name,
#define VIEW(name, ...) [KP_OP_##name] = define_##name,
#include "task/op_table.h"
};

/* See define.h. */
const char *define_op(const struct kp_task *t, const struct kp_op *op, const double *const in[],
                      double *const out[]) {
    const char *message = NULL;
    struct call c = {t, op, in, out, &message};
    meaning[op->def->id](&c);
    return message;
}

/* last[v]: the number of the last op that reads value v; nops for an output; the number of the op
 * that makes it if nothing reads it. */
static void last_uses(const struct kp_task *t, int *last) {
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        for (int k = 0; k < op->nout; k++) last[op->out[k]] = i;
        for (int k = 0; k < op->nin; k++)
            if (op_has(op, k)) last[op->in[k].value] = i;
    }
    for (int i = 0; i < t->noutputs; i++) last[t->outputs[i]] = t->nops;
}

/* Allocate the results of one op and run it.  Returns NULL, or a message. */
static const char *run_op(const struct kp_task *t, const struct kp_op *op,
                          const double *const tensors[], double **values) {
    const double **in = calloc((size_t)op->nin + KP_SLOTS, sizeof *in);
    double *out[KP_MAX_RESULTS] = {0};
    const char *message = in ? NULL : "out of memory";
    for (int k = 0; k < op->nin && in; k++) {
        int v = op_has(op, k) ? op->in[k].value : -1;
        if (v >= 0) in[k] = v < t->ntensors ? tensors[v] : values[v];
    }
    for (int k = 0; k < op->nout; k++) {
        int64_t count = kp_shape_count(&t->values[op->out[k]].shape);
        out[k] = values[op->out[k]] = calloc((size_t)count, sizeof(double));
        if (!out[k]) message = "out of memory";
    }
    if (!message) message = define_op(t, op, in, out);
    free(in);
    return message;
}

/* See define.h. */
const char *define_run(const struct kp_task *t, const double *const tensors[],
                       double *const outputs[]) {
    double **values =
        calloc((size_t)t->nvalues + 1, sizeof *values); /* NULL: not made yet, or freed */
    int *last = calloc((size_t)t->nvalues + 1, sizeof *last);
    const char *message = values && last ? NULL : "out of memory";
    if (!message) last_uses(t, last);
    for (int i = 0; i < t->nops && !message; i++) {
        message = run_op(t, &t->ops[i], tensors, values);
        for (int v = t->ntensors; v < t->nvalues; v++)
            if (last[v] == i) {
                free(values[v]);
                values[v] = NULL;
            }
    }
    for (int i = 0; i < t->noutputs && !message; i++) {
        int v = t->outputs[i];
        size_t count = (size_t)kp_shape_count(&t->values[v].shape);
        memcpy(outputs[i], v < t->ntensors ? tensors[v] : values[v], count * sizeof(double));
    }
    for (int v = 0; values && v < t->nvalues; v++) free(values[v]);
    free(values);
    free(last);
    return message;
}
