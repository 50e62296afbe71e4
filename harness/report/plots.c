/* plots.c: the figures.
 *
 * Each is plots/NAME.gp, drawn from plots/data/NAME.tsv.  Two empty lines end a block of data.  The
 * script is told `terminal` (svg or png), `out`, `data`, `panels`, and for each panel its title and
 * its number of points. */
#include "report/report.h"
#include "report/gnuplot.h"
#include "base/error.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FIGURES = 8,
    MOST_DOTS = 200 /* of a suite in one panel; plots/style.gp says so to readers */
};

/* Ends of scales: an interval without an upper end; the last p of a curve of fast_p. */
static const double endless = 1e9, last_p = 1000;

struct figure { /* what is told to a script, as gnuplot source */
    const char *name;
    int panels;
    char *titles, *counts; /* comma-separated; titles are in double quotes */
    char *data;            /* the text of NAME.tsv */
    FILE *t, *c, *d;       /* while these three are written */
    size_t size[3];
};

/* Begin a figure without panels. */
static void figure_open(struct figure *f, const char *name) {
    memset(f, 0, sizeof *f);
    f->name = name;
    f->t = open_memstream(&f->titles, &f->size[0]);
    f->c = open_memstream(&f->counts, &f->size[1]);
    f->d = open_memstream(&f->data, &f->size[2]);
    if (!f->t || !f->c || !f->d) die(KP_MACHINE, "out of memory");
}

/* Complete the texts of a figure. */
static void figure_close(struct figure *f) {
    fclose(f->t);
    fclose(f->c);
    fclose(f->d);
}

/* Release the texts of a figure. */
static void figure_free(struct figure *f) {
    free(f->titles);
    free(f->counts);
    free(f->data);
}

/* End a panel's data, of which the script is told `points`. */
static void panel_end(struct figure *f, int points) {
    fprintf(f->d, "\n\n");
    fprintf(f->c, "%s%d", f->panels ? ", " : "", points);
    f->panels++;
}

/* ---- data ---- */

struct dot {      /* a cell in a figure */
    double at;    /* what it is sorted by */
    int row;      /* rows of a suite stand together */
    double place; /* on an axis where each suite has the width 1: sorted within its suite */
    bool drawn;   /* whether it is among those of its suite that are drawn there */
};

/* qsort order of dots. */
static int by_height(const void *x, const void *y) {
    const struct dot *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return a->row - b->row;
}

/* Find the place of each of n sorted dots.  Of a large suite MOST_DOTS are drawn, evenly chosen
 * from the first to the last. */
static void find_places(const struct report *r, struct dot *dot, int n) {
    const double margin = 0.05; /* on each side of a suite */
    int suite = 0;
    for (int from = 0, to; from < r->nrows; from = to, suite++) {
        int all = 0, seen = 0, drawn = 0;
        to = report_next_suite(r, from);
        for (int i = 0; i < n; i++) all += dot[i].row >= from && dot[i].row < to;
        int most = all < MOST_DOTS ? all : MOST_DOTS;
        for (int i = 0; i < n; i++) {
            if (dot[i].row < from || dot[i].row >= to) continue;
            dot[i].place = suite + margin + (1 - 2 * margin) * (seen + 0.5) / all;
            dot[i].drawn = most < 2 || seen == drawn * (all - 1) / (most - 1);
            drawn += dot[i].drawn;
            seen++;
        }
    }
}

/* What cells are sorted by; 0 if a cell has no such thing. */
static double over_baseline(const struct column *c, int row) {
    return report_ratio(c, row, OVER_BASELINE);
}

static double over_torch(const struct column *c, int row) {
    return report_ratio(c, row, OVER_TORCH);
}

/* The share of its floor. */
static double of_floor(const struct column *c, int row) {
    const struct result *cell = &c->cell[row];
    return result_ok(cell) ? cell->floor_us / cell->candidate_us : 0;
}

/* The correct cells of a GPU that have this height, the lowest first.  Returns how many there
 * are. */
static int sorted_dots(const struct report *r, const struct column *c,
                       double (*height)(const struct column *c, int row), struct dot *dot) {
    int n = 0;
    for (int i = 0; i < r->nrows; i++) {
        double at = height(c, i);
        if (at > 0) dot[n++] = (struct dot){.at = at, .row = i};
    }
    qsort(dot, (size_t)n, sizeof *dot, by_height);
    find_places(r, dot, n);
    return n;
}

/* Begin a quoted title: "sm_90, h200: 30 of 34 correct", or "sm_90, h200 of 0123456: ...". */
static void begin_title(struct figure *f, const struct column *c, const struct aggregate *a) {
    const struct tree *tree = report_tree(c, NULL);
    fprintf(f->t, "%s\"%s%s%s%s%.7s: %d of %d correct", f->panels ? ", " : "", c->arch,
            *c->arch ? ", " : "", c->name, tree ? " of " : "", tree ? tree->commit : "", a->correct,
            a->all);
}

/* Add to a title the families, which no other number of it counts: "; hgemm of 3d32b62 1.081". */
static void add_families(struct figure *f, const struct report *r, const struct column *c) {
    for (int i = 0; i < r->nrows; i = report_next_suite(r, i)) {
        const struct row *row = &r->rows[i];
        if (!row->family) continue;
        struct aggregate a = report_aggregate(r, c, row->suite);
        const struct tree *tree = report_tree(c, row->suite);
        if (!a.correct) continue;
        fprintf(f->t, "; %s%s%.7s %.3f", row->suite, tree ? " of " : "", tree ? tree->commit : "",
                a.over[OVER_BASELINE].over_correct.geomean);
    }
}

/* Add to a line the cell's speedup over PyTorch and its place among n dots sorted by that. */
static void add_torch(struct figure *f, const struct dot *torch, int n, int row) {
    int i = 0;
    while (i < n && torch[i].row != row) i++;
    if (i < n)
        fprintf(f->d, "\t%.6g\t%.5f\t%d\n", torch[i].at, torch[i].place, torch[i].drawn);
    else
        fprintf(f->d, "\tNaN\tNaN\t0\n");
}

/* The panel of a GPU in the figure of speedups: a line a correct cell, the slowest first. */
static void speedup_panel(struct figure *f, const struct report *r, const struct column *c,
                          struct dot *dot) {
    struct aggregate a = report_aggregate(r, c, NULL);
    struct dot *torch = calloc((size_t)r->nrows + 1, sizeof *torch);
    if (!torch) die(KP_MACHINE, "out of memory");
    int n = sorted_dots(r, c, over_baseline, dot);
    int ntorch = sorted_dots(r, c, over_torch, torch);
    fprintf(f->d, "# %s\n# rank\ttask\tspeedup\tlow\thigh\toutcome\tplace\tdrawn", c->name);
    fprintf(f->d, "\tover_pytorch\tplace\tdrawn\n");
    for (int i = 0; i < n; i++) {
        const struct result *cell = &c->cell[dot[i].row];
        struct prediction p = boards_predict(&r->boards, cell);
        const char *outcome = p.low > 1 ? "faster" : p.high < 1 ? "slower" : "even";
        if (!report_counts(r, c, dot[i].row)) outcome = "out";
        double high = p.high < endless ? p.high : endless;
        fprintf(f->d, "%d\t%s\t%.6g\t%.6g\t%.6g\t%s\t%.5f\t%d", i + 1, cell->task, cell->ratio,
                p.low, high, outcome, dot[i].place, dot[i].drawn);
        add_torch(f, torch, ntorch, dot[i].row);
    }
    free(torch);
    begin_title(f, c, &a);
    fprintf(f->t, ", %d significantly faster, %d slower\\n", a.significant, a.slower);
    fprintf(f->t, "geometric means: %.3f over the baseline",
            a.over[OVER_BASELINE].over_correct.geomean);
    const struct mean *m = &a.over[OVER_TORCH];
    if (m->cells) fprintf(f->t, ", %.3f over PyTorch as it comes", m->over_correct.geomean);
    add_families(f, r, c);
    fprintf(f->t, "\"");
    panel_end(f, n);
}

/* The panel of a GPU in the figure of floors: a line a correct cell, the furthest from it first. */
static void floor_panel(struct figure *f, const struct report *r, const struct column *c,
                        struct dot *dot) {
    struct aggregate a = report_aggregate(r, c, NULL);
    int n = sorted_dots(r, c, of_floor, dot);
    fprintf(f->d, "# %s\n# rank\ttask\tkernel_percent\tbaseline_percent\tplace\tdrawn\n", c->name);
    for (int i = 0; i < n; i++) {
        const struct result *cell = &c->cell[dot[i].row];
        fprintf(f->d, "%d\t%s\t%.6g\t", i + 1, cell->task, 100 * dot[i].at);
        if (cell->against_us > 0)
            fprintf(f->d, "%.6g", 100 * cell->floor_us / cell->against_us);
        else
            fprintf(f->d, "NaN");
        fprintf(f->d, "\t%.5f\t%d\n", dot[i].place, dot[i].drawn);
    }
    if (n == 0) fprintf(f->d, "1\t-\tNaN\tNaN\tNaN\t0\n");
    begin_title(f, c, &a);
    fprintf(f->t, "\"");
    panel_end(f, n);
}

/* One curve: the share of cells that are correct and faster than p, against p.
 * The cells left out of headline numbers are left out here. */
static void fast_p_curve(struct figure *f, const struct report *r, const struct column *c,
                         const char *suite, const struct dot *dot, int n) {
    struct aggregate a = report_aggregate(r, c, suite);
    double of = a.all ? a.all : 1;
    int left = a.correct;
    fprintf(f->d, "# %s %s\n# p\tshare_percent\n0\t%.6g\n", c->name, suite ? suite : "all",
            100 * left / of);
    for (int i = 0; i < n; i++) {
        if (!report_in_row_of(&r->rows[dot[i].row], suite)) continue;
        if (!report_counts(r, c, dot[i].row)) continue;
        fprintf(f->d, "%.6g\t%.6g\n", dot[i].at, 100 * --left / of);
    }
    fprintf(f->d, "%g\t%.6g\n\n\n", last_p, 100 * left / of);
}

/* All curves of a GPU: one a suite, then one for all. */
static void fast_p_panel(struct figure *f, const struct report *r, const struct column *c,
                         struct dot *dot) {
    struct aggregate a = report_aggregate(r, c, NULL);
    int n = sorted_dots(r, c, over_baseline, dot), curves = 0;
    for (int i = 0; i < r->nrows; i = report_next_suite(r, i), curves++)
        fast_p_curve(f, r, c, r->rows[i].suite, dot, n);
    fast_p_curve(f, r, c, NULL, dot, n);
    begin_title(f, c, &a);
    fprintf(f->t, "\"");
    fprintf(f->c, "%s%d", f->panels ? ", " : "", curves + 1);
    f->panels++;
}

/* The names of the suites, quoted and comma-separated, to be freed; "''" if there are none. */
static char *suite_names(const struct report *r, int *n) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) die(KP_MACHINE, "out of memory");
    *n = 0;
    for (int i = 0; i < r->nrows; i = report_next_suite(r, i))
        fprintf(out, "%s\"%s\"", (*n)++ ? ", " : "", r->rows[i].suite);
    if (!*n) fputs("''", out);
    fclose(out);
    return text;
}

/* ---- drawing ---- */

struct drawings {
    const char *plots;
    bool gnuplot; /* whether it is installed */
    int n;
    struct drawing drawing[FIGURES];
};

/* Write a figure's data and start to draw it. */
static void finish(struct figure *f, const struct report *r, struct drawings *all) {
    int suites;
    figure_close(f);
    char *names = suite_names(r, &suites);
    int n = f->panels ? f->panels : 1;
    char *vars = text_format("panels=%d; array titles[%d]=[%s]; array counts[%d]=[%s]; "
                             "array suites[%d]=[%s]",
                             f->panels, n, f->panels ? f->titles : "''", n,
                             f->panels ? f->counts : "0", suites ? suites : 1, names);
    drawing_start(&all->drawing[all->n++], all->plots, f->name, f->data, vars, all->gnuplot);
    free(vars);
    free(names);
    figure_free(f);
}

/* Draw the figures that have a panel for each GPU. */
static void grid_figures(const struct report *r, struct drawings *all) {
    static void (*const panel[])(struct figure *, const struct report *, const struct column *,
                                 struct dot *) = {speedup_panel, fast_p_panel, floor_panel};
    static const char *const name[] = {"speedup", "fast_p", "floor"};
    struct dot *dot = calloc((size_t)r->nrows + 1, sizeof *dot);
    if (!dot) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < 3; i++) {
        struct figure f;
        figure_open(&f, name[i]);
        for (int c = 0; c < r->ncolumns; c++) panel[i](&f, r, &r->columns[c], dot);
        finish(&f, r, all);
    }
    free(dot);
}

/* Draw a figure of families, if it has a panel. */
static void family_figure(const struct report *r, struct drawings *all, const char *name,
                          int (*data)(const struct report *, FILE *, FILE *, FILE *)) {
    struct figure f;
    figure_open(&f, name);
    f.panels = data(r, f.d, f.t, f.c);
    if (f.panels) {
        finish(&f, r, all);
    } else {
        figure_close(&f);
        figure_free(&f);
    }
}

int report_plots(const struct report *r, const char *plots, const char *published) {
    struct drawings all = {.plots = plots, .gnuplot = gnuplot_present()};
    struct figure f;
    char *folder = text_format("%s/data", plots);
    bool good = true;
    if (mkdir(folder, 0777) && errno != EEXIST)
        die(KP_IO, "%s: cannot be made: %s", folder, strerror(errno));
    free(folder);
    if (!all.gnuplot)
        warn("gnuplot is not installed: %s/data/ is written, the figures are not drawn; install "
             "gnuplot and run make report",
             plots);
    grid_figures(r, &all);
    figure_open(&f, "published");
    f.panels = published_data(published, f.d, f.t, f.c);
    finish(&f, r, &all);
    family_figure(r, &all, "shapes", shapes_data);
    family_figure(r, &all, "curves", curves_data);
    family_figure(r, &all, "beside", beside_data);
    if (r->search) {
        figure_open(&f, "search");
        f.panels = search_data(r->search, f.d, f.t, f.c);
        finish(&f, r, &all);
    }
    for (int i = 0; i < all.n; i++) good = drawing_end(&all.drawing[i]) && good;
    return good ? KP_OK : KP_IO;
}
