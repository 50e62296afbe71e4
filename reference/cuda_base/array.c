/* array.c: arithmetic on the shapes and strides of kp_array. */
#include "cuda_base/array.h"

/* Dense strides are filled in from the last axis. */
struct kp_array kp_array_dense(enum kp_dtype dtype, const struct kp_shape *shape) {
    struct kp_array a = {.data = NULL, .dtype = dtype, .n = shape->n};
    int64_t stride = 1;
    for (int i = shape->n - 1; i >= 0; i--) {
        a.dim[i] = shape->dim[i];
        a.stride[i] = stride;
        stride *= shape->dim[i];
    }
    return a;
}

/* See array.h. */
int64_t kp_array_count(const struct kp_array *a) {
    int64_t count = 1;
    for (int i = 0; i < a->n; i++) count *= a->dim[i];
    return count;
}

/* See array.h. */
size_t kp_array_bytes(const struct kp_array *a) {
    return (size_t)kp_array_count(a) * kp_dtype_size(a->dtype);
}

/* See array.h. */
bool kp_array_is_dense(const struct kp_array *a) {
    int64_t stride = 1;
    for (int i = a->n - 1; i >= 0; i--) {
        if (a->dim[i] != 1 && a->stride[i] != stride) return false;
        stride *= a->dim[i];
    }
    return true;
}

/* See array.h. */
struct kp_array kp_array_swap(struct kp_array a, int i, int j) {
    int64_t dim = a.dim[i], stride = a.stride[i];
    a.dim[i] = a.dim[j];
    a.stride[i] = a.stride[j];
    a.dim[j] = dim;
    a.stride[j] = stride;
    return a;
}

/* Walks both shapes from the last axis.  A run of old axes that lie evenly in
 * memory is one long axis, which may be cut anywhere; a new axis that would
 * straddle two runs cannot be expressed. */
bool kp_array_reshape(const struct kp_array *a, const struct kp_shape *to, struct kp_array *out) {
    *out = kp_array_dense(a->dtype, to);
    out->data = a->data;
    int o = a->n - 1; /* old axis */
    int n = to->n - 1;
    while (n >= 0) {
        while (o >= 0 && a->dim[o] == 1) o--;
        if (o < 0) { /* only axes of size 1 are left */
            for (; n >= 0; n--)
                if (to->dim[n] != 1) return false;
            return true;
        }
        int64_t length = a->dim[o], step = a->stride[o];
        for (; o > 0 && (a->dim[o - 1] == 1 || a->stride[o - 1] == step * length); o--)
            length *= a->dim[o - 1];
        o--;
        for (; length > 1; n--) {
            if (n < 0 || length % to->dim[n]) return false;
            out->stride[n] = step;
            step *= to->dim[n];
            length /= to->dim[n];
        }
    }
    return true;
}
