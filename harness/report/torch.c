/* torch.c: PyTorch's times beside ours.
 *
 * `make pytorch` writes them to results/pytorch/GPU.csv (results/SCHEMA.md): rows of a task, each
 * with the board and the day that measured it, and a column for each way of running it under each
 * setting of PyTorch's flags. */
#include "report/report.h"
#include "record/table.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

const char *const torch_flags_name[TORCH_FLAGS] = {"default", "fp32", "tf32"};
const char *const torch_way_name[TORCH_WAYS] = {"eager", "graph", "compiled"};

/* ---- reading ---- */

/* A field of a row by the name of its column; "" if there is no such column. */
static const char *field(const struct table *t, int row, const char *name) {
    int column = table_find(t, name);
    return column < 0 ? "" : table_field(t, row, column);
}

/* Whether a row was measured on the board of a result, and whether on its day, too. */
static enum torch_beside beside(const struct table *t, int row, const struct result *cell) {
    const char *board = result_board(cell), *day = field(t, row, "date");
    const cJSON *harness = cJSON_GetObjectItemCaseSensitive(cell->json, "harness");
    if (!*board || strcmp(board, field(t, row, "board"))) return TORCH_ELSEWHERE;
    size_t n = strlen(day);
    return n && !strncmp(json_text(harness, "date", ""), day, n) ? TORCH_SAME_DAY
                                                                 : TORCH_SAME_BOARD;
}

/* Take a row of the table, which was read from `path`. */
static void take(struct torch *to, const struct table *t, int row, const struct result *cell,
                 const char *path) {
    for (int f = 0; f < TORCH_FLAGS; f++)
        for (int w = 0; w < TORCH_WAYS; w++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%s", torch_way_name[w], torch_flags_name[f]);
            int column = table_find(t, name);
            double us = column < 0 ? 0 : table_number(t, row, column, path);
            if (us > 0) to->us[f][w] = us, to->beside[f][w] = beside(t, row, cell);
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
        int row = report_row(r, table_field(&t, i, task));
        if (row < 0) continue; /* of a task that is no more */
        take(&c->torch[row], &t, i, &c->cell[row], path);
        add_source(&from, &t, i);
    }
    text_add(&from, "", 0);
    c->torch_from = from.s;
    table_free(&t);
}

/* The fastest way of a row under these flags; TORCH_WAYS if there is no time. */
static int fastest(const struct column *c, int row, enum torch_flags flags) {
    int best = TORCH_WAYS;
    for (int w = 0; c->torch && w < TORCH_WAYS; w++) {
        const double *us = c->torch[row].us[flags];
        if (us[w] > 0 && (best == TORCH_WAYS || us[w] < us[best])) best = w;
    }
    return best;
}

double torch_time(const struct column *c, int row, enum torch_flags flags, const char **how) {
    int way = fastest(c, row, flags);
    if (way == TORCH_WAYS) return 0;
    *how = torch_way_name[way];
    return c->torch[row].us[flags][way];
}

bool torch_compiled(const struct column *c, int row, enum torch_flags flags) {
    return c->torch && c->torch[row].us[flags][TORCH_COMPILED] > 0;
}

bool torch_same_board(const struct column *c, int row, enum torch_flags flags) {
    int way = fastest(c, row, flags);
    return way < TORCH_WAYS && c->torch[row].beside[flags][way] != TORCH_ELSEWHERE;
}
