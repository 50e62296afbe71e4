/* search_load.c: RESULTS/search/GPU/TASK.csv, a line a call of a model, checked once. */
#include "report/report.h"
#include "base/error.h"
#include "base/text.h"
#include "base/json.h"
#include "report/search_load.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The columns of a file, in order. */
enum column_id {
    GPU,
    TASK,
    MODE,
    ROUND,
    INDEX,
    ATTEMPT,
    MODEL,
    OUTCOME,
    VERDICT,
    CLASS,
    RATIO,
    LOW,
    HIGH,
    US,
    INPUT,
    OUTPUT,
    COST,
    SECONDS,
    SAME_AS,
    DATE,
    CODE,
    COLUMNS
};
static const char header[] = "gpu,task,mode,round,index,attempt,model,outcome,verdict,class,ratio,"
                             "low,high,us,input_tokens,output_tokens,cost_usd,seconds,same_as,date,"
                             "code_sha256";

const char *const search_modes[MODES] = {"best_of_n", "one_shot", "repair", "contrastive",
                                         "branching"};

struct place { /* for messages */
    const char *path;
    int line;
};

KP_NORETURN static void malformed(const struct place *at, const char *what, const char *found) {
    die(KP_INPUT, "%s:%d: %s, found \"%.60s\"; mend the line, or remove the file", at->path,
        at->line, what, found);
}

/* A number that is not negative; `otherwise` where the field is empty. */
static double amount(const struct place *at, const char *field, double otherwise) {
    char *end;
    if (!*field) return otherwise;
    double x = strtod(field, &end);
    if (*end || !isfinite(x) || x < 0) malformed(at, "expected a number of at least 0", field);
    return x;
}

/* A whole number of at least `least`, up to a million. */
static int whole(const struct place *at, const char *field, int least) {
    double x = amount(at, field, -1);
    if (x < least || x > 1e6 || x != floor(x)) malformed(at, "expected a whole number", field);
    return (int)x;
}

/* Where a word stands in a list, or -1. */
static int find_word(const char *const *list, int n, const char *word) {
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], word)) return i;
    return -1;
}

/* What became of a kernel that was written, by its verdict. */
static enum fate fate_of_kernel(const struct place *at, char **field) {
    static const char *const wrong[] = {"tape",  "crash",      "timeout",
                                        "wrong", "impossible", "doubtful"};
    static const char *const unknown[] = {"", "missing", "skipped"};
    const char *verdict = field[VERDICT];
    double ratio = amount(at, field[RATIO], 0), low = amount(at, field[LOW], 0);
    if (!strcmp(verdict, "ok")) {
        if (ratio == 0) return UNMEASURED; /* built or verified, not timed */
        if (low > ratio || amount(at, field[HIGH], INFINITY) < ratio)
            malformed(at, "expected a ratio between low and high", field[RATIO]);
        return low > 1 ? FASTER : NOT_FASTER;
    }
    if (!strcmp(verdict, "build")) return BUILD;
    if (!strcmp(verdict, "gate")) return GATED;
    if (!strcmp(verdict, "duplicate")) return DUPLICATE;
    if (find_word(wrong, 6, verdict) >= 0) return WRONG;
    if (find_word(unknown, 3, verdict) >= 0) return UNMEASURED;
    malformed(at, "expected a verdict", verdict);
}

/* What became of a call, by its outcome. */
static enum fate fate_of(const struct place *at, char **field) {
    static const char *const none[] = {"no-code", "cut", "empty", "refused", "invalid", "failed"};
    const char *outcome = field[OUTCOME];
    if (!strcmp(outcome, "code")) return fate_of_kernel(at, field);
    if (!strcmp(outcome, "duplicate")) return DUPLICATE;
    if (!strcmp(outcome, "ideas")) return IDEAS;
    if (find_word(none, 6, outcome) >= 0) return NO_CODE;
    malformed(at, "expected an outcome", outcome);
}

/* The end of a field that begins at p: its comma, or the end of the line.  A field in quotes,
 * where a doubled one stands for one, may hold commas; its quotes are taken off.  NULL if they are
 * not closed. */
static char *end_field(char *p) {
    char *to = p, *from = p + 1;
    if (*p != '"') return p + strcspn(p, ",");
    while (*from && (*from != '"' || from[1] == '"')) {
        from += *from == '"'; /* the first of two */
        *to++ = *from++;
    }
    if (!*from++ || (*from && *from != ',')) return NULL;
    *to = 0;
    return from;
}

/* Cut a line into its fields; dies unless there are as many as columns. */
static void cut(const struct place *at, char *line, char **field) {
    int n = 0;
    for (char *p = line, *end; p; p = end) {
        if (n == COLUMNS) die(KP_INPUT, "%s:%d: more than %d fields", at->path, at->line, COLUMNS);
        field[n] = p;
        if (!(end = end_field(field[n++])))
            die(KP_INPUT, "%s:%d: field %d: its quotes are not closed", at->path, at->line, n);
        bool last = !*end;
        *end++ = 0;
        if (last) end = NULL;
    }
    if (n < COLUMNS)
        die(KP_INPUT, "%s:%d: %d fields, expected %d: remove the line, or restore the file",
            at->path, at->line, n, COLUMNS);
}

/* The model's name, as text of one line.  One that does not fit is refused: cut off, two could be
 * taken for one. */
static void read_model(const struct place *at, const char *field, char model[128]) {
    char *clean = utf8_clean(field, strlen(field));
    for (char *p = clean; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127) *p = ' ';
    if (strlen(clean) >= 128) malformed(at, "expected a model's name of up to 127 bytes", field);
    strcpy(model, *clean ? clean : "unnamed");
    free(clean);
}

/* Check a line of the file of a GPU and a task.  Returns its call. */
static struct call read_call(const struct place *at, char *line, const char *gpu,
                             const char *task) {
    struct call c = {0};
    char *field[COLUMNS], name[96];
    cut(at, line, field);
    if (strcmp(field[GPU], gpu)) malformed(at, "expected the GPU of the folder", field[GPU]);
    if (strcmp(field[TASK], task)) malformed(at, "expected the task of the file", field[TASK]);
    snprintf(c.gpu, sizeof c.gpu, "%s", gpu);
    snprintf(c.task, sizeof c.task, "%s", task);
    c.mode = find_word(search_modes, MODES, field[MODE]);
    if (c.mode < 0) malformed(at, "expected a mode", field[MODE]);
    c.round = whole(at, field[ROUND], 1);
    c.index = whole(at, field[INDEX], 0);
    snprintf(name, sizeof name, "%s.r%da%d", search_modes[c.mode], c.round, c.index);
    if (strcmp(field[ATTEMPT], name)) malformed(at, "expected MODE.rROUNDaINDEX", field[ATTEMPT]);
    read_model(at, field[MODEL], c.model);
    c.fate = fate_of(at, field);
    c.ratio = c.fate == FASTER || c.fate == NOT_FASTER ? amount(at, field[RATIO], 0) : 0;
    c.input = amount(at, field[INPUT], 0);
    c.output = amount(at, field[OUTPUT], 0);
    c.cost = amount(at, field[COST], NAN);
    return c;
}

/* qsort order: GPU, model, mode, task, round, index. */
static int by_order(const void *x, const void *y) {
    const struct call *a = x, *b = y;
    int order = strcmp(a->gpu, b->gpu);
    if (!order) order = strcmp(a->model, b->model);
    if (!order) order = a->mode - b->mode;
    if (!order) order = strcmp(a->task, b->task);
    if (!order) order = a->round - b->round;
    return order ? order : a->index - b->index;
}

/* Add the calls of one file.  Dies with KP_INPUT if it is malformed. */
static void read_file(struct search_calls *s, const char *path, const char *gpu, const char *task) {
    char *text = file_read(path, NULL), *rest = text;
    struct place at = {path, 1};
    char *line = strsep(&rest, "\n");
    if (strcmp(line, header)) malformed(&at, "expected the names of the columns", line);
    while ((line = strsep(&rest, "\n"))) {
        at.line++;
        if (!*line && !rest) break; /* after the last line's end */
        s->calls = realloc(s->calls, ((size_t)s->n + 1) * sizeof *s->calls);
        if (!s->calls) die(KP_MACHINE, "out of memory");
        s->calls[s->n] = read_call(&at, line, gpu, task);
        for (int i = s->n; i-- && !strcmp(s->calls[i].task, task);)
            if (!by_order(&s->calls[i], &s->calls[s->n]))
                die(KP_INPUT, "%s:%d: %s.r%da%d is there twice; remove one", path, at.line,
                    search_modes[s->calls[i].mode], s->calls[i].round, s->calls[i].index);
        s->n++;
    }
    free(text);
}

/* scandir filter: GPUs. */
static int is_folder(const struct dirent *e) {
    return is_name(e->d_name);
}

/* scandir filter: *.csv. */
static int is_csv(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 4 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 4, ".csv");
}

/* Read a file of a GPU's folder: TASK.csv.  One whose name is too long for a task is left out with
 * a line on stderr.  Cuts the end off `file`. */
static void load_file(struct search_calls *s, const char *folder, const char *gpu, char *file) {
    char *path = text_format("%s/%s", folder, file);
    *strrchr(file, '.') = '\0';
    if (strlen(file) < sizeof s->calls->task)
        read_file(s, path, gpu, file);
    else
        warn("%s: expected a task's name of up to %zu bytes before .csv; it is left out", path,
             sizeof s->calls->task - 1);
    free(path);
}

struct search_calls *search_load(const char *results) {
    struct search_calls *s = calloc(1, sizeof *s);
    char *root = text_format("%s/search", results);
    struct dirent **gpu = NULL, **file = NULL;
    int ngpu = scandir(root, &gpu, is_folder, alphasort);
    if (!s) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < ngpu; i++) {
        char *folder = text_format("%s/%s", root, gpu[i]->d_name);
        int nfile = scandir(folder, &file, is_csv, alphasort);
        for (int j = 0; j < nfile; j++) {
            load_file(s, folder, gpu[i]->d_name, file[j]->d_name);
            free(file[j]);
        }
        if (nfile >= 0) free(file);
        free(folder);
        free(gpu[i]);
    }
    if (ngpu >= 0) free(gpu);
    free(root);
    if (s->n) qsort(s->calls, (size_t)s->n, sizeof *s->calls, by_order);
    if (s->n) return s;
    search_free(s);
    return NULL;
}

/* Whether a call's cell is out of the headline numbers. */
static bool left_out(const struct report *r, const struct call *c) {
    const struct column *column = NULL;
    int row = report_row(r, c->task);
    if (row < 0) return false;
    for (int i = 0; i < r->ncolumns; i++)
        if (!strcmp(r->columns[i].name, c->gpu)) column = &r->columns[i];
    return r->rows[row].left_out || (column && report_left_out(r, column, row));
}

/* Whether a call is the first of its cell, of whatever model and mode. */
static bool first_of_cell(const struct search_calls *s, int at) {
    for (int i = 0; i < at; i++)
        if (!strcmp(s->calls[i].gpu, s->calls[at].gpu) &&
            !strcmp(s->calls[i].task, s->calls[at].task))
            return false;
    return true;
}

void search_leave_out(struct search_calls *s, const struct report *r) {
    int n = 0;
    if (!s) return;
    for (int i = 0; i < s->n; i++)
        if (left_out(r, &s->calls[i])) s->left_out += first_of_cell(s, i);
    for (int i = 0; i < s->n; i++)
        if (!left_out(r, &s->calls[i])) s->calls[n++] = s->calls[i];
    s->n = n;
}

void search_free(struct search_calls *s) {
    if (s) free(s->calls);
    free(s);
}
