/* accuracy.c: see accuracy.h. */
#include "measure/accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t accuracy_bytes(const struct kp_task *t) {
    enum kp_math math[KP_MAX_BASELINES];
    size_t bytes = 0;
    int n = kp_baselines(t, math);
    for (int k = 0; k < t->noutputs; k++) bytes += (size_t)n * output_bytes(t, k);
    return bytes;
}

bool accuracy_open(struct judge *j, struct referee *r, size_t oracle_limit) {
    const struct kp_task *t = r->task;
    memset(j, 0, sizeof *j);
    j->r = r;
    j->nbaselines = kp_baselines(t, j->math);
    j->oracle = kp_exec_create_oracle(t, oracle_limit);
    size_t most = kp_exec_workspace(j->oracle);
    for (int b = 0; b < j->nbaselines; b++) {
        j->exec[b] = kp_exec_create(t, j->math[b]);
        if (kp_exec_workspace(j->exec[b]) > most) most = kp_exec_workspace(j->exec[b]);
        for (int k = 0; k < t->noutputs; k++)
            if (cudaMalloc(&j->out[b][k], output_bytes(t, k))) return cudaGetLastError(), false;
    }
    if (most && cudaMalloc(&j->workspace, most)) return cudaGetLastError(), false;
    device_check(cudaMalloc((void **)&j->found, 4 * (1 + KP_MAX_BASELINES) * sizeof *j->found),
                 "judging");
    return true;
}

void accuracy_baseline(struct judge *j, int placement, int which) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[4];
    referee_pointers(j->r, placement, tensors, outputs);
    kp_exec_run(j->exec[which], tensors, j->out[which], j->workspace, j->r->stream);
}

struct slice_context {
    struct judge *j;
    void *outputs[4];
    double rms[4], tolerance;
};

/* Compare one slice of the oracle with everybody's same slice. */
static void sink(void *context, int k, int64_t offset, int64_t count, const double *values,
                 cudaStream_t stream) {
    struct slice_context *c = context;
    struct judge *j = c->j;
    const struct kp_task *t = j->r->task;
    enum kp_dtype type = t->values[t->outputs[k]].dtype;
    size_t at = (size_t)offset * kp_dtype_size(type);
    device_compare((char *)c->outputs[k] + at, type, values, KP_F64, offset, count, c->rms[k],
                   c->tolerance, j->r->poison, &j->found[k], stream);
    for (int b = 0; b < j->nbaselines; b++)
        device_compare((char *)j->out[b][k] + at, type, values, KP_F64, offset, count, c->rms[k],
                       c->tolerance, ~j->r->poison, &j->found[4 * (b + 1) + k], stream);
}

void accuracy_sample(struct judge *j, int placement, double tolerance, struct sample_errors *out) {
    struct slice_context c = {.j = j, .tolerance = tolerance};
    struct kp_compare host[4 * (1 + KP_MAX_BASELINES)];
    const void *tensors[KP_MAX_BUFFERS];
    referee_pointers(j->r, placement, tensors, c.outputs);
    for (int b = 0; b < j->nbaselines; b++) accuracy_baseline(j, placement, b);
    referee_rms(j->r, j->out[0], c.rms);
    for (int i = 0; i < 4 * (1 + KP_MAX_BASELINES); i++)
        device_compare_reset(&j->found[i], j->r->stream);
    kp_exec_oracle(j->oracle, tensors, j->workspace, sink, &c, j->r->stream);
    device_check(cudaMemcpyAsync(host, j->found, sizeof host, cudaMemcpyDeviceToHost, j->r->stream),
                 "judging");
    referee_wait(j->r);
    memcpy(out->found, host, sizeof out->found);
    out->candidate = referee_error(j->r->task, host, c.rms);
    for (int b = 0; b < j->nbaselines; b++)
        out->baseline[b] = referee_error(j->r->task, host + 4 * (b + 1), c.rms);
}

/* Elements of the smallest output. */
static double fewest(const struct kp_task *t) {
    double n = INFINITY;
    for (int k = 0; k < t->noutputs; k++)
        n = fmin(n, (double)kp_shape_count(&t->values[t->outputs[k]].shape));
    return n;
}

/* Four times the baseline's error, or what rounding the result alone may cost: four
 * units in the last place for an element, two for the whole.  The baseline's own mean error
 * may be small by luck: as much again as n errors without a bias may have. */
struct kp_error accuracy_tolerance(const struct kp_task *t, const struct kp_error *b) {
    double unit = 0;
    for (int k = 0; k < t->noutputs; k++) {
        enum kp_dtype type = t->values[t->outputs[k]].dtype;
        double u = type == KP_F32    ? 0x1p-23
                   : type == KP_F16  ? 0x1p-10
                   : type == KP_BF16 ? 0x1p-7
                                     : 0;
        if (u > unit) unit = u;
    }
    struct kp_error tolerance = {4 * b->norm, 4 * b->element, 4 * b->mean};
    double luck = 4 * b->norm / sqrt(fewest(t));
    if (luck > tolerance.mean) tolerance.mean = luck;
    if (!(tolerance.norm >= 2 * unit)) tolerance.norm = 2 * unit;
    if (!(tolerance.element >= 4 * unit)) tolerance.element = 4 * unit;
    if (!(tolerance.mean >= 2 * unit)) tolerance.mean = 2 * unit;
    return tolerance;
}

static double worse(double a, double b) {
    return a <= b ? b : a; /* if either is NaN: a NaN first operand stays */
}

struct kp_error error_worst(struct kp_error a, struct kp_error b) {
    if (b.norm != b.norm || b.element != b.element || b.mean != b.mean) return b;
    return (struct kp_error){worse(a.norm, b.norm), worse(a.element, b.element),
                             worse(a.mean, b.mean)};
}

const char *error_exceeds(const struct kp_error *e, const struct kp_error *tolerance) {
    if (!(e->element <= tolerance->element)) return "element";
    if (!(e->norm <= tolerance->norm)) return "norm";
    if (!(e->mean <= tolerance->mean)) return "mean";
    return NULL;
}
