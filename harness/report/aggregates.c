/* aggregates.c: the sums of a GPU and a suite.
 *
 * There are always two figures.  Over all tasks, a missing or wrong cell counts as 1.0 in means,
 * since its user falls back on the baseline, and never as fast.  Over the correct cells alone it
 * does not count, which flatters those who give up on hard tasks. */
#include "report/report.h"
#include "base/error.h"
#include "base/stats.h"

#include <stdlib.h>
#include <string.h>

const double fast_p[FAST_P] = {0, 0.5, 0.8, 1, 1.5, 2};

struct spread spread_of(const double *x, int n) {
    struct spread s = {.n = n};
    if (n == 0) return s;
    s.geomean = stat_geomean(x, n);
    s.median = stat_median(x, n);
    s.q1 = stat_quantile(x, n, 0.25);
    s.q3 = stat_quantile(x, n, 0.75);
    for (int i = 0; i < n; i++) {
        s.mean += x[i] / n;
        if (x[i] > s.max) s.max = x[i];
    }
    return s;
}

struct aggregate report_aggregate(const struct report *r, const struct column *c,
                                  const char *suite) {
    struct aggregate a = {0};
    double *all = calloc((size_t)r->nrows + 1, sizeof *all);
    double *correct = calloc((size_t)r->nrows + 1, sizeof *correct);
    if (!all || !correct) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        if (suite && strcmp(suite, r->rows[i].suite)) continue;
        if (report_left_out(r, c, i)) {
            a.left_out++;
            continue;
        }
        a.recorded += *cell->verdict != 0;
        all[a.all++] = result_ok(cell) ? cell->ratio : 1.0;
        if (!result_ok(cell)) continue;
        correct[a.correct++] = cell->ratio;
        a.significant += boards_predict(&r->boards, cell).low > 1;
        for (int p = 0; p < FAST_P; p++) a.fast[p] += cell->ratio > fast_p[p];
    }
    a.over_all = spread_of(all, a.all);
    a.over_correct = spread_of(correct, a.correct);
    free(all);
    free(correct);
    return a;
}
