/* doubts.h: what in a kernel's samples makes its time doubtful.  Needs no CUDA. */
#ifndef KP_DOUBTS_H
#define KP_DOUBTS_H

#include "base/stats.h"

#include <stdbool.h>

enum { KP_LEAST_CONTROLS = 4 }; /* rounds on each control distribution: 1.3x is then seen */

/* Whether the speedup on control inputs is another than `declared`: by more than 15 %, and outside
 * both intervals.  n samples of each; *ratio is that speedup.  Fewer than 2 say nothing. */
bool doubt_control(const double *against_us, const double *candidate_us, int n, double tick_us,
                   uint64_t seed, struct kp_interval declared, double *ratio);

/* Whether the slowest quarter of the candidate's samples is much slower than its interquartile
 * mean, and the baseline's is not.  *share: by how much. */
bool doubt_slow_quarter(const double *candidate_us, const double *against_us, int n, double *share);

/* Whether the host waited much longer than the events say. */
bool doubt_clocks(const double *event_us, const double *host_us, int n);

#endif
