/* attempt.c: see attempt.h. */
#define _GNU_SOURCE
#include "gen/attempt.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "record/result.h"
#include "base/stats.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const modes[] = {"best_of_n", "branching", "contrastive", "one_shot", "repair"};

/* ---- Names ------------------------------------------------------------------------ */

char *attempt_path(const char *root, const char *name, const char *gpu, const char *task,
                   const char *suffix) {
    return text_format("%s/%s/%s/%s%s", root, name, gpu, task, suffix);
}

/* Read a number of at most six digits without leading zeros, so that an attempt has only one
 * name.  Moves *p behind it; -1 if there is none. */
static int number_at(const char **p) {
    size_t n = strspn(*p, "0123456789");
    if (n < 1 || n > 6 || (**p == '0' && n > 1)) return -1;
    int x = atoi(*p);
    *p += n;
    return x;
}

bool attempt_parse(const char *name, char mode[24], int *round, int *index) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        size_t n = strlen(modes[i]);
        const char *p = name + n;
        if (strncmp(name, modes[i], n)) continue;
        if (*p == '-' && (p++, number_at(&p)) < 1) continue;
        size_t length = (size_t)(p - name);
        if (strncmp(p, ".r", 2)) continue;
        p += 2;
        *round = number_at(&p);
        if (*round < 1 || *p++ != 'a') return false;
        *index = number_at(&p);
        if (*index < 0 || *p) return false;
        memcpy(mode, name, length);
        mode[length] = 0;
        return true;
    }
    return false;
}

bool attempt_mode(const char *mode, const char *word) {
    size_t n = strlen(word);
    return !strncmp(mode, word, n) && (!mode[n] || mode[n] == '-');
}

/* ---- The answer ------------------------------------------------------------------ */

/* Copy the string at `key` into a field, cut to its size; "" if there is none. */
static void word(char *field, size_t size, const cJSON *object, const char *key) {
    snprintf(field, size, "%s", json_text(object, key, ""));
}

/* The number at `key`; NAN if it is absent or negative. */
static double amount(const cJSON *object, const char *key) {
    double x = json_number(object, key, NAN);
    return isfinite(x) && x >= 0 ? x : NAN;
}

/* Fill in a from a->gen; a->name is set.  Returns false, and the reason in `why`, if it does not
 * fit. */
static bool load_gen(struct attempt *a, const char *gpu, const char *task, char *why, size_t size) {
    static const char *const outcomes[] = {"code",  "ideas",   "duplicate", "cut",
                                           "empty", "refused", "invalid",   "no-code"};
    const cJSON *tokens = cJSON_GetObjectItemCaseSensitive(a->gen, "tokens");
    size_t known = 0;
    word(a->outcome, sizeof a->outcome, a->gen, "outcome");
    word(a->reason, sizeof a->reason, a->gen, "reason");
    word(a->code_hash, sizeof a->code_hash, a->gen, "code_sha256");
    word(a->same_as, sizeof a->same_as, a->gen, "same_as");
    word(a->model, sizeof a->model, a->gen, "model");
    word(a->date, sizeof a->date, a->gen, "date");
    a->input_tokens = amount(tokens, "input");
    a->output_tokens = amount(tokens, "output");
    a->cost = amount(a->gen, "cost_usd");
    a->seconds = amount(a->gen, "seconds");
    double idea = json_number(a->gen, "idea", -1);
    a->idea = idea >= 0 && idea < 1000 ? (int)idea : -1;
    while (known < sizeof outcomes / sizeof *outcomes && strcmp(outcomes[known], a->outcome))
        known++;
    if (json_number(a->gen, "schema", 0) != 1)
        snprintf(why, size, "has schema %g; this program reads schema 1",
                 json_number(a->gen, "schema", 0));
    else if (strcmp(json_text(a->gen, "attempt", ""), a->name) ||
             strcmp(json_text(a->gen, "gpu", ""), gpu) ||
             strcmp(json_text(a->gen, "task", ""), task))
        snprintf(why, size, "is of %s at %s/%s, not of the attempt in its path",
                 json_text(a->gen, "attempt", "nothing"), json_text(a->gen, "gpu", "?"),
                 json_text(a->gen, "task", "?"));
    else if (known == sizeof outcomes / sizeof *outcomes)
        snprintf(why, size, "has the unknown outcome \"%s\"", a->outcome);
    else if (!strcmp(a->outcome, "duplicate") && !*a->same_as)
        snprintf(why, size, "is a duplicate of nothing");
    else
        return true;
    return false;
}

/* ---- The kernel's result ----------------------------------------------------------- */

/* Whether a result is of a different kernel than the file there now.  Hashing is slow, so hashes
 * are compared only if the result is older than the kernel, which is rare. */
static bool stale(const char *result, const char *kernel, const char *sha) {
    struct stat r, k;
    char now[65];
    if (!*sha || stat(result, &r) || stat(kernel, &k)) return false;
    if (r.st_mtim.tv_sec > k.st_mtim.tv_sec ||
        (r.st_mtim.tv_sec == k.st_mtim.tv_sec && r.st_mtim.tv_nsec >= k.st_mtim.tv_nsec))
        return false;
    file_sha256(kernel, now);
    return strcmp(now, sha) != 0;
}

/* Take over a result, including its JSON. */
static void take_result(struct attempt *a, struct result *r) {
    snprintf(a->verdict, sizeof a->verdict, "%s", r->verdict);
    snprintf(a->reason, sizeof a->reason, "%s", r->reason);
    snprintf(a->class, sizeof a->class, "%s", r->class);
    if (result_ok(r) && !(r->ratio > 0))
        *a->verdict = 0; /* an ok of a step before timing is not
                          * final */
    a->ratio = r->ratio;
    a->low = r->low;
    a->high = r->high;
    a->us = r->candidate_us;
    a->against_us = r->against_us;
    const char *doubt = result_flag(r->json, FLAG_DOUBT);
    if (doubt && a->ratio > 0) {
        strcpy(a->verdict, "doubtful");
        snprintf(a->reason, sizeof a->reason, "flagged %s", doubt);
        a->ratio = a->low = a->high = a->us = a->against_us = 0;
    }
    cJSON_Delete(a->result);
    a->result = r->json;
    r->json = NULL;
}

/* Read only the verdict and the reason from a verify.json: it does not name its GPU, so
 * result_load() rejects it. */
static bool load_verify(const char *path, const char *task, struct result *r, char *why,
                        size_t size) {
    memset(r, 0, sizeof *r);
    r->json = json_load(path, why, size);
    if (!r->json) return false;
    word(r->verdict, sizeof r->verdict, r->json, "verdict");
    word(r->reason, sizeof r->reason, r->json, "reason");
    word(r->class, sizeof r->class, r->json, "class");
    if (json_number(r->json, "schema", 0) == 1 && !strcmp(json_text(r->json, "task", ""), task) &&
        *r->verdict)
        return true;
    snprintf(why, size, "is no verification of %s", task);
    result_free(r);
    return false;
}

/* Load the result of the furthest step.  Warns of an unusable one and skips it. */
static void load_result(struct attempt *a, const char *root, const char *gpu, const char *task) {
    static const char *const steps[] = {".time.json", ".verify.json", ".build.json"};
    char *kernel = attempt_path(root, a->name, gpu, task, ".cu"), why[300];
    for (int i = 0; i < 3 && !a->result; i++) {
        char *path = attempt_path(root, a->name, gpu, task, steps[i]);
        struct result r;
        if (access(path, F_OK) == 0) {
            bool loaded = i == 1 ? load_verify(path, task, &r, why, sizeof why)
                                 : result_load(path, &r, why, sizeof why);
            if (!loaded)
                warn("%s %s: left out", path, why);
            else if (!stale(path, kernel, r.sha256))
                take_result(a, &r);
            if (loaded) result_free(&r);
        }
        free(path);
    }
    free(kernel);
}

bool attempt_load(const char *root, const char *name, const char *gpu, const char *task,
                  struct attempt *a, char *why, size_t size) {
    memset(a, 0, sizeof *a);
    if (strlen(name) >= sizeof a->name || !attempt_parse(name, a->mode, &a->round, &a->index)) {
        snprintf(why, size, "is no attempt: those are called MODE.rROUNDaINDEX");
        return false;
    }
    strcpy(a->name, name);
    char *path = attempt_path(root, name, gpu, task, ".gen.json");
    a->gen = json_load(path, why, size);
    free(path);
    if (!a->gen) return false;
    if (!load_gen(a, gpu, task, why, size)) {
        cJSON_Delete(a->gen);
        a->gen = NULL;
        return false;
    }
    if (!strcmp(a->outcome, "code")) load_result(a, root, gpu, task);
    if (!strcmp(a->outcome, "duplicate")) strcpy(a->verdict, "duplicate");
    return true;
}

bool attempt_of_kernel(struct attempt *a, struct result *r, const char *kernel_sha256) {
    memset(a, 0, sizeof *a);
    if (strcmp(r->sha256, kernel_sha256)) return false;
    take_result(a, r);
    strcpy(a->name, "current");
    strcpy(a->outcome, "code");
    a->idea = -1;
    a->input_tokens = a->output_tokens = a->cost = a->seconds = NAN;
    return true;
}

bool attempt_current(struct attempt *a, const char *path, const char *kernel_sha256, char *why,
                     int size) {
    struct result r;
    memset(a, 0, sizeof *a);
    if (!result_load(path, &r, why, (size_t)size)) return false;
    if (attempt_of_kernel(a, &r, kernel_sha256)) return true;
    snprintf(why, (size_t)size, "is of another kernel than the present one");
    result_free(&r);
    return false;
}

/* ---- All attempts at a cell ---------------------------------------------------------- */

static int by_place(const void *x, const void *y) {
    const struct attempt *a = x, *b = y;
    int c = strcmp(a->mode, b->mode);
    if (c) return c;
    return a->round != b->round ? a->round - b->round : a->index - b->index;
}

/* scandir filter: folders of attempts. */
static int is_attempt(const struct dirent *e) {
    char mode[24];
    int round, index;
    return attempt_parse(e->d_name, mode, &round, &index);
}

struct attempts attempts_load(const char *root, const char *gpu, const char *task,
                              const char *mode) {
    struct attempts l = {0, NULL};
    struct dirent **entry = NULL;
    char why[300], of[24];
    int round, index, n = scandir(root, &entry, is_attempt, alphasort);
    if (n < 0 && errno != ENOENT) warn("%s cannot be read (%s): left out", root, strerror(errno));
    l.a = calloc(n > 0 ? (size_t)n : 1, sizeof *l.a);
    if (!l.a) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        char *path = attempt_path(root, name, gpu, task, ".gen.json");
        attempt_parse(name, of, &round, &index);
        if ((!mode || !strcmp(mode, of)) && access(path, F_OK) == 0) {
            if (attempt_load(root, name, gpu, task, &l.a[l.n], why, sizeof why))
                l.n++;
            else
                warn("%s %s: left out", path, why);
        }
        free(path);
        free(entry[i]);
    }
    free(entry);
    qsort(l.a, (size_t)l.n, sizeof *l.a, by_place);
    return l;
}

void attempts_free(struct attempts *l) {
    for (int i = 0; i < l->n; i++) {
        cJSON_Delete(l->a[i].gen);
        cJSON_Delete(l->a[i].result);
    }
    free(l->a);
    *l = (struct attempts){0, NULL};
}

/* ---- Which is better -------------------------------------------------------------- */

bool attempt_ok(const struct attempt *a) {
    return !strcmp(a->verdict, "ok") && a->ratio > 0;
}

bool attempt_better(const struct attempt *a, const struct attempt *b) {
    int ra = class_rank(a->class), rb = class_rank(b->class);
    if (ra != rb) return ra < rb;
    return a->low != b->low ? a->low > b->low : a->ratio > b->ratio;
}

const struct attempt *attempts_best(const struct attempts *l) {
    const struct attempt *best = NULL;
    for (int i = 0; i < l->n; i++)
        if (attempt_ok(&l->a[i]) && (!best || attempt_better(&l->a[i], best))) best = &l->a[i];
    return best;
}

/* ---- Choices ---------------------------------------------------------------------- */

struct choice choice_seed(const char *text) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a; stat_random() mixes it */
    for (const char *p = text; *p; p++) h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return (struct choice){h};
}

double choice_uniform(struct choice *c) {
    uint64_t s = c->s, x = stat_random(&s);
    c->s = s;
    return (double)(x >> 11) * 0x1p-53;
}
