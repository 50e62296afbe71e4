/* op.h: what there is to know of one op: what it takes, which shape it gives, which part of its
 * operands a part of its result needs, what it costs.  ops.h has the table of all ops. */
#ifndef KP_OP_H
#define KP_OP_H

#include "task/taskfile.h"

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Answers of a slicing rule that are no axis.  WHOLE: all of the operand is needed.  NEVER: the
 * result cannot be cut along this axis. */
enum { KP_WHOLE = -1, KP_NEVER = -2 };

/* The most operands of an op that takes a list of any length. */
enum { KP_ANY = INT_MAX };

/* The numbers that an elementwise op computes with: its operands, then its number attributes. */
enum { KP_MAX_ARGUMENTS = 3 };

/* What an op is, the heavier the later: a task is what its heaviest op is. */
enum kp_op_kind {
    KP_KIND_ELEMENTWISE,
    KP_KIND_REDUCTION, /* along axes: sums, scans, softmax, pools */
    KP_KIND_NORM,
    KP_KIND_PRODUCT,
    KP_KIND_CONVOLUTION,
    KP_KIND_ATTENTION,
    KP_OP_KINDS
};

/* What a view shows of its operand: it costs nothing and moves nothing. */
enum kp_view {
    KP_NO_VIEW,
    KP_VIEW_ORDER, /* all of it in the same order, under another shape */
    KP_VIEW_AXES,  /* all of it, its axes in another order: slice() says which */
    KP_VIEW_PART,  /* some places along an axis: part() says which */
    KP_VIEW_REPEAT /* all of it, broadcast to the result's shape */
};

struct kp_part { /* the places start, start + step, ... along an axis: `count` of them */
    int axis;
    int64_t start, step, count;
};

struct kp_attr_def { /* an attribute that an op takes */
    const char *key;
    int kinds;        /* bits 1 << kp_attr_kind: what its value may be */
    double otherwise; /* of a number that is absent */
};

struct kp_op_def {
    int id;                                    /* its row in the table */
    const char *name;                          /* in task files */
    int min_in, max_in;                        /* operands; KP_ANY: a list */
    const char *in_name[KP_SLOTS];             /* keyword of a slot (weight); NULL: positional */
    struct kp_attr_def attr[KP_MAX_ATTRS + 1]; /* up to the first without a key */
    enum kp_op_kind kind;
    int axes;          /* spatial axes of a convolution or a pool */
    bool transposed;   /* a convolution from the places of its result to those of its operand */
    int gates;         /* of a recurrent network's cell */
    enum kp_view view; /* what it shows, if it computes nothing */
    bool tensor_cores; /* products and convolutions: has TF32 and half forms */
    bool has_inner;    /* a product: operands 0 and 1 have an index in common that is summed over */
    int inner[2];      /* that axis of each; negative: counted from the end */

    /* Fill in dtype and shape of out[0..nout-1] and set op->nout.  Returns NULL, or what was
     * expected; the text lives until the next call. */
    const char *(*infer)(const struct kp_task *t, struct kp_op *op, struct kp_value *out);

    /* KP_VIEW_PART: the part that is shown of an operand of this shape.  Returns NULL, or what was
     * expected. */
    const char *(*part)(const struct kp_op *op, const struct kp_shape *x, struct kp_part *out);

    /* Rows of result 0 along `axis` need the same rows of operand `slot` along the axis that is
     * returned; or KP_WHOLE, or KP_NEVER. */
    int (*slice)(const struct kp_task *t, const struct kp_op *op, int axis, int slot);

    /* Additions and multiplications of this op; and those of them in products, NULL if it has
     * none. */
    double (*flops)(const struct kp_task *t, const struct kp_op *op);
    double (*mm_flops)(const struct kp_task *t, const struct kp_op *op);
};

/* The attribute `key` that the op takes, or NULL. */
const struct kp_attr_def *op_takes(const struct kp_op_def *def, const char *key);

/* The keyword of operand `slot`, or NULL where it is told by its place. */
const char *op_keyword(const struct kp_op_def *def, int slot);

/* The shape and dtype of operand `slot`; NULL if it is absent or a number. */
const struct kp_value *op_operand(const struct kp_task *t, const struct kp_op *op, int slot);

/* Attribute `key` as an axis of 0..n-1, negative ones counted from the end.  Returns -1 if it is
 * absent, a list, or out of range. */
int op_axis(const struct kp_op *op, const char *key, int n);

/* The axes, of the n of its operand, that a reduction removes, as bits.  All of them if `dim` is
 * absent; 0 if it is malformed. */
unsigned op_reduced_axes(const struct kp_op *op, int n);

/* The type of arithmetic that a task asks for: the 16-bit type that its tensors have, else F32. */
enum kp_dtype task_float_type(const struct kp_task *t);

/* The kind of a task's heaviest op. */
enum kp_op_kind task_kind(const struct kp_task *t);

/* Tasks of a kind, in one word: "convolutions". */
const char *kp_kind_name(enum kp_op_kind kind);

/* The arguments of an elementwise op: its operands in order, then its number attributes in the
 * order of its row.  Fills in those that are numbers; an operand that is a tensor is left 0. */
void op_arguments(const struct kp_op *op, double number[KP_MAX_ARGUMENTS]);

#ifdef __cplusplus
}
#endif
#endif
