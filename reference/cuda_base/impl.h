/* impl.h: the device code of an op, as the executor (reference/cuda) sees it.
 *
 * The executor walks the graph, turns views into strides, plans memory and calls these.  The
 * implementations are in reference/cuda_ops.  Nothing else includes this. */
#ifndef KP_IMPL_H
#define KP_IMPL_H

#include "cuda_base/arithmetic.h"
#include "cuda_base/array.h"
#include "cuda_base/noise.h"
#include "task/op.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kp_call { /* one op on concrete arrays */
    const struct kp_task *task;
    const struct kp_op *op;
    enum kp_math math;
    int nin;
    bool *present;       /* false: an absent operand, or a number (op->in[k].scalar) */
    struct kp_array *in; /* these two have KP_SLOTS entries at least */
    int nout;
    struct kp_array out[KP_MAX_RESULTS]; /* always dense; data NULL if nobody reads that result */
    /* For rough(): */
    const struct kp_noise *noise;
    const void *exact[KP_MAX_RESULTS]; /* what run() gave, on operands without noise */
    bool exact_operands;               /* as these are, in every draw */
    bool first; /* of the draws that follow each other on one state and scratch */
};

/* What an implementation asks of the executor, as bits. */
enum {
    KP_STRIDED = 0,  /* nothing: it takes operands of any strides */
    KP_DENSE = 1,    /* dense operands: strided ones are copied first */
    KP_ONE_TYPE = 2, /* operands of the result's type: others are converted first */
    KP_GIVEN_TRANSPOSE =
        4,           /* the given transpose of operand 1, where a task has it, as operand 2 */
    KP_BY_CUDNN = 8, /* cuDNN: without it the op is slower than a vendor library's */
    KP_MASKS = 16,   /* beside KP_ONE_TYPE: operand 1 may stay a mask (bool), but in float64 */
    KP_IN_PLACE = 32 /* nothing: its result may take the place of an operand that lies as it does */
};

struct kp_impl {
    /* Choose algorithms for these shapes and strides (data pointers are NULL).  Set *scratch to
     * the bytes that run() needs.  Returns a state, or NULL if there is none.  A NULL prepare has
     * nothing to choose and needs no scratch. */
    void *(*prepare)(const struct kp_call *c, size_t *scratch);
    /* Enqueue the op: only kernel launches, library calls and memsets, on `stream`. */
    void (*run)(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream);
    void (*destroy)(void *state); /* may be NULL */
    /* The same as run() in float64, with the noise that honest arithmetic of a class has
     * (c->noise).  NULL for an op that rounds nothing, such as a maximum. */
    void (*rough)(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream);
    unsigned asks; /* KP_DENSE and so on */
    /* run() of c[0] and rough() of the KP_DRAWS calls after it, at once.  False if these calls do
     * not suit: then nothing is enqueued.  NULL: one after the other costs no more. */
    bool (*together)(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream);
};

/* The draws of a product that are its exact result with noise: those of together()'s calls. */
static inline struct kp_noisy kp_noisy_of(const struct kp_call *c) {
    struct kp_noisy draws;
    for (int d = 0; d < KP_DRAWS; d++) {
        draws.y[d] = (double *)c[1 + d].out[0].data;
        draws.seed[d] = c[1 + d].noise->seed;
    }
    return draws;
}

/* Whether they are: the operands have no noise, not even that of one scale. */
static inline bool kp_noise_is_last(const struct kp_call *c) {
    return c[1].exact_operands && !(c[1].noise->largest > 0);
}

/* Element types: F64 stores f64 throughout (task tensors are converted slice by slice); FP32 and
 * TF32 store f32; HALF stores f16 or bf16. */

#ifdef __cplusplus
}
#define KP_EXTERN extern "C"
#else
#define KP_EXTERN extern
#endif

/* Declare and define the implementation of an op: kp_impl_relu and so on.  What follows `destroy`
 * is what it asks for and, if it has that, together(). */
#define KP_IMPL_OF(name)     KP_EXTERN const struct kp_impl kp_impl_##name
#define KP_TWO_OF(a, b, ...) a, b
#define KP_IMPL(name, prepare, run, rough, destroy, ...)                 \
    KP_IMPL_OF(name);                                                    \
    const struct kp_impl kp_impl_##name = {prepare, run, destroy, rough, \
                                           KP_TWO_OF(__VA_ARGS__, NULL, )}

#endif
