/* shapes.c: families of products: how the speedup depends on a shape's M, N and K, as a figure and
 * as a table that has each of the libraries' calls beside the best. */
#include "report/report.h"
#include "report/markdown.h"
#include "base/error.h"
#include "base/json.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST = 10,    /* correct shapes that a panel is drawn of */
    MOST_BITS = 64 /* of M N */
};

struct shape {
    int area_bits, k; /* M N, as the nearest power of two */
    double size;      /* M N K */
    double ratio;
    const struct result *cell;
};

/* The shape of a task of a family of products, SUITE_M_N_K; false if it is none. */
static bool shape_of(const struct row *row, struct shape *s) {
    long long m, n, k;
    char after;
    size_t prefix = strlen(row->suite);
    if (strncmp(row->task, row->suite, prefix) ||
        sscanf(row->task + prefix, "_%lld_%lld_%lld%c", &m, &n, &k, &after) != 3 || m < 1 ||
        n < 1 || k < 1 || k > INT_MAX || m > INT_MAX || n > INT_MAX)
        return false;
    s->area_bits = (int)lround(log2((double)m * (double)n));
    s->k = (int)k;
    s->size = (double)m * (double)n * (double)k;
    return s->area_bits < MOST_BITS;
}

/* qsort order: by K, then by M N. */
static int by_place(const void *x, const void *y) {
    const struct shape *a = x, *b = y;
    return a->k != b->k ? (a->k < b->k ? -1 : 1) : a->area_bits - b->area_bits;
}

/* Write a line for each M N and K: the geometric mean of the n shapes there, and the least. Returns
 * how many. */
static int write_bins(const struct shape *shape, int n, FILE *data) {
    int bins = 0, rank = 0;
    for (int from = 0, to; from < n; from = to, bins++) {
        double sum = 0, least = INFINITY;
        rank += from == 0 || shape[from].k != shape[from - 1].k;
        for (to = from; to < n && !by_place(&shape[from], &shape[to]); to++)
            sum += log(shape[to].ratio), least = fmin(least, shape[to].ratio);
        fprintf(data, "%d\t%d\t%d\t%.6g\t%d\t%.6g\n", shape[from].area_bits, rank, shape[from].k,
                exp(sum / (to - from)), to - from, least);
    }
    return bins;
}

/* The shapes that count of a GPU and the family whose rows begin at `from`, by place; to be freed.
 */
static struct shape *gather(const struct report *r, const struct column *c, int from, int *n) {
    int to = report_next_suite(r, from);
    struct shape *shape = calloc((size_t)(to - from), sizeof *shape);
    if (!shape) die(KP_MACHINE, "out of memory");
    *n = 0;
    for (int i = from; i < to; i++)
        if (result_ok(&c->cell[i]) && report_counts(r, c, i) && shape_of(&r->rows[i], &shape[*n]))
            shape[*n].cell = &c->cell[i], shape[*n].ratio = c->cell[i].ratio, (*n)++;
    qsort(shape, (size_t)*n, sizeof *shape, by_place);
    return shape;
}

bool shapes_shown(const struct report *r, const struct column *c) {
    bool shown = false;
    for (int i = 0, n; i < r->nrows && !shown; i = report_next_suite(r, i)) {
        free(gather(r, c, i, &n));
        shown = n >= LEAST;
    }
    return shown;
}

/* How far the geometric mean of shapes reaches, boards_mean_reach(). */
static double reach_of(const struct report *r, const struct shape *shape, int n) {
    const struct result **cell = calloc((size_t)n + 1, sizeof *cell);
    if (!cell) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) cell[i] = shape[i].cell;
    double reach = boards_mean_reach(&r->boards, cell, n);
    free(cell);
    return reach;
}

/* The panel of a GPU and the family whose rows begin at `from`; false if it has too few shapes. */
static bool panel(const struct report *r, const struct column *c, int from, bool first, FILE *data,
                  FILE *titles, FILE *counts) {
    int n;
    struct shape *shape = gather(r, c, from, &n);
    double sum = 0, reach = reach_of(r, shape, n);
    for (int i = 0; i < n; i++) sum += log(shape[i].ratio);
    if (n >= LEAST) {
        fprintf(data, "# %s %s\n# log2(M N)\trank of K\tK\tspeedup\tshapes\tleast speedup\n",
                c->name, r->rows[from].suite);
        fprintf(counts, "%s%d", first ? "" : ", ", write_bins(shape, n, data));
        fprintf(titles, "%s\"%s, %s: %d shapes, geometric mean %.3f", first ? "" : ", ", c->name,
                r->rows[from].suite, n, exp(sum / n));
        if (reach > 0)
            fprintf(titles, " (95 %%: %.3f to %.3f)", exp(sum / n - reach), exp(sum / n + reach));
        fputc('"', titles);
        fprintf(data, "\n\n");
    }
    free(shape);
    return n >= LEAST;
}

int shapes_data(const struct report *r, FILE *data, FILE *titles, FILE *counts) {
    int panels = 0;
    for (int c = 0; c < r->ncolumns; c++)
        for (int i = 0; i < r->nrows; i = report_next_suite(r, i))
            panels += panel(r, &r->columns[c], i, !panels, data, titles, counts);
    return panels;
}

/* ---- The table ------------------------------------------------------------------------------ */

/* Sizes M N K from one power of two up to below another (0: no bound): SIZES parts, and sums. */
static const struct {
    int from, below;
    const char *name;
} sizes[] = {{0, 24, "below 2^24"},        {24, 28, "2^24 to 2^28"}, {28, 33, "2^28 to 2^33"},
             {33, 36, "2^33 to 2^36"},     {36, 0, "2^36 and more"}, {0, 33, "**below 2^33**"},
             {33, 0, "**2^33 and more**"}, {0, 0, "**all**"}};
enum { SIZES = 5, ROWS = sizeof sizes / sizeof *sizes };
/* The libraries' calls that a result may have times of (cuda_base/vendor_choice.h). */
static const char *const calls[] = {"cublas_nn", "cublas_tn",   "lt_nn",
                                    "lt_tn",     "lt_tuned_nn", "lt_tuned_tn"};
enum { CALLS = sizeof calls / sizeof *calls };
static const double slow = 0.95;

/* A cell's speedup over one of the libraries' calls: the speedup over that which was timed, which
 * is the fastest of the search, times what the search says of the two.  0 if it has no time. */
static double over_call(const struct result *cell, int call) {
    const cJSON *us = cJSON_GetObjectItemCaseSensitive(cell->json, "vendor_us"), *x;
    double best = INFINITY, own = json_number(us, calls[call], 0);
    cJSON_ArrayForEach(x, us) best = fmin(best, x->valuedouble);
    return own > 0 && best > 0 ? cell->ratio * own / best : 0;
}

/* The speedups over a call of those of n shapes that have its time.  Returns how many. */
static int over_calls(const struct shape *shape, int n, int call, double *x) {
    int with = 0;
    for (int i = 0; i < n; i++)
        with += (x[with] = usable_number(over_call(shape[i].cell, call))) > 0;
    return with;
}

/* Whether a shape is of a size. */
static bool in_size(const struct shape *s, int size) {
    return s->size >= ldexp(1, sizes[size].from) &&
           (!sizes[size].below || s->size < ldexp(1, sizes[size].below));
}

/* A row of the table of n shapes; nothing if there are none. */
static void size_row(const struct report *r, const struct shape *shape, int n, const char *name,
                     FILE *out) {
    double *x = calloc((size_t)n + 1, sizeof *x), *floors = calloc((size_t)n + 1, sizeof *floors);
    int behind = 0;
    if (!x || !floors) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) {
        behind += shape[i].ratio < slow;
        floors[i] = shape[i].cell->floor_us / shape[i].cell->candidate_us;
        x[i] = shape[i].ratio;
    }
    if (n) {
        struct spread all = spread_of(x, n), of_floor = spread_of(floors, n);
        fprintf(out, "| %s | %d |", name, n);
        put_geomean(all.geomean, reach_of(r, shape, n), out);
        fprintf(out, " %.3f | %d | %.0f %% |", all.median, behind, 100 * of_floor.median);
    }
    for (int call = 0; call < CALLS && n; call++) {
        int with = over_calls(shape, n, call, x);
        if (with)
            fprintf(out, " %.3f |", spread_of(x, with).geomean);
        else
            fputs(" - |", out);
    }
    if (n) fputc('\n', out);
    free(x), free(floors);
}

/* The rows of a family's n shapes. */
static void size_rows(const struct report *r, const struct shape *shape, int n, FILE *out) {
    struct shape *here = calloc((size_t)n + 1, sizeof *here);
    if (!here) die(KP_MACHINE, "out of memory");
    for (int k = 0; k < ROWS; k++) {
        int nhere = 0;
        for (int i = 0; i < n; i++)
            if (in_size(&shape[i], k)) here[nhere++] = shape[i];
        size_row(r, here, nhere, sizes[k].name, out);
    }
    free(here);
}

void shapes_tables(const struct report *r, const struct column *c, FILE *out) {
    for (int row = 0, n; row < r->nrows; row = report_next_suite(r, row)) {
        struct shape *shape = gather(r, c, row, &n);
        if (n >= LEAST) {
            fprintf(
                out,
                "\n| %s, M N K | shapes | over the best call (95 %%) | median | below %.2f | of "
                "floor |",
                r->rows[row].suite, slow);
            for (int i = 0; i < CALLS; i++) fprintf(out, " over %s |", calls[i]);
            fputs("\n|---|", out);
            for (int i = 0; i < 5 + CALLS; i++) fputs("--:|", out);
            fputc('\n', out);
            size_rows(r, shape, n, out);
            fputs(
                "\nGeometric means of speedups; *of floor* is a median. The best call is, for each "
                "shape, the fastest of the libraries' calls\non the right. It alone is measured "
                "beside the kernel: over another call, that speedup counts times what the search "
                "for\nthe fastest measured of both.\n",
                out);
        }
        free(shape);
    }
}

/* ---- The distributions ---------------------------------------------------------------------- */

static int by_speedup(const void *x, const void *y) {
    const double *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

void curve_write(FILE *data, const char *gpu, const char *family, const char *name, double *x,
                 int n) {
    if (n == 0) return;
    qsort(x, (size_t)n, sizeof *x, by_speedup);
    fprintf(data, "# %s %s\n%s: %d shapes, %.3f\tspeedup\n", gpu, family, name, n,
            spread_of(x, n).geomean);
    for (int i = 0; i < n; i++) fprintf(data, "%.4f\t%.6g\n", 100 * (i + 0.5) / n, x[i]);
    fputs("\n\n", data);
}

/* The curves over each call that has a time, and over the best.  Returns how many. */
static int call_curves(const struct column *c, const char *family, const struct shape *shape, int n,
                       double *x, FILE *data) {
    int curves = 1;
    for (int call = 0; call < CALLS; call++) {
        int with = over_calls(shape, n, call, x);
        curve_write(data, c->name, family, calls[call], x, with);
        curves += with > 0;
    }
    for (int i = 0; i < n; i++) x[i] = shape[i].ratio;
    curve_write(data, c->name, family, "the fastest of them", x, n);
    return curves;
}

/* The curves of sizes that do not overlap.  Returns how many. */
static int size_curves(const struct column *c, const char *family, const struct shape *shape, int n,
                       double *x, FILE *data) {
    int curves = 0;
    for (int k = 0; k < SIZES; k++) {
        int here = 0;
        for (int i = 0; i < n; i++)
            if (in_size(&shape[i], k)) x[here++] = shape[i].ratio;
        curve_write(data, c->name, family, sizes[k].name, x, here);
        curves += here > 0;
    }
    return curves;
}

int curves_data(const struct report *r, FILE *data, FILE *titles, FILE *counts) {
    int panels = 0;
    for (int i = 0; i < r->ncolumns; i++)
        for (int row = 0, n; row < r->nrows; row = report_next_suite(r, row)) {
            const struct column *c = &r->columns[i];
            const char *family = r->rows[row].suite, *next = panels ? ", " : "";
            struct shape *shape = gather(r, c, row, &n);
            double *x = calloc((size_t)n + 1, sizeof *x);
            if (!x) die(KP_MACHINE, "out of memory");
            if (n >= LEAST) {
                fprintf(titles, "%s\"%s, %s: over each of the libraries' calls\"", next, c->name,
                        family);
                fprintf(counts, "%s%d", next, call_curves(c, family, shape, n, x, data));
                fprintf(titles, ", \"%s, %s: over the fastest call, by M N K\"", c->name, family);
                fprintf(counts, ", %d", size_curves(c, family, shape, n, x, data));
                panels += 2;
            }
            free(shape), free(x);
        }
    return panels;
}
