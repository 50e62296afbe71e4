/* rounds.h: the measuring loop of `time`: which samples are taken, and how many. */
#ifndef KP_ROUNDS_H
#define KP_ROUNDS_H

#include "measure/accuracy.h"
#include "measure/doubts.h"

enum {
    KP_MAX_RUNNERS = 1 + KP_MAX_BASELINES,
    KP_MOST_SETS = 4,          /* of processes side by side */
    KP_LEAST_ROUNDS = 30,      /* so that quartiles are those of several samples */
    KP_LONG_LEAST_ROUNDS = 20, /* of kernels whose rounds are dear, and steadier */
    KP_MOST_ROUNDS = 1000,     /* an end for kernels whose ratio stays noisy */
    KP_MOST_CONTROLS = 100,    /* rounds on one control distribution */
    KP_RESAMPLES = 1000        /* of the bootstrap: 25 of them lie beyond each end of an interval */
};

struct runner_samples {
    double event_us[KP_MOST_ROUNDS]; /* headline rounds, by the events inside the graph */
    double host_us[KP_MOST_ROUNDS];  /* the same rounds, by the host's clock */
    double control_us[KP_DIST_COUNT][KP_MOST_CONTROLS]; /* rounds on control inputs, by events */
};

struct rounds {
    const struct kp_task *task;
    const char *prefix, *choices; /* of library calls, as verify found them, or NULL */
    char *family;                 /* stay_family() */
    struct accuracy acc;
    uint64_t master;
    double deadline, cap_seconds;
    double left;  /* seconds that the candidate's runs may still take in this cell */
    bool missing; /* no candidate: runner 0 is the most accurate baseline's */
    int nrunners; /* runner 0 is the candidate's */
    struct kp_process set[KP_MOST_SETS][KP_MAX_RUNNERS]; /* several, so that they start at once */
    int sets, asked, sets_at_once; /* how many run, which is asked, how many there is room for */
    const char *runner_name[KP_MAX_RUNNERS];
    enum kp_class class;                       /* the candidate's, as verify found */
    struct kp_error spread;                    /* the largest seen on declared inputs */
    struct kp_error tolerance[KP_MAX_RUNNERS]; /* against the first baseline, on these */
    int ncontrols;
    enum kp_distribution control[KP_DIST_COUNT]; /* the distributions of control inputs */
    struct runner_samples samples[KP_MAX_RUNNERS];
    int placement[KP_MOST_ROUNDS];
    int rounds, controls[KP_DIST_COUNT], oracle_checks; /* how many were done */
    int alone[KP_DIST_COUNT]; /* the first rounds on control inputs, in which the candidate ran
                               * alone; 0 as long as its time was that on declared inputs */
    bool restarts;            /* a short kernel: several sets of processes, one after the other */
    int epoch;                /* which set runs now */
    int against;              /* the runner that the speedup is quoted against */
    double empty_us, tick_us;
    const char *verdict; /* set when the candidate failed while being timed */
    char reason[KP_TAPE_MESSAGE];
    cJSON *evidence; /* what makes the sample again that is wrong, or NULL */
};

/* Start the candidate's runner before there is anything to run: it opens the driver meanwhile. */
void rounds_spawn(struct rounds *t);

/* Start the candidate's runner and one runner for each baseline, all side by side, and wait until
 * they are ready.  With `aa` the second runner is the candidate's again, and no baseline's runs.
 * False: t->verdict is set. */
bool rounds_start(struct rounds *t, bool aa);

/* Have the next set of processes in place of the one that is asked now.  The processes of
 * t->sets_at_once sets start side by side; those that wait for their turn do nothing, and none ends
 * before the last has had it.  False: t->verdict is set. */
bool rounds_renew(struct rounds *t, bool aa);

/* End all of them. */
void rounds_stop(struct rounds *t);

/* The cell ends: leave the baselines' runners to the next cell, and to the next shape of a family
 * all runners, if the candidate was right.  Kill the others, which rounds_stop() waits for. */
void rounds_leave(struct rounds *t, bool right);

/* Forget the samples and do rounds with the runners that rounds_start() has started, until the
 * ratio is known well enough, the cap is reached or KP_MOST_ROUNDS are done.  A kernel of a few
 * microseconds gets new runners in between (as `aa` says).  False: t->verdict is set. */
bool rounds_run(struct rounds *t, bool aa);

/* Whether a control distribution has fewer rounds than it should. */
bool rounds_lack_controls(struct rounds *t, enum kp_distribution d);

/* Have timed outputs on declared inputs be as far off as follows from such spreads, if these are
 * larger than all so far; those of a baseline of a lesser class, by as many times more as its
 * operands are less accurate. */
void rounds_allow(struct rounds *t, struct kp_error spread);

/* Whether the speedup may be quoted against the baseline of runner i, from 1 on: it is meant to be
 * at least as accurate as the candidate is. */
bool rounds_quotable(const struct rounds *t, int i);

/* What other ways of timing need (modes.h).  rounds_clock() finds how the clock ticks.
 * rounds_ask() has runner i answer a request, in the time that the candidate has for all of its
 * runs.  rounds_look() judges, as of a round, what runner i wrote at a placement on declared
 * contents of this seed: acc.out[0] holds the most accurate baseline's outputs on them, of these
 * root mean squares.  False: t->verdict is set. */
bool rounds_clock(struct rounds *t);
bool rounds_ask(struct rounds *t, int i, const struct runner_request *q,
                struct runner_reply *reply);
bool rounds_look(struct rounds *t, int i, int placement, uint64_t seed, const double *rms);

/* Ratio of runner i's time to the candidate's, with its interval. */
struct kp_interval rounds_ratio(const struct rounds *t, int i);

#endif
