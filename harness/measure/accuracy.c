/* accuracy.c: see accuracy.h. */
#include "measure/accuracy.h"
#include "measure/phases.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "gpu/driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The noise of a class.  A 16-bit task's results are rounded to their type besides (cuda/exec.h).
 */
static struct kp_noise noise_of(enum kp_class c, uint64_t seed) {
    const double fp32 = KP_AMPLIFIED * KP_UNIT_FP32, tf32 = KP_AMPLIFIED * KP_UNIT_TF32;
    struct kp_noise n = {.operand = fp32, .sum = fp32, .seed = seed};
    if (c == KP_CLASS_NORMWISE) n.largest = KP_AMPLIFIED * KP_UNIT_NORMWISE;
    if (c == KP_CLASS_TF32) n.operand = tf32;
    return n;
}

/* Whoever is compared with the oracle, output by output: the candidate, the baselines, others. */
enum { COMPARED = KP_MAX_OUTPUTS * (1 + KP_MAX_BASELINES + KP_MAX_OTHERS) };

/* How many of these are compared now. */
static int compared(const struct accuracy *acc) {
    return acc->r.task->noutputs * (1 + acc->judged + acc->others);
}

/* How often suspects get more draws (stray.h). */
enum { MOST_REDRAWS = 4 };

size_t accuracy_bytes(const struct kp_task *t) {
    enum kp_math math[KP_MAX_BASELINES];
    size_t bytes = COMPARED * sizeof(struct kp_suspects);
    int n = kp_baselines(t, math);
    for (int k = 0; k < t->noutputs; k++) bytes += (size_t)n * output_bytes(t, k);
    return bytes;
}

void accuracy_plan(struct accuracy *acc) {
    if (acc->nbaselines) return;
    acc->nbaselines = acc->judged = kp_baselines(acc->r.task, acc->math);
    for (int b = 0; b < acc->nbaselines; b++)
        acc->exec[b] = kp_exec_create(acc->r.task, acc->math[b]);
}

bool accuracy_open(struct accuracy *acc, size_t oracle_limit, size_t *needed) {
    const struct kp_task *t = acc->r.task;
    accuracy_plan(acc);
    acc->oracle = kp_exec_create_oracle(t, oracle_limit);
    size_t most = kp_exec_workspace(acc->oracle);
    for (int b = 0; b < acc->nbaselines; b++)
        if (kp_exec_workspace(acc->exec[b]) > most) most = kp_exec_workspace(acc->exec[b]);
    *needed = accuracy_bytes(t) + most;
    for (int i = 0; i < acc->nbaselines * t->noutputs; i++)
        if (cudaMalloc(&acc->out[i / t->noutputs][i % t->noutputs],
                       output_bytes(t, i % t->noutputs)))
            return cudaGetLastError(), false;
    if (most && cudaMalloc(&acc->workspace, most)) return cudaGetLastError(), false;
    if (cudaMalloc((void **)&acc->suspects, COMPARED * sizeof *acc->suspects))
        return cudaGetLastError(), false;
    device_check(cudaMalloc((void **)&acc->found, COMPARED * sizeof *acc->found), "comparing");
    acc->seen = calloc(COMPARED, sizeof *acc->seen);
    acc->place = malloc(COMPARED * KP_MOST_SUSPECTS * sizeof *acc->place);
    if (!acc->seen || !acc->place) die(KP_MACHINE, "comparing: out of memory");
    device_check(cudaMalloc((void **)&acc->spread, KP_MAX_OUTPUTS * sizeof *acc->spread),
                 "comparing");
    return true;
}

void accuracy_others(struct accuracy *acc, int n, size_t spare) {
    const struct kp_task *t = acc->r.task;
    size_t bytes = 0, free_bytes, total;
    for (int k = 0; k < t->noutputs; k++) bytes += output_bytes(t, k);
    for (; acc->others < n; acc->others++) {
        KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
        if (free_bytes < bytes + spare) return;
        for (int k = 0; k < t->noutputs; k++)
            device_check(cudaMalloc(&acc->other[acc->others][k], output_bytes(t, k)), "comparing");
    }
}

static void give_back(void *memory) {
    device_check(cudaFree(memory), "closing");
}

void accuracy_close(struct accuracy *acc) {
    if (!acc->r.shared) return; /* never opened: there may be no GPU */
    const char *before = phase("memory");
    device_check(cudaDeviceSynchronize(), "closing");
    for (int b = 0; b < KP_MAX_BASELINES; b++) {
        for (int k = 0; k < KP_MAX_OUTPUTS; k++) give_back(acc->out[b][k]);
        kp_exec_destroy(acc->exec[b]);
    }
    for (int i = 0; i < KP_MAX_OTHERS * KP_MAX_OUTPUTS; i++)
        give_back(acc->other[i / KP_MAX_OUTPUTS][i % KP_MAX_OUTPUTS]);
    kp_exec_destroy(acc->oracle);
    give_back(acc->workspace);
    give_back(acc->found);
    give_back(acc->suspects);
    free(acc->seen);
    free(acc->place);
    give_back(acc->spread);
    referee_close(&acc->r);
    memset(acc, 0, sizeof *acc);
    phase(before);
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
    double rms[KP_MAX_OUTPUTS];
    bool lost_counts;
};

/* The outputs of one who is compared. */
static void *const *outputs_of(const struct slice_context *c, int who) {
    const struct accuracy *acc = c->acc;
    if (!who--) return c->outputs;
    return who < acc->judged ? acc->out[who] : acc->other[who - acc->judged];
}

/* Compare a range of the oracle's output k with the same range of everybody's.  The candidate's
 * alone was poisoned: with the inverted word nothing of another's counts as unwritten. */
static void compare_slice(void *context, int k, int64_t offset, int64_t count,
                          const struct kp_draws *values, cudaStream_t stream) {
    struct slice_context *c = context;
    struct accuracy *acc = c->acc;
    const struct kp_task *t = acc->r.task;
    const struct kp_value *v = &t->values[t->outputs[k]];
    int64_t total = kp_shape_count(&v->shape);
    size_t at = (size_t)offset * kp_dtype_size(v->dtype);
    struct kp_stray_rule rule = {suspect_from(total), c->lost_counts, c->rms[k], acc->r.poison};
    for (int who = 0; who <= acc->judged + acc->others; who++) {
        const char *y = outputs_of(c, who)[k];
        int i = who * t->noutputs + k;
        device_stray(y + at, v->dtype, values, offset, count, total, &rule, &acc->found[i],
                     &acc->suspects[i], who ? NULL : &acc->spread[k], stream);
        rule.poison = ~acc->r.poison;
    }
}

/* Give the suspects in a range of output k these draws, too. */
static void redraw_slice(void *context, int k, int64_t offset, int64_t count,
                         const struct kp_draws *values, cudaStream_t stream) {
    struct accuracy *acc = context;
    for (int i = k; i < compared(acc); i += acc->r.task->noutputs)
        device_redraw(values, offset, count, &acc->suspects[i], stream);
}

static void to_host(struct accuracy *acc, void *host, const void *device, size_t bytes) {
    device_check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, acc->r.stream),
                 "comparing");
}

/* The limits of the output that the i-th comparison is of. */
static struct kp_type_limits limits_of(const struct kp_task *t, int i) {
    return kp_limits_of(t->values[t->outputs[i % t->noutputs]].dtype);
}

/* The elements of that output. */
static int64_t count_of(const struct kp_task *t, int i) {
    return kp_shape_count(&t->values[t->outputs[i % t->noutputs]].shape);
}

/* Whether someone's suspects get more draws: a baseline that is meant to be of a lesser class is
 * off all over, and so are other arithmetics. */
static bool may_be_of(const struct accuracy *acc, int who, enum kp_class class) {
    return !who || (who <= acc->judged && class_of_math(acc->math[who - 1]) <= class);
}

/* Fetch the suspects as they are now, and those that are off by more than the limit still, into
 * acc->place.  Where there were too many, or more draws are no help, none is.  Returns how many. */
static int unsettled(struct accuracy *acc, const double *rms, const bool *no_help) {
    const struct kp_task *t = acc->r.task;
    int n = 0;
    for (int i = 0; i < compared(acc); i++)
        to_host(acc, &acc->seen[i].count, &acc->suspects[i].count, sizeof acc->seen[i].count);
    referee_wait(&acc->r);
    for (int i = 0; i < compared(acc); i++) {
        struct kp_suspects *s = &acc->seen[i];
        bool few = s->count <= KP_MOST_SUSPECTS && !no_help[i];
        if (s->count > KP_MOST_SUSPECTS) s->count = KP_MOST_SUSPECTS;
        if (!s->count) continue;
        to_host(acc, s->item, acc->suspects[i].item, s->count * sizeof *s->item);
        referee_wait(&acc->r);
        for (size_t k = 0; k < s->count && few; k++) {
            struct kp_strayed e =
                kp_judge_suspect(&s->item[k], rms[i % t->noutputs], limits_of(t, i));
            if (!kp_is_suspect(&e, limits_of(t, i), suspect_from(count_of(t, i)))) continue;
            acc->place[n++] = (struct kp_place){i % t->noutputs, (int64_t)s->item[k].at};
        }
    }
    return n;
}

/* Give suspects more draws, until none is left or they have had the most; those of other slices get
 * none.  no_help: of each comparison, whether it fails without them, or is of someone who gets
 * none. */
static void redraw(struct accuracy *acc, const void *const *tensors, const struct kp_noise *noise,
                   const double *rms, const bool *no_help) {
    for (int pass = 1;; pass++) {
        int n = unsettled(acc, rms, no_help);
        if (!n || pass > MOST_REDRAWS) return;
        struct kp_noise other = *noise;
        other.seed = kp_mix(noise->seed, (uint64_t)pass);
        kp_exec_oracle_at(acc->oracle, tensors, acc->workspace, &other, acc->place, n, redraw_slice,
                          acc, acc->r.stream);
    }
}

/* Judge the suspects, and add them to what was found.  The spread of the candidate's may be the
 * largest. */
static void settle(struct accuracy *acc, const double *rms, struct kp_stray *found,
                   struct kp_spread *spread) {
    const struct kp_task *t = acc->r.task;
    for (int i = 0; i < compared(acc); i++)
        for (size_t k = 0; k < acc->seen[i].count; k++) {
            const struct kp_suspect *x = &acc->seen[i].item[k];
            const double of = rms[i % t->noutputs];
            kp_settle(&found[i], x, of, (uint64_t)count_of(t, i), limits_of(t, i),
                      KP_ELEMENT_LIMIT);
            double own = kp_spread_of(x->o, x->s2, x->draws, of, limits_of(t, i));
            if (i < t->noutputs && isfinite(own))
                spread[i].largest = fmax(spread[i].largest, own / (fabs(x->o) + of));
        }
}

/* The worst over a task's outputs. */
static struct kp_judgment judge(const struct kp_task *t, const struct kp_stray *found,
                                const struct kp_spread *spread, enum kp_class class) {
    struct kp_judgment worst = {0};
    for (int k = 0; k < t->noutputs; k++)
        worst = judgment_worst(worst, judge_output(&found[k], &spread[k], class));
    return worst;
}

/* Whether all of the candidate's outputs are near the baseline's, by the spreads of those that were
 * judged. */
static bool near_baseline(struct accuracy *acc, const struct slice_context *c,
                          struct kp_error spread) {
    struct kp_compare found[KP_MAX_OUTPUTS];
    struct kp_error tolerance = tolerance_when_timed(spread);
    referee_compare(&acc->r, c->outputs, acc->out[0], c->rms, tolerance.element, c->lost_counts,
                    found);
    struct kp_error e = referee_error(acc->r.task, found);
    return !error_exceeds(&e, &tolerance);
}

/* Judge `most` elements of the outputs that `c` names, or all if 0.  Returns whether it was all. */
static bool judge_slices(struct slice_context *c, const void *const *tensors, enum kp_class class,
                         int64_t most, uint64_t seed, struct sample_errors *out) {
    struct accuracy *acc = c->acc;
    struct referee *r = &acc->r;
    struct kp_stray host[COMPARED] = {0};
    struct kp_spread spread[KP_MAX_OUTPUTS];
    struct kp_noise noise = noise_of(class, seed);
    const int n = r->task->noutputs;
    for (int i = 0; i < compared(acc); i++)
        device_stray_reset(&acc->found[i], &acc->suspects[i], r->stream);
    for (int k = 0; k < n; k++) device_spread_reset(&acc->spread[k], r->stream);
    bool all = kp_exec_oracle(acc->oracle, tensors, acc->workspace, &noise, most, compare_slice, c,
                              r->stream);
    to_host(acc, host, acc->found, (size_t)compared(acc) * sizeof *host);
    to_host(acc, spread, acc->spread, (size_t)n * sizeof *spread);
    bool no_help[COMPARED] = {false};
    referee_wait(r);
    for (int i = 0; i < compared(acc); i++) {
        struct kp_judgment j = judge_output(&host[i], &spread[i % n], class);
        no_help[i] = !judgment_passes(&j) || !may_be_of(acc, i / n, class);
    }
    redraw(acc, tensors, &noise, c->rms, no_help);
    settle(acc, c->rms, host, spread);
    *out = (struct sample_errors){.candidate = judge(r->task, host, spread, class)};
    memcpy(out->found, host, sizeof out->found);
    for (int b = 0; b < acc->judged; b++)
        out->baseline[b] = judge(r->task, host + n * (b + 1), spread, class);
    for (int i = 0; i < acc->others; i++)
        out->other[i] = judge(r->task, host + n * (1 + acc->judged + i), spread, class);
    for (int k = 0; k < n; k++) {
        enum kp_dtype type = r->task->values[r->task->outputs[k]].dtype;
        out->spread = error_worst(out->spread, spread_as_error(&spread[k], type));
        out->infinite |= host[n + k].infinite > 0;
    }
    return all;
}

/* The rest is compared with a baseline by the spreads of other slices, which may be smaller where
 * sums cancel, or where a clamp or a step lies: what is not near it is for the oracle to judge. */
static void judge_sample(struct accuracy *acc, int placement, enum kp_class class,
                         enum how_much much, uint64_t seed, struct sample_errors *out) {
    struct slice_context c = {.acc = acc, .lost_counts = class != KP_CLASS_NORMWISE};
    const void *tensors[KP_MAX_BUFFERS];
    referee_pointers(&acc->r, placement, tensors, c.outputs);
    for (int b = 0; b < acc->judged; b++) accuracy_baseline(acc, placement, b);
    if (acc->stand_in) referee_keep_outputs(&acc->r, acc->out[0], c.outputs);
    referee_rms(&acc->r, acc->judged ? acc->out[0] : c.outputs, c.rms);
    int64_t most = much == KP_ALL ? 0 : KP_JUDGED_ELEMENTS;
    bool all = judge_slices(&c, tensors, class, most, seed, out);
    if (all || much != KP_SOME || !judgment_passes(&out->candidate)) return;
    if (!near_baseline(acc, &c, out->spread)) judge_slices(&c, tensors, class, 0, seed, out);
}

void accuracy_sample(struct accuracy *acc, int placement, enum kp_class class, enum how_much much,
                     uint64_t seed, struct sample_errors *out) {
    const char *before = phase("oracle");
    judge_sample(acc, placement, class, much, seed, out);
    phase(before);
}

bool sample_outside(const struct sample_errors *found, enum kp_distribution d) {
    if (d == KP_DIST_DECLARED) return false;
    return found->infinite || (d == KP_DIST_LARGE && !judgment_passes(&found->baseline[0]));
}

/* Two runs of one arithmetic differ by so much where the contents decide by chance. */
static const double excused_times = 2;

bool sample_excused(const struct kp_judgment *candidate, const struct kp_judgment *baseline,
                    const struct kp_judgment *first, enum kp_distribution d) {
    double most = excused_times * baseline->of_limit;
    return d != KP_DIST_DECLARED && !judgment_passes(baseline) && first->of_limit <= most &&
           isfinite(candidate->of_limit) && candidate->of_limit <= most;
}

bool accuracy_excuses(struct accuracy *acc, int placement, enum how_much much, uint64_t seed,
                      enum kp_distribution d) {
    enum kp_class class[KP_CLASS_COUNT];
    struct sample_errors first, last;
    int n = classes_of(acc->r.task, class);
    acc->judged = 1;
    accuracy_sample(acc, placement, class[0], much, seed, &first);
    accuracy_sample(acc, placement, class[n - 1], much, seed, &last);
    return sample_excused(&last.candidate, &last.baseline[0], &first.baseline[0], d);
}

int sample_stray(const struct kp_task *t, const struct sample_errors *found) {
    for (int k = 0; k < t->noutputs; k++)
        if (found->found[k].bad) return k;
    return -1;
}

cJSON *sample_evidence(const struct kp_task *t, const struct sample_errors *found,
                       enum kp_distribution d, uint64_t seed) {
    cJSON *e = cJSON_CreateObject();
    char *hex = text_format("%016llx", (unsigned long long)seed);
    cJSON_AddStringToObject(e, "distribution", kp_distribution_name[d]);
    cJSON_AddStringToObject(e, "seed", hex);
    free(hex);
    int k = sample_stray(t, found);
    if (k < 0) return e;
    const struct kp_value *output = &t->values[t->outputs[k]];
    const struct kp_stray *f = &found->found[k];
    cJSON_AddStringToObject(e, "output", output->name);
    cJSON_AddNumberToObject(e, "index", (double)f->first_bad);
    json_add_number(e, "expected", f->first_expected);
    json_add_number(e, "found", f->first_found);
    cJSON_AddNumberToObject(e, "count", (double)f->bad);
    cJSON_AddNumberToObject(e, "of", (double)kp_shape_count(&output->shape));
    cJSON_AddNumberToObject(e, "unwritten", (double)f->unwritten);
    return e;
}
