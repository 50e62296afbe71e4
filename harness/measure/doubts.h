/* doubts.h: what in a kernel's samples makes its time doubtful.  Needs no CUDA. */
#ifndef KP_DOUBTS_H
#define KP_DOUBTS_H

#include "base/stats.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Rounds on each control distribution: two of the candidate alone, and where it took another time
 * in one of these, four more beside its baselines: 1.3x is then seen. */
enum { KP_FEW_CONTROLS = 2, KP_LEAST_CONTROLS = 4 };

/* Whether the candidate took another time in one of n rounds on control inputs: one that is further
 * from `declared_us` than half of what is doubted. */
bool control_differs(const double *candidate_us, int n, double declared_us);

/* Whether the candidate takes another time on control inputs: its own time differs by more than
 * 15 % from `declared_us`, and the speedup by more than 15 % from `declared`, outside both
 * intervals.  (A baseline that alone is slower on some contents is no doubt.)  n samples of each;
 * *ratio is the speedup on them.  Fewer than 2 say nothing. */
bool doubt_control(const double *against_us, const double *candidate_us, int n, double tick_us,
                   uint64_t seed, struct kp_interval declared, double declared_us, double *ratio);

/* Whether the slowest quarter of the candidate's samples is much slower than its interquartile
 * mean, and the baseline's is not.  *share: by how much. */
bool doubt_slow_quarter(const double *candidate_us, const double *against_us, int n, double *share);

/* Whether the host waited much longer than the events say. */
bool doubt_clocks(const double *event_us, const double *host_us, int n);

/* Why the GPU was slowed while it was measured, among a result's `throttle_reasons`: heat, or a
 * fault of its supply.  NULL where it was not (its power cap is part of what it is), and where the
 * machine does not say. */
const char *doubt_throttle(const cJSON *reasons);

#endif
