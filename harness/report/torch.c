/* torch.c: PyTorch's times beside ours.
 *
 * `make pytorch` writes them to results/pytorch/GPU.csv (results/SCHEMA.md): a row a task, with the
 * board that it was measured on, and a column for each way of running it under each setting of
 * PyTorch's flags. */
#include "report/report.h"
#include "record/table.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stats.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* A baseline that takes up to this many times as long as PyTorch is what PyTorch's user gets. */
static const double fair_baseline = 1.10;

static const char *const flags_name[TORCH_FLAGS] = {"default", "fp32", "tf32"};
static const char *const way_name[TORCH_WAYS] = {"eager", "graph", "compiled"};

/* ---- reading ---- */

/* A field of a row by the name of its column; "" if there is no such column. */
static const char *field(const struct table *t, int row, const char *name) {
    for (int i = 0; i < t->ncolumns; i++)
        if (!strcmp(t->field[i], name)) return table_field(t, row, i);
    return "";
}

/* Take a row of the table. */
static void take(struct torch *to, const struct table *t, int row, const struct result *cell) {
    const char *board = result_board(cell);
    to->same_board = *board && !strcmp(board, field(t, row, "board"));
    for (int f = 0; f < TORCH_FLAGS; f++)
        for (int w = 0; w < TORCH_WAYS; w++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%s", way_name[w], flags_name[f]);
            double us = atof(field(t, row, name));
            if (us > 0) to->us[f][w] = us;
        }
}

/* Add a row's versions and date, unless they are named already. */
static void add_source(struct text *from, const struct table *t, int row) {
    char *source = text_format("%s, %s", field(t, row, "versions"), field(t, row, "date"));
    if (!from->s || !strstr(from->s, source)) {
        if (from->s) text_add(from, "; ", 2);
        text_add(from, source, strlen(source));
    }
    free(source);
}

void torch_load(const struct report *r, struct column *c, const char *path) {
    struct table t;
    struct text from = {0};
    if (!table_load(&t, path)) return;
    int task = table_column(&t, "task", path);
    if (!(c->torch = calloc((size_t)r->nrows + 1, sizeof *c->torch)))
        die(KP_MACHINE, "out of memory");
    for (int i = 0; i < t.nrows; i++) {
        int row = 0;
        while (row < r->nrows && strcmp(r->rows[row].task, table_field(&t, i, task))) row++;
        if (row == r->nrows) continue; /* of a task that is no more */
        take(&c->torch[row], &t, i, &c->cell[row]);
        add_source(&from, &t, i);
    }
    text_add(&from, "", 0);
    c->torch_from = from.s;
    table_free(&t);
}

double torch_time(const struct column *c, int row, enum torch_flags flags, const char **how) {
    double best = 0;
    for (int w = 0; c->torch && w < TORCH_WAYS; w++) {
        double us = c->torch[row].us[flags][w];
        if (us > 0 && (best == 0 || us < best)) best = us, *how = way_name[w];
    }
    return best;
}

/* ---- our baselines over PyTorch ---- */

struct held { /* the baselines of a GPU that PyTorch has a time for */
    int n, within, below;
    double *ratio;
    FILE *slower; /* those that are not fair, by name */
    bool any;
};

/* The flags under which PyTorch computes in a baseline's arithmetic. */
static enum torch_flags flags_of(const char *arithmetic) {
    for (int f = TORCH_FP32; f < TORCH_FLAGS; f++)
        if (!strcmp(arithmetic, flags_name[f])) return (enum torch_flags)f;
    return TORCH_DEFAULT; /* f16 and bf16 are what the tensors are, whatever the flags */
}

/* PyTorch's time where it calls libraries as a baseline does: the faster of call and replay. */
static double library_time(const struct torch *t, enum torch_flags f) {
    double a = t->us[f][TORCH_EAGER], b = t->us[f][TORCH_GRAPH];
    return a > 0 && !(b > 0 && b < a) ? a : b;
}

/* Add the baselines of one cell. */
static void hold(struct held *h, const struct torch *t, const struct result *cell) {
    const cJSON *runner;
    cJSON_ArrayForEach(runner, cJSON_GetObjectItemCaseSensitive(cell->json, "time_us")) {
        if (!strcmp(runner->string, "candidate")) continue;
        double theirs = library_time(t, flags_of(runner->string));
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

void torch_baselines(const struct report *r, const struct column *c, FILE *out) {
    struct held h = {0};
    char *text = NULL;
    size_t size = 0;
    if (!c->torch) return;
    if (!(h.slower = open_memstream(&text, &size))) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        /* a doubtful kernel can slow down the baseline that is measured after it */
        if (result_ok(cell) && !result_flag(cell->json, FLAG_DOUBT)) hold(&h, &c->torch[i], cell);
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
    fputs("\nTime of our baseline over that of PyTorch in the same arithmetic (the faster of eager "
          "call and graph\nreplay), for each timed cell, without doubtful times. Above 1, a "
          "speedup over our baseline flatters.\nBelow 1, it is harder to get than one over "
          "PyTorch's calls.\n",
          out);
    free(h.ratio);
    free(text);
}
