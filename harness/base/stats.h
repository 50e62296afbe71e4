/* stats.h: the statistics of samples: location, spread, and intervals by bootstrap.
 *
 * Times of a GPU are skewed and carry outliers on the slow side, so the location
 * is the mid-mean, the mean of the middle half: steadier than the median where
 * a clock ticks coarsely, deaf to the tails as the mean is not.
 *
 * No function changes its arguments.  A sample that is no finite number (or no
 * positive one, where that is asked), or none at all, is a bug of the caller and
 * ends the program. */
#ifndef KP_STATS_H
#define KP_STATS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

double stat_median(const double *x, int n);

/* The value below which a share q in [0,1] of the samples lies, with linear
 * interpolation between neighbours: 0 is the smallest sample, 1 the largest. */
double stat_quantile(const double *x, int n, double q);

/* Mean of the samples between the quartiles; where n is no multiple of 4, the
 * samples on the two edges count in part. */
double stat_interquartile_mean(const double *x, int n);

/* All x > 0. */
double stat_geomean(const double *x, int n);

struct kp_interval {
    double value; /* of all samples */
    double low;   /* 95 % of the time the truth is between these two */
    double high;
};

/* Mid-mean of `num` over mid-mean of `den`.  num[i] and den[i] > 0 are the times
 * of two runners in the same round i, which ran at placement[i] of the buffers (any
 * numbers; NULL: one placement).
 *
 * The bootstrap draws placements with replacement, then as many rounds in each
 * as it had, `resamples` times, from a generator seeded with `seed`: the same
 * arguments give the same interval.  The interval holds the middle 95 % of these
 * ratios, stretched as Student's t is wider than the normal distribution, for
 * five placements are few.  It is never narrower than the ratio of one tick of
 * the clock to the smaller median, and always holds `value`.
 * One sample says nothing of spread: its interval is 0 to infinity. */
struct kp_interval stat_ratio(const double *num, const double *den, const int *placement, int n,
                              double tick_us, uint64_t seed, int resamples);

/* The same for the mid-mean of a single runner; never narrower than one tick. */
struct kp_interval stat_single(const double *x, const int *placement, int n, double tick_us,
                               uint64_t seed, int resamples);

/* True if even the low end of a ratio is above 1: the denominator's runner is faster. */
bool stat_wins(struct kp_interval ratio);

/* The next of a sequence of 64-bit random numbers (splitmix64). */
uint64_t stat_random(uint64_t *state);

#ifdef __cplusplus
}
#endif
#endif
