/* beside.c: what stands beside the headline of a family of products: its kernels in other modes
 * (RESULTS/modes), and CUDA-L2's kernels, as they were judged here (RESULTS/foreign) and as they
 * were published (RESULTS/published/cuda_l2.csv).  No aggregate has any of it. */
#include "report/report.h"
#include "record/table.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* %s is the GPU for which was published; the headline's is last. */
static const char *const way_name[BESIDES + 1] = {
    "ours, offline, warm L2",
    "ours, server, warm L2",
    "CUDA-L2's, judged here, cold L2",
    "CUDA-L2's, as published for %s, offline, warm L2",
    "CUDA-L2's, as published for %s, server, warm L2",
    "ours, cold L2 (the headline)"};
static const double slow = 0.95;

/* ---- reading ---- */

/* The rows of a GPU, which are made with the first. */
static struct beside *rows_of(const struct report *r, struct column *c) {
    if (!c->beside) c->beside = calloc((size_t)r->nrows + 1, sizeof *c->beside);
    if (!c->beside) die(KP_MACHINE, "out of memory");
    return c->beside;
}

typedef void take_row(const struct report *r, struct column *c, const struct table *t, int line,
                      int row, const char *path);

/* Call take() for each row of a table that has one a task.  That of no file has none. */
static void each_task(const struct report *r, struct column *c, const struct table *t,
                      const char *path, take_row *take) {
    if (!t->ncolumns) return;
    int task = table_column(t, "task", path);
    for (int i = 0; i < t->nrows; i++) {
        int row = report_row(r, table_field(t, i, task));
        if (row >= 0) take(r, c, t, i, row, path);
    }
}

/* The same of a table that is to be read. */
static void read_table(const struct report *r, struct column *c, const char *path, take_row *take) {
    struct table t;
    table_load(&t, path);
    each_task(r, c, &t, path, take);
    table_free(&t);
}

/* A number of a line; 0 if it has none. */
static double number(const struct table *t, int line, const char *name, const char *path) {
    return table_number(t, line, table_column(t, name, path), path);
}

/* Other modes: of the kernel whose result is recorded, and no earlier one. */
static void take_modes(const struct report *r, struct column *c, const struct table *t, int line,
                       int row, const char *path) {
    const char *kernel = table_field(t, line, table_column(t, "kernel", path));
    if (!*kernel || strncmp(kernel, c->cell[row].sources, strlen(kernel))) return;
    struct beside *b = &rows_of(r, c)[row];
    b->ratio[BESIDE_OFFLINE] = number(t, line, "offline_ratio", path);
    b->ratio[BESIDE_SERVER] = number(t, line, "server_ratio", path);
}

/* A kernel of CUDA-L2's: its ratio counts if it is of the task's class. */
static void take_theirs(const struct report *r, struct column *c, const struct table *t, int line,
                        int row, const char *path) {
    struct beside *b = &rows_of(r, c)[row];
    const char *verdict = table_field(t, line, table_column(t, "verdict", path));
    const char *class = table_field(t, line, table_column(t, "class", path));
    const char *own = r->rows[row].class;
    bool counts = !strcmp(verdict, "ok") && (!*own || class_rank(class) <= class_rank(own));
    snprintf(b->verdict, sizeof b->verdict, "%s", verdict);
    b->ratio[BESIDE_THEIRS] = counts ? number(t, line, "ratio", path) : 0;
}

/* What was published for the GPU that the column names. */
static void take_published(const struct report *r, struct column *c, const struct table *t,
                           int line, int row, const char *path) {
    if (strcmp(table_field(t, line, table_column(t, "gpu", path)), c->published_for)) return;
    struct beside *b = &rows_of(r, c)[row];
    b->ratio[BESIDE_PUBLISHED_OFFLINE] = number(t, line, "offline", path);
    b->ratio[BESIDE_PUBLISHED_SERVER] = number(t, line, "server", path);
}

/* Finds for which GPU what was published stands beside a column: for this one, or if there is
 * nothing, for another of its architecture that has a column. */
static void find_published(const struct report *r, struct column *c, const struct table *t,
                           int line, int row, const char *path) {
    const char *gpu = table_field(t, line, table_column(t, "gpu", path));
    (void)row;
    if (!strcmp(c->published_for, c->name)) return;
    for (int i = 0; i < r->ncolumns; i++)
        if (!strcmp(r->columns[i].name, gpu) && !strcmp(r->columns[i].arch, c->arch))
            snprintf(c->published_for, sizeof c->published_for, "%s", gpu);
}

void beside_load(struct report *r, const char *results) {
    char *path = text_format("%s/published/cuda_l2.csv", results);
    struct table published;
    table_load(&published, path);
    for (int i = 0; i < r->ncolumns; i++) {
        struct column *c = &r->columns[i];
        char *modes = text_format("%s/modes/%s.csv", results, c->name);
        char *theirs = text_format("%s/foreign/%s.csv", results, c->name);
        read_table(r, c, modes, take_modes);
        read_table(r, c, theirs, take_theirs);
        each_task(r, c, &published, path, find_published);
        each_task(r, c, &published, path, take_published);
        free(modes), free(theirs);
    }
    table_free(&published);
    free(path);
}

/* ---- numbers ---- */

/* The headline's ratio of a row; 0 if the cell does not carry it. */
static double headline(const struct report *r, const struct column *c, int row) {
    return report_counts(r, c, row) ? c->cell[row].ratio : 0;
}

/* A ratio beside it.  Those of our kernels count where the headline's does. */
static double ratio_of(const struct report *r, const struct column *c, int row, int what) {
    bool ours = what == BESIDE_OFFLINE || what == BESIDE_SERVER;
    return ours && !headline(r, c, row) ? 0 : c->beside[row].ratio[what];
}

/* The ratios of the rows from..to, or where what is BESIDES the headline's; and in `there`, if it
 * is not NULL, the headline's of the same rows, as far as there are such.  Returns how many. */
static int gather(const struct report *r, const struct column *c, int from, int to, int what,
                  double *x, double *there, int *nthere) {
    int n = 0;
    for (int i = from; i < to; i++) {
        double own = headline(r, c, i), it = what == BESIDES ? own : ratio_of(r, c, i, what);
        if (!(it > 0)) continue;
        x[n++] = it;
        if (there && own > 0) there[(*nthere)++] = own;
    }
    return n;
}

/* Whether the family whose rows begin at `from` has anything beside its headline. */
static bool has_any(const struct report *r, const struct column *c, int from, int to) {
    if (!c->beside || !r->rows[from].family) return false;
    for (int i = from; i < to; i++) {
        if (*c->beside[i].verdict) return true;
        for (int k = 0; k < BESIDES; k++)
            if (ratio_of(r, c, i, k) > 0) return true;
    }
    return false;
}

bool beside_shown(const struct report *r, const struct column *c) {
    for (int i = 0; i < r->nrows; i = report_next_suite(r, i))
        if (has_any(r, c, i, report_next_suite(r, i))) return true;
    return false;
}

/* The name of a way: "ours, offline, warm L2". */
static const char *name_of(const struct column *c, int what, char name[96]) {
    snprintf(name, 96, way_name[what], c->published_for);
    return name;
}

/* ---- the table ---- */

/* The row of a way; nothing if no shape has it. */
static void way_row(const struct report *r, const struct column *c, int from, int to, int what,
                    FILE *out) {
    size_t most = (size_t)(to - from) + 1;
    double *x = calloc(most, sizeof *x), *there = calloc(most, sizeof *there);
    if (!x || !there) die(KP_MACHINE, "out of memory");
    char name[96];
    int nthere = 0, behind = 0, n = gather(r, c, from, to, what, x, there, &nthere);
    for (int i = 0; i < n; i++) behind += x[i] < slow;
    if (n) {
        struct spread all = spread_of(x, n);
        fprintf(out, "| %s | %d | %.3f | %.3f | %d |", name_of(c, what, name), n, all.geomean,
                all.median, behind);
        if (nthere)
            fprintf(out, " %.3f (%d) |\n", spread_of(there, nthere).geomean, nthere);
        else
            fputs(" - |\n", out);
    }
    free(x), free(there);
}

/* What was published for those whose ratio was found here, too; nothing if nothing was. */
static void published_line(const struct column *c, int from, int to, FILE *out) {
    double *x[2] = {calloc((size_t)(to - from), sizeof **x),
                    calloc((size_t)(to - from), sizeof **x)};
    if (!x[0] || !x[1]) die(KP_MACHINE, "out of memory");
    int n = 0;
    for (int i = from; i < to; i++) {
        const double *ratio = c->beside[i].ratio;
        if (!(ratio[BESIDE_THEIRS] > 0 && ratio[BESIDE_PUBLISHED_OFFLINE] > 0)) continue;
        x[0][n] = ratio[BESIDE_PUBLISHED_OFFLINE], x[1][n++] = ratio[BESIDE_PUBLISHED_SERVER];
    }
    if (n)
        fprintf(out, "Published for the %d with a speedup here: %.3f offline, %.3f server.\n", n,
                spread_of(x[0], n).geomean, spread_of(x[1], n).geomean);
    free(x[0]), free(x[1]);
}

/* What became of the sources that were judged; nothing if none was. */
static void verdict_line(const struct column *c, int from, int to, FILE *out) {
    int judged = 0, said = 0;
    for (int i = from; i < to; i++) judged += *c->beside[i].verdict != 0;
    if (!judged) return;
    fprintf(out, "\nOf %d sources of CUDA-L2 that were judged here:", judged);
    for (int i = from; i < to; i++) {
        const char *verdict = c->beside[i].verdict;
        int n = 0, before = 0;
        for (int k = from; k < i; k++) before += !strcmp(verdict, c->beside[k].verdict);
        for (int k = i; k < to; k++) n += !strcmp(verdict, c->beside[k].verdict);
        if (*verdict && !before) fprintf(out, "%s %d `%s`", said++ ? "," : "", n, verdict);
    }
    fputs(" ([reasons](../foreign)). `gate` and `tape` say\nthat host code does what a recording "
          "cannot hold, not that the product is wrong.\n",
          out);
    published_line(c, from, to, out);
}

void beside_tables(const struct report *r, const struct column *c, FILE *out) {
    for (int from = 0, to; from < r->nrows; from = to) {
        to = report_next_suite(r, from);
        if (!has_any(r, c, from, to)) continue;
        fprintf(out,
                "\n| %s | shapes | over the best call | median | below %.2f | the headline of "
                "these shapes |\n|---|--:|--:|--:|--:|--:|\n",
                r->rows[from].suite, slow);
        way_row(r, c, from, to, BESIDES, out);
        for (int k = 0; k < BESIDES; k++) way_row(r, c, from, to, k, out);
        fputs("\nGeometric means over the fastest of the libraries' calls: of ours, and of "
              "CUDA-L2's as judged here, that which\nis the fastest behind an emptied L2, in all "
              "modes; of what was published, cuBLASLt's auto-tuning. In brackets: how\nmany of "
              "these shapes have a headline, which is behind an emptied L2. *Offline* is back to "
              "back and *server* after gaps,\nboth with what is left in the L2 ([METHOD.md]"
              "(../../METHOD.md), *Other modes*). What was published was not measured here: its "
              "authors\ntimed it with a warm L2, and part of it adds up in f16 ([published]"
              "(../published/README.md)).\n",
              out);
        verdict_line(c, from, to, out);
    }
}

/* ---- the figure ---- */

/* Write a curve; false if no shape has it. */
static bool curve(const struct report *r, const struct column *c, int from, int to, int what,
                  FILE *data) {
    char name[96];
    double *x = calloc((size_t)(to - from) + 1, sizeof *x);
    if (!x) die(KP_MACHINE, "out of memory");
    int n = gather(r, c, from, to, what, x, NULL, NULL);
    curve_write(data, c->name, r->rows[from].suite, name_of(c, what, name), x, n);
    free(x);
    return n;
}

int beside_data(const struct report *r, FILE *data, FILE *titles, FILE *drawn) {
    int panels = 0;
    for (int i = 0; i < r->ncolumns; i++) {
        const struct column *c = &r->columns[i];
        for (int from = 0, to; from < r->nrows; from = to) {
            int bits = 0;
            to = report_next_suite(r, from);
            if (!has_any(r, c, from, to)) continue;
            for (int k = 0; k < BESIDES; k++) bits |= curve(r, c, from, to, k, data) << k;
            bits |= curve(r, c, from, to, BESIDES, data) << BESIDES;
            fprintf(titles, "%s\"%s, %s\"", panels ? ", " : "", c->name, r->rows[from].suite);
            fprintf(drawn, "%s%d", panels++ ? ", " : "", bits);
        }
    }
    return panels;
}
