/* published.c: speedups that others published for CUDA-L1, from results/published/. */
#include "report/report.h"
#include "record/table.h"
#include "base/error.h"
#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct point { /* a published speedup */
    double speedup;
    const char *task;
    const char *kind; /* of cuda_l1_known_bad.csv, or "" */
};

/* qsort order of points. */
static int by_speedup(const void *x, const void *y) {
    const struct point *a = x, *b = y;
    if (a->speedup != b->speedup) return a->speedup < b->speedup ? -1 : 1;
    return strcmp(a->task, b->task);
}

/* Why a published speedup is known to be void on a GPU: its kind, or "". */
static const char *known_bad(const struct table *bad, const char *path, const char *gpu,
                             const char *task) {
    for (int i = 0; i < bad->nrows; i++) {
        const char *gpus = table_field(bad, i, table_column(bad, "gpus", path));
        if (!strcmp(task, table_field(bad, i, table_column(bad, "task", path))) &&
            (!strcmp(gpus, "all") || !strcmp(gpus, gpu)))
            return table_field(bad, i, table_column(bad, "kind", path));
    }
    return "";
}

/* Write one GPU's block, sorted.  The last column is the side of a name: names that would overlap
 * take two sides in turn. */
static void write_points(struct point *point, int n, const char *gpu, FILE *data) {
    double before = 0;
    int side = 0;
    qsort(point, (size_t)n, sizeof *point, by_speedup);
    fprintf(data, "# %s\n# rank\tspeedup\tknown_bad\ttask\tside\n", gpu);
    for (int i = 0; i < n; i++) {
        const struct point *p = &point[i];
        if (*p->kind && strcmp(p->kind, "half")) { /* these are named */
            side = p->speedup < 1.5 * before ? !side : 0;
            before = p->speedup;
        }
        fprintf(data, "%d\t%g\t%s\t%s\t%d\n", i + 1, p->speedup, *p->kind ? p->kind : "-", p->task,
                side);
    }
    fprintf(data, "\n\n");
}

/* Write the rest of a panel's title: means of n speedups; the others of `all` count as 1. */
static void write_spread(const struct point *point, int n, int all, FILE *titles) {
    double *x = calloc((size_t)all + 1, sizeof *x);
    if (!x) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < all; i++) x[i] = i < n ? point[i].speedup : 1;
    struct spread s = spread_of(x, all);
    fprintf(titles, ": %d of %d scored\\nmean %.2f, median %.2f, geomean %.2f", n, all, s.mean,
            s.median, s.geomean);
    free(x);
}

/* Whether a name can stand inside a quoted string of gnuplot. */
static bool is_plain(const char *s) {
    while (isalnum((unsigned char)*s) || *s == '_') s++;
    return !*s;
}

int published_data(const char *published, FILE *data, FILE *titles, FILE *counts) {
    struct table t, bad;
    char *path = text_format("%s/cuda_l1.csv", published);
    char *badpath = text_format("%s/cuda_l1_known_bad.csv", published);
    int panels = 0, i = 0;
    table_load(&bad, badpath);
    if (table_load(&t, path)) {
        int gpu = table_column(&t, "gpu", path), arch = table_column(&t, "arch", path);
        int task = table_column(&t, "task", path), eager = table_column(&t, "eager", path);
        struct point *point = calloc((size_t)t.nrows + 1, sizeof *point);
        if (!point) die(KP_MACHINE, "out of memory");
        for (; i < t.nrows; panels++) { /* rows of one GPU stand together */
            int n = 0, first = i;
            const char *name = table_field(&t, i, gpu), *sm = table_field(&t, i, arch);
            if (!is_plain(name) || !is_plain(sm))
                die(KP_INPUT, "%s: %s, %s: expected letters and digits", path, name, sm);
            for (; i < t.nrows && !strcmp(table_field(&t, i, gpu), name); i++) {
                const char *id = table_field(&t, i, task);
                double speedup = table_number(&t, i, eager, path);
                if (speedup > 0)
                    point[n++] = (struct point){speedup, id, known_bad(&bad, badpath, name, id)};
            }
            write_points(point, n, name, data);
            fprintf(titles, "%s\"%s, %s", panels ? ", " : "", sm, name);
            write_spread(point, n, i - first, titles);
            fprintf(titles, "\"");
            fprintf(counts, "%s%d", panels ? ", " : "", n);
        }
        free(point);
    }
    table_free(&t);
    table_free(&bad);
    free(badpath);
    free(path);
    return panels;
}
