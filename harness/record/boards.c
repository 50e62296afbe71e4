/* boards.c: see boards.h. */
#include "record/boards.h"
#include "record/table.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stats.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const bound_name[BOUNDS] = {"memory", "products", "latency"};

/* Kernels below this are bound by latency. */
static const double latency_us = 20;
/* 95 % of the normal distribution. */
static const double normal = 1.959964;

struct board_run {
    const char *task, *setup, *board;
    enum bound bound;
    double x, own; /* log speedup, and its standard deviation by its own interval */
};

/* What bounds a kernel that takes so long. */
static enum bound bound_of(double candidate_us, double floor_bytes_us, double floor_flops_us) {
    if (candidate_us < latency_us) return BOUND_LATENCY;
    return floor_flops_us > floor_bytes_us ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* The standard deviation of a log speedup whose 95 % interval this is. */
static double own_deviation(double low, double high) {
    return log(high / low) / 2 / normal;
}

/* ---- estimates ---- */

struct seen { /* boards with a pair */
    int n;
    struct {
        const char *board;
        int reruns; /* of its cell that was run most often */
    } * of;
};

/* Count a run on a board, which is the rerun of that many. */
static void see(struct seen *s, const char *board, int reruns) {
    int i = 0;
    while (i < s->n && strcmp(s->of[i].board, board)) i++;
    if (i == s->n) {
        s->of = realloc(s->of, ((size_t)s->n + 1) * sizeof *s->of);
        if (!s->of) die(KP_MACHINE, "out of memory");
        s->of[s->n].board = board;
        s->of[s->n++].reruns = 0;
    }
    if (reruns > s->of[i].reruns) s->of[i].reruns = reruns;
}

/* Whether two rows are runs of the same files. */
static bool same_cell(const struct board_run *a, const struct board_run *b) {
    return !strcmp(a->task, b->task) && !strcmp(a->setup, b->setup);
}

/* The scatter between boards, or of reruns (`same`), of what is bound so, without one board (NULL:
 * with all). */
static struct scatter estimate(const struct boards_of *of, enum bound bound, bool same,
                               const char *without) {
    struct scatter s = {0};
    struct seen seen = {0};
    double sum = 0;
    for (int i = 0; i < of->nruns; i++) {
        const struct board_run *a = &of->run[i];
        int reruns = 0;
        if (a->bound != bound || (without && !strcmp(a->board, without))) continue;
        for (int j = i - 1; j >= 0 && same_cell(&of->run[j], a); j--) {
            const struct board_run *b = &of->run[j];
            if (b->bound != bound || (without && !strcmp(b->board, without))) continue;
            if (!strcmp(a->board, b->board) != same) continue;
            sum += (a->x - b->x) * (a->x - b->x) - a->own * a->own - b->own * b->own;
            s.pairs++;
            see(&seen, a->board, ++reruns);
            see(&seen, b->board, 0);
        }
    }
    if (s.pairs) s.variance = fmax(0, sum / 2 / s.pairs);
    if (s.pairs && !same) s.freedom = seen.n - 1;
    for (int i = 0; i < seen.n && same; i++) s.freedom += seen.of[i].reruns;
    free(seen.of);
    return s;
}

/* By how much two runs differ in 95 % of cases. */
static double reach(const struct scatter *s, double own_a, double own_b) {
    double t = s->freedom ? stat_student(s->freedom) : normal;
    return t * sqrt(own_a * own_a + own_b * own_b + 2 * s->variance);
}

/* ---- whole boards ---- */

struct board_pair { /* differences of log speedups of the cells that two boards share */
    int n;
    double sum, squares;
};

struct board_pairs {
    int n;
    const char **board;
    struct board_pair *of; /* n x n; of two boards where the first comes before */
};

/* The place of a board. */
static int board_index(const struct board_pairs *p, const char *board) {
    int i = 0;
    while (i < p->n && strcmp(p->board[i], board)) i++;
    return i;
}

/* The differences of each two boards, by all pairs of runs of a cell. */
static struct board_pairs *pair_boards(const struct boards_of *of) {
    struct board_pairs *p = calloc(1, sizeof *p);
    if (p) p->board = calloc((size_t)of->nruns + 1, sizeof *p->board);
    if (!p || !p->board) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < of->nruns; i++)
        if (board_index(p, of->run[i].board) == p->n) p->board[p->n++] = of->run[i].board;
    p->of = calloc((size_t)p->n * (size_t)p->n + 1, sizeof *p->of);
    if (!p->of) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < of->nruns; i++) {
        int a = board_index(p, of->run[i].board);
        for (int j = i - 1; j >= 0 && same_cell(&of->run[j], &of->run[i]); j--) {
            int b = board_index(p, of->run[j].board);
            double d = a < b ? of->run[i].x - of->run[j].x : of->run[j].x - of->run[i].x;
            if (a == b) continue;
            struct board_pair *pair = &p->of[a < b ? a * p->n + b : b * p->n + a];
            pair->n++, pair->sum += d, pair->squares += d * d;
        }
    }
    return p;
}

/* The mean difference of a pair, and the variance of that mean; false if they share too little. */
static bool mean_of_pair(const struct board_pair *p, double *mean, double *variance) {
    if (p->n < SHARED_CELLS) return false;
    *mean = p->sum / p->n;
    *variance = fmax(0, p->squares / p->n - *mean * *mean) / (p->n - 1);
    return true;
}

/* The scatter of whole boards, without one of them (-1: with all). */
static struct scatter estimate_shift(const struct board_pairs *p, int without) {
    struct scatter s = {0};
    double sum = 0, mean, variance;
    bool *seen = calloc((size_t)p->n + 1, sizeof *seen);
    if (!seen) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < p->n; i++)
        for (int j = i + 1; j < p->n; j++) {
            if (i == without || j == without) continue;
            if (!mean_of_pair(&p->of[i * p->n + j], &mean, &variance)) continue;
            sum += mean * mean - variance;
            s.pairs++;
            seen[i] = seen[j] = true;
        }
    for (int i = 0; i < p->n; i++) s.freedom += seen[i];
    if (s.pairs) s.variance = fmax(0, sum / 2 / s.pairs), s.freedom--;
    free(seen);
    return s;
}

struct coverage boards_shift_coverage(const struct boards_of *of) {
    const struct board_pairs *p = of->boards;
    struct coverage c = {0};
    double mean, variance;
    for (int i = 0; p && i < p->n; i++) {
        struct scatter s = estimate_shift(p, i);
        if (s.freedom == 0) continue;
        for (int j = 0; j < p->n; j++) {
            if (i == j) continue;
            if (!mean_of_pair(&p->of[i < j ? i * p->n + j : j * p->n + i], &mean, &variance))
                continue;
            c.pairs++;
            c.inside += fabs(mean) <= reach(&s, sqrt(variance), 0);
            c.own += fabs(mean) <= normal * sqrt(variance);
        }
    }
    return c;
}

/* ---- files ---- */

/* qsort order of runs. */
static int by_cell(const void *x, const void *y) {
    const struct board_run *a = x, *b = y;
    int tasks = strcmp(a->task, b->task);
    return tasks ? tasks : strcmp(a->setup, b->setup);
}

/* Read the rows of a GPU. */
static void load_runs(struct boards_of *of, const char *path) {
    static const char *const name[] = {"task",          "setup", "board",        "ratio",
                                       "low",           "high",  "candidate_us", "floor_bytes_us",
                                       "floor_flops_us"};
    enum { TASK, SETUP, BOARD, RATIO, LOW, HIGH, US, BYTES, FLOPS, NAMES };
    int column[NAMES];
    of->table = calloc(1, sizeof *of->table);
    if (!of->table) die(KP_MACHINE, "out of memory");
    table_load(of->table, path);
    if (!of->table->ncolumns) return;
    for (int k = 0; k < NAMES; k++) column[k] = table_column(of->table, name[k], path);
    of->run = calloc((size_t)of->table->nrows + 1, sizeof *of->run);
    if (!of->run) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < of->table->nrows; i++) {
        const char *field[NAMES];
        double x[NAMES];
        for (int k = 0; k < NAMES; k++)
            x[k] = atof(field[k] = table_field(of->table, i, column[k]));
        if (!(x[LOW] > 0 && x[LOW] <= x[RATIO] && x[RATIO] <= x[HIGH] && isfinite(x[HIGH])))
            die(KP_INPUT, "%s: %s on %s: no ratio inside low and high", path, field[TASK],
                field[BOARD]);
        of->run[of->nruns++] =
            (struct board_run){field[TASK],   field[SETUP],
                               field[BOARD],  bound_of(x[US], x[BYTES], x[FLOPS]),
                               log(x[RATIO]), own_deviation(x[LOW], x[HIGH])};
    }
    qsort(of->run, (size_t)of->nruns, sizeof *of->run, by_cell);
    for (int k = 0; k < BOUNDS; k++) {
        of->between[k] = estimate(of, (enum bound)k, false, NULL);
        of->reruns[k] = estimate(of, (enum bound)k, true, NULL);
    }
    of->boards = pair_boards(of);
    of->shift = estimate_shift(of->boards, -1);
}

/* scandir filter: GPU.csv. */
static int is_csv(const struct dirent *e) {
    const char *dot = strchr(e->d_name, '.');
    return dot && dot > e->d_name && !strcmp(dot, ".csv");
}

void boards_load(struct boards *b, const char *results) {
    struct dirent **file = NULL;
    char *folder = text_format("%s/reruns", results);
    int n = scandir(folder, &file, is_csv, alphasort);
    *b = (struct boards){0, calloc((size_t)(n > 0 ? n : 1), sizeof *b->of)};
    if (!b->of) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) {
        struct boards_of *of = &b->of[b->n++];
        char *path = text_format("%s/%s", folder, file[i]->d_name);
        snprintf(of->gpu, sizeof of->gpu, "%.*s", (int)strcspn(file[i]->d_name, "."),
                 file[i]->d_name);
        load_runs(of, path);
        free(path);
        free(file[i]);
    }
    if (n >= 0) free(file);
    free(folder);
}

void boards_free(struct boards *b) {
    for (int i = 0; i < b->n; i++) {
        struct board_pairs *p = b->of[i].boards;
        if (p) free(p->board), free(p->of), free(p);
        table_free(b->of[i].table);
        free(b->of[i].table);
        free(b->of[i].run);
    }
    free(b->of);
    *b = (struct boards){0};
}

/* ---- predictions ---- */

/* What bounds the kernel of a result. */
static enum bound bound_of_result(const struct result *r) {
    return bound_of(r->candidate_us, json_number(r->json, "floor_bytes_us", 0),
                    json_number(r->json, "floor_flops_us", 0));
}

/* How runs bound so scatter between boards, or with BOUNDS whole boards. */
static const struct scatter *between(const struct boards_of *of, int bound) {
    return bound == BOUNDS ? &of->shift : &of->between[bound];
}

/* The boards that say how far a speedup of this GPU and bound scatters, or whole boards (BOUNDS):
 * its own if they are enough, else those of the GPU with the most; NULL if none can say. */
static const struct boards_of *boards_for(const struct boards *b, const char *gpu, int bound) {
    const struct boards_of *most = NULL;
    for (int i = 0; i < b->n; i++) {
        const struct boards_of *of = &b->of[i];
        if (between(of, bound)->freedom == 0) continue;
        if (!strcmp(of->gpu, gpu) && between(of, bound)->freedom + 1 >= OWN_BOARDS) return of;
        if (!most || between(of, bound)->freedom > between(most, bound)->freedom) most = of;
    }
    return most;
}

/* Whether two results are of one board. */
static bool same_board(const struct result *x, const struct result *y) {
    return *result_board(x) && !strcmp(result_board(x), result_board(y));
}

double boards_reach(const struct boards *b, const struct result *x, const struct result *y,
                    int *boards, const char **of) {
    enum bound bound = bound_of_result(x);
    const struct boards_of *from = boards_for(b, x->gpu, bound);
    struct scatter s = {0};
    if (from) s = from->between[bound];
    *boards = s.freedom + 1;
    *of = from ? from->gpu : x->gpu;
    if (from && same_board(x, y) && from->reruns[bound].freedom) s = from->reruns[bound];
    return reach(&s, own_deviation(x->low, x->high), own_deviation(y->low, y->high));
}

struct prediction boards_predict(const struct boards *b, const struct result *r) {
    struct result other = {0}; /* a run as precise as this one, on a board that is not named */
    struct prediction p;
    other.low = r->low;
    other.high = r->high;
    double far = boards_reach(b, r, &other, &p.boards, &p.of);
    p.low = p.boards > 1 ? r->ratio * exp(-far) : r->low;
    p.high = p.boards > 1 ? r->ratio * exp(far) : r->high;
    return p;
}

double boards_mean_reach(const struct boards *b, const struct result *const *cell, int n) {
    const struct boards_of *of = n ? boards_for(b, cell[0]->gpu, BOUNDS) : NULL;
    double variance = 0;
    if (!of) return 0;
    for (int i = 0; i < n; i++) {
        enum bound bound = bound_of_result(cell[i]);
        const struct boards_of *by_itself = boards_for(b, cell[i]->gpu, bound);
        double own = own_deviation(cell[i]->low, cell[i]->high);
        variance += own * own + (by_itself ? by_itself->between[bound].variance : 0);
    }
    return reach(&of->shift, sqrt(variance) / n, sqrt(variance) / n);
}

/* ---- coverage ---- */

/* Add the pairs of one board, by what the others say. */
static void cover(struct coverage *c, const struct boards_of *of, enum bound bound, bool same,
                  const char *board) {
    struct scatter s = estimate(of, bound, same, board);
    const struct board_run *counted = NULL;
    if (s.freedom == 0) return;
    for (int i = 0; i < of->nruns; i++) {
        const struct board_run *a = &of->run[i];
        if (a->bound != bound || strcmp(a->board, board)) continue;
        int j = i;
        while (j > 0 && same_cell(&of->run[j - 1], a)) j--;
        for (; j < of->nruns && same_cell(&of->run[j], a); j++) {
            const struct board_run *b = &of->run[j];
            if (b->bound != bound || !strcmp(b->board, board) != same || (same && j >= i)) continue;
            double d = fabs(a->x - b->x);
            c->pairs++;
            c->inside += d <= reach(&s, a->own, b->own);
            c->own += d <= normal * sqrt(a->own * a->own + b->own * b->own);
            c->cells += !counted || !same_cell(counted, a);
            counted = a;
        }
    }
}

struct coverage boards_coverage(const struct boards_of *of, enum bound bound, bool same) {
    struct coverage all = {0};
    for (int i = 0; i < of->nruns; i++) {
        const char *board = of->run[i].board;
        struct coverage c = {0};
        bool done = of->run[i].bound != bound;
        for (int j = 0; j < i && !done; j++)
            done = of->run[j].bound == bound && !strcmp(of->run[j].board, board);
        if (done) continue;
        cover(&c, of, bound, same, board);
        all.pairs += c.pairs;
        all.inside += c.inside;
        all.own += c.own;
        if (c.cells > all.cells) all.cells = c.cells;
    }
    return all;
}
