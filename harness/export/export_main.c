/* export_main.c: write attempts as training data (export.h describes the files).
 *
 *   export OUT_DIR [ROOT] [--test-share X]   OUT_DIR/{sft,correct,rl}.jsonl from ROOT, which is
 *                                            build/attempts by default
 *   export --reward FILE.time.json           the worth of one result: its ratio, 0, or null
 *   export --score FILE.time.json            the same with the score, as in rl.jsonl
 *
 * Equal attempts give equal bytes.  The three files are replaced together, at the end. */
#define _GNU_SOURCE
#include "gen/attempt.h"
#include "gen/code.h"
#include "export/export.h"
#include "base/error.h"
#include "base/json.h"
#include "record/result.h"
#include "llm/transcript.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SFT, CORRECT, RL, FILES };
static const char *const names[FILES] = {"sft.jsonl", "correct.jsonl", "rl.jsonl"};
static char *beside[FILES]; /* the temporary file; NULL once it is renamed */

struct export {
    const char *root;
    double test_share;
    FILE *file[FILES];
    long rows[FILES];
    long unmeasured, left_out, void_cells;
};

/* ---- Cells --------------------------------------------------------------------------- */

struct cells {
    int n;
    char **name; /* GPU/TASK */
};

static void add_cell(struct cells *c, const char *gpu, const char *task) {
    char *name = text_format("%s/%s", gpu, task);
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->name[i], name)) {
            free(name);
            return;
        }
    c->name = realloc(c->name, ((size_t)c->n + 1) * sizeof *c->name);
    if (!c->name) die(KP_MACHINE, "out of memory");
    c->name[c->n++] = name;
}

/* scandir filters: attempts; GPUs; the last file written of an attempt. */
static int is_attempt(const struct dirent *e) {
    char mode[24];
    int round, index;
    return attempt_parse(e->d_name, mode, &round, &index);
}

static int is_gpu(const struct dirent *e) {
    return is_name(e->d_name);
}

static int is_stamp(const struct dirent *e) {
    const char *dot = strchr(e->d_name, '.');
    return dot && dot != e->d_name && !strcmp(dot, ".gen.json");
}

/* Add the cells in one attempt's folder. */
static void find_in(struct cells *c, const char *folder) {
    struct dirent **gpu = NULL, **file = NULL;
    int ngpu = scandir(folder, &gpu, is_gpu, alphasort);
    for (int i = 0; i < ngpu; i++) {
        char *path = text_format("%s/%s", folder, gpu[i]->d_name);
        int nfile = scandir(path, &file, is_stamp, alphasort);
        for (int j = 0; j < nfile; j++) {
            *strchr(file[j]->d_name, '.') = 0;
            add_cell(c, gpu[i]->d_name, file[j]->d_name);
            free(file[j]);
        }
        if (nfile >= 0) free(file);
        free(path);
        free(gpu[i]);
    }
    if (ngpu >= 0) free(gpu);
}

static int by_name(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static struct cells find_cells(const char *root) {
    struct cells c = {0, NULL};
    struct dirent **attempt = NULL;
    int n = scandir(root, &attempt, is_attempt, alphasort);
    for (int i = 0; i < n; i++) {
        char *folder = text_format("%s/%s", root, attempt[i]->d_name);
        find_in(&c, folder);
        free(folder);
        free(attempt[i]);
    }
    if (n >= 0) free(attempt);
    if (!c.n)
        die(KP_INPUT, "%s: there are no attempts; make some with make gen or make search", root);
    qsort(c.name, (size_t)c.n, sizeof *c.name, by_name);
    return c;
}

/* ---- Outcomes of attempts --------------------------------------------------------- */

struct judged {
    const struct attempt *a, *measured; /* measured: a itself, or the attempt with the same code */
    char verdict[16];                   /* "" if it is unknown */
    bool verified;
    double score, variance, reward;
};

/* The attempt whose measurement counts for this one: the last of a chain of duplicates. */
static const struct attempt *measured_for(const struct attempts *l, const struct attempt *a) {
    for (int hops = 0; a && !strcmp(a->outcome, "duplicate"); hops++) {
        const struct attempt *next = NULL;
        for (int i = 0; i < l->n && hops <= l->n; i++)
            if (!strcmp(l->a[i].name, a->same_as)) next = &l->a[i];
        a = next;
    }
    return a;
}

static struct judged judge(const struct attempts *l, const struct attempt *a) {
    struct judged j = {.a = a, .measured = measured_for(l, a), .variance = NAN};
    const struct attempt *m = j.measured;
    if (!m) return j;
    bool code = !strcmp(m->outcome, "code");
    const char *verdict = code ? m->verdict : m->outcome;
    j.verified = code && *m->class && strcmp(verdict, "doubtful") &&
                 !strcmp(json_text(m->result, "verdict", ""), "ok");
    bool timed = j.verified && m->ratio > 0;
    /* untimed, or it could not be tried: says nothing about the answer */
    bool unknown = (!strcmp(verdict, "ok") && !timed) || !strcmp(verdict, "missing") ||
                   !strcmp(verdict, "skipped");
    if (!unknown) snprintf(j.verdict, sizeof j.verdict, "%s", verdict);
    if (timed) j.score = export_score(m->result, &j.variance);
    return j;
}

/* ---- Prompts and answers ---------------------------------------------------------- */

struct said {
    cJSON *prompt;
    char *answer;
};

/* The messages of the request with this hash in a transcript; NULL if it is not there. */
static cJSON *find_prompt(const char *path, const char *sha) {
    char *text = file_read(path, NULL), *rest = text, *line;
    cJSON *found = NULL;
    while (!found && (line = strsep(&rest, "\n"))) {
        cJSON *one = cJSON_Parse(line); /* the last line may be cut short */
        if (one && !strcmp(json_text(one, "request_sha256", ""), sha))
            found = export_messages(cJSON_GetObjectItemCaseSensitive(one, "request"));
        cJSON_Delete(one);
    }
    free(text);
    return found;
}

/* Read an attempt's prompt and answer.  False, after a warning, unless both are there. */
static bool read_said(const struct export *e, const struct attempt *a, const char *gpu,
                      const char *task, struct said *s) {
    char sha[65] = "", date[32], model[128];
    char *path = attempt_path(e->root, a->name, gpu, task, ".jsonl");
    struct llm_answer *answer = transcript_answer(path, sha, date, model);
    *s = (struct said){0};
    if (answer) {
        s->answer = text_format("%s", answer->text);
        s->prompt = find_prompt(path, sha);
        llm_answer_free(answer);
    }
    bool good = s->answer && s->prompt;
    if (!good) warn("%s: no answer, or no prompt of it: left out", path);
    free(path);
    return good;
}

static void free_said(struct said *s) {
    cJSON_Delete(s->prompt);
    free(s->answer);
}

/* ---- rows ------------------------------------------------------------------------- */

static void add_text(cJSON *object, const char *key, const char *text) {
    if (!cJSON_AddStringToObject(object, key, text)) die(KP_MACHINE, "out of memory");
}

/* Write a row and delete it. */
static void write_row(struct export *e, int file, cJSON *row) {
    char *line = cJSON_PrintUnformatted(row);
    if (!line) die(KP_MACHINE, "out of memory");
    if (fprintf(e->file[file], "%s\n", line) < 0)
        die(KP_IO, "%s: cannot write: %s", beside[file], strerror(errno));
    e->rows[file]++;
    free(line);
    cJSON_Delete(row);
}

/* Write a pair of prompt and answer. */
static void write_pair(struct export *e, int file, const struct judged *j, const struct said *s,
                       const char *const cell[3]) {
    cJSON *row = cJSON_CreateObject(), *m = cJSON_CreateObject();
    cJSON_AddItemToObject(row, "prompt", cJSON_Duplicate(s->prompt, 1));
    add_text(m, "role", "assistant");
    add_text(m, "content", s->answer);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(row, "completion"), m);
    add_text(row, "task", cell[1]);
    add_text(row, "gpu", cell[0]);
    add_text(row, "attempt", j->a->name);
    json_add_number(row, "speedup", j->measured->ratio > 0 ? j->measured->ratio : NAN);
    add_text(row, "class", j->measured->class);
    add_text(row, "split", cell[2]);
    write_row(e, file, row);
}

/* Write the pairs of an attempt whose kernel was verified.  An edited kernel is left out,
 * because the model did not write it. */
static void write_pairs(struct export *e, const struct judged *j, const struct said *s,
                        const char *const cell[3]) {
    char *path = attempt_path(e->root, j->measured->name, cell[0], cell[1], ".cu"), why[200];
    char *file = access(path, R_OK) ? NULL : file_read(path, NULL);
    char *kernel = code_extract(s->answer, why);
    if (!file || !kernel || code_untouched(file) != 1) {
        warn("%s: not as the model wrote it: left out", path);
        e->left_out++;
    } else {
        if (j->measured == j->a) write_pair(e, SFT, j, s, cell);
        write_pair(e, CORRECT, j, s, cell);
    }
    free(kernel);
    free(file);
    free(path);
}

static void write_rl(struct export *e, const struct judged *j, const struct said *s,
                     const char *const cell[3]) {
    cJSON *row = cJSON_CreateObject(), *rule, *extra;
    bool ok = !strcmp(j->verdict, "ok");
    char *truth = text_format("%s/%s", cell[0], cell[1]);
    add_text(row, "data_source", "kernelproof");
    cJSON_AddItemToObject(row, "prompt", cJSON_Duplicate(s->prompt, 1));
    add_text(row, "ability", "cuda");
    rule = cJSON_AddObjectToObject(row, "reward_model");
    add_text(rule, "style", "rule");
    add_text(rule, "ground_truth", truth);
    extra = cJSON_AddObjectToObject(row, "extra_info");
    add_text(extra, "split", cell[2]);
    json_add_number(extra, "index", (double)e->rows[RL]);
    add_text(extra, "task", cell[1]);
    add_text(extra, "gpu", cell[0]);
    add_text(extra, "attempt", j->a->name);
    add_text(extra, "mode", j->a->mode);
    json_add_number(extra, "round", j->a->round);
    add_text(extra, "model", j->a->model);
    if (ok)
        add_text(extra, "class", j->measured->class);
    else
        cJSON_AddNullToObject(extra, "class");
    json_add_number(extra, "score", j->score);
    json_add_number(extra, "bucket_variance", j->variance);
    add_text(row, "answer", s->answer);
    add_text(row, "verdict", j->verdict);
    json_add_number(row, "ratio", ok ? j->measured->ratio : 0);
    json_add_number(row, "reward", j->reward);
    free(truth);
    write_row(e, RL, row);
}

/* Whether a task cannot tell a working kernel from an idle one, as its results' flags say.
 * There the reward would teach a model to skip the work. */
static bool is_void(const struct attempts *l) {
    for (int i = 0; i < l->n; i++)
        if (result_flag(l->a[i].result, FLAG_VOID)) return true;
    return false;
}

/* Write all rows of one cell.  Only readable answers count in its mean and deviation. */
static void write_cell(struct export *e, const char *gpu, const char *task) {
    struct attempts l = attempts_load(e->root, gpu, task, NULL);
    const char *const cell[3] = {gpu, task, export_split(task, e->test_share)};
    struct judged *j = calloc((size_t)l.n + 1, sizeof *j);
    struct said *s = calloc((size_t)l.n + 1, sizeof *s);
    double *score = calloc((size_t)l.n + 1, sizeof *score), *reward = score;
    int n = 0, judged = 0;
    if (!j || !s || !score) die(KP_MACHINE, "out of memory");
    bool nothing = is_void(&l);
    e->void_cells += nothing;
    for (int i = 0; i < l.n; i++) {
        if (nothing || !strcmp(l.a[i].outcome, "ideas")) continue;
        j[n] = judge(&l, &l.a[i]);
        if (!*j[n].verdict) e->unmeasured++;
        if (!*j[n].verdict && !j[n].verified) continue;
        if (read_said(e, &l.a[i], gpu, task, &s[n]))
            n++;
        else
            free_said(&s[n]), e->left_out++;
    }
    for (int i = 0; i < n; i++)
        if (*j[i].verdict) score[judged++] = j[i].score;
    export_rewards(score, reward, judged);
    for (int i = 0, k = 0; i < n; i++) {
        if (j[i].verified) write_pairs(e, &j[i], &s[i], cell);
        if (*j[i].verdict) j[i].reward = reward[k++], write_rl(e, &j[i], &s[i], cell);
        free_said(&s[i]);
    }
    free(score);
    free(s);
    free(j);
    attempts_free(&l);
}

/* ---- files ------------------------------------------------------------------------ */

/* Remove unfinished files, however the program ends. */
static void remove_unfinished(void) {
    for (int i = 0; i < FILES; i++)
        if (beside[i]) unlink(beside[i]);
}

static void open_files(struct export *e, const char *out) {
    if (mkdir(out, 0777) && errno != EEXIST)
        die(KP_IO, "%s: cannot be made: %s", out, strerror(errno));
    atexit(remove_unfinished);
    for (int i = 0; i < FILES; i++) {
        beside[i] = text_format("%s/%s.%ld+", out, names[i], (long)getpid());
        e->file[i] = fopen(beside[i], "w");
        if (!e->file[i]) die(KP_IO, "%s: cannot write: %s", beside[i], strerror(errno));
    }
}

static void close_files(struct export *e, const char *out) {
    for (int i = 0; i < FILES; i++)
        if (fflush(e->file[i]) || fsync(fileno(e->file[i])) || fclose(e->file[i]))
            die(KP_IO, "%s: cannot write: %s; what was there before is unchanged", beside[i],
                strerror(errno));
    for (int i = 0; i < FILES; i++) {
        char *path = text_format("%s/%s", out, names[i]);
        if (rename(beside[i], path)) die(KP_IO, "%s: cannot write: %s", path, strerror(errno));
        printf("export: %s: %ld lines\n", path, e->rows[i]);
        free(beside[i]);
        beside[i] = NULL;
        free(path);
    }
}

static int export_all(struct export *e, const char *out) {
    struct cells c = find_cells(e->root);
    open_files(e, out);
    for (int i = 0; i < c.n; i++) {
        char *task = strchr(c.name[i], '/');
        *task++ = 0;
        write_cell(e, c.name[i], task);
        free(c.name[i]);
    }
    free(c.name);
    close_files(e, out);
    if (e->unmeasured || e->left_out)
        printf("export: %ld attempts are not measured, %ld rows were left out\n", e->unmeasured,
               e->left_out);
    if (e->void_cells)
        printf("export: %ld cells were left out, as their tasks cannot tell work from none\n",
               e->void_cells);
    return KP_OK;
}

static int print_worth(const char *path, bool shaped) {
    cJSON *time = json_read(path);
    bool ok = !strcmp(json_text(time, "verdict", ""), "ok");
    const cJSON *speedup = cJSON_GetObjectItemCaseSensitive(time, "speedup");
    if (!*json_text(time, "verdict", "") || (ok && !(json_number(speedup, "ratio", 0) > 0)))
        die(KP_INPUT, "%s: no verdict, or ok without a speedup: not a result of time", path);
    cJSON *worth = cJSON_CreateNumber(export_worth(time, shaped)); /* prints NAN as null */
    char *text = worth ? cJSON_PrintUnformatted(worth) : NULL;
    if (!text) die(KP_MACHINE, "out of memory");
    puts(text);
    free(text);
    cJSON_Delete(worth);
    cJSON_Delete(time);
    return KP_OK;
}

static const char usage[] = "usage: export OUT_DIR [ROOT] [--test-share X] | "
                            "--reward FILE.time.json | --score FILE.time.json";

int main(int argc, char **argv) {
    struct export e = {.root = "build/attempts", .test_share = 0.2};
    const char *place[2] = {NULL, e.root};
    int places = 0;
    kp_program("export");
    if (argc == 3 && !strcmp(argv[1], "--reward")) return print_worth(argv[2], false);
    if (argc == 3 && !strcmp(argv[1], "--score")) return print_worth(argv[2], true);
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (!strcmp(argv[i], "--test-share") && i + 1 < argc) {
            e.test_share = strtod(argv[++i], &end);
            if (end == argv[i] || *end || !(e.test_share >= 0 && e.test_share <= 1))
                die(KP_USAGE, "--test-share %s: expected a number from 0 to 1", argv[i]);
        } else if (*argv[i] == '-' || places == 2) {
            die(KP_USAGE, "%s: %s", argv[i], usage);
        } else {
            place[places++] = argv[i];
        }
    }
    if (!places) die(KP_USAGE, "%s", usage);
    e.root = place[1];
    return export_all(&e, place[0]);
}
