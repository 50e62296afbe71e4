/* shapes.c: the figure of families of products: how the speedup depends on a shape's M N and K. */
#include "report/report.h"
#include "base/error.h"

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
    double ratio;
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
            shape[(*n)++].ratio = c->cell[i].ratio;
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
