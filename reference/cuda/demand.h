/* demand.h: which values a task's outputs need, and which of them can be cut. */
#ifndef KP_DEMAND_H
#define KP_DEMAND_H

#include "task/op.h"

/* No output needs this value. */
enum { KP_UNNEEDED = -3 };

/* For each value: KP_UNNEEDED, KP_WHOLE, or the axis along which it is computed in slices.  The
 * outputs with `rows` along axis 0 are cut there; with rows = 0 nothing is cut. */
void kp_plan_demand(const struct kp_task *t, int64_t rows, int *demand);

#endif
