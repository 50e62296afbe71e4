/* attention.c: attention as two matrix products with a softmax between them. */
#include "cuda_products/product.h"

#include "base/error.h"
#include "task/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

KP_IMPL_OF(softmax); /* softmax.cu */

struct attention {
    struct kp_product scores, result;
    struct kp_op softmax_op;
    struct kp_call softmax;
    struct kp_array softmax_in;
    bool softmax_present;
    void *softmax_state;
    double scale;
    size_t at_result, at_scores, at_weights; /* in the scratch: product 2's, and arrays */
};

/* The softmax over the last axis of the scores, as if it were an op of the graph. */
static size_t plan_softmax(struct attention *s, const struct kp_call *c,
                           const struct kp_array *scores) {
    s->softmax_op = (struct kp_op){.def = op_find("softmax"), .nin = 1, .nout = 1, .nattr = 1};
    s->softmax_op.line = c->op->line;
    s->softmax_op.attr[0] = (struct kp_attr){.key = "dim", .kind = KP_ATTR_INT, .number = -1};
    s->softmax = (struct kp_call){.task = c->task, .math = c->math, .nin = 1, .nout = 1};
    s->softmax.op = &s->softmax_op;
    s->softmax.present = &s->softmax_present;
    s->softmax.in = &s->softmax_in;
    s->softmax_present = true;
    s->softmax_in = s->softmax.out[0] = *scores;
    size_t bytes = 0;
    if (kp_impl_softmax.prepare) s->softmax_state = kp_impl_softmax.prepare(&s->softmax, &bytes);
    return bytes;
}

/* Scores, softmax, weighted sum, each whole: the path that PyTorch takes where
 * no fused kernel serves.  (For heads of 1024 in float32 its fused kernel takes
 * as long as this path in FP32, and does not profit from TF32, as this one does.) */
static void *attention_prepare(const struct kp_call *c, size_t *scratch) {
    struct attention *s = calloc(1, sizeof *s);
    if (!s) die(KP_MACHINE, "out of memory; free some and try again");
    const struct kp_array *q = &c->in[0], *v = &c->in[2];
    int n = q->n;
    struct kp_array k = kp_array_swap(c->in[1], n - 2, n - 1);
    struct kp_shape shape = {.n = n};
    memcpy(shape.dim, q->dim, sizeof shape.dim);
    shape.dim[n - 1] = k.dim[n - 1];
    struct kp_array scores = kp_array_dense(q->dtype, &shape);
    kp_product_plan(&s->scores, c->math, q, &k, &scores);
    kp_product_plan(&s->result, c->math, &scores, v, &c->out[0]);
    kp_product_plan_rough(&s->scores, c->math, q, &k, &scores);
    kp_product_plan_rough(&s->result, c->math, &scores, v, &c->out[0]);
    size_t bytes = plan_softmax(s, c, &scores);
    if (s->scores.bytes > bytes) bytes = s->scores.bytes;
    if (c->math == KP_MATH_F64) s->at_result = kp_align(bytes);
    if (s->at_result + s->result.bytes > bytes) bytes = s->at_result + s->result.bytes;
    s->at_scores = kp_align(bytes);
    s->at_weights = s->at_scores + kp_align(kp_array_bytes(&scores));
    *scratch = s->at_weights + kp_array_bytes(&scores);
    s->scale = op_float(c->op, "scale", 1 / sqrt((double)q->dim[n - 1]));
    return s;
}

/* Enqueue the three steps. */
static void attention_run(const struct kp_call *c, void *state, void *scratch,
                          cudaStream_t stream) {
    struct attention *s = state;
    struct kp_array k = kp_array_swap(c->in[1], c->in[1].n - 2, c->in[1].n - 1);
    struct kp_call softmax = s->softmax;
    softmax.in[0].data = (char *)scratch + s->at_scores;
    softmax.out[0].data = (char *)scratch + s->at_weights;
    kp_product_run(&s->scores, s->scale, 0, c->in[0], k, NULL, softmax.in[0].data, scratch, stream);
    kp_impl_softmax.run(&softmax, s->softmax_state, scratch, stream);
    kp_product_run(&s->result, 1, 0, softmax.out[0], c->in[2], NULL, c->out[0].data,
                   (char *)scratch + s->at_result, stream);
}

/* The three steps with noise of their own each.  The products of squares are those of the first
 * draw: each product has a part of the scratch to itself. */
static void attention_rough(const struct kp_call *c, void *state, void *scratch,
                            cudaStream_t stream) {
    struct attention *s = state;
    struct kp_array k = kp_array_swap(c->in[1], c->in[1].n - 2, c->in[1].n - 1);
    struct kp_noise noise[3] = {*c->noise, *c->noise, *c->noise};
    for (int i = 0; i < 3; i++) noise[i].seed = kp_noise_seed(c->noise->seed, 10 + i);
    struct kp_call softmax = s->softmax;
    softmax.in[0].data = (char *)scratch + s->at_scores;
    softmax.out[0].data = (char *)scratch + s->at_weights;
    softmax.noise = &noise[1];
    const struct kp_array *by_keys[2] = {&c->in[0], &k},
                          *by_values[2] = {&softmax.out[0], &c->in[2]};
    kp_product_rough(&s->scores, s->scale, by_keys, NULL, &softmax.in[0], &noise[0], NULL, c->first,
                     scratch, stream);
    kp_impl_softmax.rough(&softmax, s->softmax_state, scratch, stream);
    kp_product_rough(&s->result, 1, by_values, NULL, &c->out[0], &noise[2], NULL, c->first,
                     (char *)scratch + s->at_result, stream);
}

/* Free the plans of the three steps. */
static void attention_destroy(void *state) {
    struct attention *s = state;
    free(s->scores.rough);
    free(s->result.rough);
    if (kp_impl_softmax.destroy) kp_impl_softmax.destroy(s->softmax_state);
    free(s);
}

KP_IMPL(scaled_dot_product_attention, attention_prepare, attention_run, attention_rough,
        attention_destroy, KP_STRIDED);
