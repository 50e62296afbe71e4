/* modes.c: see modes.h.
 *
 * A burst, and a turn of replays that are served, begin with the same new contents at all
 * placements and with poison in all outputs.  When it has ended, the outputs at every placement are
 * compared with the most accurate baseline's, as those of a round are.  In between the referee
 * leaves the GPU alone, so that the L2 holds what the contestants left there. */
#define _GNU_SOURCE
#include "measure/modes.h"
#include "base/clock.h"
#include "base/stats.h"
#include "gpu/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const kp_mode_name[KP_MODES] = {"offline", "server"};

/* ---- The numbers of the rules ---------------------------------------------------------- */

enum {
    LEAST_TURNS = 2,   /* of a burst over the placements, so that each is found as left by one */
    MOST_TURNS = 1000, /* for kernels that hardly take any time */
    WARM_UP = 2,       /* unrecorded rounds of a mode, for clocks */
    LEAST_ROUNDS = 5,  /* in a set, even after the cap */
    SHORT_SETS = 8,    /* sets of processes for a short kernel, as in rounds.c */
    WATCH_EVERY = 8,   /* rounds between two looks at clocks and power */
    PROBES = 3         /* replays behind a flush that tell how long one takes */
};
static const double burst_us = 2000; /* what a burst lasts at least, by what was measured first */
static const double turn_us = 100e3; /* and what a turn lasts at most, if placements can be fewer */
static const double short_us = 50;   /* a shorter kernel feels the process that it runs in */
static const double usual_gap_us = 1000;
static const double most_gap_us = 10e6; /* of the mean */

/* A seed of contents gives each runner's poison, the master seed the gaps. */
enum { POISON_OF_SEED = 50, GAPS_OF_SEED = 3 };

size_t modes_bytes(const struct kp_task *task, int placements) {
    return (size_t)placements * task_bytes(task);
}

int modes_placements(const struct kp_task *task) {
    size_t n = referee_flush_bytes() / task_bytes(task) + 1;
    return n < RUNNER_MAX_PLACEMENTS ? (int)n : RUNNER_MAX_PLACEMENTS;
}

/* How many turns a burst has over n placements, where a replay takes so long: two at least, and
 * enough for what a burst should last. */
static int turns_of(int placements, double us) {
    double turns = ceil(burst_us / (us * placements));
    return (int)fmin(MOST_TURNS, fmax(LEAST_TURNS, turns));
}

/* Mean of the gaps in microseconds: KP_SERVER_GAP_US of the environment, else 1000. */
static double mean_gap_us(void) {
    const char *text = getenv("KP_SERVER_GAP_US");
    double us = text ? atof(text) : 0;
    return us > 0 ? fmin(us, most_gap_us) : usual_gap_us;
}

/* ---- Contents ---------------------------------------------------------------------------- */

struct contents { /* the same at all placements */
    uint64_t seed;
    double rms[KP_MAX_OUTPUTS]; /* of the most accurate baseline's outputs, in acc.out[0] */
};

/* New inputs at the first so many placements, and what the baseline makes of them. */
static struct contents draw(struct rounds *t, int placements) {
    struct contents c = {.seed = random_seed()};
    for (int p = 0; p < placements; p++) referee_fill(&t->acc.r, p, KP_DIST_DECLARED, c.seed);
    accuracy_baseline(&t->acc, 0, 0);
    referee_rms(&t->acc.r, t->acc.out[0], c.rms);
    return c;
}

/* One poison in the outputs and scratch of all placements; `number` tells one from another. */
static void poison(struct rounds *t, const struct contents *c, int placements, int number) {
    for (int p = 0; p < placements; p++)
        referee_poison(&t->acc.r, p, kp_mix(c->seed, (uint64_t)(POISON_OF_SEED + number)));
    referee_wait(&t->acc.r);
}

/* The runners in random order. */
static void draw_order(const struct rounds *t, int order[KP_MAX_RUNNERS]) {
    uint64_t state = random_seed();
    for (int i = 0; i < t->nrunners; i++) order[i] = i;
    for (int i = t->nrunners - 1; i > 0; i--) {
        int k = (int)(stat_random(&state) % (uint64_t)(i + 1)), x = order[i];
        order[i] = order[k], order[k] = x;
    }
}

/* ---- Samples ----------------------------------------------------------------------------- */

/* Replays behind a flush: what one takes, of the candidate, the fastest and the slowest. */
static bool probe(struct modes *m, struct rounds *t, double *fastest, double *slowest) {
    struct runner_reply reply;
    struct contents c = draw(t, 1);
    *fastest = INFINITY, *slowest = 0;
    for (int i = 0; i < t->nrunners; i++) {
        double us[PROBES];
        for (int k = 0; k < PROBES; k++) {
            const struct runner_request q = {.what = RUNNER_SAMPLE};
            poison(t, &c, 1, i * PROBES + k);
            if (!rounds_ask(t, i, &q, &reply) || !rounds_look(t, i, 0, c.seed, c.rms)) return false;
            us[k] = reply.event_us;
        }
        double typical = stat_median(us, PROBES);
        *fastest = fmin(*fastest, typical), *slowest = fmax(*slowest, typical);
        if (i == 0) m->before_us = typical;
    }
    return true;
}

/* Keep what a replay took in the round that is being done; n < 0: it is not recorded. */
static void keep(struct modes *m, enum kp_mode mode, int n, int i, double event_us,
                 double host_us) {
    if (n < 0) return;
    m->of[mode].event_us[i][n] = event_us;
    m->of[mode].host_us[i][n] = host_us;
}

/* A round of bursts: one of each runner, on the same contents. */
static bool offline_round(struct modes *m, struct rounds *t, int n) {
    int placements = m->placements[KP_MODE_OFFLINE], order[KP_MAX_RUNNERS];
    struct contents c = draw(t, placements);
    draw_order(t, order);
    for (int k = 0; k < t->nrunners; k++) {
        int i = order[k];
        struct runner_reply reply;
        const struct runner_request q = {
            .what = RUNNER_BURST, .placements = (uint32_t)placements, .turns = (uint32_t)m->turns};
        poison(t, &c, placements, i);
        if (!rounds_ask(t, i, &q, &reply)) return false;
        for (int p = 0; p < placements; p++)
            if (!rounds_look(t, i, p, c.seed, c.rms)) return false;
        double replays = (double)placements * m->turns;
        keep(m, KP_MODE_OFFLINE, n, i, reply.event_us / replays, reply.host_us / replays);
    }
    return true;
}

struct turn { /* of replays that are served, each at a placement of its own */
    struct contents contents;
    int done, runner[RUNNER_MAX_PLACEMENTS];
};

/* Look at what a turn has left. */
static bool end_turn(struct rounds *t, struct turn *u) {
    bool ok = true;
    for (int p = 0; p < u->done && ok; p++)
        ok = rounds_look(t, u->runner[p], p, u->contents.seed, u->contents.rms);
    u->done = 0;
    return ok;
}

/* A round of replays that are served, one of each runner, all after the same gap. */
static bool server_round(struct modes *m, struct rounds *t, struct turn *u, int n) {
    int placements = m->placements[KP_MODE_SERVER], order[KP_MAX_RUNNERS];
    double share = (double)(stat_random(&m->gap_state) >> 11) * 0x1p-53;
    double gap = -m->gap_us * log1p(-share);
    draw_order(t, order);
    for (int k = 0; k < t->nrunners; k++) {
        int i = order[k];
        struct runner_reply reply;
        if (u->done == placements && !end_turn(t, u)) return false;
        if (!u->done) {
            u->contents = draw(t, placements);
            poison(t, &u->contents, placements, 0);
        }
        const struct runner_request q = {
            .what = RUNNER_SERVE, .placement = (uint32_t)u->done, .gap_us = (uint32_t)round(gap)};
        if (!rounds_ask(t, i, &q, &reply)) return false;
        u->runner[u->done++] = i;
        keep(m, KP_MODE_SERVER, n, i, reply.event_us, reply.host_us);
    }
    return true;
}

/* ---- Sets -------------------------------------------------------------------------------- */

/* Rounds of a mode with the runners that run now, as many as a set has in its share of the cap. */
static bool do_rounds(struct modes *m, struct rounds *t, enum kp_mode mode, int set) {
    struct turn u = {.done = 0};
    double until = seconds_now() + t->cap_seconds / (KP_MODES * m->sets);
    for (int done = -WARM_UP; done < KP_MODE_ROUNDS / m->sets; done++) {
        if (done >= LEAST_ROUNDS && seconds_now() > until) break;
        int n = done < 0 ? -1 : m->of[mode].rounds;
        bool ok = mode == KP_MODE_OFFLINE ? offline_round(m, t, n) : server_round(m, t, &u, n);
        if (!ok) return false;
        if (n >= 0) m->of[mode].set[m->of[mode].rounds++] = set;
        if (done % WATCH_EVERY == 0) machine_watch();
    }
    return end_turn(t, &u);
}

/* What the first replays tell: how many placements a burst turns over, how often, and in how many
 * sets of processes. */
static bool plan(struct modes *m, struct rounds *t) {
    double fastest, slowest;
    if (!probe(m, t, &fastest, &slowest)) return false;
    double most = fmin(t->acc.r.nplacements, fmax(1, floor(turn_us / slowest)));
    m->placements[KP_MODE_OFFLINE] = (int)most;
    m->placements[KP_MODE_SERVER] = t->acc.r.nplacements;
    m->turns = turns_of((int)most, fastest);
    m->sets = m->before_us < short_us ? SHORT_SETS : 1;
    return true;
}

bool modes_run(struct modes *m, struct rounds *t) {
    memset(m, 0, sizeof *m);
    m->gap_us = mean_gap_us();
    m->gap_state = kp_mix(t->master, GAPS_OF_SEED);
    if (!rounds_clock(t) || !plan(m, t)) return false;
    m->tick_us = t->tick_us;
    for (int set = 0; set < m->sets; set++) {
        if (set && !rounds_renew(t, false)) return false;
        for (int mode = 0; mode < KP_MODES; mode++) {
            if (do_rounds(m, t, (enum kp_mode)mode, set)) continue;
            char reason[sizeof t->reason];
            snprintf(reason, sizeof reason, "%s: %.480s", kp_mode_name[mode], t->reason);
            memcpy(t->reason, reason, sizeof reason);
            return false;
        }
    }
    return true;
}

void modes_take(const struct modes *m, enum kp_mode mode, struct rounds *t) {
    t->rounds = m->of[mode].rounds;
    t->epoch = m->sets;
    t->tick_us = m->tick_us;
    if (mode == KP_MODE_OFFLINE) t->tick_us /= (double)m->placements[mode] * m->turns;
    for (int k = 0; k < t->rounds; k++) t->placement[k] = m->of[mode].set[k];
    for (int i = 0; i < t->nrunners; i++) {
        memcpy(t->samples[i].event_us, m->of[mode].event_us[i], sizeof m->of[mode].event_us[i]);
        memcpy(t->samples[i].host_us, m->of[mode].host_us[i], sizeof m->of[mode].host_us[i]);
    }
}
