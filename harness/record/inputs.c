/* inputs.c: see inputs.h. */
#include "record/inputs.h"
#include "base/code_normal.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const input_name[INPUTS] = {"task", "kernel", "reference", "harness"};

/* What can alter a number, whatever the task: folders and files. */
static const char *const harness_parts[] = {
    "harness/gpu",          "harness/measure",      "harness/replay",
    "harness/base/clock.h", "harness/base/stats.c", "harness/base/stats.h",
    "harness/base/tape.c",  "harness/base/tape.h",  "harness/task/cost.c",
    "harness/task/fill.c",  "harness/task/graph.c", "harness/task/load.c",
    "harness/task/ops.c",   "harness/task/slice.c", "harness/task/taskfile.c"};
static const char *const reference_parts[] = {"reference/cuda", "reference/cuda_base"};

static const char op_table[] = "harness/task/op_table.h";
static const char headers[] = "optimized/include";
/* Where ops are implemented, and how: KP_IMPL(NAME, ...), or as a row of a table of expressions. */
enum { OP_FOLDERS = 3 }; /* the last is not of CUDA */
static const char *const op_folders[OP_FOLDERS] = {"reference/cuda_ops", "reference/cuda_products",
                                                   "reference/define"};
static const char *const implements[] = {"KP_IMPL(%s,", "ELEMENTWISE(%s,"};

struct source {
    char *path, *text; /* its normal form; of a kernel's without static_assert */
};

struct group { /* sources that are hashed together */
    int n;
    const struct source **of;
};

struct sources {
    struct group all;  /* that were read */
    struct group ops;  /* of op_folders */
    bool *ops_include; /* [i * ops.n + k]: the i-th of them includes the k-th */
    char *op_rows;     /* of op_table */
    int n;
    struct {
        char *key, hash[65];
    } * known; /* hashes that were computed */
};

/* ---- sources ---- */

/* Append a source to a group. */
static void append(struct group *g, const struct source *source) {
    g->of = realloc(g->of, ((size_t)g->n + 1) * sizeof *g->of);
    if (!g->of) die(KP_MACHINE, "out of memory");
    g->of[g->n++] = source;
}

/* The source at `path`, which is one of a kernel or not.  It is read once. */
static const struct source *source_at(struct sources *s, const char *path, bool of_kernel) {
    for (int i = 0; i < s->all.n; i++)
        if (!strcmp(s->all.of[i]->path, path)) return s->all.of[i];
    if (access(path, R_OK)) die(KP_INPUT, "%s: no such source: results depend on it", path);
    struct source *read = malloc(sizeof *read);
    if (!read) die(KP_MACHINE, "out of memory");
    long size;
    char *text = file_read(path, &size), *code = of_kernel ? code_unasserted(text) : text;
    if (strlen(text) != (size_t)size)
        die(KP_INPUT, "%s: a NUL byte in it, which would hide what follows: remove it", path);
    *read = (struct source){text_format("%s", path), code_normal(code)};
    if (of_kernel) free(code);
    free(text);
    append(&s->all, read);
    return read;
}

/* scandir filter: C and CUDA sources, and headers. */
static int is_source(const struct dirent *e) {
    static const char *const ends[] = {".c", ".h", ".cu", ".cuh"};
    const char *dot = strrchr(e->d_name, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(dot, ends[i])) return 1;
    return 0;
}

/* Add a file, or the sources of a folder in order of name. */
static void add_part(struct sources *s, struct group *g, const char *part) {
    struct dirent **file = NULL;
    int n = scandir(part, &file, is_source, alphasort);
    if (n < 0) append(g, source_at(s, part, false));
    for (int i = 0; i < n; i++) {
        char *path = text_format("%s/%s", part, file[i]->d_name);
        append(g, source_at(s, path, false));
        free(path);
        free(file[i]);
    }
    if (n >= 0) free(file);
}

/* Whether a source includes the file at `path`, named from its root: "cuda_ops/gemm.h". */
static bool includes(const struct source *s, const char *path) {
    const char *name = strchr(path, '/') + 1;
    char *line = text_format("#include\"%s\"", name);
    bool found = strstr(s->text, line) != NULL;
    free(line);
    return found;
}

bool sources_here(void) {
    return access(op_table, R_OK) == 0;
}

struct sources *sources_open(void) {
    struct sources *s = calloc(1, sizeof *s);
    if (!s) die(KP_MACHINE, "out of memory");
    return s;
}

void sources_close(struct sources *s) {
    for (int i = 0; i < s->all.n; i++) {
        free(s->all.of[i]->path);
        free(s->all.of[i]->text);
        free((struct source *)s->all.of[i]);
    }
    free(s->all.of);
    free(s->ops.of);
    free(s->ops_include);
    free(s->op_rows);
    for (int i = 0; i < s->n; i++) free(s->known[i].key);
    free(s->known);
    free(s);
}

/* The hash that was computed for a key, or room for it: then it is "". */
static char *known(struct sources *s, const char *key) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->known[i].key, key)) return s->known[i].hash;
    s->known = realloc(s->known, ((size_t)s->n + 1) * sizeof *s->known);
    if (!s->known) die(KP_MACHINE, "out of memory");
    s->known[s->n].key = text_format("%s", key);
    return memset(s->known[s->n++].hash, 0, 65);
}

static void add_text(struct text *t, const char *text) {
    text_add(t, text, strlen(text));
}

/* ---- the harness and a kernel ---- */

/* Files and folders, one after the other. */
static void hash_parts(struct text *all, struct sources *s, const char *const *part, size_t n) {
    struct group g = {0};
    for (size_t i = 0; i < n; i++) add_part(s, &g, part[i]);
    for (int i = 0; i < g.n; i++) add_text(all, g.of[i]->text);
    free(g.of);
}

/* Whether a group has a source already. */
static bool has(const struct group *g, const char *path) {
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->of[i]->path, path)) return true;
    return false;
}

/* Whether a header is a table of what was chosen for each shape of a family: NAME_table.cuh, or
 * NAME_table_GPU.cuh. */
static bool is_table(const char *path) {
    const char *end = strstr(path, "_table");
    return end && (end[6] == '.' || end[6] == '_');
}

/* Of a table the line of one shape: "{64,64,128," begins it.  Nothing, if it has none. */
static void add_line(struct text *all, const char *table, const char *begin) {
    const char *line = *begin ? strstr(table, begin) : NULL;
    if (line) text_add(all, line, strcspn(line, "}"));
}

/* A kernel and its headers, in the order in which they are met: what #include names, or a #define
 * for an #include.  `shape` begins the task's line in a table. */
static void hash_kernel(struct text *all, struct sources *s, const char *kernel,
                        const char *shape) {
    struct group g = {0};
    append(&g, source_at(s, kernel, true));
    for (int i = 0; i < g.n; i++) {
        const struct source *of = g.of[i];
        if (i > 0 && is_table(of->path))
            add_line(all, of->text, shape);
        else
            add_text(all, of->text);
        for (const char *end = of->text; (end = strstr(end, ".cuh")); end++) {
            const char *name = end;
            if (end[4] != '"' && end[4] != '>') continue;
            while (name > of->text && !strchr("\"<\n", name[-1])) name--;
            char *path = text_format("%s/%.*s.cuh", headers, (int)(end - name), name);
            if (!has(&g, path) && access(path, F_OK) == 0) append(&g, source_at(s, path, true));
            free(path);
        }
    }
    free(g.of);
}

/* How the line of a task in a table begins, by the numbers that end its name: hgemm_64_64_128 gives
 * "{64,64,128,".  "" where there are none. */
static void line_of(const char *task, char begin[64]) {
    size_t n = strlen(task), from = n, used = 0;
    for (size_t i = n; i > 0 && strchr("_0123456789", task[i - 1]); i--)
        if (task[i - 1] == '_') from = i;
    *begin = 0;
    if (from == n || n - from > 60) return;
    begin[used++] = '{';
    for (; from < n; from++) begin[used++] = task[from] == '_' ? ',' : task[from];
    strcpy(begin + used, ",");
}

/* ---- the reference ---- */

/* Add the row of an op.  Returns whether it is a view, which needs no implementation. */
static bool add_row(struct text *all, const struct sources *s, const char *op) {
    char *row = text_format("OP(%s,", op), *view = text_format("VIEW(%s,", op);
    const char *from = strstr(s->op_rows, row);
    bool is_view = !from;
    if (!from) from = strstr(s->op_rows, view);
    if (!from) die(KP_INPUT, "%s has no op %s, which a task names", op_table, op);
    const char *to = from + strcspn(from, "(");
    for (int depth = 0; *to; to++) {
        depth += (*to == '(') - (*to == ')');
        if (depth == 0) break;
    }
    text_add(all, from, (size_t)(to - from));
    free(row);
    free(view);
    return is_view;
}

/* Whether the i-th source of ops, or a header that it includes, implements an op. */
static bool has_op(const struct sources *s, int i, const char *op) {
    bool found = false;
    for (size_t j = 0; j < sizeof implements / sizeof *implements; j++) {
        char name[96];
        snprintf(name, sizeof name, implements[j], op);
        found = found || strstr(s->ops.of[i]->text, name);
        for (int k = 0; k < s->ops.n && !found; k++)
            found = s->ops_include[i * s->ops.n + k] && strstr(s->ops.of[k]->text, name);
    }
    return found;
}

/* Whether a file of op_folders is of those of CUDA. */
static bool is_cuda(const struct source *s) {
    return strncmp(s->path, op_folders[OP_FOLDERS - 1], strlen(op_folders[OP_FOLDERS - 1])) != 0;
}

/* Whether what a header declares is defined by those who include it: not what it defines itself, as
 * device code does (.cuh), nor what is no header of the ops. */
static bool only_declares(const struct source *s) {
    size_t n = strlen(s->path);
    return is_cuda(s) && !strcmp(s->path + n - 2, ".h");
}

/* Mark the files of op_folders that belong to those that are marked: what they include, and the
 * others who include a header that only declares. */
static void mark_all(const struct sources *s, bool *marked) {
    int n = s->ops.n;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                if (marked[i] == marked[k] || !s->ops_include[i * n + k]) continue;
                if (!marked[i] && !only_declares(s->ops.of[k])) continue;
                marked[i] = marked[k] = more = true;
            }
    }
}

/* Read the table of ops and the sources of ops, once. */
static void read_ops(struct sources *s) {
    if (s->op_rows) return;
    char *rows = file_read(op_table, NULL);
    s->op_rows = code_normal(rows);
    free(rows);
    for (int i = 0; i < OP_FOLDERS; i++) add_part(s, &s->ops, op_folders[i]);
    int n = s->ops.n;
    if (n > 256) die(KP_BUG, "%d sources of ops; room for 256", n);
    s->ops_include = calloc((size_t)(n * n) + 1, sizeof *s->ops_include);
    if (!s->ops_include) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n * n; i++)
        s->ops_include[i] = includes(s->ops.of[i / n], s->ops.of[i % n]->path);
}

/* The executor, and the ops with these names, separated by blanks. */
static void hash_reference(struct text *all, struct sources *s, const char *names) {
    bool marked[256] = {false};
    read_ops(s);
    hash_parts(all, s, reference_parts, sizeof reference_parts / sizeof *reference_parts);
    char *copy = text_format("%s", names), *rest = copy, *op;
    while ((op = strsep(&rest, " "))) {
        if (!*op || add_row(all, s, op)) continue;
        bool found = false;
        for (int i = 0; i < s->ops.n; i++) {
            if (is_cuda(s->ops.of[i]) && has_op(s, i, op)) marked[i] = found = true;
        }
        if (!found)
            die(KP_BUG, "no file of %s or %s implements %s", op_folders[0], op_folders[1], op);
    }
    free(copy);
    mark_all(s, marked);
    for (int i = 0; i < s->ops.n; i++)
        if (marked[i]) add_text(all, s->ops.of[i]->text);
}

/* qsort order of words. */
static int by_text(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* The ops of a graph, each once, by name and with a blank before each.  Free it. */
static char *ops_of(const cJSON *graph) {
    const char *const letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    char **op = calloc((size_t)cJSON_GetArraySize(graph) + 1, sizeof *op);
    size_t n = 0;
    struct text all = {0};
    const cJSON *line;
    if (!op) die(KP_MACHINE, "out of memory");
    cJSON_ArrayForEach(line, graph) {
        const char *p = cJSON_IsString(line) ? strchr(line->valuestring, '=') : NULL;
        if (!p) continue;
        p += 1 + strspn(p + 1, " \t");
        op[n++] = text_format("%.*s", (int)strspn(p, letters), p);
    }
    qsort(op, n, sizeof *op, by_text);
    add_text(&all, "");
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(op[i], op[i - 1])) add_text(&all, " "), add_text(&all, op[i]);
    }
    for (size_t i = 0; i < n; i++) free(op[i]);
    free(op);
    return all.s;
}

/* ---- a cell ---- */

/* Hash a text, and release it. */
static void hash_text(struct text *t, char hash[65]) {
    text_sha256(t->s, t->n, hash);
    text_free(t);
}

/* The text of a task file, parsed.  Delete it. */
static cJSON *parsed(const char *task) {
    cJSON *json = cJSON_Parse(task);
    if (!json) die(KP_INPUT, "a task file is no JSON");
    return json;
}

/* Hash the reference and the harness, for a task. */
static void hash_programs(struct sources *s, const cJSON *task, struct inputs *in) {
    struct text all = {0};
    char *ops = ops_of(cJSON_GetObjectItemCaseSensitive(task, "graph"));
    *in = (struct inputs){0};
    char *hash = known(s, ops);
    if (!*hash) hash_reference(&all, s, ops), hash_text(&all, hash);
    strcpy(in->hash[INPUT_REFERENCE], hash);
    free(ops);
    hash = known(s, "harness");
    if (!*hash) {
        hash_parts(&all, s, harness_parts, sizeof harness_parts / sizeof *harness_parts);
        hash_text(&all, hash);
    }
    strcpy(in->hash[INPUT_HARNESS], hash);
}

void inputs_of_programs(struct sources *s, const char *task, struct inputs *in) {
    cJSON *json = parsed(task);
    hash_programs(s, json, in);
    cJSON_Delete(json);
}

void inputs_of(struct sources *s, const char *task, const char *kernel, struct inputs *in) {
    static const char *const unmeant[] = {"title", "source", "notes"};
    cJSON *json = parsed(task);
    char shape[64];
    line_of(json_text(json, "task", ""), shape);
    hash_programs(s, json, in);
    for (int i = 0; i < 3; i++) cJSON_DeleteItemFromObjectCaseSensitive(json, unmeant[i]);
    char *meaning = cJSON_PrintUnformatted(json);
    text_sha256(meaning, strlen(meaning), in->hash[INPUT_TASK]);
    cJSON_Delete(json);
    free(meaning);
    if (!kernel) return;
    struct text all = {0};
    char *key = text_format("%s %s", kernel, shape), *hash = known(s, key);
    if (!*hash) hash_kernel(&all, s, kernel, shape), hash_text(&all, hash);
    strcpy(in->hash[INPUT_KERNEL], hash);
    free(key);
}

cJSON *inputs_json(const struct inputs *in) {
    cJSON *json = cJSON_CreateObject();
    for (int i = 0; i < INPUTS; i++) {
        const char *hash = in->hash[i];
        cJSON_AddItemToObject(json, input_name[i],
                              *hash ? cJSON_CreateString(hash) : cJSON_CreateNull());
    }
    return json;
}

bool inputs_known(const cJSON *result) {
    return cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(result, "inputs"));
}

int inputs_changed(const cJSON *result, const struct inputs *now, char *what, size_t size) {
    const cJSON *then = cJSON_GetObjectItemCaseSensitive(result, "inputs");
    int changed = 0;
    size_t used = 0;
    *what = 0;
    for (int i = 0; i < INPUTS; i++) {
        if (!strcmp(json_text(then, input_name[i], ""), now->hash[i])) continue;
        if (used < size)
            used += (size_t)snprintf(what + used, size - used, "%s%s", changed ? ", " : "",
                                     input_name[i]);
        changed++;
    }
    return changed;
}
