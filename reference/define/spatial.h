/* spatial.h: ops over 1, 2 or 3 spatial axes as loops over three; absent axes come first and have
 * size 1. */
#ifndef KP_DEFINE_SPATIAL_H
#define KP_DEFINE_SPATIAL_H

#include "define/parts.h"

enum { AXES = 3 }; /* the most spatial axes */

/* Copy n sizes to the last n of three; the others are `otherwise`. */
static inline void last_dims(int64_t to[AXES], int n, const int64_t *from, int64_t otherwise) {
    for (int d = 0; d < AXES; d++) to[d] = d < AXES - n ? otherwise : from[d - (AXES - n)];
}

/* The same for an attribute, which is `absent` along axes that are not there. */
static inline void last_attr(int64_t to[AXES], const struct kp_op *op, const char *key,
                             int64_t otherwise, int64_t absent) {
    int64_t list[AXES];
    op_list(op, key, op->def->axes, otherwise, list);
    last_dims(to, op->def->axes, list, absent);
}

/* Elements of a box, and where place i of it lies. */
static inline int64_t volume(const int64_t d[AXES]) {
    return d[0] * d[1] * d[2];
}
static inline int64_t place_at(const int64_t d[AXES], const int64_t i[AXES]) {
    return (i[0] * d[1] + i[1]) * d[2] + i[2];
}

/* Whether place i is in a box of size d. */
static inline bool is_inside(const int64_t d[AXES], const int64_t i[AXES]) {
    for (int k = 0; k < AXES; k++)
        if (i[k] < 0 || i[k] >= d[k]) return false;
    return true;
}

/* Each place i of a box, the last axis fastest. */
#define FOR_EACH_PLACE(i, box)                  \
    for (i[0] = 0; i[0] < (box)[0]; i[0]++)     \
        for (i[1] = 0; i[1] < (box)[1]; i[1]++) \
            for (i[2] = 0; i[2] < (box)[2]; i[2]++)

#endif
