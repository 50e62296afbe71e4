/* rules.h: the rules that rows of the op table name.  Only ops.c uses them. */
#ifndef KP_RULES_H
#define KP_RULES_H

#include "task/op.h"

/* Inference (infer_*.c): see kp_op_def.infer. */
typedef const char *kp_infer_rule(const struct kp_task *t, struct kp_op *op, struct kp_value *out);
kp_infer_rule infer_view, infer_transpose, infer_unsqueeze, infer_squeeze, infer_permute,
    infer_flatten, infer_part, infer_expand; /* infer_views.c */
kp_infer_rule infer_cat, infer_pad, infer_triangle, infer_masked_fill, infer_compare,
    infer_index_select, infer_full; /* infer_views.c */
kp_infer_rule infer_matmul, infer_linear, infer_attention, infer_recurrent, infer_conv,
    infer_conv_transpose, infer_pool, infer_adaptive_pool; /* infer_products.c */
kp_infer_rule infer_unary, infer_gelu, infer_clamp, infer_pow, infer_binary, infer_layer_norm,
    infer_group_norm, infer_instance_norm, infer_batch_norm, infer_along_axis, infer_reduce,
    infer_norm, infer_logsumexp, infer_extreme, infer_index, infer_cross_entropy; /* infer_rows.c */

/* Parts (infer_views.c): see kp_op_def.part. */
typedef const char *kp_part_rule(const struct kp_op *op, const struct kp_shape *x,
                                 struct kp_part *out);
kp_part_rule part_slice, part_flip;

/* Slicing (slice.c): see kp_op_def.slice. */
typedef int kp_slice_rule(const struct kp_task *t, const struct kp_op *op, int axis, int slot);
kp_slice_rule slice_view, slice_transpose, slice_unsqueeze, slice_squeeze, slice_permute,
    slice_flatten, slice_pad, slice_triangle, slice_index_select, slice_matmul, slice_linear,
    slice_attention, slice_conv, slice_conv_transpose, slice_planes, slice_elementwise,
    slice_layer_norm, slice_group_norm, slice_instance_norm, slice_batch_norm, slice_along_axis,
    slice_reduce, slice_never;

/* Additions and multiplications (cost.c): see kp_op_def.flops. */
typedef double kp_flops_rule(const struct kp_task *t, const struct kp_op *op);
kp_flops_rule flops_nothing, flops_results, flops_operand, flops_five, flops_pool, flops_matmul,
    flops_attention, flops_attention_products, flops_recurrent, flops_recurrent_products,
    flops_filter, flops_filter_and_bias, flops_adaptive_pool;

#endif
