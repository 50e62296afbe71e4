/* array.h: arrays in device memory: arithmetic on their shapes and strides. */
#ifndef KP_ARRAY_H
#define KP_ARRAY_H

#include "task/taskfile.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kp_array { /* a strided view of device memory */
    void *data;   /* NULL while planning */
    enum kp_dtype dtype;
    int n; /* axes */
    int64_t dim[KP_MAX_DIMS];
    int64_t stride[KP_MAX_DIMS]; /* in elements; 0 broadcasts */
};

/* The dense row-major array of this shape, data NULL. */
struct kp_array kp_array_dense(enum kp_dtype dtype, const struct kp_shape *shape);

/* Number of elements; 1 for a scalar. */
int64_t kp_array_count(const struct kp_array *a);

/* Bytes of a dense array of this shape and type. */
size_t kp_array_bytes(const struct kp_array *a);

/* True if the elements lie one after the other in row-major order.  Strides of axes of size 1 do
 * not matter. */
bool kp_array_is_dense(const struct kp_array *a);

/* The same array with axes i and j exchanged. */
struct kp_array kp_array_swap(struct kp_array a, int i, int j);

/* Describe the elements of `a` as an array of shape `to`, without moving them.  Returns false,
 * with *out undefined, if no strides can express that; those of a dense array always can. */
bool kp_array_reshape(const struct kp_array *a, const struct kp_shape *to, struct kp_array *out);

/* Round up to the alignment of all device buffers. */
static inline size_t kp_align(size_t bytes) {
    return (bytes + 255) & ~(size_t)255;
}

#ifdef __cplusplus
}
#endif
#endif
