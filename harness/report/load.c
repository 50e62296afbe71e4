/* load.c: the grid of tasks and GPUs, read from tasks/ and results/.
 *
 * A suite is a folder of tasks/: a file for each task or, for a family, template.json and a list of
 * words in `shapes`.  The task of a word is SUITE_WORD; its flags are those of the template. */
#include "report/report.h"
#include "record/recorded.h"
#include "base/error.h"
#include "base/json.h"
#include "task/taskfile.h"
#include "task/op.h"
#include "task/task_text.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Make room for one more entry of `size` bytes in an array of n; zeroes it. */
static void *grown(void *array, int n, size_t size) {
    char *more = realloc(array, ((size_t)n + 1) * size);
    if (!more) die(KP_MACHINE, "out of memory");
    memset(more + (size_t)n * size, 0, size);
    return more;
}

/* ---- rows ---- */

/* Whether a word is among those of a text. */
static bool among(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

/* Whether README speaks of a suite; where all are asked for, it does of each. */
static bool is_published(const struct report *r, const char *suite) {
    return !r->shown || among("crfm hgemm level1 level2 level3", suite);
}

/* Whether a suite has rows. */
static bool is_shown(const struct report *r, const char *suite) {
    return is_published(r, suite) || among(r->shown, suite);
}

/* The row of a task, as report_row() finds it.  The search begins where the last one ended, as
 * results come in nearly the same order as rows. */
static int find_row(struct report *r, const char *task) {
    for (int i = 0; i < r->nrows; i++) {
        int row = (r->likely_row + i) % r->nrows;
        if (strcmp(r->rows[row].task, task)) continue;
        r->likely_row = row + 1;
        return row;
    }
    return -1;
}

/* Add a row, and an empty cell to each column. */
static struct row *add_row(struct report *r, const char *task, const char *suite) {
    r->rows = grown(r->rows, r->nrows, sizeof *r->rows);
    struct row *row = &r->rows[r->nrows++];
    snprintf(row->task, sizeof row->task, "%s", task);
    snprintf(row->suite, sizeof row->suite, "%s", suite);
    row->own = !is_published(r, suite);
    for (int i = 0; i < r->ncolumns; i++)
        r->columns[i].cell = grown(r->columns[i].cell, r->nrows - 1, sizeof *r->columns[i].cell);
    return row;
}

/* Whether a name fits into a field and has no other characters than a name may have. */
static bool fits(const char *name, size_t size) {
    return is_name(name) && strlen(name) < size;
}

/* ---- tasks ---- */

/* Whether such a flag keeps a task or a cell out of every aggregate. */
static bool flag_left_out(const char *flag) {
    return flag_kind(flag) != FLAG_REMARK;
}

/* Whether a task's flags leave it out. */
static bool task_left_out(const cJSON *json) {
    const cJSON *flag;
    cJSON_ArrayForEach(flag, cJSON_GetObjectItemCaseSensitive(json, "flags")) {
        if (cJSON_IsString(flag) && flag_left_out(flag->valuestring)) return true;
    }
    return false;
}

/* Fill in what a row's task computes, and free the task.  One that cannot be read (NULL) stays
 * unknown: `task check` says what is wrong with it. */
static void describe_task(struct row *row, struct kp_task *t) {
    size_t size = 0;
    if (!t) return;
    FILE *out = open_memstream(&row->meaning, &size);
    if (!out) die(KP_MACHINE, "out of memory");
    task_text_meaning(t, out);
    fclose(out);
    enum kp_dtype type = task_float_type(t);
    snprintf(row->class, sizeof row->class, "%s", type == KP_F32 ? "fp32" : kp_dtype_name(type));
    row->kind = task_kind(t);
    task_free(t);
}

/* Add a row for a task file.  One that cannot be used is left out with a line on stderr. */
static void load_task(struct report *r, const char *path) {
    struct row *row = NULL;
    char why[256] = "lacks a usable task or suite";
    cJSON *json = json_load(path, why, sizeof why);
    const char *task = json_text(json, "task", ""), *suite = json_text(json, "suite", "");
    if (!fits(task, sizeof row->task) || !fits(suite, sizeof row->suite))
        warn("%s %s; it is left out", path, why);
    else if (find_row(r, task) >= 0)
        warn("%s is of the task %s, which is there already; it is left out", path, task);
    else {
        row = add_row(r, task, suite);
        row->left_out = task_left_out(json);
        describe_task(row, task_load_error(path, why, sizeof why));
    }
    cJSON_Delete(json);
}

/* Add a row for a task of a family.  One that its template, which is `json`, cannot be expanded to
 * is left out with a line on stderr; `said` is the last such line, as what is wrong with the
 * template is said once. */
static void add_shape(struct report *r, const char *template, const cJSON *json, const char *task,
                      const char *suite, char said[1024]) {
    char why[1024], *text = NULL;
    bool whole = cJSON_HasObjectItem(json, "shape") && cJSON_HasObjectItem(json, "graph");
    if (whole && !(text = family_expand_error(template, task, why, sizeof why))) {
        if (strcmp(why, said)) warn("%s; it is left out", why);
        strcpy(said, why);
        return;
    }
    struct row *row = add_row(r, task, suite);
    row->left_out = task_left_out(json);
    row->family = true;
    describe_task(row, text ? task_parse(text, template, why, sizeof why) : NULL);
    free(text);
}

/* Add a row for each word of a family's list.  A word that cannot be one is left out with a line on
 * stderr; so is the family if it lacks its template or its list. */
static void load_family(struct report *r, const char *folder, const char *suite) {
    struct row *row = NULL;
    char why[256] = "";
    char *template = text_format("%s/template.json", folder);
    char *shapes = text_format("%s/shapes", folder);
    cJSON *json = json_load(template, why, sizeof why);
    if (!json)
        warn("%s %s; the family is left out", template, why);
    else if (access(shapes, R_OK))
        warn("%s cannot be read; the family is left out", shapes);
    else {
        char *text = file_read(shapes, NULL), *rest = text, *word, said[1024] = "";
        while ((word = strsep(&rest, " \t\r\n"))) {
            if (!*word) continue;
            char *task = text_format("%s_%s", suite, word);
            if (!fits(task, sizeof row->task) || find_row(r, task) >= 0)
                warn("%s: %.80s cannot be a task, or is one already; it is left out", shapes, word);
            else
                add_shape(r, template, json, task, suite, said);
            free(task);
        }
        free(text);
    }
    cJSON_Delete(json);
    free(template);
    free(shapes);
}

/* scandir filter: what is not hidden. */
static int visible(const struct dirent *e) {
    return e->d_name[0] != '.';
}

/* scandir filter: *.json. */
static int is_json(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 5 && visible(e) && !strcmp(e->d_name + n - 5, ".json");
}

/* Add the rows of all suites. */
static void load_tasks(struct report *r, const char *tasks) {
    struct row *row = NULL;
    struct dirent **sub = NULL, **file = NULL;
    int nsub = scandir(tasks, &sub, visible, alphasort);
    for (int i = 0; i < nsub; i++) {
        bool wanted = fits(sub[i]->d_name, sizeof row->suite) && is_shown(r, sub[i]->d_name);
        char *folder = text_format("%s/%s", tasks, sub[i]->d_name);
        int nfile = wanted ? scandir(folder, &file, is_json, alphasort) : 0;
        for (int j = 0; j < nfile; j++) {
            char *path = text_format("%s/%s", folder, file[j]->d_name);
            if (!strcmp(file[j]->d_name, "template.json"))
                load_family(r, folder, sub[i]->d_name);
            else
                load_task(r, path);
            free(path);
            free(file[j]);
        }
        if (nfile > 0) free(file);
        free(folder);
        free(sub[i]);
    }
    if (nsub > 0) free(sub);
}

/* ---- results ---- */

/* Read a line of RESULTS/GPU/tree, "COMMIT" or "COMMIT FAMILY".  Returns what follows it, or NULL
 * if it is no such line. */
static const char *read_tree(const char *line, struct tree *t) {
    size_t n = strspn(line, "0123456789abcdef");
    const char *family = line + n + (line[n] == ' ');
    size_t length = strspn(family, "abcdefghijklmnopqrstuvwxyz0123456789_");
    bool named = line[n] == ' ';
    if (n < 12 || n >= sizeof t->commit || named != (length > 0) || length >= sizeof t->family ||
        family[length] != '\n')
        return NULL;
    snprintf(t->commit, sizeof t->commit, "%.*s", (int)n, line);
    snprintf(t->family, sizeof t->family, "%.*s", (int)length, family);
    return family + length + 1;
}

/* Read which results of a GPU are of another tree, if that is said. */
static void load_trees(struct column *c, const char *results) {
    char *path = text_format("%s/%s/tree", results, c->name);
    if (access(path, F_OK) == 0) {
        char *text = file_read(path, NULL);
        const char *line = text;
        do {
            line = c->ntrees < KP_MOST_TREES ? read_tree(line, &c->tree[c->ntrees++]) : NULL;
            if (!line)
                die(KP_INPUT,
                    "%s: expected up to %d lines, each the hash of a commit, 12 to 40 hexadecimal "
                    "digits, and perhaps the name of a family",
                    path, KP_MOST_TREES);
        } while (*line);
        free(text);
    }
    free(path);
}

/* Find or add the column of a GPU. */
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

/* Take the GPU's name and architecture from a result: "sm_90" from the machine's compute capability
 * ("9.0").  As long as no result has one, take it from what the kernel was compiled for. */
static void describe(struct column *c, const struct result *cell) {
    const cJSON *machine = cJSON_GetObjectItemCaseSensitive(cell->json, "machine");
    const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(cell->json, "kernel");
    int major, minor, number;
    if (!*c->whole_name)
        snprintf(c->whole_name, sizeof c->whole_name, "%s", json_text(machine, "gpu_name", ""));
    if (c->arch_of_machine) return;
    if (sscanf(json_text(machine, "compute_capability", ""), "%2d.%1d", &major, &minor) == 2) {
        snprintf(c->arch, sizeof c->arch, "sm_%d", major * 10 + minor);
        c->arch_of_machine = true;
    } else if (!*c->arch && sscanf(json_text(kernel, "arch", ""), "sm_%3d", &number) == 1) {
        snprintf(c->arch, sizeof c->arch, "sm_%d", number);
    }
}

/* Put a result into its cell.  Returns why it is refused, or NULL. */
static const char *place(struct report *r, const struct result *cell) {
    int row = find_row(r, cell->task);
    if (row < 0 && r->rows_known) return "is of no task in tasks/";
    struct column *c = find_column(r, cell->gpu);
    if (row < 0) {
        add_row(r, cell->task, *cell->suite ? cell->suite : "other");
        row = r->nrows - 1;
    }
    if (*c->cell[row].verdict) return "is the second result of this cell";
    describe(c, cell);
    c->cell[row] = *cell;
    return NULL;
}

/* So many results that are refused are named.  A family's template that cannot be read refuses
 * thousands. */
enum { MOST_NAMED = 10 };

/* recorded_use: take a result, or refuse it with a line on stderr. */
static bool load_cell(void *state, const char *where, const char *as, cJSON *json) {
    struct report *r = state;
    struct result cell;
    char why[256] = "";
    const char *refused = why;
    if (json && result_take(json, as, &cell, why, sizeof why)) {
        if (*cell.suite && !is_shown(r, cell.suite)) return result_free(&cell), true;
        refused = place(r, &cell);
        if (refused) result_free(&cell);
    }
    if (refused && *refused && r->refused < MOST_NAMED)
        warn("%s %s; it is left out", where, refused);
    r->refused += refused != NULL;
    r->read += refused == NULL;
    return true;
}

/* Folders of results/ that are no GPU's. */
static bool is_gpu(const char *name) {
    static const char *const other[] = {"foreign", "modes",  "published",  "pytorch",
                                        "reruns",  "search", "transcripts"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(name, other[i])) return false;
    return is_name(name);
}

/* Read the results of all GPUs. */
static void load_results(struct report *r, const char *results) {
    struct dirent **sub = NULL;
    int n = scandir(results, &sub, visible, alphasort);
    for (int i = 0; i < n; i++) {
        struct recorded gpu;
        if (is_gpu(sub[i]->d_name)) {
            recorded_open(&gpu, results, sub[i]->d_name);
            recorded_each(&gpu, load_cell, r);
            recorded_close(&gpu);
        }
        free(sub[i]);
    }
    if (n >= 0) free(sub);
    if (r->refused > MOST_NAMED) warn("%d results are left out in all", r->refused);
}

/* ---- the grid ---- */

/* qsort order of rows. */
static int by_suite(const void *x, const void *y) {
    const struct row *a = x, *b = y;
    int suites = strcmp(a->suite, b->suite);
    return suites ? suites : strcmp(a->task, b->task);
}

/* qsort order of columns: sm_80 before sm_100, so the shorter name first. */
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

/* Find for each row the first that means the same. */
static void find_twins(struct report *r) {
    for (int i = 0; i < r->nrows; i++) {
        const char *meaning = r->rows[i].meaning;
        int twin = 0;
        while (twin < i &&
               !(meaning && r->rows[twin].meaning && !strcmp(meaning, r->rows[twin].meaning)))
            twin++;
        r->rows[i].twin = twin;
    }
}

void report_load(struct report *r, const char *results, const char *tasks, const char *shown) {
    memset(r, 0, sizeof *r);
    r->shown = shown;
    load_tasks(r, tasks);
    r->rows_known = r->nrows > 0;
    load_results(r, results);
    boards_load(&r->boards, results);
    sort_rows(r);
    find_twins(r);
    if (r->ncolumns) qsort(r->columns, (size_t)r->ncolumns, sizeof *r->columns, by_arch);
    for (int i = 0; i < r->ncolumns; i++) {
        char *path = text_format("%s/pytorch/%s.csv", results, r->columns[i].name);
        torch_load(r, &r->columns[i], path);
        free(path);
        load_trees(&r->columns[i], results);
    }
}

void report_free(struct report *r) {
    for (int i = 0; i < r->ncolumns; i++) {
        for (int j = 0; j < r->nrows; j++) result_free(&r->columns[i].cell[j]);
        free(r->columns[i].cell);
        free(r->columns[i].stale);
        free(r->columns[i].torch);
        free(r->columns[i].torch_from);
        free(r->columns[i].beside);
    }
    for (int i = 0; i < r->nrows; i++) free(r->rows[i].meaning);
    boards_free(&r->boards);
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

bool report_counts(const struct report *r, const struct column *c, int row) {
    const struct result *cell = &c->cell[row];
    const char *own = r->rows[row].class;
    return result_ok(cell) && !report_left_out(r, c, row) &&
           (!*own || class_rank(cell->class) <= class_rank(own));
}

bool report_in_row_of(const struct row *row, const char *suite) {
    return suite ? !strcmp(suite, row->suite) : !row->own && !row->family;
}

int report_next_suite(const struct report *r, int row) {
    int next = row + 1;
    while (next < r->nrows && !strcmp(r->rows[next].suite, r->rows[row].suite)) next++;
    return next;
}
