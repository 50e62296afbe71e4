/* demand.h: which values a task's outputs need, and which of them can be cut. */
#ifndef KP_DEMAND_H
#define KP_DEMAND_H

#include "task/op.h"

/* No output needs this value. */
enum { KP_UNNEEDED = -3 };

/* For each value: KP_UNNEEDED, KP_WHOLE, or the axis along which it is computed in slices: for each
 * row of the outputs the same number of indices, which is 1 but behind views.  The first output is
 * cut along `axis`, and so are those that are as long there; with KP_WHOLE nothing is cut. */
void kp_plan_demand(const struct kp_task *t, int axis, int *demand);

/* The axis of the first output along which the oracle cuts: the first, or one with which ops read
 * fewer elements whole, by as many as that output has; KP_WHOLE if it is a number.  `demand` has
 * room for each value. */
int kp_plan_axis(const struct kp_task *t, int *demand);

/* The axis along which a slice of operand k is needed for one of the result along `axis`; KP_WHOLE
 * or KP_NEVER as in the op's slicing rule. */
int kp_plan_cut(const struct kp_task *t, const struct kp_op *op, int axis, int k);

#endif
