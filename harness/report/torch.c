/* torch.c: PyTorch's times beside ours.
 *
 * tests/gpu/torch_times.py writes them to results/pytorch/GPU.csv: a row a task, a column for each
 * way of running it and each arithmetic.  For a GPU without such a file, results/published/ has
 * eager times of KernelBench's tasks. */
#include "report/report.h"
#include "base/stats.h"
#include "base/error.h"
#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A baseline that takes up to this many times as long as PyTorch is what PyTorch's user gets. */
static const double fair_baseline = 1.10;

/* The number in `column` of the row whose first column `key` is `name`; 0 if there is no
 * such row or column, or nothing in it. */
static double number(const struct table *t, const char *key, const char *name, const char *column,
                     const char *path) {
    int at = 0;
    while (at < t->ncolumns && strcmp(t->field[at], column)) at++;
    if (at == t->ncolumns) return 0;
    for (int i = 0; i < t->nrows; i++)
        if (!strcmp(table_field(t, i, table_column(t, key, path)), name))
            return atof(table_field(t, i, at));
    return 0;
}

/* The faster of an eager call and a graph replay, or 0. */
static double measured(const struct table *t, const char *task, const char *class,
                       const char **how) {
    static const char *const mode[] = {"eager", "graph"};
    double best = 0;
    for (int i = 0; i < 2; i++) {
        char column[32];
        snprintf(column, sizeof column, "%s_%s", mode[i], !strcmp(class, "exact") ? "fp32" : class);
        double us = number(t, "task", task, column, "results/pytorch");
        if (us > 0 && (best == 0 || us < best)) best = us, *how = mode[i];
    }
    return best;
}

double torch_compiled(const struct column *c, const char *task, const char *class) {
    char column[32];
    if (!c->torch.ncolumns) return 0;
    snprintf(column, sizeof column, "compiled_%s", !strcmp(class, "exact") ? "fp32" : class);
    return number(&c->torch, "task", task, column, "results/pytorch");
}

/* The published eager time, or 0: only of an H200, KernelBench's tasks, fp32 and tf32. */
static double published_time(const struct table *t, const char *gpu, const char *task,
                             const char *class, const char **how) {
    char id[16];
    bool level = task[0] == 'l' && isdigit((unsigned char)task[1]) && task[2] == '_';
    bool tf32 = !strcmp(class, "tf32"), fp32 = !strcmp(class, "fp32") || !strcmp(class, "exact");
    if (strcmp(gpu, "h200") || !level || strspn(task + 3, "0123456789") != 3 || !(tf32 || fp32))
        return 0;
    *how = "published";
    snprintf(id, sizeof id, "L%c/%.3s", task[1], task + 3);
    return number(t, "id", id, tf32 ? "eager_tf32" : "eager_strict", "torch_h200.csv");
}

double torch_time(const struct column *c, const struct table *published, const char *task,
                  const char *class, const char **how) {
    if (c->torch.ncolumns) return measured(&c->torch, task, class, how);
    return published_time(published, c->name, task, class, how);
}

/* ---- our kernels over PyTorch ---- */

/* A row: PyTorch's time, by one of its ways, over our kernels'; none if no cell has both. */
static void kernels_row(const struct report *r, const struct column *c, bool compiled, FILE *out) {
    double *ratio = calloc((size_t)r->nrows + 1, sizeof *ratio);
    int n = 0, faster = 0;
    if (!ratio) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        const char *how;
        if (!result_ok(cell) || report_left_out(r, c, i)) continue;
        double theirs = compiled ? torch_compiled(c, cell->task, cell->class)
                                 : measured(&c->torch, cell->task, cell->class, &how);
        if (!(theirs > 0)) continue;
        ratio[n] = theirs / cell->candidate_us;
        faster += ratio[n++] > 1;
    }
    if (n)
        fprintf(out, "| %s | %d | %d | %.3f | %.3f |\n",
                compiled ? "torch.compile" : "eager or graph", n, faster, stat_geomean(ratio, n),
                stat_median(ratio, n));
    free(ratio);
}

/* The table of kernels. */
static void kernels_table(const struct report *r, const struct column *c, FILE *out) {
    fputs("\n## Kernels against PyTorch\n\n"
          "| against | tasks | kernel faster | geometric mean | median |\n"
          "|---|--:|--:|--:|--:|\n",
          out);
    for (int compiled = 0; compiled < 2; compiled++) kernels_row(r, c, compiled, out);
    fputs("\nPyTorch's time, in the arithmetic of the kernel's class, over the kernel's. The two "
          "are measured apart, so\nthere is no interval. Cells that are left out above are left "
          "out here.\n",
          out);
}

/* ---- our baselines over PyTorch ---- */

struct held { /* the baselines of a GPU that PyTorch has a time for */
    int n, within, below;
    double *ratio;
    FILE *slower; /* those that are not fair, by name */
    bool any;
};

/* Add the baselines of one cell. */
static void hold(struct held *h, const struct column *c, const struct result *cell) {
    const cJSON *runner;
    const char *how;
    cJSON_ArrayForEach(runner, cJSON_GetObjectItemCaseSensitive(cell->json, "time_us")) {
        double theirs = measured(&c->torch, cell->task, runner->string, &how);
        double ours = json_number(runner, "midmean", 0);
        if (!(theirs > 0 && ours > 0)) continue;
        double ratio = ours / theirs;
        h->ratio = realloc(h->ratio, ((size_t)h->n + 1) * sizeof *h->ratio);
        if (!h->ratio) die(KP_MACHINE, "out of memory");
        h->ratio[h->n++] = ratio;
        h->within += ratio <= fair_baseline;
        h->below += ratio < 1 / fair_baseline;
        if (ratio <= fair_baseline) continue;
        fprintf(h->slower, "%s%s %s %.2f", h->any ? ", " : "", cell->task, runner->string, ratio);
        h->any = true;
    }
}

/* The table of baselines, which has one row. */
static void baselines_table(const struct report *r, const struct column *c, FILE *out) {
    struct held h = {0};
    char *text = NULL;
    size_t size = 0;
    if (!(h.slower = open_memstream(&text, &size))) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        /* a doubtful kernel can slow down the baseline that is measured after it */
        if (result_ok(cell) && !result_flag(cell->json, FLAG_DOUBT)) hold(&h, c, cell);
    }
    fclose(h.slower);
    fputs("\n## Baselines against PyTorch\n\n"
          "| compared | geometric mean | up to 1.10 | of these below 0.91 | above 1.10 |\n"
          "|--:|--:|--:|--:|---|\n",
          out);
    if (h.n)
        fprintf(out, "| %d | %.3f | %d | %d | %s |\n", h.n, stat_geomean(h.ratio, h.n), h.within,
                h.below, h.any ? text : "-");
    else
        fputs("| 0 | - | - | - | - |\n", out);
    fputs("\nTime of our baseline over that of PyTorch (the faster of eager call and graph "
          "replay), for each timed\ncell and arithmetic, without doubtful times (decoy-ratio, "
          "clocks-disagree). Above 1, a speedup over our\nbaseline flatters. Below 1, it is "
          "harder to get than one over PyTorch.\n",
          out);
    free(h.ratio);
    free(text);
}

void torch_tables(const struct report *r, const struct column *c, FILE *out) {
    if (!c->torch.ncolumns) return;
    kernels_table(r, c, out);
    baselines_table(r, c, out);
}
