/* exec.c: reference/cuda/exec.h for the pretend GPU: the meaning of a task (reference/define)
 * run on its tensors.  FP32 rounds each result once; TF32 rounds what it reads to 10 bits,
 * too; the oracle rounds nothing. */
#include "fake.h"
#include "base/error.h"
#include "cuda_base/vendor_choice.h"
#include "cuda/exec.h"
#include "define/define.h"
#include "gpu/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TENSORS = 16 };

struct kp_exec {
    const struct kp_task *task;
    enum kp_math math;
};

const char *kp_math_name(const struct kp_task *t, enum kp_math m) {
    (void)t;
    return m == KP_MATH_FP32 ? "fp32" : m == KP_MATH_TF32 ? "tf32" : "f64";
}

int kp_baselines(const struct kp_task *t, enum kp_math out[2]) {
    bool cores = false;
    for (int i = 0; i < t->nops; i++) cores |= t->ops[i].def->tensor_cores;
    out[0] = KP_MATH_FP32, out[1] = KP_MATH_TF32;
    return 1 + cores;
}

/* KP_FAKE_WEAK is set where the machine lacks the better library. */
bool kp_exec_weak(const struct kp_task *t) {
    (void)t;
    return getenv("KP_FAKE_WEAK");
}

/* A search for the fastest library call: what it finds differs from search to search. */
const char *const kp_vendor_name[KP_VENDOR_CALLS] = {"cublas_nn", "cublas_tn",   "lt_nn",
                                                     "lt_tn",     "lt_tuned_nn", "lt_tuned_tn"};
static struct kp_vendor vendor;
static bool chosen;

void kp_vendor_choose(const char *choices) {
    vendor = (struct kp_vendor){.choices = ""};
    snprintf(vendor.choices, sizeof vendor.choices, "%s", choices ? choices : "");
    chosen = *vendor.choices;
}

const struct kp_vendor *kp_vendor_found(void) {
    return &vendor;
}

static void search(void) {
    static int searches;
    size_t used = strlen(vendor.choices);
    if (!chosen) {
        snprintf(vendor.choices + used, sizeof vendor.choices - used, "lt_tuned_tn %d.%d\n",
                 (int)getpid(), searches++);
        vendor.us[KP_CUBLAS_NN] = 3, vendor.us[KP_LT_TUNED_TN] = 2;
    }
    fake_log("vendor %s %.*s", chosen ? "takes" : "finds", (int)strcspn(vendor.choices, "\n"),
             vendor.choices);
}

struct kp_exec *kp_exec_create(const struct kp_task *t, enum kp_math m) {
    struct kp_exec *e = malloc(sizeof *e);
    if (m == KP_MATH_FP32 && fake_number("vendor", 0) > 0) search();
    if (!e || t->ntensors > TENSORS) die(KP_BUG, "too much for the pretend GPU");
    *e = (struct kp_exec){t, m};
    return e;
}

struct kp_exec *kp_exec_create_oracle(const struct kp_task *t, size_t workspace_limit) {
    (void)workspace_limit;
    return kp_exec_create(t, KP_MATH_F64);
}

void kp_exec_destroy(struct kp_exec *e) {
    free(e);
}

size_t kp_exec_workspace(const struct kp_exec *e) {
    return (size_t)fake_number(e->math == KP_MATH_F64 ? "oracle_bytes" : "baseline_bytes", 0);
}

size_t kp_exec_workspace_exact(const struct kp_exec *e) {
    return kp_exec_workspace(e);
}

static float tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu; /* to nearest, ties to even */
    memcpy(&x, &bits, 4);
    return x;
}

static double *widen(const struct kp_exec *e, int i, const void *from) {
    const struct kp_tensor *x = &e->task->tensors[i];
    int64_t n = kp_shape_count(&x->shape);
    double *to = calloc((size_t)n, sizeof *to);
    if (!to) die(KP_MACHINE, "out of memory");
    for (int64_t k = 0; k < n; k++) {
        float f = x->dtype == KP_F32 ? ((const float *)from)[k] : 0;
        to[k] = x->dtype == KP_I64        ? (double)((const int64_t *)from)[k]
                : e->math == KP_MATH_TF32 ? tf32(f)
                                          : f;
    }
    return to;
}

/* An even number in [-1,1). */
static double even(uint64_t seed, int64_t i) {
    return (double)(int64_t)kp_mix(seed, (uint64_t)i) * 0x1p-63;
}

/* Noise on what a graph is given: of each element, and of the largest; unknown where that is
 * infinite. */
static void roughen(double *x, int64_t n, const struct kp_noise *noise, uint64_t seed) {
    double most = 0;
    for (int64_t i = 0; i < n && noise->largest > 0; i++) most = fmax(most, fabs(x[i]));
    for (int64_t i = 0; i < n; i++)
        x[i] += (noise->operand * fabs(x[i]) + noise->largest * most) * even(seed, i);
}

/* Every output in float64, newly allocated; with noise on its operands and its results, unless
 * that is NULL. */
static void compute(const struct kp_exec *e, const void *const tensors[], double *outputs[],
                    const struct kp_noise *noise) {
    double *in[TENSORS];
    const struct kp_task *t = e->task;
    for (int i = 0; i < t->ntensors; i++) {
        in[i] = widen(e, i, tensors[i]);
        if (noise && t->tensors[i].dtype == KP_F32)
            roughen(in[i], kp_shape_count(&t->tensors[i].shape), noise,
                    kp_mix(noise->seed, (uint64_t)i));
    }
    for (int k = 0; k < t->noutputs; k++) {
        outputs[k] =
            calloc((size_t)kp_shape_count(&t->values[t->outputs[k]].shape), sizeof(double));
        if (!outputs[k]) die(KP_MACHINE, "out of memory");
    }
    const char *message = define_run(t, (const double *const *)in, outputs);
    if (message) die(KP_BUG, "%s: %s", t->name, message);
    for (int i = 0; i < t->ntensors; i++) free(in[i]);
    const struct kp_noise own = {.operand = noise ? noise->sum : 0};
    for (int k = 0; k < t->noutputs && noise; k++)
        roughen(outputs[k], kp_shape_count(&t->values[t->outputs[k]].shape), &own,
                kp_mix(noise->seed, (uint64_t)(TENSORS + k)));
}

struct run { /* a parameter block */
    const struct kp_exec *exec;
    const void *tensors[TENSORS];
    void *outputs[KP_MAX_OUTPUTS];
};

KERNEL(reference, sizeof(struct run)) {
    static uint64_t runs;
    struct run *r = args[0];
    double skew = fake_number("skew", 1);
    reference.us = fake_number(kp_math_name(r->exec->task, r->exec->math), 500);
    if (r->exec->math == KP_MATH_TF32) /* up or down, run by run */
        reference.us *= 1 + fake_number("sway", 0) * ((kp_mix(1, runs++) & 1) ? 1 : -1);
    fake_log("run %s", kp_math_name(r->exec->task, r->exec->math));
    const struct kp_task *t = r->exec->task;
    double *wide[KP_MAX_OUTPUTS];
    compute(r->exec, r->tensors, wide, NULL);
    for (int k = 0; k < t->noutputs; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        for (int64_t i = 0; i < kp_shape_count(&v->shape); i++)
            if (v->dtype == KP_F32)
                ((float *)r->outputs[k])[i] = (float)(skew * wide[k][i]);
            else
                ((int64_t *)r->outputs[k])[i] = (int64_t)wide[k][i];
        free(wide[k]);
    }
}

void kp_exec_run(struct kp_exec *e, const void *const tensors[], void *const outputs[],
                 void *workspace, cudaStream_t stream) {
    struct run r = {.exec = e};
    void *args[] = {&r};
    (void)workspace;
    memcpy(r.tensors, tensors, (size_t)e->task->ntensors * sizeof *tensors);
    memcpy(r.outputs, outputs, (size_t)e->task->noutputs * sizeof *outputs);
    cudaError_t bad =
        cudaLaunchKernel(&reference, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream);
    if (bad) die(KP_MACHINE, "the reference: %s", cudaGetErrorString(bad));
}

/* The oracle's outputs of all worlds. */
static void compute_worlds(struct kp_exec *e, const void *const tensors[],
                           const struct kp_noise *noise, double *wide[KP_WORLDS][KP_MAX_OUTPUTS]) {
    for (int w = 0; w <= (noise ? KP_DRAWS : 0); w++) {
        struct kp_noise own = noise ? *noise : (struct kp_noise){0};
        own.seed = kp_mix(own.seed, (uint64_t)w);
        compute(e, tensors, wide[w], w ? &own : NULL);
    }
}

/* Hand over one slice of output k: its first half or its second. */
static void sink_half(double *wide[KP_WORLDS][KP_MAX_OUTPUTS], int draws, int k, int64_t n,
                      bool second, kp_sink *sink, void *context, cudaStream_t stream) {
    int64_t half = n / 2, at = second ? half : 0;
    struct kp_draws all = {.exact = wide[0][k] + at};
    for (int d = 0; d < draws; d++) all.rough[d] = wide[1 + d][k] + at;
    if (second || half) sink(context, k, at, second ? n - half : half, &all, stream);
}

/* In two slices, where there are two elements. */
bool kp_exec_oracle(struct kp_exec *e, const void *const tensors[], void *workspace,
                    const struct kp_noise *noise, int64_t most, kp_sink *sink, void *context,
                    cudaStream_t stream) {
    if (most > 0)
        fake_log("oracle of %lld", (long long)most);
    else
        fake_log("oracle of all");
    if (most > 0) most = (int64_t)fake_number("some", (double)most);
    bool some = noise && most > 0; /* the first slice stands for those drawn by lot */
    double *wide[KP_WORLDS][KP_MAX_OUTPUTS];
    int draws = noise ? KP_DRAWS : 0;
    (void)workspace;
    compute_worlds(e, tensors, noise, wide);
    for (int k = 0; k < e->task->noutputs; k++) {
        int64_t n = kp_shape_count(&e->task->values[e->task->outputs[k]].shape);
        for (int second = 0; second < 2; second++)
            if (!(some && second && n > 1 && most < n))
                sink_half(wide, draws, k, n, second, sink, context, stream);
        some &= most < n;
        for (int w = 0; w <= draws; w++) free(wide[w][k]);
    }
    return !some;
}

void kp_exec_oracle_at(struct kp_exec *e, const void *const tensors[], void *workspace,
                       const struct kp_noise *noise, const struct kp_place *place, int n,
                       kp_sink *sink, void *context, cudaStream_t stream) {
    double *wide[KP_WORLDS][KP_MAX_OUTPUTS];
    (void)workspace;
    fake_log("oracle at %d", n);
    compute_worlds(e, tensors, noise, wide);
    for (int k = 0; k < e->task->noutputs; k++) {
        int64_t count = kp_shape_count(&e->task->values[e->task->outputs[k]].shape);
        bool wanted[2] = {false, false};
        for (int i = 0; i < n; i++)
            if (place[i].output == k) wanted[place[i].at >= count / 2] = true;
        for (int second = 0; second < 2; second++)
            if (wanted[second]) sink_half(wide, KP_DRAWS, k, count, second, sink, context, stream);
        for (int w = 0; w <= KP_DRAWS; w++) free(wide[w][k]);
    }
}
