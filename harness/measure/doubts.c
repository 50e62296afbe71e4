/* doubts.c: see doubts.h. */
#include "measure/doubts.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Contents change the power that a GPU takes, and so its clock, by a few percent: less is no
 * doubt. */
static const double control_share = 0.15;
enum { CONTROL_RESAMPLES = 1000, TWO = 2 };

/* The slowest quarter is on average at most this much slower, or this much slower than the
 * baseline's. */
static const double slow_share = 0.15;

/* The host sees a replay end 1 to 3 us after its last event.  If it waits this much longer,
 * something ran on beyond the clock, or the clocks disagree. */
static const double witness_us = 20, witness_share = 0.02;

/* Whether a ratio is further from 1 than `share`. */
static bool differs(double ratio, double share) {
    return fabs(log(ratio)) > log(1 + share);
}

bool control_differs(const double *candidate_us, int n, double declared_us) {
    for (int i = 0; i < n; i++)
        if (differs(candidate_us[i] / declared_us, control_share / 2)) return true;
    return false;
}

bool doubt_control(const double *against_us, const double *candidate_us, int n, double tick_us,
                   uint64_t seed, struct kp_interval declared, double declared_us, double *ratio) {
    *ratio = NAN;
    if (n < TWO) return false;
    struct kp_interval c =
        stat_ratio(against_us, candidate_us, NULL, n, tick_us, seed, CONTROL_RESAMPLES);
    *ratio = c.value;
    bool apart = c.low > declared.high || c.high < declared.low;
    double own = stat_interquartile_mean(candidate_us, n) / declared_us;
    return apart && differs(c.value / declared.value, control_share) && differs(own, control_share);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean of the slowest quarter over the interquartile mean, less 1. */
static double slow_quarter(const double *us, int n) {
    double *x = malloc((size_t)n * sizeof *x), sum = 0;
    if (!x) die(KP_MACHINE, "out of memory");
    memcpy(x, us, (size_t)n * sizeof *x);
    qsort(x, (size_t)n, sizeof *x, by_size);
    int from = n - (n + 3) / 4;
    for (int i = from; i < n; i++) sum += x[i];
    free(x);
    return sum / (n - from) / stat_interquartile_mean(us, n) - 1;
}

bool doubt_slow_quarter(const double *candidate_us, const double *against_us, int n,
                        double *share) {
    *share = slow_quarter(candidate_us, n);
    return *share > slow_share && *share > slow_quarter(against_us, n) + slow_share;
}

bool doubt_clocks(const double *event_us, const double *host_us, int n) {
    double event = stat_median(event_us, n), host = stat_median(host_us, n);
    return host > event + witness_us + witness_share * event;
}

const char *doubt_throttle(const cJSON *reasons) {
    static const char *const faults[] = {"thermal", "hardware thermal", "hardware slowdown",
                                         "power brake"};
    const cJSON *reason;
    cJSON_ArrayForEach(reason, reasons) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            if (cJSON_IsString(reason) && !strcmp(reason->valuestring, faults[i])) return faults[i];
    }
    return NULL;
}
