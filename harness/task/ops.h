/* ops.h: the ops that a task's graph may use.  op_table.h has a row for each; this finds them. */
#ifndef KP_OPS_H
#define KP_OPS_H

#include "task/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of each row, KP_OP_relu and so on, for tables with an entry for each op.  Code asks
 * the row what an op is like (is_view, axes), never which op it is. */
enum kp_op_id {
#define OP(name, ...)   KP_OP_##name,
#define VIEW(name, ...) KP_OP_##name,
#include "task/op_table.h"
    KP_OP_COUNT
};

/* The row of the op called `name`, or NULL. */
const struct kp_op_def *op_find(const char *name);

/* Row `id`. */
const struct kp_op_def *op_get(enum kp_op_id id);

#ifdef __cplusplus
}
#endif
#endif
