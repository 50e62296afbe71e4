/* plots.c: the figures.
 *
 * Each is plots/NAME.gp, drawn from plots/data/NAME.tsv: one block a panel, blocks
 * parted by two empty lines.  The script is told `terminal` (svg or png), `out`,
 * `data`, `panels`, and for each panel its title and its number of points. */
#include "report/report.h"
#include "base/error.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct figure { /* what is told to a script, as gnuplot source */
    const char *name;
    int panels;
    char *titles, *counts; /* comma-separated; titles are in double quotes */
    const char *suites;    /* likewise, of all panels: the curves of fast_p */
    int nsuites;
    char *data;      /* the text of NAME.tsv */
    FILE *t, *c, *d; /* while these three are written */
    size_t size[3];
};

static void figure_open(struct figure *f, const char *name) {
    memset(f, 0, sizeof *f);
    f->name = name;
    f->t = open_memstream(&f->titles, &f->size[0]);
    f->c = open_memstream(&f->counts, &f->size[1]);
    f->d = open_memstream(&f->data, &f->size[2]);
    if (!f->t || !f->c || !f->d) die(KP_MACHINE, "out of memory");
}

static void figure_close(struct figure *f) {
    fclose(f->t);
    fclose(f->c);
    fclose(f->d);
}

static void figure_free(struct figure *f) {
    free(f->titles);
    free(f->counts);
    free(f->data);
}

/* End a panel's block of `points` lines, and part its title from the one before. */
static void panel_end(struct figure *f, int points) {
    fprintf(f->d, "\n\n");
    fprintf(f->c, "%s%d", f->panels ? ", " : "", points);
    f->panels++;
}

/* ---- data ---- */

struct dot {   /* a cell in a figure */
    double at; /* what it is sorted by */
    int row;
};

static int by_height(const void *x, const void *y) {
    const struct dot *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return a->row - b->row;
}

/* The correct cells of a GPU, by speedup, or by share of the floor. */
static int sorted_dots(const struct report *r, const struct column *c, bool by_floor,
                       struct dot *dot) {
    int n = 0;
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        if (!result_ok(cell) || (by_floor && !(cell->floor_us > 0))) continue;
        dot[n++] = (struct dot){by_floor ? cell->floor_us / cell->candidate_us : cell->ratio, i};
    }
    qsort(dot, (size_t)n, sizeof *dot, by_height);
    return n;
}

/* "sm_90, h200: 30 of 34 correct", as the beginning of a quoted title. */
static void begin_title(struct figure *f, const struct column *c, const struct aggregate *a) {
    fprintf(f->t, "%s\"%s%s%s: %d of %d correct", f->panels ? ", " : "", c->arch,
            *c->arch ? ", " : "", c->name, a->correct, a->all);
}

static void speedup_panel(struct figure *f, const struct report *r, const struct column *c,
                          struct dot *dot) {
    struct aggregate a = report_aggregate(r, c, NULL);
    int n = sorted_dots(r, c, false, dot), slower = 0;
    fprintf(f->d, "# %s\n# rank\ttask\tspeedup\tlow\thigh\toutcome\n", c->name);
    for (int i = 0; i < n; i++) {
        const struct result *cell = &c->cell[dot[i].row];
        const char *outcome = cell->low > 1 ? "faster" : cell->high < 1 ? "slower" : "even";
        if (report_left_out(r, c, dot[i].row))
            outcome = "out";
        else
            slower += cell->high < 1;
        double high = cell->high < 1e9 ? cell->high : 1e9;
        fprintf(f->d, "%d\t%s\t%.6g\t%.6g\t%.6g\t%s\n", i + 1, cell->task, cell->ratio, cell->low,
                high, outcome);
    }
    begin_title(f, c, &a);
    fprintf(f->t, ", %d faster, %d slower\\n", a.wins, slower);
    fprintf(f->t, "geometric mean %.3f (others count 1), %.3f of the correct\"", a.over_all.geomean,
            a.over_correct.geomean);
    panel_end(f, n);
}

static void floor_panel(struct figure *f, const struct report *r, const struct column *c,
                        struct dot *dot) {
    struct aggregate a = report_aggregate(r, c, NULL);
    int n = sorted_dots(r, c, true, dot);
    fprintf(f->d, "# %s\n# rank\ttask\tkernel_percent\tbaseline_percent\n", c->name);
    for (int i = 0; i < n; i++) {
        const struct result *cell = &c->cell[dot[i].row];
        fprintf(f->d, "%d\t%s\t%.6g\t", i + 1, cell->task, 100 * dot[i].at);
        if (cell->against_us > 0)
            fprintf(f->d, "%.6g\n", 100 * cell->floor_us / cell->against_us);
        else
            fprintf(f->d, "NaN\n");
    }
    if (n == 0) fprintf(f->d, "1\t-\tNaN\tNaN\n");
    begin_title(f, c, &a);
    fprintf(f->t, "\"");
    panel_end(f, n);
}

/* One curve: the share of cells that are correct and faster than p, against p.
 * The cells left out of headline numbers are left out here. */
static void fast_p_curve(struct figure *f, const struct report *r, const struct column *c,
                         const char *suite, const struct dot *dot, int n) {
    const double last = 1000;
    struct aggregate a = report_aggregate(r, c, suite);
    double of = a.all ? a.all : 1;
    int left = a.correct;
    fprintf(f->d, "# %s %s\n# p\tshare_percent\n0\t%.6g\n", c->name, suite ? suite : "all",
            100 * left / of);
    for (int i = 0; i < n; i++) {
        if (suite && strcmp(suite, r->rows[dot[i].row].suite)) continue;
        if (report_left_out(r, c, dot[i].row)) continue;
        fprintf(f->d, "%.6g\t%.6g\n", dot[i].at, 100 * --left / of);
    }
    fprintf(f->d, "%g\t%.6g\n\n\n", last, 100 * left / of);
}

/* All curves of a GPU: one a suite, then one for all. */
static void fast_p_panel(struct figure *f, const struct report *r, const struct column *c,
                         struct dot *dot) {
    struct aggregate a = report_aggregate(r, c, NULL);
    int n = sorted_dots(r, c, false, dot), curves = 0;
    for (int i = 0; i < r->nrows; i++) {
        if (i && !strcmp(r->rows[i].suite, r->rows[i - 1].suite)) continue;
        fast_p_curve(f, r, c, r->rows[i].suite, dot, n);
        curves++;
    }
    fast_p_curve(f, r, c, NULL, dot, n);
    begin_title(f, c, &a);
    fprintf(f->t, "\"");
    fprintf(f->c, "%s%d", f->panels ? ", " : "", curves + 1);
    f->panels++;
}

/* The names of the suites, quoted and comma-separated, to be freed; "''" if none. */
static char *suite_names(const struct report *r, int *n) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) die(KP_MACHINE, "out of memory");
    *n = 0;
    for (int i = 0; i < r->nrows; i++)
        if (!i || strcmp(r->rows[i].suite, r->rows[i - 1].suite))
            fprintf(out, "%s\"%s\"", (*n)++ ? ", " : "", r->rows[i].suite);
    if (!*n) fputs("''", out);
    fclose(out);
    return text;
}

/* ---- gnuplot ---- */

/* Run gnuplot with one argument, or two.  Returns its exit status; 127 if there
 * is none.  With `quiet` it prints nothing. */
static int gnuplot(const char *first, const char *vars, const char *script, bool quiet) {
    char *argv[] = {"gnuplot", (char *)first, (char *)vars, (char *)script, NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&files);
    if (quiet) posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&pid, "gnuplot", &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed) return 127;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Draw one figure as SVG and as PNG, each beside its name and then renamed. */
static bool draw(const struct figure *f, const char *plots) {
    static const char *const kinds[] = {"svg", "png"};
    bool drawn = true;
    for (int i = 0; i < 2; i++) {
        char *out = text_format("%s/%s.%s", plots, f->name, kinds[i]);
        char *beside = text_format("%s.%ld+", out, (long)getpid());
        char *script = text_format("%s/%s.gp", plots, f->name);
        char *vars = text_format("terminal='%s'; plots='%s'; out='%s'; data='%s/data/%s.tsv'; "
                                 "panels=%d; array titles[%d]=[%s]; array counts[%d]=[%s]; "
                                 "array suites[%d]=[%s]",
                                 kinds[i], plots, beside, plots, f->name, f->panels,
                                 f->panels ? f->panels : 1, f->panels ? f->titles : "''",
                                 f->panels ? f->panels : 1, f->panels ? f->counts : "0",
                                 f->nsuites ? f->nsuites : 1, f->suites);
        bool good = gnuplot("-e", vars, script, false) == 0 && rename(beside, out) == 0;
        if (!good) {
            warn("%s was not drawn: gnuplot failed on %s; the old one is unchanged", out, script);
            unlink(beside);
        }
        drawn = drawn && good;
        free(vars);
        free(script);
        free(beside);
        free(out);
    }
    return drawn;
}

/* Write a figure's data and draw it. */
static bool finish(struct figure *f, const struct report *r, const char *plots, bool have_gnuplot) {
    char *suites = suite_names(r, &f->nsuites);
    f->suites = suites;
    char *path = text_format("%s/data/%s.tsv", plots, f->name);
    file_replace(path, f->data);
    bool good = !have_gnuplot || draw(f, plots);
    figure_free(f);
    free(suites);
    free(path);
    return good;
}

int report_plots(const struct report *r, const char *plots, const char *published) {
    static void (*const panel[])(struct figure *, const struct report *, const struct column *,
                                 struct dot *) = {speedup_panel, fast_p_panel, floor_panel};
    static const char *const name[] = {"speedup", "fast_p", "floor"};
    struct dot *dot = calloc((size_t)r->nrows + 1, sizeof *dot);
    char *folder = text_format("%s/data", plots);
    struct figure f;
    bool good = true;
    if (!dot) die(KP_MACHINE, "out of memory");
    if (mkdir(folder, 0777) && errno != EEXIST)
        die(KP_IO, "%s: cannot be made: %s", folder, strerror(errno));
    bool have = gnuplot("--version", NULL, NULL, true) == 0;
    if (!have)
        warn("gnuplot is not installed: %s/data/ is written, the figures are not drawn; install "
             "gnuplot and run make report",
             plots);
    for (int i = 0; i < 3; i++) {
        figure_open(&f, name[i]);
        for (int c = 0; c < r->ncolumns; c++) panel[i](&f, r, &r->columns[c], dot);
        figure_close(&f);
        good = finish(&f, r, plots, have) && good;
    }
    figure_open(&f, "published");
    f.panels = published_data(published, f.d, f.t, f.c);
    figure_close(&f);
    good = finish(&f, r, plots, have) && good;
    if (r->search) {
        figure_open(&f, "search");
        f.panels = search_data(r->search, f.d, f.t, f.c);
        figure_close(&f);
        good = finish(&f, r, plots, have) && good;
    }
    free(folder);
    free(dot);
    return good ? KP_OK : KP_IO;
}
