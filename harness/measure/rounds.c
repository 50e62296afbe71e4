/* rounds.c: see rounds.h.
 *
 * A round is one sample of each runner, in random order, on the same new inputs.  Nothing is
 * allocated or freed between the first round and the last: the driver scrubs freed memory in the
 * background, which slows everything by a tenth. */
#define _GNU_SOURCE
#include "measure/rounds.h"
#include "measure/phases.h"
#include "base/clock.h"
#include "gpu/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The numbers of the rules ---------------------------------------------------------- */

enum {
    LIBRARY_SECONDS = 60, /* extra time for a runner to start: libraries load slowly */
    CONTROL_SHARE = 10,  /* one round in 10 is on control inputs: does a kernel look at its data? */
    CONTROL_SOON = 2,    /* one in 2, as long as some distribution lacks its least */
    ORACLE_SHARE = 16,   /* one round in 16 is compared with the oracle, which takes long, and the
                          * first on each control distribution */
    CONTROL_ORACLE = 2,  /* and one in 2 of the others on control inputs, which are compared with
                          * nothing else: how large spreads are differs from sample to sample */
    WARM_UP = 2,         /* unrecorded rounds at each placement, for clocks and caches */
    WATCH_EVERY = 8,     /* rounds between two looks at clocks and power */
    LEAST_AFTER_CAP = 5, /* rounds that are done even after the cap: statistics need a few */
    EMPTY_SAMPLES = 31,  /* of the empty graph: they give its median and the clock's tick */
    PROBE = 10           /* rounds that tell whether a kernel is short */
};
/* Stop when half of the interval is 0.3 % of the ratio; of long kernels 0.5 %, as boards differ by
 * 1 to 2 % and each round is dear. */
static const double known_share = 0.003, long_known_share = 0.005, long_us = 200;
static const double tick_most = 0.5;   /* us: CUDA says that events resolve half a microsecond */
static const double tick_least = 1e-4; /* us: smaller steps are rounding errors */

/* A kernel shorter than this is measured in several sets of processes, because something that is
 * decided when a process starts affects it.  On an H200 a kernel of 4.05 us takes 3.95 to 4.2 us:
 * steady within a process, different between processes, at any placement of buffers, code and
 * streams; one of 34 us differs by 0.2 to 0.6 % from itself in another process. */
static const double short_us = 50;
static const double short_known_share = 0.007; /* sets differ: 0.3 % would take too many */
enum {
    SHORT_LEAST_SETS = 8, /* the interval is drawn over sets: fewer say little of their spread */
    SHORT_FEW_SETS = 4,   /* enough where a task asks for less: few sets make a wide interval */
    SHORT_MOST_SETS = 48, /* each gets this part of the rounds and of the seconds */
    SHORT_CAPS = 6,       /* all sets may take so many caps, */
    SHORT_ROUNDS_CAPS = 2 /* so many of them for rounds: starting takes longer than measuring */
};

/* The stopping rule costs a bootstrap: it is tried every 10 rounds, from 100 rounds on every 50. */
enum { LOOK_EVERY = 10, MANY = 100, LOOK_SELDOM = 50 };

/* A round's seed gives its lot and each runner's poison: these numbers keep them apart. */
enum { LOT_OF_SEED = 1, POISON_OF_SEED = 50 };
/* Bits of the lot: the lowest say whether the round is on control inputs, then come these. */
enum { LOT_DISTRIBUTION = 8, LOT_ORACLE = 16, LOT_ORDER = 24, LOT_BITS = 4 };
/* A round's seed gives the oracle's noise, too. */
enum { NOISE_OF_SEED = 2 };

/* ---- Runners --------------------------------------------------------------------------- */

static bool fail(struct rounds *t, const char *verdict, const char *reason) {
    t->verdict = verdict;
    snprintf(t->reason, sizeof t->reason, "%s", reason);
    return false;
}

static bool is_candidate(const struct rounds *t, int i) {
    return !strcmp(t->runner_name[i], "candidate");
}

/* A runner that does not answer as it should: a verdict if it is the candidate's, a machine error
 * if it is a baseline's. */
static bool settle(struct rounds *t, int i, const struct runner_reply *r) {
    static const char *const word[] = {[RUNNER_TAPE] = "tape",
                                       [RUNNER_CRASH] = "crash",
                                       [RUNNER_STATE] = "wrong",
                                       [RUNNER_TIMEOUT] = "timeout"};
    if (r->status == RUNNER_OK) return true;
    if (!is_candidate(t, i) || r->status == RUNNER_MACHINE)
        die(KP_MACHINE, "the %s runner failed: %s", t->runner_name[i], r->message);
    return fail(t, word[r->status], r->message);
}

/* Runner i of the set that is asked now. */
static struct kp_process *runner(struct rounds *t, int i) {
    return &t->set[t->asked][i];
}

static void spawn(struct rounds *t, struct kp_process *p) {
    process_start_runner(p, "candidate", t->prefix);
}

void rounds_spawn(struct rounds *t) {
    spawn(t, runner(t, 0));
    t->runner_name[0] = "candidate";
    t->nrunners = 1;
}

/* The arithmetic of the baseline that runner i runs. */
static enum kp_math math_of(const struct rounds *t, int i) {
    return t->acc.math[t->missing ? i : i - 1];
}

/* Start a set of runners: the candidate's and one for each baseline. */
static void start_set(struct rounds *t, struct kp_process *set, bool aa) {
    /* All of a set lay out their buffers alike, so that their page tables are of one shape. */
    const struct runner_setup setup = referee_setup(&t->acc.r, random_seed());
    static const char *const math[] = {"fp32", "tf32", "half"};
    for (int i = 0; i < t->nrunners; i++) {
        bool mine = (i == 0 || aa) && !t->missing;
        enum kp_math own = mine ? KP_MATH_FP32 : math_of(t, i);
        t->runner_name[i] = mine ? "candidate" : kp_math_name(t->task, own);
        if (!mine) {
            process_start_baseline(&set[i], t->runner_name[i], t->task->path, math[own], t->choices,
                                   &setup, t->acc.r.shared);
            continue;
        }
        if (!set[i].pid) spawn(t, &set[i]);
        process_setup(&set[i], &setup, t->acc.r.shared);
    }
}

/* Start sets of processes side by side until there are n, and wait until all are ready. */
static bool start_sets(struct rounds *t, int n, bool aa) {
    const char *before = phase("runners");
    t->nrunners = aa ? 2 : !t->missing + t->acc.nbaselines;
    int first = t->sets * t->nrunners;
    for (int k = t->sets; k < n; k++) start_set(t, t->set[k], aa);
    t->sets = n;
    bool ok = true;
    for (int k = first; k < n * t->nrunners && ok; k++) {
        struct runner_reply reply;
        int i = k % t->nrunners;
        process_wait(&t->set[k / t->nrunners][i], t->deadline + LIBRARY_SECONDS, &reply, NULL);
        ok = settle(t, i, &reply);
    }
    phase(before);
    return ok;
}

bool rounds_start(struct rounds *t, bool aa) {
    t->asked = 0;
    return start_sets(t, 1, aa);
}

bool rounds_renew(struct rounds *t, bool aa) {
    if (++t->asked < t->sets) return true;
    if (t->sets == t->sets_at_once) rounds_stop(t);
    t->asked = t->sets;
    return start_sets(t, t->sets_at_once, aa);
}

void rounds_stop(struct rounds *t) {
    process_end(t->set[0], KP_MOST_SETS * KP_MAX_RUNNERS);
    t->sets = 0;
}

void rounds_leave(struct rounds *t, bool right) {
    for (int i = 0; i < KP_MOST_SETS * KP_MAX_RUNNERS; i++) {
        struct kp_process *p = &t->set[i / KP_MAX_RUNNERS][i % KP_MAX_RUNNERS];
        bool left = t->family ? right : i / KP_MAX_RUNNERS == t->asked && !p->candidates;
        if (p->pid > 0 && left) process_leave(p, t->deadline);
    }
    process_kill(t->set[0], KP_MOST_SETS * KP_MAX_RUNNERS);
}

struct kp_interval rounds_ratio(const struct rounds *t, int i) {
    return stat_ratio(t->samples[i].event_us, t->samples[0].event_us, t->placement, t->rounds,
                      t->tick_us, t->master, KP_RESAMPLES);
}

/* ---- One round --------------------------------------------------------------------------- */

struct round {
    int placement, order[KP_MAX_RUNNERS];
    enum kp_distribution distribution;
    bool control, oracle, record;
    bool paired; /* the candidate's outputs are compared with those of runner 1 */
    bool kept;   /* those of the first of them to run are in acc.out[0] */
    uint64_t seed;
    double rms[KP_MAX_OUTPUTS]; /* of the most accurate baseline's outputs */
};

/* Where the candidate's time differs, its baselines run beside it from then on. */
bool rounds_lack_controls(struct rounds *t, enum kp_distribution d) {
    const struct runner_samples *own = &t->samples[0];
    double declared_us = t->rounds ? stat_interquartile_mean(own->event_us, t->rounds) : NAN;
    if (!t->alone[d] && control_differs(own->control_us[d], t->controls[d], declared_us))
        t->alone[d] = t->controls[d];
    int needed = t->alone[d] ? t->alone[d] + KP_LEAST_CONTROLS : KP_FEW_CONTROLS;
    return t->controls[d] < needed;
}

/* The control distributions that lack samples, in `out`.  Returns how many. */
static int lacking_controls(struct rounds *t, enum kp_distribution out[KP_DIST_COUNT]) {
    int n = 0;
    for (int i = 0; i < t->ncontrols; i++)
        if (rounds_lack_controls(t, t->control[i])) out[n++] = t->control[i];
    return n;
}

/* Decide a round by lot.  Every seed is drawn, none is derived from another: a kernel that searches
 * long enough finds a round's seed from its inputs, and must not learn from it what is to come. */
static struct round draw_round(struct rounds *t, int number, bool record) {
    struct round q = {.seed = random_seed(), .record = record};
    uint64_t lot = kp_mix(q.seed, LOT_OF_SEED);
    q.placement = number % t->acc.r.nplacements;
    q.oracle = record && (lot >> LOT_ORACLE) % ORACLE_SHARE == 0;
    enum kp_distribution lacking[KP_DIST_COUNT];
    int n = record ? lacking_controls(t, lacking) : 0;
    if (record && t->ncontrols && lot % (n ? CONTROL_SOON : CONTROL_SHARE) == 0) {
        const enum kp_distribution *of = n ? lacking : t->control;
        q.distribution = of[(lot >> LOT_DISTRIBUTION) % (uint64_t)(n ? n : t->ncontrols)];
        q.control = t->controls[q.distribution] < KP_MOST_CONTROLS;
        if (!q.control) q.distribution = KP_DIST_DECLARED;
        if (q.control)
            q.oracle = !t->controls[q.distribution] || (lot >> LOT_ORACLE) % CONTROL_ORACLE == 0;
    }
    q.paired = record && !q.control && (t->missing || !is_candidate(t, 1));
    for (int i = 0; i < t->nrunners; i++) q.order[i] = i;
    for (int i = t->nrunners - 1; i > 0; i--) {
        int k = (int)((lot >> (LOT_ORDER + LOT_BITS * i)) % (uint64_t)(i + 1)), x = q.order[i];
        q.order[i] = q.order[k], q.order[k] = x;
    }
    return q;
}

void rounds_allow(struct rounds *t, struct kp_error spread) {
    t->spread = error_worst(t->spread, spread);
    for (int i = 0; i < !t->missing + t->acc.nbaselines; i++) {
        bool lesser = (i || t->missing) && class_of_math(math_of(t, i)) > t->class;
        double times = lesser ? KP_UNIT_TF32 / KP_UNIT_FP32 : 1;
        t->tolerance[i] = tolerance_when_timed(t->spread);
        t->tolerance[i].norm *= times;
        t->tolerance[i].element *= times;
    }
}

/* Why the candidate's sample is wrong. */
static bool fail_sample(struct rounds *t, const struct round *q, const struct sample_errors *e) {
    const struct kp_judgment *j = &e->candidate;
    char reason[KP_TAPE_MESSAGE];
    int n = snprintf(
        reason, sizeof reason,
        "a timed run is off by %.3g x the limit of class %s (%s inputs): over the output %.3g, "
        "in a part %.3g, in an element %.3g, on average %.3g x what honest arithmetic does",
        j->of_limit, class_name(t->task, t->class), kp_distribution_name[q->distribution], j->rms,
        j->part, j->element, j->bias);
    int k = sample_stray(t->task, e);
    if (k >= 0 && n < (int)sizeof reason) {
        const struct kp_stray *f = &e->found[k];
        snprintf(reason + n, sizeof reason - (size_t)n,
                 "; %llu elements, first at %llu: expected %.9g, found %.9g", f->bad, f->first_bad,
                 f->first_expected, f->first_found);
    }
    t->evidence = sample_evidence(t->task, e, q->distribution, q->seed);
    return fail(t, "wrong", reason);
}

/* Judge the candidate's sample as verify does.  Where it fails, it is judged beside the most
 * accurate baseline, which may do no better there; without a kernel it is that baseline's, which
 * may do as it does.  *spread: what honest arithmetic does to it. */
static bool check_oracle(struct rounds *t, const struct round *q, enum how_much much,
                         struct kp_error *spread) {
    struct sample_errors found;
    uint64_t noise = kp_mix(q->seed, NOISE_OF_SEED);
    t->oracle_checks++;
    for (t->acc.judged = 0; t->acc.judged < 2; t->acc.judged++) {
        accuracy_sample(&t->acc, q->placement, t->class, much, noise, &found);
        *spread = found.spread;
        if (t->missing || judgment_passes(&found.candidate)) return true;
    }
    return sample_outside(&found, q->distribution) ||
           (q->control && accuracy_excuses(&t->acc, q->placement, much, noise, q->distribution)) ||
           fail_sample(t, q, &found);
}

/* Have the oracle judge all of the candidate's outputs, y, which may be kept elsewhere.  What
 * honest arithmetic does to them, others may be off by, too. */
static bool check_whole(struct rounds *t, const struct round *q, void *const *y) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    struct kp_error spread;
    referee_pointers(&t->acc.r, q->placement, tensors, outputs);
    if (y[0] != outputs[0]) referee_keep_outputs(&t->acc.r, y, outputs);
    if (!check_oracle(t, q, KP_ALL, &spread)) return false;
    rounds_allow(t, spread);
    return true;
}

/* Compare every element of runner i's outputs, y, with the most accurate baseline's, o.  Limits are
 * from other samples, and spreads differ from sample to sample: the candidate's sample that is
 * beyond them is for the oracle to judge. */
static bool compare_outputs(struct rounds *t, const struct round *q, void *const *y, void *const *o,
                            int i) {
    struct kp_compare found[KP_MAX_OUTPUTS];
    const struct kp_error *tolerance = &t->tolerance[i];
    referee_compare(&t->acc.r, y, o, q->rms, tolerance->element, t->class != KP_CLASS_NORMWISE,
                    found);
    struct kp_error e = referee_error(t->task, found);
    const char *exceeds = error_exceeds(&e, tolerance);
    if (!exceeds) return true;
    if (is_candidate(t, i)) return check_whole(t, q, y);
    die(KP_MACHINE, "the %s runner: its %s error is %.3g times as large as it may be",
        t->runner_name[i], exceeds, judge_error(&e, tolerance).of_limit);
}

/* Keep the outputs of whichever of runners 0 and 1 is the first, and compare with the second's: the
 * same baseline as the referee's own is timed anyway.  What its runner computes was compared with
 * the referee's while warming up, and it computes the same each time. */
static bool compare_pair(struct rounds *t, struct round *q, void *const *outputs, int i) {
    void *const *kept = t->acc.out[0];
    if (!q->kept) {
        q->kept = true;
        referee_keep_outputs(&t->acc.r, outputs, kept);
        return true;
    }
    referee_rms(&t->acc.r, i ? outputs : kept, q->rms);
    return compare_outputs(t, q, i ? kept : outputs, i ? outputs : kept, 0);
}

/* Look at what runner i has just written, and at what lies around it. */
static bool check_outputs(struct rounds *t, struct round *q, int i) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    unsigned long long bytes;
    char reason[KP_TAPE_MESSAGE];
    const char *where = referee_canaries(&t->acc.r, &bytes);
    referee_pointers(&t->acc.r, q->placement, tensors, outputs);
    if (!where && q->paired) return t->missing || i > 1 || compare_pair(t, q, outputs, i);
    if (!where) return q->control || compare_outputs(t, q, outputs, t->acc.out[0], i);
    snprintf(reason, sizeof reason,
             "while being timed: %llu bytes outside the bounds of %s were written", bytes, where);
    if (!is_candidate(t, i)) die(KP_MACHINE, "the %s runner: %s", t->runner_name[i], reason);
    return fail(t, "wrong", reason);
}

bool rounds_ask(struct rounds *t, int i, const struct runner_request *q,
                struct runner_reply *reply) {
    double forever = INFINITY, *left = is_candidate(t, i) ? &t->left : &forever;
    process_ask(runner(t, i), q, t->deadline, left, reply);
    return settle(t, i, reply);
}

bool rounds_look(struct rounds *t, int i, int placement, uint64_t seed, const double *rms) {
    struct round q = {.placement = placement, .distribution = KP_DIST_DECLARED, .seed = seed};
    memcpy(q.rms, rms, sizeof q.rms);
    return check_outputs(t, &q, i);
}

/* Ask runner i for a replay behind a flush. */
static bool ask(struct rounds *t, int i, enum runner_what what, int placement,
                struct runner_reply *reply) {
    const struct runner_request q = {.what = what, .placement = (uint32_t)placement};
    return rounds_ask(t, i, &q, reply);
}

/* One sample of runner i: the clock is read in replay/timed_sample.c. */
static bool sample(struct rounds *t, struct round *q, int i) {
    struct runner_reply reply;
    struct kp_error spread;
    referee_poison(&t->acc.r, q->placement, kp_mix(q->seed, (uint64_t)(POISON_OF_SEED + i)));
    referee_wait(&t->acc.r);
    if (!ask(t, i, RUNNER_SAMPLE, q->placement, &reply) || !check_outputs(t, q, i)) return false;
    if (i == 0 && q->oracle && !check_oracle(t, q, KP_SLICES, &spread)) return false;
    struct runner_samples *s = &t->samples[i];
    if (q->control)
        s->control_us[q->distribution][t->controls[q->distribution]] = reply.event_us;
    else if (q->record) {
        s->event_us[t->rounds] = reply.event_us;
        s->host_us[t->rounds] = reply.host_us;
    }
    return true;
}

bool rounds_quotable(const struct rounds *t, int i) {
    return class_of_math(math_of(t, i)) <= t->class;
}

/* Whether runner i has no sample in a round.  On control inputs no output is compared with a
 * baseline's, and their times are asked for only where the candidate's differs; none is of a lesser
 * class than its. */
static bool skips(const struct rounds *t, const struct round *q, int i) {
    return q->control && i && (!t->alone[q->distribution] || !rounds_quotable(t, i));
}

static bool one_round(struct rounds *t, int number, bool record) {
    struct round q = draw_round(t, number, record);
    referee_fill(&t->acc.r, q.placement, q.distribution, q.seed);
    if (!q.control && !q.paired) {
        accuracy_baseline(&t->acc, q.placement, 0);
        referee_rms(&t->acc.r, t->acc.out[0], q.rms);
    }
    for (int k = 0; k < t->nrunners; k++) {
        int i = q.order[k];
        if (skips(t, &q, i)) continue;
        if (!sample(t, &q, i)) return false;
    }
    if (q.control)
        t->controls[q.distribution]++;
    else if (record)
        t->placement[t->rounds++] = t->restarts ? t->epoch : q.placement;
    return true;
}

/* ---- How many rounds --------------------------------------------------------------------- */

/* The clock's tick: the smallest step between samples. */
static double tick_of(const double *x, int n) {
    double tick = tick_most;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double d = fabs(x[i] - x[j]);
            if (d > tick_least && d < tick) tick = d;
        }
    return tick;
}

bool rounds_clock(struct rounds *t) {
    double x[EMPTY_SAMPLES];
    for (int i = 0; i < EMPTY_SAMPLES; i++) {
        struct runner_reply reply;
        if (!ask(t, 0, RUNNER_EMPTY, 0, &reply)) return false;
        x[i] = reply.event_us;
    }
    t->empty_us = stat_median(x, EMPTY_SAMPLES);
    t->tick_us = tick_of(x, EMPTY_SAMPLES);
    return true;
}

/* Whether half of each interval is at most this share of its ratio, or what the task asks for, for
 * every baseline that may be quoted.  Without a candidate there is no ratio. */
static bool known_within(const struct rounds *t, double share) {
    share = fmax(share, t->task->precision);
    for (int i = 1; i < t->nrunners && !t->missing && rounds_quotable(t, i); i++) {
        struct kp_interval r = rounds_ratio(t, i);
        if ((r.high - r.low) / 2 > share * r.value) return false;
    }
    return true;
}

/* Whether the ratio is known well enough to stop. */
static bool known(struct rounds *t) {
    int every = t->rounds < MANY ? LOOK_EVERY : LOOK_SELDOM;
    enum kp_distribution lacking[KP_DIST_COUNT];
    if (t->rounds < KP_LONG_LEAST_ROUNDS || t->rounds % every || lacking_controls(t, lacking))
        return false;
    bool is_long = stat_interquartile_mean(t->samples[0].event_us, t->rounds) > long_us;
    if (!is_long && t->rounds < KP_LEAST_ROUNDS) return false;
    double share = is_long ? long_known_share : known_share;
    return !t->restarts && known_within(t, share);
}

/* Warm up, then do rounds with the runners that run now: at most `most` in at most `seconds`. */
static bool do_rounds(struct rounds *t, int most, double seconds) {
    static int number; /* placements take turns */
    for (int i = 0; i < WARM_UP * t->acc.r.nplacements; i++)
        if (!one_round(t, number++, false)) return false;
    double until = seconds_now() + seconds;
    for (int n = t->rounds; t->rounds < n + most;) {
        if (!one_round(t, number++, true)) return false;
        if (t->rounds % WATCH_EVERY == 0) machine_watch();
        bool late = seconds_now() > until && t->rounds >= n + LEAST_AFTER_CAP;
        if (known(t) || late) break;
    }
    return true;
}

/* Forget the samples, declared and control. */
static void forget(struct rounds *t) {
    t->rounds = 0;
    memset(t->controls, 0, sizeof t->controls);
    memset(t->alone, 0, sizeof t->alone);
}

bool rounds_run(struct rounds *t, bool aa) {
    t->epoch = 0;
    forget(t);
    t->restarts = false;
    if (!rounds_clock(t) || !do_rounds(t, PROBE, t->cap_seconds)) return false;
    t->restarts = stat_median(t->samples[0].event_us, t->rounds) < short_us;
    if (!t->restarts) return do_rounds(t, KP_MOST_ROUNDS - PROBE, t->cap_seconds);
    forget(t);
    t->asked = t->sets > 1 ? t->sets - 1 : -1; /* what has probed alone is the first set */
    double until = seconds_now() + SHORT_CAPS * t->cap_seconds;
    int least = t->task->precision > 0 ? SHORT_FEW_SETS : SHORT_LEAST_SETS;
    for (; t->epoch < SHORT_MOST_SETS; t->epoch++) {
        bool enough = t->epoch >= least;
        if (enough && (known_within(t, short_known_share) || seconds_now() > until)) break;
        if (!rounds_renew(t, aa) ||
            !do_rounds(t, KP_MOST_ROUNDS / SHORT_MOST_SETS,
                       SHORT_ROUNDS_CAPS * t->cap_seconds / SHORT_MOST_SETS))
            return false;
    }
    return true;
}
