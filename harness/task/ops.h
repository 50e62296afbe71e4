/* ops.h: the ops that a task's graph may use: what each takes, what shape it
 * gives, which part of its operands a part of its result needs, what it costs.
 *
 * Adding an op: one row in ops.c, its meaning in define/, its CUDA in cuda/. */
#ifndef KP_OPS_H
#define KP_OPS_H

#include "task/taskfile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One identifier per op, so that executors switch over them and the compiler
 * warns of a missing case.  Names in task files are these, in lower case. */
#define KP_OPS(X)                                                                                  \
    /* views: cost nothing, move nothing */                                                        \
    X(VIEW)                                                                                        \
    X(TRANSPOSE) X(UNSQUEEZE) X(SQUEEZE) X(PERMUTE) X(FLATTEN) /* products */                      \
        X(MATMUL) X(LINEAR) X(SCALED_DOT_PRODUCT_ATTENTION) /* convolutions: one op for 1, 2 and 3 \
                                                               spatial axes each */                \
        X(CONV1D) X(CONV2D) X(CONV3D)                       /* pooling */                          \
        X(MAX_POOL2D)                                       /* elementwise, one operand */         \
        X(RELU) X(GELU) X(SIGMOID) X(TANH) X(SOFTPLUS) X(LEAKY_RELU) X(SQRT)                       \
            X(POW)                  /* elementwise, two operands, broadcasting as NumPy does */    \
        X(ADD) X(SUB) X(MUL) X(DIV) /* normalisation */                                            \
        X(LAYER_NORM) X(GROUP_NORM) X(INSTANCE_NORM)                                               \
            X(BATCH_NORM) /* softmax, reductions, scans, losses */                                 \
        X(SOFTMAX) X(SUM) X(MEAN) X(MAX) X(CUMSUM) X(CROSS_ENTROPY)

enum kp_op_id {
#define X(id) KP_OP_##id,
    KP_OPS(X)
#undef X
        KP_OP_COUNT
};

/* What of an operand is needed to compute rows [lo,hi) of a result along its
 * axis `axis`: all of it, or the same rows of the operand along another axis. */
enum { KP_WHOLE = -1, KP_NEVER = -2 }; /* KP_NEVER: the result cannot be cut along that axis */

struct kp_op_def {
    enum kp_op_id id;
    const char *name; /* in task files */
    int min_in, max_in;
    const char
        *in_name[KP_MAX_OPERANDS]; /* keyword of a slot (weight, bias, target); NULL: positional */
    const char *attrs;             /* allowed keys, space separated */
    bool is_view;
    bool tensor_cores; /* products and convolutions: has TF32 and half forms */

    /* Fill in dtype and shape of out[0..nout-1] and set op->nout.  Returns NULL,
     * or a static or op-local message saying what was expected. */
    const char *(*infer)(const struct kp_task *t, struct kp_op *op, struct kp_value *out);

    /* For result rows along `axis` of result 0: axis of operand `slot` along which
     * the same rows suffice, KP_WHOLE, or KP_NEVER. */
    int (*slice)(const struct kp_task *t, const struct kp_op *op, int axis, int slot);

    /* Additions and multiplications of this op; and those of them in products,
     * NULL if it has none. */
    double (*flops)(const struct kp_task *t, const struct kp_op *op);
    double (*mm_flops)(const struct kp_task *t, const struct kp_op *op);
};

/* The definition named `name`, or NULL. */
const struct kp_op_def *op_find(const char *name);
const struct kp_op_def *op_get(enum kp_op_id id);

/* Attribute `key` as an axis of 0..n-1, negative ones counted from the end.
 * Returns -1 if it is absent, a list, or out of range. */
int op_axis(const struct kp_op *op, const char *key, int n);

/* Axes that sum and mean remove of the n of their operand, as bits.  All of them
 * if `dim` is absent; 0 if it is malformed. */
unsigned op_reduced_axes(const struct kp_op *op, int n);

#ifdef __cplusplus
}
#endif
#endif
