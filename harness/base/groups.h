/* groups.h: means over groups of samples, with intervals by bootstrap over the groups. */
#ifndef KP_GROUPS_H
#define KP_GROUPS_H

#include "base/stats.h"

/* The mean over groups of the mean of x in each, less the same of y (m = 0: of nothing).  group[i]
 * and ygroup[i], from 0 to groups - 1, name the group of a value; every group has values of both.
 * The bootstrap draws groups with replacement, `resamples` times, from a generator seeded with
 * `seed`. *above is the share of these means that lie above 0 (half of those at 0).  The interval
 * is stretched as in stat_ratio(); one group says nothing of others: its interval is infinite. */
struct kp_interval stat_groups(const double *x, const int *group, int n, const double *y,
                               const int *ygroup, int m, int groups, uint64_t seed, int resamples,
                               double *above);

#endif
