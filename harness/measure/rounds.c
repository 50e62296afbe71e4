/* rounds.c: see rounds.h.
 *
 * A round is one sample of each runner, in random order, on the same new contents.
 * Nothing is allocated or freed between the first round and the last: freed memory
 * is scrubbed in the background, which slows everything by a tenth. */
#define _GNU_SOURCE
#include "measure/rounds.h"
#include "base/clock.h"
#include "base/json.h"
#include "gpu/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fail(struct timing *t, const char *verdict, const char *reason) {
    t->verdict = verdict;
    snprintf(t->reason, sizeof t->reason, "%s", reason);
    return false;
}

/* A contestant that does not answer as it should: a verdict if it is the candidate, a
 * machine error if it is a baseline. */
static bool settle(struct timing *t, int a, const struct runner_reply *r) {
    static const char *const word[] = {[RUNNER_TAPE] = "tape",
                                       [RUNNER_CRASH] = "crash",
                                       [RUNNER_STATE] = "wrong",
                                       [RUNNER_TIMEOUT] = "timeout"};
    if (r->status == RUNNER_OK) return true;
    bool candidate = !strcmp(t->runner_name[a], "candidate");
    if (!candidate || r->status == RUNNER_MACHINE)
        die(KP_MACHINE, "the %s runner failed: %s", t->runner_name[a], r->message);
    return fail(t, word[r->status], r->message);
}

bool rounds_start(struct timing *t, bool aa) {
    char *tape = text_format("%s.tape", t->prefix), *cubin = text_format("%s.cubin", t->prefix);
    char *candidate[] = {"runner", tape, cubin, NULL};
    /* All runners lay their buffers out alike: page tables of one shape, equally far to walk. */
    uint64_t layout = random_seed();
    t->nrunners = aa ? 2 : 1 + t->j.nbaselines;
    for (int a = 0; a < t->nrunners; a++) {
        bool mine = a == 0 || aa;
        static const char *const math[] = {"fp32", "tf32", "half"};
        char *baseline[] = {"baseline", (char *)t->task->path,
                            mine ? NULL : (char *)math[t->j.math[a - 1]], NULL};
        struct runner_setup setup = referee_setup(&t->r, layout);
        t->runner_name[a] = mine ? "candidate" : kp_math_name(t->task, t->j.math[a - 1]);
        process_start(&t->runner[a], t->runner_name[a], mine ? candidate : baseline, mine, &setup,
                      t->r.shared);
    }
    bool ok = true;
    for (int a = 0; a < t->nrunners && ok; a++) {
        struct runner_reply reply;
        process_wait(&t->runner[a], t->deadline + 60, &reply, NULL); /* libraries load slowly */
        ok = settle(t, a, &reply);
    }
    free(tape);
    free(cubin);
    return ok;
}

void rounds_stop(struct timing *t) {
    for (int a = 0; a < t->nrunners; a++) process_end(&t->runner[a]);
}

struct kp_interval rounds_ratio(const struct timing *t, int a) {
    return stat_ratio(t->samples[a].event_us, t->samples[0].event_us, t->placement, t->rounds,
                      t->tick_us, t->master, 1000);
}

/* What one round does. */
struct round {
    int placement, order[KP_MAX_RUNNERS];
    enum kp_distribution distribution;
    bool decoy, oracle, record;
    uint64_t seed;
    double rms[4];
};

/* Decide a round by lot.  Each seed is drawn, none derived from others: who searches long enough
 * finds a round's seed from its contents, and must not learn from it what is to come. */
static struct round draw_round(struct timing *t, int number, bool record) {
    struct round q = {.seed = random_seed(), .record = record};
    uint64_t lot = kp_mix(q.seed, 1);
    q.placement = number % t->r.nplacements;
    q.decoy = record && lot % 10 == 0;
    q.distribution = !q.decoy ? KP_DIST_DECLARED : (lot >> 8) % 2 ? KP_DIST_NORMAL : KP_DIST_SCALED;
    q.oracle = record && (lot >> 16) % 20 == 0;
    for (int a = 0; a < t->nrunners; a++) q.order[a] = a;
    for (int a = t->nrunners - 1; a > 0; a--) {
        int b = (int)((lot >> (24 + 4 * a)) % (uint64_t)(a + 1)), x = q.order[a];
        q.order[a] = q.order[b], q.order[b] = x;
    }
    return q;
}

/* Every element of what a runner has just written. */
static bool check_outputs(struct timing *t, const struct round *q, int a) {
    struct kp_compare found[4];
    const struct kp_error *tolerance = &t->tolerance[a][q->distribution];
    unsigned long long bytes;
    referee_compare(&t->r, q->placement, t->j.out[0], q->rms, tolerance->element, found);
    struct kp_error e = referee_error(t->task, found, q->rms);
    const char *where = referee_canaries(&t->r, q->placement, &bytes);
    if (!where && !error_exceeds(&e, tolerance)) return true;
    char reason[KP_TAPE_MESSAGE];
    int k = 0; /* the output that shows it */
    while (k < t->task->noutputs - 1 && !found[k].bad) k++;
    if (where)
        snprintf(reason, sizeof reason,
                 "while being timed: %llu bytes outside the bounds of %s were written", bytes,
                 where);
    else if (!found[k].bad)
        snprintf(
            reason, sizeof reason,
            "a timed run was wrong (%s inputs): the %s error over the whole output is too large",
            kp_distribution_name[q->distribution], error_exceeds(&e, tolerance));
    else
        snprintf(reason, sizeof reason,
                 "a timed run was wrong (%s inputs): %llu elements off, first at %llu: expected "
                 "%.9g, found %.9g",
                 kp_distribution_name[q->distribution], found[k].bad, found[k].first_bad,
                 found[k].first_expected, found[k].first_found);
    if (strcmp(t->runner_name[a], "candidate"))
        die(KP_MACHINE, "the %s runner: %s", t->runner_name[a], reason);
    return fail(t, "wrong", reason);
}

static bool check_oracle(struct timing *t, const struct round *q) {
    struct sample_errors found;
    accuracy_sample(&t->j, q->placement, t->oracle_tolerance[q->distribution].element, &found);
    t->oracle_checks++;
    if (!error_exceeds(&found.candidate, &t->oracle_tolerance[q->distribution])) return true;
    return fail(t, "wrong",
                "a timed run differs from the float64 oracle by more than its class allows");
}

static bool sample(struct timing *t, const struct round *q, int a) {
    struct runner_reply reply;
    referee_poison(&t->r, q->placement, kp_mix(q->seed, (uint64_t)(50 + a)));
    referee_wait(&t->r);
    process_ask(&t->runner[a], RUNNER_SAMPLE, q->placement, t->deadline, &reply);
    if (!settle(t, a, &reply) || !check_outputs(t, q, a)) return false;
    if (a == 0 && q->oracle && !check_oracle(t, q)) return false;
    struct runner_samples *s = &t->samples[a];
    if (q->decoy)
        s->decoy_us[t->decoys] = reply.event_us;
    else if (q->record) {
        s->event_us[t->rounds] = reply.event_us;
        s->host_us[t->rounds] = reply.host_us;
    }
    return true;
}

static bool one_round(struct timing *t, int number, bool record) {
    struct round q = draw_round(t, number, record);
    referee_fill(&t->r, q.placement, q.distribution, q.seed);
    accuracy_baseline(&t->j, q.placement, 0);
    referee_rms(&t->r, t->j.out[0], q.rms);
    for (int k = 0; k < t->nrunners; k++)
        if (!sample(t, &q, q.order[k])) return false;
    if (q.decoy)
        t->decoys++;
    else if (record)
        t->placement[t->rounds++] = t->restarts ? t->epoch : q.placement;
    return true;
}

/* The smallest step between samples: what the clock cannot tell apart. */
static double tick_of(const double *x, int n) {
    double tick = 0.5;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double d = fabs(x[i] - x[j]);
            if (d > 1e-4 && d < tick) tick = d;
        }
    return tick;
}

static bool time_empty(struct timing *t) {
    enum { N = 31 };
    double x[N];
    for (int i = 0; i < N; i++) {
        struct runner_reply reply;
        process_ask(&t->runner[0], RUNNER_EMPTY, 0, t->deadline, &reply);
        if (!settle(t, 0, &reply)) return false;
        x[i] = reply.event_us;
    }
    t->empty_us = stat_median(x, N);
    t->tick_us = tick_of(x, N);
    return true;
}

/* Half of each interval is at most this share of its ratio, for every baseline that may be
 * quoted. */
static bool known_within(const struct timing *t, double share) {
    for (int a = 1; a < t->nrunners; a++) {
        struct kp_interval r = rounds_ratio(t, a);
        if ((r.high - r.low) / 2 > share * r.value) return false;
    }
    return true;
}

/* Known well enough to stop. */
static bool settled(const struct timing *t) {
    if (t->rounds < KP_LEAST_ROUNDS || t->rounds % (t->rounds < 100 ? 10 : 50)) return false;
    return t->nrunners > 1 && !t->restarts && known_within(t, 0.003);
}

/* Rounds with the runners that run now, at most `most` of them in at most `seconds`. */
static bool rounds(struct timing *t, int most, double seconds) {
    static int number; /* placements take turns */
    for (int i = 0; i < 2 * t->r.nplacements; i++)
        if (!one_round(t, number++, false)) return false; /* warm up */
    double until = seconds_now() + seconds;
    for (int n = t->rounds; t->rounds < n + most && t->decoys < KP_MOST_ROUNDS;) {
        if (!one_round(t, number++, true)) return false;
        if (t->rounds % 8 == 0) machine_watch();
        if (settled(t) || (seconds_now() > until && t->rounds >= n + 5)) break;
    }
    return true;
}

/* A kernel of a few microseconds feels something that is settled when a process starts:
 * on an H200, 4.05 us are 3.95 to 4.2, steady within a process, whatever the placement of
 * buffers, code and streams.  So such cells are measured in several sets of processes,
 * few rounds in each, until the ratio is known or three times the cap on measuring has passed
 * (starting takes longer than measuring); the interval is drawn over the sets. */
bool rounds_run(struct timing *t, bool aa) {
    enum { LEAST_SETS = 8, MOST_SETS = 48, PROBE = 10 };
    t->rounds = t->decoys = t->epoch = 0;
    t->restarts = false;
    if (!time_empty(t) || !rounds(t, PROBE, t->cap_seconds)) return false;
    t->restarts = stat_median(t->samples[0].event_us, t->rounds) < 20;
    if (!t->restarts) return rounds(t, KP_MOST_ROUNDS - PROBE, t->cap_seconds);
    t->rounds = t->decoys = 0;
    double until = seconds_now() + 3 * t->cap_seconds;
    for (; t->epoch < MOST_SETS; t->epoch++) {
        if (t->epoch >= LEAST_SETS && (known_within(t, 0.007) || seconds_now() > until)) break;
        rounds_stop(t);
        if (!rounds_start(t, aa) ||
            !rounds(t, KP_MOST_ROUNDS / MOST_SETS, t->cap_seconds / MOST_SETS))
            return false;
    }
    return true;
}
