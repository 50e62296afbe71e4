/* audit.c: see audit.h. */
#include "measure/audit.h"
#include "base/json.h"

#include <stdlib.h>

/* Whether what lies in the outputs would pass for the baseline's output. */
static bool passes(struct judge *j, const double *rms, const struct kp_error *tolerance) {
    struct kp_compare found[4];
    referee_compare(j->r, 0, j->out[0], rms, tolerance->element, found);
    struct kp_error e = referee_error(j->r->task, found, rms);
    return !error_exceeds(&e, tolerance);
}

/* New contents for tensor i alone: of the declared fill, or of another if that is one value. */
static void refill(struct judge *j, int i, uint64_t seed) {
    const struct kp_tensor *x = &j->r->task->tensors[i];
    enum kp_distribution d = x->fill.kind == KP_FILL_CONSTANT ? KP_DIST_NORMAL : KP_DIST_DECLARED;
    device_fill(j->r->task, i, span_data(&j->r->at[i]), d, seed, j->r->stream);
}

/* The most accurate baseline, run into the outputs proper. */
static void run(struct judge *j) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[4];
    referee_pointers(j->r, 0, tensors, outputs);
    kp_exec_run(j->exec[0], tensors, outputs, j->workspace, j->r->stream);
}

static void add(cJSON *flags, const char *format, const char *what) {
    char *text = text_format("%s%s", format, what);
    cJSON_AddItemToArray(flags, cJSON_CreateString(text));
    free(text);
}

/* Tensor i and those that are made from it get other contents, and back again. */
static bool influences(struct judge *j, int i, const double *rms, const struct kp_error *tolerance,
                       uint64_t seed, uint64_t other) {
    const struct kp_task *t = j->r->task;
    bool same;
    for (int k = i; k < t->ntensors; k++)
        if (k == i ||
            (t->tensors[k].fill.kind == KP_FILL_TRANSPOSED && t->tensors[k].fill.source == i))
            refill(j, k, other);
    run(j);
    same = passes(j, rms, tolerance);
    referee_fill(j->r, 0, KP_DIST_DECLARED, seed);
    return !same;
}

void audit_task(struct judge *j, const struct kp_error *tolerance, uint64_t seed, cJSON *flags) {
    const struct kp_task *t = j->r->task;
    uint64_t other = kp_mix(seed, 1);
    double rms[4];
    referee_fill(j->r, 0, KP_DIST_DECLARED, seed);
    accuracy_baseline(j, 0, 0);
    referee_rms(j->r, j->out[0], rms);
    for (int k = 0; k < t->noutputs; k++) {
        struct kp_span *out = &j->r->at[t->ntensors + k];
        device_check(cudaMemsetAsync(span_data(out), 0, out->bytes, j->r->stream), "audit");
    }
    if (passes(j, rms, tolerance)) add(flags, "degenerate: zeros pass", "");
    for (int i = 0; i < t->ntensors; i++) refill(j, i, other);
    run(j);
    if (passes(j, rms, tolerance))
        add(flags, "degenerate: the output of other contents passes", "");
    referee_fill(j->r, 0, KP_DIST_DECLARED, seed);
    for (int i = 0; i < t->ntensors; i++)
        if (t->tensors[i].fill.kind != KP_FILL_TRANSPOSED &&
            !influences(j, i, rms, tolerance, seed, other))
            add(flags, "no-influence: ", t->tensors[i].name);
}
