/* shapes.c: families of products: how the speedup depends on a shape's M, N and K, as a figure and
 * as a table that has each of the libraries' calls beside the best. */
#include "report/report.h"
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

/* Write a line for each M N and K: the geometric mean of the n shapes there.  Returns how many. */
static int write_bins(const struct shape *shape, int n, FILE *data) {
    int bins = 0, rank = 0;
    for (int from = 0, to; from < n; from = to, bins++) {
        double sum = 0;
        rank += from == 0 || shape[from].k != shape[from - 1].k;
        for (to = from; to < n && !by_place(&shape[from], &shape[to]); to++)
            sum += log(shape[to].ratio);
        fprintf(data, "%d\t%d\t%d\t%.6g\t%d\n", shape[from].area_bits, rank, shape[from].k,
                exp(sum / (to - from)), to - from);
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

/* The panel of a GPU and the family whose rows begin at `from`; false if it has too few shapes. */
static bool panel(const struct report *r, const struct column *c, int from, bool first, FILE *data,
                  FILE *titles, FILE *counts) {
    int n;
    struct shape *shape = gather(r, c, from, &n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += log(shape[i].ratio);
    if (n >= LEAST) {
        fprintf(data, "# %s %s\n# log2(M N)\trank of K\tK\tspeedup\tshapes\n", c->name,
                r->rows[from].suite);
        fprintf(counts, "%s%d", first ? "" : ", ", write_bins(shape, n, data));
        fprintf(titles, "%s\"%s, %s: %d shapes, geometric mean %.3f\"", first ? "" : ", ", c->name,
                r->rows[from].suite, n, exp(sum / n));
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

/* Powers of two that part sizes M N K. */
static const int size_limits[] = {24, 28, 33, 36};
enum { SIZES = 1 + sizeof size_limits / sizeof *size_limits };
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

/* A row of the shapes from `least` up to below `most`, in M N K; nothing if there is none. */
static void size_row(const struct shape *shape, int n, double least, double most, const char *name,
                     FILE *out) {
    double *x = calloc((size_t)n + 1, sizeof *x), *floors = calloc((size_t)n + 1, sizeof *floors);
    int here = 0, behind = 0;
    if (!x || !floors) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) {
        if (shape[i].size < least || shape[i].size >= most) continue;
        behind += shape[i].ratio < slow;
        floors[here] = shape[i].cell->floor_us / shape[i].cell->candidate_us;
        x[here++] = shape[i].ratio;
    }
    if (here) {
        struct spread all = spread_of(x, here), of_floor = spread_of(floors, here);
        fprintf(out, "| %s | %d | %.3f | %.3f | %d | %.0f %% |", name, here, all.geomean,
                all.median, behind, 100 * of_floor.median);
    }
    for (int call = 0; call < CALLS && here; call++) {
        int with = 0;
        for (int i = 0; i < n; i++)
            if (shape[i].size >= least && shape[i].size < most)
                with += (x[with] = over_call(shape[i].cell, call)) > 0;
        if (with)
            fprintf(out, " %.3f |", spread_of(x, with).geomean);
        else
            fputs(" - |", out);
    }
    if (here) fputc('\n', out);
    free(x), free(floors);
}

void shapes_tables(const struct report *r, const struct column *c, FILE *out) {
    for (int row = 0, n; row < r->nrows; row = report_next_suite(r, row)) {
        struct shape *shape = gather(r, c, row, &n);
        if (n >= LEAST) {
            fprintf(out,
                    "\n| %s, M N K | shapes | over the best call | median | below %.2f | of floor "
                    "|",
                    r->rows[row].suite, slow);
            for (int i = 0; i < CALLS; i++) fprintf(out, " over %s |", calls[i]);
            fputs("\n|---|", out);
            for (int i = 0; i < 5 + CALLS; i++) fputs("--:|", out);
            fputc('\n', out);
            for (int i = 0; i < SIZES; i++) {
                char name[64];
                if (i < SIZES - 1)
                    snprintf(name, sizeof name, "below 2^%d", size_limits[i]);
                else
                    snprintf(name, sizeof name, "2^%d and more", size_limits[i - 1]);
                size_row(shape, n, i ? ldexp(1, size_limits[i - 1]) : 0,
                         i < SIZES - 1 ? ldexp(1, size_limits[i]) : INFINITY, name, out);
            }
            size_row(shape, n, 0, INFINITY, "**all**", out);
        }
        free(shape);
    }
}
