/* recurrent_parts.h: what the parts of recurrent networks share: the order of a sequence, and the
 * products of x, which recurrent.cu has from recurrent_cublas.c in the oracle. */
#ifndef KP_RECURRENT_PARTS_H
#define KP_RECURRENT_PARTS_H

#include "cuda_base/impl.h"
#include "task/recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In a sequence of rows of `width`: from one sample to the next, and from one time to the next. */
struct kp_strides {
    int64_t row, time;
};
static inline struct kp_strides kp_strides_of(const struct kp_recurrent *r, int64_t width) {
    struct kp_strides samples_last = {width, r->batch * width}, first = {r->steps * width, width};
    return r->batch_first ? first : samples_last;
}

/* The time that step t reads: the second direction begins at the end. */
static inline int64_t kp_time_of(const struct kp_recurrent *r, int direction, int64_t t) {
    return direction ? r->steps - 1 - t : t;
}

/* Products of x with a layer's weights in all worlds, and then those of their squares in world 0.
 * They wait for no step, so those of many steps are found at once. */
struct kp_x_strides {
    int64_t steps;            /* at once */
    int64_t time, row, world; /* from one time, sample, world to the next; gates are neighbours */
};
struct kp_x_strides kp_x_strides_of(const struct kp_recurrent *r);
size_t kp_x_bytes(const struct kp_recurrent *r); /* of scratch */

/* Where those of step t are, in each direction.  Enqueues them, with those of the steps after it,
 * unless the call for an earlier step of this layer did. */
struct kp_x_at {
    const double *of[2];
};
struct kp_x_at kp_x_multiply(const struct kp_recurrent *r, const struct kp_call *c, int layer,
                             int64_t t, const double *const x[KP_WORLDS], char *scratch,
                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
