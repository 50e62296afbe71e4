/* stats.h: the statistics of samples: location, spread, and intervals by bootstrap.
 *
 * Times of a GPU are skewed: outliers are slow.  So the location is the interquartile mean (the
 * mid-mean), the mean of the middle half.  It is steadier than the median where a clock ticks
 * coarsely, and unlike the mean it ignores the tails.
 *
 * No function changes its arguments.  No samples at all, a sample that is not finite, or one that
 * is not positive where it must be, is a bug of the caller and ends the program. */
#ifndef KP_STATS_H
#define KP_STATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

double stat_median(const double *x, int n);

/* The value below which a share q in [0,1] of the samples lies: 0 gives the smallest sample, 1 the
 * largest.  Between two samples it is interpolated linearly. */
double stat_quantile(const double *x, int n, double q);

/* Mean of the samples between the quartiles.  If n is not a multiple of 4, the samples at the two
 * edges count in part. */
double stat_interquartile_mean(const double *x, int n);

/* All x > 0. */
double stat_geomean(const double *x, int n);

struct kp_interval {
    double value; /* of all samples */
    double low;   /* the truth lies between low and high 95 times in 100 */
    double high;
};

/* Mid-mean of `num` over mid-mean of `den`.  num[i] and den[i] > 0 are the times of two runners in
 * round i, which ran at placement[i] of the buffers.  Placements are any numbers; NULL: all rounds
 * ran at one.
 *
 * The bootstrap draws placements with replacement, then as many rounds in each as it had.  It does
 * so `resamples` times, from a generator seeded with `seed`, so the same arguments give the same
 * interval.  The interval is the middle 95 % of these ratios, stretched by as much as Student's t
 * is wider than the normal distribution, because few placements show too little spread.  It always
 * holds `value`, and is at least as wide as one tick of the clock over the smaller median.
 * One sample says nothing of spread: its interval is 0 to infinity. */
struct kp_interval stat_ratio(const double *num, const double *den, const int *placement, int n,
                              double tick_us, uint64_t seed, int resamples);

/* The same for the mid-mean of a single runner.  The interval is at least one tick wide. */
struct kp_interval stat_single(const double *x, const int *placement, int n, double tick_us,
                               uint64_t seed, int resamples);

/* 95 % of Student's t with f >= 1 degrees of freedom lie between minus this and this. */
double stat_student(int f);

/* The next of a sequence of 64-bit random numbers (splitmix64). */
uint64_t stat_random(uint64_t *state);

#ifdef __cplusplus
}
#endif
#endif
