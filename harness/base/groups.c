/* groups.c: see groups.h. */
#include "base/groups.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>

/* 95 % of a normal distribution lie between minus this and this times its standard deviation. */
static const double normal = 1.959964;

static double *memory(int n) {
    double *p = calloc((size_t)n, sizeof *p);
    if (!p) die(KP_MACHINE, "out of memory for %d means", n);
    return p;
}

/* Add the mean of each group, times `sign`, to mean[group]. */
static void add_means(double *mean, const double *x, const int *group, int n, int groups,
                      double sign) {
    for (int g = 0; g < groups; g++) {
        double sum = 0;
        int count = 0;
        for (int i = 0; i < n; i++)
            if (group[i] == g) sum += x[i], count++;
        if (!count) die(KP_BUG, "groups: group %d has no value", g);
        mean[g] += sign * sum / count;
    }
}

struct kp_interval stat_groups(const double *x, const int *group, int n, const double *y,
                               const int *ygroup, int m, int groups, uint64_t seed, int resamples,
                               double *above) {
    if (groups < 1 || resamples < 1)
        die(KP_BUG, "groups: %d groups, %d resamples; at least one is needed", groups, resamples);
    double value = 0, over = 0, *found = memory(resamples), *mean = memory(groups);
    add_means(mean, x, group, n, groups, 1);
    if (m) add_means(mean, y, ygroup, m, groups, -1);
    for (int g = 0; g < groups; g++) value += mean[g] / groups;
    for (int k = 0; k < resamples; k++) {
        for (int i = 0; i < groups; i++)
            found[k] += mean[(stat_random(&seed) >> 32) * (uint64_t)groups >> 32] / groups;
        over += found[k] > 0 ? 1 : found[k] < 0 ? 0 : 0.5;
    }
    struct kp_interval all = {value, -INFINITY, INFINITY};
    if (groups > 1) {
        double f = groups - 1, stretch = sqrt(groups / f) * stat_student(groups - 1) / normal;
        all.low = value + (stat_quantile(found, resamples, 0.025) - value) * stretch;
        all.high = value + (stat_quantile(found, resamples, 0.975) - value) * stretch;
    }
    if (above) *above = over / resamples;
    free(mean);
    free(found);
    return all;
}
