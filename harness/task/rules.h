/* rules.h: what ops.c, infer.c, slice.c share: the rules behind the rows of the
 * op table.  Not for use outside. */
#ifndef KP_RULES_H
#define KP_RULES_H

#include "task/ops.h"

/* Rules of inference: fill in out[] and op->nout, or return what was expected. */
typedef const char *kp_infer_rule(const struct kp_task *t, struct kp_op *op, struct kp_value *out);
kp_infer_rule infer_view, infer_transpose, infer_unsqueeze, infer_squeeze, infer_permute,
    infer_flatten, infer_matmul, infer_linear, infer_attention, infer_conv, infer_max_pool2d,
    infer_unary, infer_gelu, infer_pow, infer_binary, infer_layer_norm, infer_group_norm,
    infer_instance_norm, infer_batch_norm, infer_along_axis, infer_reduce, infer_max,
    infer_cross_entropy;

/* Rules of slicing: see kp_op_def.slice. */
typedef int kp_slice_rule(const struct kp_task *t, const struct kp_op *op, int axis, int slot);
kp_slice_rule slice_view, slice_transpose, slice_unsqueeze, slice_squeeze, slice_permute,
    slice_flatten, slice_matmul, slice_linear, slice_attention, slice_conv, slice_planes,
    slice_elementwise, slice_layer_norm, slice_group_norm, slice_instance_norm, slice_batch_norm,
    slice_along_axis, slice_reduce, slice_never;

/* The shape and dtype of operand `slot`; NULL if it is absent or a number. */
const struct kp_value *op_operand(const struct kp_task *t, const struct kp_op *op, int slot);

/* Additions and multiplications, and those in products. */
typedef double kp_flops_rule(const struct kp_task *t, const struct kp_op *op);

#endif
