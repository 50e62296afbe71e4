/* accuracy.c: see accuracy.h. */
#include "measure/accuracy.h"

#include <string.h>

/* Whoever is compared with the oracle, output by output: the candidate, then the baselines. */
enum { COMPARED = KP_MAX_OUTPUTS * (1 + KP_MAX_BASELINES) };

size_t accuracy_bytes(const struct kp_task *t) {
    enum kp_math math[KP_MAX_BASELINES];
    size_t bytes = 0;
    int n = kp_baselines(t, math);
    for (int k = 0; k < t->noutputs; k++) bytes += (size_t)n * output_bytes(t, k);
    return bytes;
}

bool accuracy_open(struct accuracy *acc, size_t oracle_limit) {
    const struct kp_task *t = acc->r.task;
    if (oracle_limit > KP_ORACLE_BYTES) oracle_limit = KP_ORACLE_BYTES;
    acc->nbaselines = kp_baselines(t, acc->math);
    acc->oracle = kp_exec_create_oracle(t, oracle_limit);
    size_t most = kp_exec_workspace(acc->oracle);
    for (int b = 0; b < acc->nbaselines; b++) {
        acc->exec[b] = kp_exec_create(t, acc->math[b]);
        if (kp_exec_workspace(acc->exec[b]) > most) most = kp_exec_workspace(acc->exec[b]);
        for (int k = 0; k < t->noutputs; k++)
            if (cudaMalloc(&acc->out[b][k], output_bytes(t, k))) return cudaGetLastError(), false;
    }
    if (most && cudaMalloc(&acc->workspace, most)) return cudaGetLastError(), false;
    device_check(cudaMalloc((void **)&acc->found, COMPARED * sizeof *acc->found), "comparing");
    return true;
}

void accuracy_baseline(struct accuracy *acc, int placement, int which) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    referee_pointers(&acc->r, placement, tensors, outputs);
    kp_exec_run(acc->exec[which], tensors, acc->out[which], acc->workspace, acc->r.stream);
}

struct slice_context {
    struct accuracy *acc;
    void *outputs[KP_MAX_OUTPUTS];
    double rms[KP_MAX_OUTPUTS], tolerance;
};

/* Compare one slice of the oracle's output k with the same slice of the candidate's and of every
 * baseline's.  Baselines' outputs are not poisoned: with the inverted word none counts as
 * unwritten. */
static void compare_slice(void *context, int k, int64_t offset, int64_t count, const double *values,
                          cudaStream_t stream) {
    struct slice_context *c = context;
    struct accuracy *acc = c->acc;
    const struct kp_task *t = acc->r.task;
    enum kp_dtype type = t->values[t->outputs[k]].dtype;
    size_t at = (size_t)offset * kp_dtype_size(type);
    device_compare((char *)c->outputs[k] + at, type, values, KP_F64, offset, count, c->rms[k],
                   c->tolerance, acc->r.poison, &acc->found[k], stream);
    for (int b = 0; b < acc->nbaselines; b++)
        device_compare((char *)acc->out[b][k] + at, type, values, KP_F64, offset, count, c->rms[k],
                       c->tolerance, ~acc->r.poison, &acc->found[KP_MAX_OUTPUTS * (b + 1) + k],
                       stream);
}

void accuracy_sample(struct accuracy *acc, int placement, double tolerance,
                     struct sample_errors *out) {
    struct referee *r = &acc->r;
    struct slice_context c = {.acc = acc, .tolerance = tolerance};
    struct kp_compare host[COMPARED];
    const void *tensors[KP_MAX_BUFFERS];
    referee_pointers(r, placement, tensors, c.outputs);
    for (int b = 0; b < acc->nbaselines; b++) accuracy_baseline(acc, placement, b);
    referee_rms(r, acc->out[0], c.rms);
    for (int i = 0; i < COMPARED; i++) device_compare_reset(&acc->found[i], r->stream);
    kp_exec_oracle(acc->oracle, tensors, acc->workspace, compare_slice, &c, r->stream);
    device_check(cudaMemcpyAsync(host, acc->found, sizeof host, cudaMemcpyDeviceToHost, r->stream),
                 "comparing");
    referee_wait(r);
    memcpy(out->found, host, sizeof out->found);
    out->candidate = referee_error(r->task, host, c.rms);
    for (int b = 0; b < acc->nbaselines; b++)
        out->baseline[b] = referee_error(r->task, host + KP_MAX_OUTPUTS * (b + 1), c.rms);
}
