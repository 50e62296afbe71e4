/* index.c: see index.h.  An op of the table without an implementation does not link. */
#include "cuda/index.h"
#include "task/ops.h"

#define OP(name, ...) KP_IMPL_OF(name);
#define VIEW(name, ...)
#include "task/op_table.h"

static const struct kp_impl *const impls[KP_OP_COUNT] = {
#define OP(name, ...) [KP_OP_##name] = &kp_impl_##name,
#define VIEW(name, ...)
#include "task/op_table.h"
};

/* See index.h. */
const struct kp_impl *kp_impl_of(int id) {
    return impls[id];
}
