/* aggregates.c: the sums of a GPU's cells.
 *
 * There are always two figures.  Over all tasks, a missing or wrong cell counts as 1.0 in means,
 * since its user falls back on the baseline, and never as fast.  So does a kernel of another class
 * than its task's own.  Over the correct cells alone none of these counts, which flatters those who
 * give up on hard tasks.  A cell that lacks PyTorch's time is in no mean over PyTorch. */
#include "report/report.h"
#include "base/error.h"
#include "base/stats.h"

#include <math.h>
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

/* PyTorch's flags in the ratios over PyTorch. */
static const enum torch_flags flags_over[OVERS] = {
    [OVER_TORCH] = TORCH_DEFAULT, [OVER_TF32] = TORCH_TF32};

double report_ratio(const struct column *c, int row, enum over over) {
    const struct result *cell = &c->cell[row];
    const char *how;
    if (!result_ok(cell)) return 0;
    if (over == OVER_BASELINE) return cell->ratio;
    return torch_time(c, row, flags_over[over], &how) / cell->candidate_us;
}

bool report_same_board(const struct column *c, int row, enum over over) {
    return over == OVER_BASELINE || torch_same_board(c, row, flags_over[over]);
}

/* ---- problems ---- */

struct problems { /* the ratios of tasks that mean the same, by the first of them */
    double *log;  /* the sum of their logarithms */
    int *n;
};

/* Add a ratio to the problem of a row. */
static void add_ratio(struct problems *p, const struct row *row, double ratio) {
    p->log[row->twin] += log(ratio);
    p->n[row->twin]++;
}

/* The spread over problems, each with the geometric mean of its ratios.  Releases them. */
static struct spread spread_of_problems(struct problems *p, int nrows) {
    int n = 0;
    for (int i = 0; i < nrows; i++)
        if (p->n[i]) p->log[n++] = exp(p->log[i] / p->n[i]);
    struct spread s = spread_of(p->log, n);
    free(p->log);
    free(p->n);
    return s;
}

/* No ratios yet. */
static struct problems no_problems(int nrows) {
    struct problems p = {calloc((size_t)nrows + 1, sizeof *p.log),
                         calloc((size_t)nrows + 1, sizeof *p.n)};
    if (!p.log || !p.n) die(KP_MACHINE, "out of memory");
    return p;
}

/* ---- cells ---- */

/* Whether a cell is among the selected. */
static bool selected(const struct selection *s, const struct row *row, const struct result *cell,
                     bool counts) {
    return report_in_row_of(row, s->suite) &&
           (!s->kind || (row->meaning && !strcmp(s->kind, kp_kind_name(row->kind)))) &&
           (!s->own_class || !strcmp(s->own_class, row->class)) &&
           (!s->class || (result_ok(cell) && !counts && !strcmp(s->class, cell->class)));
}

/* The mean of the selected cells' ratios over one opponent.  Cells of another class than their own
 * count as wrong, unless that class is selected. */
static struct mean mean_over(const struct report *r, const struct column *c,
                             const struct selection *s, enum over over) {
    struct mean m = {0};
    struct problems all = no_problems(r->nrows), correct = no_problems(r->nrows);
    const struct result **cells = calloc((size_t)r->nrows + 1, sizeof *cells);
    if (!cells) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < r->nrows; i++) {
        bool counts = report_counts(r, c, i);
        if (report_left_out(r, c, i) || !selected(s, &r->rows[i], &c->cell[i], counts)) continue;
        double ratio = report_ratio(c, i, over);
        if (!counts && !s->class) add_ratio(&all, &r->rows[i], 1);
        if (!(counts || s->class) || !(ratio > 0)) continue;
        add_ratio(&all, &r->rows[i], ratio);
        add_ratio(&correct, &r->rows[i], ratio);
        cells[m.cells++] = &c->cell[i];
        m.same_board += report_same_board(c, i, over);
        m.compiled += over != OVER_BASELINE && torch_compiled(c, i, flags_over[over]);
        m.faster += ratio > 1;
    }
    m.over_all = spread_of_problems(&all, r->nrows);
    m.over_correct = spread_of_problems(&correct, r->nrows);
    if (over == OVER_BASELINE) m.reach = boards_mean_reach(&r->boards, cells, m.cells);
    free(cells);
    return m;
}

struct aggregate report_select(const struct report *r, const struct column *c,
                               const struct selection *s) {
    struct aggregate a = {0};
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        bool counts = report_counts(r, c, i);
        if (!selected(s, &r->rows[i], cell, counts)) continue;
        if (report_left_out(r, c, i)) {
            a.left_out++;
            continue;
        }
        a.all++;
        a.recorded += *cell->verdict != 0;
        a.other_class += result_ok(cell) && !counts;
        if (!counts) continue;
        a.correct++;
        struct prediction p = boards_predict(&r->boards, cell);
        a.significant += p.low > 1, a.slower += p.high < 1;
        for (int k = 0; k < FAST_P; k++) a.fast[k] += cell->ratio > fast_p[k];
    }
    for (int o = 0; o < OVERS; o++) a.over[o] = mean_over(r, c, s, (enum over)o);
    return a;
}

struct aggregate report_aggregate(const struct report *r, const struct column *c,
                                  const char *suite) {
    const struct selection s = {.suite = suite};
    return report_select(r, c, &s);
}
