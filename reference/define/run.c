/* run.c: an op by its name, and a graph by its ops.
 *
 * A value lives from the op that makes it to the last that reads it. */
#include "define/parts.h"

#include <stdlib.h>
#include <string.h>

const char *define_op(const struct kp_task *t, const struct kp_op *op, const double *const in[],
                      double *const out[]) {
    struct call c = {t, op, in, out};
    switch (op->def->id) {
    case KP_OP_VIEW:
    case KP_OP_UNSQUEEZE:
    case KP_OP_SQUEEZE:
    case KP_OP_FLATTEN: define_view(&c); break;
    case KP_OP_TRANSPOSE: define_transpose(&c); break;
    case KP_OP_PERMUTE: define_permute(&c); break;
    case KP_OP_MATMUL: define_matmul(&c); break;
    case KP_OP_LINEAR: define_linear(&c); break;
    case KP_OP_SCALED_DOT_PRODUCT_ATTENTION: define_attention(&c); break;
    case KP_OP_CONV1D:
    case KP_OP_CONV2D:
    case KP_OP_CONV3D: define_conv(&c); break;
    case KP_OP_MAX_POOL2D: define_max_pool2d(&c); break;
    case KP_OP_RELU:
    case KP_OP_GELU:
    case KP_OP_SIGMOID:
    case KP_OP_TANH:
    case KP_OP_SOFTPLUS:
    case KP_OP_LEAKY_RELU:
    case KP_OP_SQRT: define_unary(&c); break;
    case KP_OP_POW:
    case KP_OP_ADD:
    case KP_OP_SUB:
    case KP_OP_MUL:
    case KP_OP_DIV: define_binary(&c); break;
    case KP_OP_LAYER_NORM: define_layer_norm(&c); break;
    case KP_OP_GROUP_NORM: define_group_norm(&c); break;
    case KP_OP_INSTANCE_NORM: define_instance_norm(&c); break;
    case KP_OP_BATCH_NORM: define_batch_norm(&c); break;
    case KP_OP_SOFTMAX: define_softmax(&c); break;
    case KP_OP_SUM: define_sum(&c); break;
    case KP_OP_MEAN: define_mean(&c); break;
    case KP_OP_MAX: define_max(&c); break;
    case KP_OP_CUMSUM: define_cumsum(&c); break;
    case KP_OP_CROSS_ENTROPY: return define_cross_entropy(&c);
    case KP_OP_COUNT: return "no such op";
    }
    return NULL;
}

/* last[v]: the number of the last op that reads value v; nops if it is an
 * output; its own op if nothing reads it. */
static void last_uses(const struct kp_task *t, int *last) {
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        for (int k = 0; k < op->nout; k++) last[op->out[k]] = i;
        for (int k = 0; k < op->nin; k++)
            if (!op->in[k].is_scalar && op->in[k].value >= 0) last[op->in[k].value] = i;
    }
    for (int i = 0; i < t->noutputs; i++) last[t->outputs[i]] = t->nops;
}

/* Make room for the results of one op and run it.  NULL, or a message. */
static const char *run_op(const struct kp_task *t, const struct kp_op *op,
                          const double *const tensors[], double **values) {
    const double *in[KP_MAX_OPERANDS] = {0};
    double *out[KP_MAX_RESULTS] = {0};
    for (int k = 0; k < op->nin; k++) {
        int v = op->in[k].is_scalar ? -1 : op->in[k].value;
        if (v >= 0) in[k] = v < t->ntensors ? tensors[v] : values[v];
    }
    for (int k = 0; k < op->nout; k++) {
        int64_t count = kp_shape_count(&t->values[op->out[k]].shape);
        out[k] = values[op->out[k]] = calloc((size_t)count, sizeof(double));
        if (!out[k]) return "out of memory";
    }
    return define_op(t, op, in, out);
}

const char *define_run(const struct kp_task *t, const double *const tensors[],
                       double *const outputs[]) {
    double **values = calloc((size_t)t->nvalues + 1, sizeof *values); /* NULL: none, or dead */
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
