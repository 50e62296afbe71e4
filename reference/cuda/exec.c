/* exec.c: runs a plan: see exec.h. */
#include "cuda/exec.h"
#include "cuda/index.h"
#include "cuda/plan.h"
#include "cuda_base/copy.h"
#include "base/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The oracle has a world for each draw, and world 0, which has no noise.  Each step runs in all
 * worlds before the next one does; what noise does not change, runs in world 0 alone.  Where so
 * many worlds do not fit into memory, as many draws as do are computed at a time, one group after
 * another in the same worlds, and world 0 each time, too: an op with noise reads its exact result.
 * All outputs are then kept to the end. */

struct kp_exec {
    struct kp_plan *plan;
    int draws;    /* at a time */
    size_t bytes; /* of workspace: what is shared, what each world has, outputs that are kept */
};

/* What one run is given. */
struct run {
    const void *const *tensors;
    void *const *outputs;
    char *workspace;
    const struct kp_noise *noise; /* NULL: no draws */
    int before, draws;            /* this run has so many draws, behind so many earlier ones */
    char *kept;                   /* outputs of all worlds, if these are not all draws; or NULL */
    kp_sink *sink;
    void *context;
    cudaStream_t stream;
};

/* See exec.h. */
const char *kp_math_name(const struct kp_task *t, enum kp_math m) {
    switch (m) {
    case KP_MATH_FP32: return "fp32";
    case KP_MATH_TF32: return "tf32";
    case KP_MATH_HALF: return task_float_type(t) == KP_BF16 ? "bf16" : "f16";
    case KP_MATH_F64: return "f64";
    }
    die(KP_BUG, "arithmetic %d has no name", (int)m);
}

/* See exec.h. */
int kp_baselines(const struct kp_task *t, enum kp_math out[2]) {
    if (task_float_type(t) != KP_F32) {
        out[0] = KP_MATH_HALF;
        return 1;
    }
    int n = 0;
    out[n++] = KP_MATH_FP32;
    bool cores = false;
    for (int i = 0; i < t->nops; i++) cores |= t->ops[i].def->tensor_cores;
    if (cores) out[n++] = KP_MATH_TF32;
    return n;
}

/* See exec.h. */
bool kp_exec_weak(const struct kp_task *t) {
#ifdef KP_NO_CUDNN
    for (int i = 0; i < t->nops; i++) {
        const struct kp_impl *impl = kp_impl_of(t->ops[i].def->id);
        if (impl && impl->asks & KP_BY_CUDNN) return true;
    }
#else
    (void)t;
#endif
    return false;
}

/* An executor around a plan. */
static struct kp_exec *wrap(struct kp_plan *p) {
    struct kp_exec *e = calloc(1, sizeof *e);
    if (!e) die(KP_MACHINE, "out of memory; free some and try again");
    e->plan = p;
    e->bytes = p->shared_bytes + p->world_bytes;
    return e;
}

/* See exec.h. */
struct kp_exec *kp_exec_create(const struct kp_task *t, enum kp_math m) {
    if (m == KP_MATH_F64) die(KP_BUG, "float64 is for kp_exec_create_oracle");
    return wrap(kp_plan_make(t, m, 0));
}

/* Bytes of the outputs in float64, or of those before output `end`. */
static size_t output_bytes(const struct kp_task *t, int end) {
    size_t bytes = 0;
    for (int o = 0; o < end; o++)
        bytes += kp_align((size_t)kp_shape_count(&t->values[t->outputs[o]].shape) * sizeof(double));
    return bytes;
}

/* Workspace of an oracle with so many draws at a time. */
static size_t oracle_bytes(const struct kp_plan *p, int draws) {
    size_t kept = draws < KP_DRAWS ? KP_WORLDS * output_bytes(p->task, p->task->noutputs) : 0;
    return p->shared_bytes + (size_t)(1 + draws) * p->world_bytes + kept;
}

/* An oracle with slices of so many rows. */
static struct kp_exec *wrap_oracle(const struct kp_task *t, int64_t slice, int draws) {
    struct kp_exec *e = wrap(kp_plan_make(t, KP_MATH_F64, slice));
    e->draws = draws;
    e->bytes = oracle_bytes(e->plan, draws);
    return e;
}

/* Elements of outputs in a slice. */
static int64_t slice_elements(const struct kp_plan *p) {
    int64_t elements = 0;
    for (int i = p->begin[KP_PHASE_SLICE]; i < p->begin[KP_PHASE_SLICE + 1]; i++)
        if (p->steps[i].kind == KP_STEP_SINK) elements += kp_array_count(&p->steps[i].in[0].array);
    return elements;
}

/* The same, but with half of the slices' rows until the workspace fits, and until slices have so
 * few elements of outputs.  A single row is the least. */
static struct kp_exec *wrap_thin(const struct kp_task *t, size_t most, int64_t elements,
                                 int draws) {
    struct kp_exec *e = wrap_oracle(t, 0, draws);
    while (e->plan->slice > 1 && (e->bytes > most || slice_elements(e->plan) > elements)) {
        int64_t slice = (e->plan->slice + 1) / 2;
        kp_exec_destroy(e);
        e = wrap_oracle(t, slice, draws);
    }
    return e;
}

/* Slices may take this much beside what is needed however thin they are: more makes none faster.
 * Where some are drawn by lot, thick ones are more than is wanted: one is computed at least, so it
 * has no more elements of outputs than a sample is judged by. */
static const size_t slice_bytes = (size_t)2 << 30;
static const int64_t slice_most = 1 << 24;

/* What thin slices need, too, no halving saves: then fewer draws at a time may take less. */
struct kp_exec *kp_exec_create_oracle(const struct kp_task *t, size_t workspace_limit) {
    struct kp_exec *e = wrap_oracle(t, 1, KP_DRAWS);
    size_t least = e->bytes, most = least + slice_bytes, room = e->plan->rows ? slice_bytes : 0;
    int draws = KP_DRAWS;
    while (draws > 1 && oracle_bytes(e->plan, draws) + room > workspace_limit) draws--;
    kp_exec_destroy(e);
    e = wrap_thin(t, most < workspace_limit ? most : workspace_limit, slice_most, KP_DRAWS);
    if (least <= workspace_limit) return e;
    struct kp_exec *other = wrap_thin(t, workspace_limit, INT64_MAX, draws);
    if (other->bytes > e->bytes) return kp_exec_destroy(other), e;
    kp_exec_destroy(e);
    return other;
}

/* See exec.h; NULL is allowed. */
void kp_exec_destroy(struct kp_exec *e) {
    if (e) kp_plan_free(e->plan);
    free(e);
}

/* See exec.h. */
size_t kp_exec_workspace(const struct kp_exec *e) {
    return e->bytes;
}

/* See exec.h. */
size_t kp_exec_workspace_exact(const struct kp_exec *e) {
    return e->plan->shared_bytes + e->plan->world_bytes;
}

/* Where a reference is in a world of this run, in the slice that begins at `row`. */
static void *locate(const struct kp_plan *p, const struct run *r, const struct kp_ref *ref,
                    int64_t row, int world) {
    char *base = NULL;
    switch (ref->where) {
    case KP_NOWHERE: return NULL;
    case KP_IN_TENSOR: base = (char *)r->tensors[ref->index]; break;
    case KP_IN_OUTPUT: base = r->outputs[ref->index]; break;
    case KP_IN_BUFFER:
        base = r->workspace + p->buffers[ref->index].offset;
        if (!kp_ref_exact(p, ref)) base += p->shared_bytes + (size_t)world * p->world_bytes;
        break;
    }
    return base + ref->offset + row * ref->row_bytes;
}

/* The unit roundoff of results that are stored in this type, beside fp32's. */
static double unit_of(enum kp_dtype type) {
    return type == KP_F16 ? KP_UNIT_F16 : type == KP_BF16 ? KP_UNIT_BF16 : 0;
}

/* The noise of a step in a world: other noise in each step, slice and draw. */
static struct kp_noise noise_in(const struct kp_plan *p, const struct kp_step *s,
                                const struct run *r, int64_t row, int world) {
    struct kp_noise noise = *r->noise;
    uint64_t seed = kp_noise_seed(noise.seed, r->before + world);
    noise.seed = kp_noise_seed(kp_noise_seed(seed, row), s - p->steps);
    return noise;
}

/* The call of a step in a world.  `in` becomes its operands, `noise` its noise. */
static struct kp_call call_in(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                              int64_t row, int world, struct kp_array *in, struct kp_noise *noise) {
    struct kp_call call = s->call;
    if (in != s->call.in) memcpy(in, s->call.in, (size_t)s->nin * sizeof *in);
    call.in = in;
    for (int k = 0; k < s->nin; k++)
        if (call.present[k]) in[k].data = locate(p, r, &s->in[k], row, world);
    for (int k = 0; k < call.nout; k++) call.out[k].data = locate(p, r, &s->out[k], row, world);
    if (!world) return call;
    *noise = noise_in(p, s, r, row, world);
    call.noise = noise;
    call.first = world == 1; /* of each group: scratch has been used since */
    for (int k = 0; k < call.nout; k++) call.exact[k] = locate(p, r, &s->out[k], row, 0);
    return call;
}

/* Round the results of an op with noise to their type. */
static void round_results(const struct kp_plan *p, const struct kp_call *call,
                          cudaStream_t stream) {
    for (int k = 0; k < call->nout; k++) {
        double unit = unit_of(p->task->values[call->op->out[k]].dtype);
        if (unit > 0 && call->out[k].data)
            kp_noise_round(call->out[k].data, kp_array_count(&call->out[k]), KP_AMPLIFIED * unit,
                           kp_noise_seed(call->noise->seed, -1 - k), stream);
    }
}

/* Enqueue an op in a world. */
static void run_op(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                   int64_t row, int world) {
    struct kp_noise noise;
    struct kp_call call = call_in(p, s, r, row, world, s->call.in, &noise);
    char *scratch = s->scratch >= 0 ? r->workspace + p->buffers[s->scratch].offset : NULL;
    bool rough = world && s->impl->rough;
    (rough ? s->impl->rough : s->impl->run)(&call, s->state, scratch, r->stream);
    if (rough) round_results(p, &call, r->stream);
}

/* Enqueue an op in all worlds at once, if its implementation does that. */
static bool run_together(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                         int64_t row) {
    if (!s->impl->together) return false;
    struct kp_call call[KP_WORLDS];
    struct kp_noise noise[KP_WORLDS];
    struct kp_array *in = malloc(KP_WORLDS * (size_t)s->nin * sizeof *in);
    if (!in) die(KP_MACHINE, "out of memory; free some and try again");
    for (int w = 0; w < KP_WORLDS; w++)
        call[w] = call_in(p, s, r, row, w, in + w * s->nin, &noise[w]);
    char *scratch = s->scratch >= 0 ? r->workspace + p->buffers[s->scratch].offset : NULL;
    bool done = s->impl->together(call, s->state, scratch, r->stream);
    for (int w = 1; w < KP_WORLDS && done; w++) round_results(p, &call[w], r->stream);
    free(in);
    return done;
}

/* Where output o of a world is kept. */
static double *kept_output(const struct kp_plan *p, const struct run *r, int o, int world) {
    size_t all = output_bytes(p->task, p->task->noutputs);
    return (double *)(r->kept + (size_t)world * all + output_bytes(p->task, o));
}

/* A range of a slice of an output, `from` elements into the slice, in a world. */
static double *range_of(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                        int64_t row, int64_t from, int world) {
    return (double *)locate(p, r, &s->in[0], row, world) + from;
}

/* Keep a range of an output: of these draws, and of world 0. */
static void keep(const struct kp_plan *p, const struct kp_step *s, const struct run *r, int64_t row,
                 int64_t from, int64_t offset, int64_t count) {
    const struct kp_shape shape = {.n = 1, .dim = {count}};
    struct kp_array x = kp_array_dense(KP_F64, &shape), to = x;
    for (int w = 0; w <= r->draws; w++) {
        x.data = range_of(p, s, r, row, from, w);
        to.data = kept_output(p, r, s->output, w ? r->before + w : 0) + offset;
        kp_copy(&x, &to, r->stream);
    }
}

/* Hand over every output that was kept, whole. */
static void sink_kept(const struct kp_plan *p, const struct run *r) {
    for (int o = 0; o < p->task->noutputs; o++) {
        struct kp_draws all = {.exact = kept_output(p, r, o, 0)};
        for (int d = 0; d < KP_DRAWS; d++) all.rough[d] = kept_output(p, r, o, 1 + d);
        int64_t count = kp_shape_count(&p->task->values[p->task->outputs[o]].shape);
        r->sink(r->context, o, 0, count, &all, r->stream);
    }
}

/* Hand a range of an output to the sink, with its draws. */
static void sink_range(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                       int64_t row, int64_t from, int64_t offset, int64_t count) {
    struct kp_draws all = {.exact = range_of(p, s, r, row, from, 0)};
    for (int d = 0; d < r->draws; d++) all.rough[d] = range_of(p, s, r, row, from, 1 + d);
    r->sink(r->context, s->output, offset, count, &all, r->stream);
}

/* Hand over a slice of an output: a range for each index of the axes before the one that is cut, or
 * all as one if it is the whole output. */
static void run_sink(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                     int64_t row) {
    int64_t total = kp_shape_count(&p->task->values[p->task->outputs[s->output]].shape);
    int64_t n = kp_array_count(&s->in[0].array), inner = p->inner[s->output];
    int64_t ranges = n < total ? total / (p->rows * inner) : 1;
    for (int64_t i = 0; i < ranges; i++)
        (r->kept ? keep : sink_range)(p, s, r, row, i * (n / ranges),
                                      i * (total / ranges) + row * inner, n / ranges);
}

/* Enqueue one phase. */
static void run_phase(const struct kp_plan *p, enum kp_phase phase, const struct run *r,
                      int64_t row) {
    for (int i = p->begin[phase]; i < p->begin[phase + 1]; i++) {
        const struct kp_step *s = &p->steps[i];
        int worlds = s->exact ? 1 : 1 + r->draws;
        bool op = s->kind == KP_STEP_OP;
        if (op && worlds == KP_WORLDS && run_together(p, s, r, row)) continue;
        for (int w = 0; w < worlds; w++) {
            if (op) {
                run_op(p, s, r, row, w);
            } else if (s->kind == KP_STEP_COPY) {
                struct kp_array from = s->in[0].array, to = s->out[0].array;
                from.data = locate(p, r, &s->in[0], row, w);
                to.data = locate(p, r, &s->out[0], row, w);
                kp_copy(&from, &to, r->stream);
            }
        }
        if (s->kind == KP_STEP_SINK) run_sink(p, s, r, row);
    }
}

/* See exec.h. */
void kp_exec_run(struct kp_exec *e, const void *const tensors[], void *const outputs[],
                 void *workspace, cudaStream_t stream) {
    if (e->plan->math == KP_MATH_F64) die(KP_BUG, "an oracle is run by kp_exec_oracle");
    struct run r = {.tensors = tensors, .outputs = outputs, .workspace = workspace};
    r.stream = stream;
    run_phase(e->plan, KP_PHASE_WHOLE, &r, 0);
}

/* Results, of all ops, that a slice computes. */
static int64_t results_of(const struct kp_plan *p) {
    int64_t elements = 0;
    for (int i = p->begin[KP_PHASE_SLICE]; i < p->begin[KP_PHASE_SLICE + 1]; i++) {
        const struct kp_step *s = &p->steps[i];
        if (s->kind != KP_STEP_OP) continue;
        for (int k = 0; k < s->call.nout; k++) elements += kp_array_count(&s->call.out[k]);
    }
    return elements;
}

/* How many of the oracle's slices have `most` elements of outputs, and not many more results. */
static int64_t slices_for(const struct kp_plan *p, int64_t most, int64_t slices) {
    int64_t elements = 0, results = results_of(p) * slices;
    for (int o = 0; o < p->task->noutputs; o++)
        elements += kp_shape_count(&p->task->values[p->task->outputs[o]].shape);
    double share = (double)most / (double)elements;
    share = fmin(share, (double)KP_MOST_RESULTS * (double)most / (double)results);
    if (most <= 0 || share >= 1) return slices;
    int64_t n = (int64_t)(share * (double)slices);
    return n < 1 ? 1 : n;
}

/* Which slices are computed: some, drawn by lot, or those that hold one of n places; else all. */
struct choice {
    int64_t most; /* elements of outputs; 0: no lot */
    const struct kp_place *place;
    int n;
};

/* Whether slice i holds one of the places.  An output that is not cut is in no slice. */
static bool holds(const struct kp_plan *p, const struct choice *c, int64_t i) {
    for (int k = 0; k < c->n; k++) {
        int64_t inner = p->inner[c->place[k].output];
        if (inner && c->place[k].at / inner % p->rows / p->slice == i) return true;
    }
    return false;
}

/* Enqueue the chosen slices.  By lot each is taken with the chance that leaves as many as are
 * wanted.  Returns whether it was all. */
static bool run_slices(const struct kp_plan *p, const struct run *r, const struct choice *c) {
    run_phase(p, KP_PHASE_WHOLE, r, 0);
    if (!p->rows) return true;
    int64_t slices = (p->rows + p->slice - 1) / p->slice, wanted = slices_for(p, c->most, slices);
    int64_t left = wanted, done = 0;
    for (int64_t i = 0; i < slices; i++) {
        uint64_t lot = kp_noise_seed(r->noise ? r->noise->seed : 0, -1 - i);
        if (c->place ? !holds(p, c, i) : lot % (uint64_t)(slices - i) >= (uint64_t)left) continue;
        int64_t row = i * p->slice;
        run_phase(p, row + p->slice <= p->rows ? KP_PHASE_SLICE : KP_PHASE_REST, r, row);
        left--, done++;
    }
    return done == slices;
}

/* Not all draws at a time, all slices are computed: what is kept is the whole output. */
static bool run_oracle(struct kp_exec *e, struct run *r, const struct choice *c) {
    const struct kp_plan *p = e->plan;
    if (p->math != KP_MATH_F64) die(KP_BUG, "a baseline is run by kp_exec_run");
    if (r->noise) r->draws = e->draws;
    if (r->draws == KP_DRAWS || !r->noise) return run_slices(p, r, c);
    r->kept = r->workspace + oracle_bytes(p, e->draws) -
              KP_WORLDS * output_bytes(p->task, p->task->noutputs);
    for (; r->before < KP_DRAWS; r->before += r->draws) {
        if (r->draws > KP_DRAWS - r->before) r->draws = KP_DRAWS - r->before;
        run_slices(p, r, &(struct choice){0});
    }
    sink_kept(p, r);
    return true;
}

/* See exec.h. */
bool kp_exec_oracle(struct kp_exec *e, const void *const tensors[], void *workspace,
                    const struct kp_noise *noise, int64_t most, kp_sink *sink, void *context,
                    cudaStream_t stream) {
    struct run r = {.tensors = tensors, .workspace = workspace, .sink = sink, .context = context};
    r.noise = noise;
    r.stream = stream;
    return run_oracle(e, &r, &(struct choice){.most = noise ? most : 0});
}

/* See exec.h. */
void kp_exec_oracle_at(struct kp_exec *e, const void *const tensors[], void *workspace,
                       const struct kp_noise *noise, const struct kp_place *place, int n,
                       kp_sink *sink, void *context, cudaStream_t stream) {
    struct run r = {.tensors = tensors, .workspace = workspace, .sink = sink, .context = context};
    r.noise = noise;
    r.stream = stream;
    run_oracle(e, &r, &(struct choice){.place = place, .n = n});
}
