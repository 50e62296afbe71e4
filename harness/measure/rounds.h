/* rounds.h: the measuring loop of `time`, apart from what is made of it. */
#ifndef KP_TIMING_H
#define KP_TIMING_H

#include "measure/accuracy.h"
#include "base/stats.h"

enum {
    KP_MAX_RUNNERS = 1 + KP_MAX_BASELINES,
    KP_LEAST_ROUNDS = 30,
    KP_MOST_ROUNDS = 1000,
    KP_MOST_KEPT = 100
};

struct runner_samples {
    double event_us[KP_MOST_ROUNDS]; /* headline rounds */
    double host_us[KP_MOST_ROUNDS];
    double decoy_us[KP_MOST_ROUNDS]; /* rounds on other contents */
};

struct timing {
    const struct kp_task *task;
    const char *prefix;
    struct referee r;
    struct judge j;
    uint64_t master;
    double deadline, cap_seconds;
    int nrunners; /* runner 0 is the candidate */
    struct kp_process runner[KP_MAX_RUNNERS];
    const char *runner_name[KP_MAX_RUNNERS];
    struct kp_error tolerance[KP_MAX_RUNNERS]
                             [KP_DIST_COUNT]; /* against the most accurate baseline */
    struct kp_error oracle_tolerance[KP_DIST_COUNT];
    struct runner_samples samples[KP_MAX_RUNNERS];
    int placement[KP_MOST_ROUNDS];
    int rounds, decoys, oracle_checks;
    bool restarts; /* a short kernel: several sets of processes, one after the other */
    int epoch;     /* which of them is running */
    int against;   /* runner that the speedup is quoted against */
    double empty_us, tick_us;
    const char *verdict; /* set when the candidate failed while being timed */
    char reason[KP_TAPE_MESSAGE];
};

/* Start the candidate's runner and one runner a baseline, all side by side, and wait until
 * they are ready.  With `aa`, the second runner is the candidate again and there are no
 * baselines.  False: t->verdict is set. */
bool rounds_start(struct timing *t, bool aa);
void rounds_stop(struct timing *t);

/* Forget the samples and do rounds, with runners that rounds_start() has started, until the
 * ratio is known to 0.3 %, the cap is reached or KP_MOST_ROUNDS are done; cells of a few
 * microseconds restart their runners in between (as `aa` says).  False: t->verdict is set. */
bool rounds_run(struct timing *t, bool aa);

/* Ratio of runner `a` over the candidate, with its interval. */
struct kp_interval rounds_ratio(const struct timing *t, int a);

#endif
