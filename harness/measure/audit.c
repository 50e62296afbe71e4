/* audit.c: see audit.h. */
#include "measure/audit.h"
#include "base/json.h"
#include "gpu/driver.h"

#include <stdlib.h>

/* Whether the outputs as they are would pass for the baseline's. */
static bool passes(struct accuracy *acc, const double *rms, const struct kp_error *tolerance) {
    struct kp_compare found[KP_MAX_OUTPUTS];
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    referee_pointers(&acc->r, 0, tensors, outputs);
    referee_compare(&acc->r, outputs, acc->out[0], rms, tolerance->element, true, found);
    struct kp_error e = referee_error(acc->r.task, found);
    return !error_exceeds(&e, tolerance);
}

/* New values for tensor i alone: the declared fill's, or normal ones if that is a constant. */
static void refill(struct accuracy *acc, int i, uint64_t seed) {
    const struct kp_tensor *x = &acc->r.task->tensors[i];
    enum kp_distribution d = x->fill.kind == KP_FILL_CONSTANT ? KP_DIST_NORMAL : KP_DIST_DECLARED;
    device_fill(acc->r.task, i, span_data(&acc->r.at[i]), d, seed, acc->r.stream);
}

/* The most accurate baseline, into the candidate's outputs, as a graph: a recurrent network is ten
 * thousand launches, and the audit runs it for each tensor. */
static CUgraphExec capture(struct accuracy *acc) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    CUstream stream = (CUstream)acc->r.stream;
    CUgraph graph;
    CUgraphExec exec;
    referee_pointers(&acc->r, 0, tensors, outputs);
    KP_CU(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    kp_exec_run(acc->exec[0], tensors, outputs, acc->workspace, acc->r.stream);
    KP_CU(cu.cuStreamEndCapture(stream, &graph));
    KP_CU(cu.cuGraphInstantiate(&exec, graph, 0));
    KP_CU(cu.cuGraphDestroy(graph));
    return exec;
}

/* Run it. */
static void run(struct accuracy *acc) {
    KP_CU(cu.cuGraphLaunch(acc->again, (CUstream)acc->r.stream));
}

static void add(cJSON *flags, const char *format, const char *what) {
    char *text = text_format("%s%s", format, what);
    cJSON_AddItemToArray(flags, cJSON_CreateString(text));
    free(text);
}

/* Whether the output changes when tensor i, and those that are made from it, get other values.
 * Puts the values back. */
static bool influences(struct accuracy *acc, int i, const double *rms,
                       const struct kp_error *tolerance, uint64_t seed, uint64_t other) {
    const struct kp_task *t = acc->r.task;
    bool same;
    for (int k = i; k < t->ntensors; k++)
        if (k == i ||
            (t->tensors[k].fill.kind == KP_FILL_TRANSPOSED && t->tensors[k].fill.source == i))
            refill(acc, k, other);
    run(acc);
    same = passes(acc, rms, tolerance);
    referee_fill(&acc->r, 0, KP_DIST_DECLARED, seed);
    return !same;
}

/* What a kernel would gain by: operands of 16 bits, as three products of bf16 keep them. */
enum { CHEAP_BITS = 16, ALL_BITS = 24, CHEAP_SEED = 2 };
/* A task tells classes apart if this is at least so far beyond the limits. */
static const double telling_least = 2;

/* How far beyond the limits of class fp32 the most accurate baseline is, on operands that keep
 * `bits` bits. */
static double beyond(struct accuracy *acc, enum kp_distribution d, int bits, uint64_t seed) {
    const struct kp_task *t = acc->r.task;
    struct sample_errors found;
    referee_fill(&acc->r, 0, d, seed);
    for (int i = 0; i < t->ntensors; i++)
        device_cut(span_data(&acc->r.at[i]), t->tensors[i].dtype,
                   kp_shape_count(&t->tensors[i].shape), bits, acc->r.stream);
    run(acc);
    referee_fill(&acc->r, 0, d, seed);
    accuracy_sample(acc, 0, KP_CLASS_FP32, KP_SOME, kp_mix(seed, CHEAP_SEED), &found);
    return found.candidate.rms / KP_RMS_LIMIT;
}

/* How far beyond the limits operands of CHEAP_BITS bits are: on declared or normal inputs, or,
 * where these do not tell, on the first others that do and on which all bits are within the limits.
 * Negative if the task has no product in fp32: nothing else is cheaper so. */
static double telling(struct accuracy *acc, uint64_t seed) {
    const struct kp_task *t = acc->r.task;
    enum kp_class classes[KP_CLASS_COUNT];
    double most = -1;
    if (classes_of(t, classes) < 2) return most;
    for (int k = 0; k < KP_DIST_LARGE; k++) {
        enum kp_distribution d = (enum kp_distribution)k;
        bool other = d > KP_DIST_NORMAL;
        if (other && !(most < telling_least)) break;
        if (!kp_distribution_applies(t, d)) continue;
        double found = beyond(acc, d, CHEAP_BITS, seed);
        if (other && found >= telling_least && !(beyond(acc, d, ALL_BITS, seed) < 1)) continue;
        if (!(found <= most)) most = found;
    }
    return most;
}

/* Add what telling() says. */
static void audit_telling(struct accuracy *acc, uint64_t seed, cJSON *verdict, cJSON *flags) {
    double found = telling(acc, seed);
    if (found < 0) {
        cJSON_AddNullToObject(verdict, "telling");
        return;
    }
    json_add_number(verdict, "telling", found);
    if (!(found < telling_least)) return;
    char *text = text_format("cannot-tell: operands of %d bits are at %.2g of the limits",
                             CHEAP_BITS, found);
    cJSON_AddItemToArray(flags, cJSON_CreateString(text));
    free(text);
}

/* A tensor that is less than this share of the work says nothing of a kernel's time: it is not
 * asked for, as a network has hundreds (biases before a norm). */
static const double least_share = 0.01;

/* Whether a tensor can have no other contents than it has: a mask of ones, or listed values. */
static bool is_fixed(const struct kp_tensor *x) {
    return x->domain == KP_DOMAIN_DECLARED &&
           (x->fill.kind == KP_FILL_CONSTANT || x->fill.kind == KP_FILL_VALUES);
}

/* Add what tensors and outputs say nothing. */
static void audit_influence(struct accuracy *acc, const struct kp_error *tolerance, uint64_t seed,
                            cJSON *flags) {
    const struct kp_task *t = acc->r.task;
    uint64_t other = kp_mix(seed, 1);
    double rms[KP_MAX_OUTPUTS];
    referee_fill(&acc->r, 0, KP_DIST_DECLARED, seed);
    accuracy_baseline(acc, 0, 0);
    referee_rms(&acc->r, acc->out[0], rms);
    for (int k = 0; k < t->noutputs; k++) {
        struct kp_span *out = &acc->r.at[t->ntensors + k];
        device_check(cudaMemsetAsync(span_data(out), 0, out->bytes, acc->r.stream), "audit");
    }
    if (passes(acc, rms, tolerance)) add(flags, "degenerate: zeros pass", "");
    for (int i = 0; i < t->ntensors; i++) refill(acc, i, other);
    run(acc);
    if (passes(acc, rms, tolerance))
        add(flags, "degenerate: the output of other contents passes", "");
    referee_fill(&acc->r, 0, KP_DIST_DECLARED, seed);
    for (int i = 0; i < t->ntensors; i++)
        if (t->tensors[i].fill.kind != KP_FILL_TRANSPOSED && !is_fixed(&t->tensors[i]) &&
            task_share(t, i) >= least_share && !influences(acc, i, rms, tolerance, seed, other))
            add(flags, "no-influence: ", t->tensors[i].name);
}

void audit_task(struct accuracy *acc, const struct kp_error *tolerance, uint64_t seed,
                cJSON *verdict) {
    cJSON *flags = cJSON_AddArrayToObject(verdict, "audit");
    acc->judged = 1;
    acc->again = capture(acc);
    audit_influence(acc, tolerance, seed, flags);
    audit_telling(acc, seed, verdict, flags);
    KP_CU(cu.cuGraphExecDestroy(acc->again));
}
