/* define.h: the meaning of every op, in plain C and float64, for small shapes.
 *
 * This is what the words in a task file mean.  It is checked against values that PyTorch computed
 * and that were found by hand (tests/data); the CUDA reference is checked against it.  Loops are
 * written to be read, not to be fast. */
#ifndef KP_DEFINE_H
#define KP_DEFINE_H

#include "task/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Run the whole graph.  tensors[i] has the values of task tensor i as doubles, dense and row-major
 * (indices and masks, too); outputs[i] receives output i in the same form.  Returns NULL, or a
 * message. */
const char *define_run(const struct kp_task *t, const double *const tensors[],
                       double *const outputs[]);

/* Run one op on dense arrays of double; in[k] is NULL for an operand that is absent or a number,
 * and in has KP_SLOTS entries at least.
 * Returns NULL, or a message. */
const char *define_op(const struct kp_task *t, const struct kp_op *op, const double *const in[],
                      double *const out[]);

#ifdef __cplusplus
}
#endif
#endif
