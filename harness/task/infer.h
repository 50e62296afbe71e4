/* infer.h: what the rules of inference share.  Texts live until the next call. */
#ifndef KP_INFER_H
#define KP_INFER_H

#include "task/op.h"

/* A message made of numbers. */
const char *infer_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One result of the first operand's shape and dtype.  Returns NULL, or a message if that operand
 * is a number. */
const char *infer_like_first(const struct kp_task *t, struct kp_op *op, struct kp_value *out);

/* Whether a value is of a floating type. */
bool infer_is_float(const struct kp_value *v);

/* NULL if every operand is a floating tensor and all have one dtype, or a message. */
const char *infer_floats(const struct kp_task *t, const struct kp_op *op);

/* NULL if operand `slot` is absent or has exactly these n sizes, or a message. */
const char *infer_sizes(const struct kp_task *t, const struct kp_op *op, int slot, int n,
                        const int64_t *dim);

/* Whether a value is sure to hold numbers from 0 to size - 1 alone, or `besides`: it shows a task
 * tensor, itself or through views, that is filled with such. */
bool infer_are_places(const struct kp_task *t, int value, int64_t size, double besides);

/* Remove axis d of a shape. */
void infer_drop_axis(struct kp_shape *s, int d);

/* The shape that two shapes broadcast to, as in NumPy.  False if they do not. */
bool infer_broadcast(const struct kp_shape *a, const struct kp_shape *b, struct kp_shape *out);

#endif
