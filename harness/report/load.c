/* load.c: the grid of tasks and GPUs, read from tasks/ and results/. */
#include "report/report.h"
#include "base/error.h"
#include "base/json.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more entry of `size` bytes in an array of n; zeroes it. */
static void *grown(void *array, int n, size_t size) {
    char *more = realloc(array, ((size_t)n + 1) * size);
    if (!more) die(KP_MACHINE, "out of memory");
    memset(more + (size_t)n * size, 0, size);
    return more;
}

/* scandir filters: subfolders and files that are not hidden; *.json. */
static int visible(const struct dirent *e) {
    return e->d_name[0] != '.';
}

static int is_json(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 5 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 5, ".json");
}

/* Call f(state, DIR/SUB/FILE) for every *.json two levels below DIR, in order of
 * name.  Folders whose name is no suite or GPU name are passed over, and so are the two
 * that hold numbers of others. */
static void each_json(const char *dir, void (*f)(struct report *, const char *), struct report *r) {
    struct dirent **sub = NULL, **file = NULL;
    int nsub = scandir(dir, &sub, visible, alphasort);
    for (int i = 0; i < nsub; i++) {
        char *folder = text_format("%s/%s", dir, sub[i]->d_name);
        bool other = !is_name(sub[i]->d_name) || !strcmp(sub[i]->d_name, "published") ||
                     !strcmp(sub[i]->d_name, "pytorch");
        int nfile = other ? 0 : scandir(folder, &file, is_json, alphasort);
        for (int j = 0; j < nfile; j++) {
            char *path = text_format("%s/%s", folder, file[j]->d_name);
            f(r, path);
            free(path);
            free(file[j]);
        }
        if (nfile > 0) free(file);
        free(folder);
        free(sub[i]);
    }
    if (nsub > 0) free(sub);
}

/* The row of a task, or -1. */
static int find_row(const struct report *r, const char *task) {
    for (int i = 0; i < r->nrows; i++)
        if (!strcmp(r->rows[i].task, task)) return i;
    return -1;
}

static struct row *add_row(struct report *r, const char *task, const char *suite) {
    r->rows = grown(r->rows, r->nrows, sizeof *r->rows);
    struct row *row = &r->rows[r->nrows++];
    snprintf(row->task, sizeof row->task, "%s", task);
    snprintf(row->suite, sizeof row->suite, "%s", suite);
    for (int i = 0; i < r->ncolumns; i++)
        r->columns[i].cell = grown(r->columns[i].cell, r->nrows - 1, sizeof *r->columns[i].cell);
    return row;
}

/* A task or a cell with such a flag is shown, and left out of every aggregate. */
static bool flag_left_out(const char *flag) {
    return flag_kind(flag) != FLAG_REMARK;
}

/* Add a row for a task file; only what the tables need is read. */
static void load_task(struct report *r, const char *path) {
    char why[256] = "lacks a usable task or suite";
    cJSON *json = json_load(path, why, sizeof why);
    const char *task = json_text(json, "task", ""), *suite = json_text(json, "suite", "");
    if (!is_name(task) || !is_name(suite) || find_row(r, task) >= 0) {
        warn("%s %s; it is left out", path, why);
    } else {
        struct row *row = add_row(r, task, suite);
        const cJSON *flag;
        cJSON_ArrayForEach(flag, cJSON_GetObjectItemCaseSensitive(
                                     json, "flags")) if (cJSON_IsString(flag) &&
                                                         flag_left_out(flag->valuestring))
            row->left_out = true;
    }
    cJSON_Delete(json);
}

static struct column *find_column(struct report *r, const char *gpu) {
    for (int i = 0; i < r->ncolumns; i++)
        if (!strcmp(r->columns[i].name, gpu)) return &r->columns[i];
    r->columns = grown(r->columns, r->ncolumns, sizeof *r->columns);
    struct column *c = &r->columns[r->ncolumns++];
    snprintf(c->name, sizeof c->name, "%s", gpu);
    c->cell = calloc((size_t)r->nrows + 1, sizeof *c->cell);
    if (!c->cell) die(KP_MACHINE, "out of memory");
    return c;
}

/* "sm_90" from the machine's compute capability ("9.0"), else, while there is
 * nothing better, from what the kernel was compiled for ("sm_90a"). */
static void find_arch(struct column *c, const struct result *cell) {
    const cJSON *machine = cJSON_GetObjectItemCaseSensitive(cell->json, "machine");
    const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(cell->json, "kernel");
    int major, minor, number;
    if (sscanf(json_text(machine, "compute_capability", ""), "%2d.%1d", &major, &minor) == 2)
        snprintf(c->arch, sizeof c->arch, "sm_%d", major * 10 + minor);
    else if (!*c->arch && sscanf(json_text(kernel, "arch", ""), "sm_%3d", &number) == 1)
        snprintf(c->arch, sizeof c->arch, "sm_%d", number);
}

/* Put a result file into its cell, or say why it is left out. */
static void load_cell(struct report *r, const char *path) {
    struct result cell;
    char why[256];
    if (!result_load(path, &cell, why, sizeof why)) {
        warn("%s %s; it is left out", path, why);
        r->refused++;
        return;
    }
    int row = find_row(r, cell.task);
    if (row < 0 && r->rows_known) {
        warn("%s is of no task in tasks/; it is left out", path);
        r->refused++;
        result_free(&cell);
        return;
    }
    struct column *c = find_column(r, cell.gpu);
    if (row < 0) {
        add_row(r, cell.task, *cell.suite ? cell.suite : "other");
        row = r->nrows - 1;
    }
    find_arch(c, &cell);
    result_free(&c->cell[row]);
    c->cell[row] = cell;
    r->read++;
}

static int by_suite(const void *x, const void *y) {
    const struct row *a = x, *b = y;
    int suites = strcmp(a->suite, b->suite);
    return suites ? suites : strcmp(a->task, b->task);
}

/* sm_80 before sm_100: shorter first. */
static int by_arch(const void *x, const void *y) {
    const struct column *a = x, *b = y;
    size_t la = strlen(a->arch), lb = strlen(b->arch);
    if (la != lb) return la < lb ? -1 : 1;
    int archs = strcmp(a->arch, b->arch);
    return archs ? archs : strcmp(a->name, b->name);
}

/* Sort the rows, and every column's cells with them. */
static void sort_rows(struct report *r) {
    struct row *sorted = calloc((size_t)r->nrows + 1, sizeof *sorted);
    if (!sorted) die(KP_MACHINE, "out of memory");
    if (r->nrows) memcpy(sorted, r->rows, (size_t)r->nrows * sizeof *sorted);
    qsort(sorted, (size_t)r->nrows, sizeof *sorted, by_suite);
    for (int i = 0; i < r->ncolumns; i++) {
        struct result *cell = calloc((size_t)r->nrows + 1, sizeof *cell);
        if (!cell) die(KP_MACHINE, "out of memory");
        for (int j = 0; j < r->nrows; j++)
            cell[j] = r->columns[i].cell[find_row(r, sorted[j].task)];
        free(r->columns[i].cell);
        r->columns[i].cell = cell;
    }
    free(r->rows);
    r->rows = sorted;
}

void report_load(struct report *r, const char *results, const char *tasks) {
    memset(r, 0, sizeof *r);
    each_json(tasks, load_task, r);
    r->rows_known = r->nrows > 0;
    each_json(results, load_cell, r);
    sort_rows(r);
    qsort(r->columns, (size_t)r->ncolumns, r->ncolumns ? sizeof *r->columns : 1, by_arch);
    for (int i = 0; i < r->ncolumns; i++) {
        char *path = text_format("%s/pytorch/%s.csv", results, r->columns[i].name);
        table_load(&r->columns[i].torch, path);
        free(path);
    }
}

void report_free(struct report *r) {
    for (int i = 0; i < r->ncolumns; i++) {
        for (int j = 0; j < r->nrows; j++) result_free(&r->columns[i].cell[j]);
        free(r->columns[i].cell);
        table_free(&r->columns[i].torch);
    }
    free(r->columns);
    free(r->rows);
}

bool report_left_out(const struct report *r, const struct column *c, int row) {
    if (r->rows[row].left_out) return true;
    const struct result *cell = &c->cell[row];
    for (int i = 0; i < cell->nflags; i++)
        if (flag_left_out(cell->flags[i])) return true;
    return false;
}
