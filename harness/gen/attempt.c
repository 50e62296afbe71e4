/* attempt.c: see attempt.h. */
#define _GNU_SOURCE
#include "gen/attempt.h"
#include "gen/object.h"
#include "base/code_normal.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "record/recorded.h"
#include "record/result.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
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

void attempt_code_hash(const char *kernel, char hash[65]) {
    char *normal = code_normal(kernel);
    text_sha256(normal, strlen(normal), hash);
    free(normal);
}

/* ---- The kernel's result ----------------------------------------------------------- */

/* Set a member, whether it is there or not. */
static void set(cJSON *object, const char *key, cJSON *item) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    object_add(object, key, item);
}

/* "" is null. */
static void set_text(cJSON *object, const char *key, const char *text) {
    set(object, key, *text ? cJSON_CreateString(text) : NULL);
}

/* Nine digits; INFINITY is null. */
static void set_number(cJSON *object, const char *key, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);
    set(object, key, isfinite(x) ? cJSON_CreateNumber(atof(text)) : NULL);
}

/* Add what a result says to an attempt, and the result itself, which is taken over. */
static void add_result(cJSON *a, struct result *r) {
    bool timed = r->ratio > 0; /* an ok of a step before that is not final */
    const char *doubt = timed ? result_flag(r->json, FLAG_DOUBT) : NULL;
    char *flagged = text_format("flagged %s", doubt ? doubt : "");
    set_text(a, "verdict", doubt ? "doubtful" : timed || !result_ok(r) ? r->verdict : "");
    set_text(a, "reason", doubt ? flagged : r->reason);
    set_text(a, "class", r->class);
    set(a, "rank", cJSON_CreateNumber(class_rank(r->class)));
    if (timed && !doubt) {
        set_number(a, "ratio", r->ratio);
        set_number(a, "low", r->low);
        set_number(a, "high", r->high);
        set_number(a, "us", r->candidate_us);
        set_number(a, "against_us", r->against_us);
    }
    set(a, "result", r->json);
    r->json = NULL;
    free(flagged);
}

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

/* Read only the verdict, the reason and the class from a verify.json: it does not name its GPU, so
 * result_load() rejects it. */
static bool load_verify(const char *path, const char *task, struct result *r, char *why,
                        size_t size) {
    memset(r, 0, sizeof *r);
    r->json = json_load(path, why, size);
    if (!r->json) return false;
    snprintf(r->verdict, sizeof r->verdict, "%s", json_text(r->json, "verdict", ""));
    snprintf(r->reason, sizeof r->reason, "%s", json_text(r->json, "reason", ""));
    snprintf(r->class, sizeof r->class, "%s", json_text(r->json, "class", ""));
    if (*r->verdict && !strcmp(json_text(r->json, "task", ""), task)) return true;
    snprintf(why, size, "is no verification of %s", task);
    result_free(r);
    return false;
}

/* Add the result of the furthest step.  Warns of an unusable one and skips it. */
static void load_result(cJSON *a, const char *root, const char *name, const char *gpu,
                        const char *task) {
    static const char *const steps[] = {".time.json", ".verify.json", ".build.json"};
    char *kernel = attempt_path(root, name, gpu, task, ".cu"), why[300];
    bool found = false;
    for (int i = 0; i < 3 && !found; i++) {
        char *path = attempt_path(root, name, gpu, task, steps[i]);
        struct result r = {0};
        if (access(path, F_OK) == 0) {
            if (!(i == 1 ? load_verify(path, task, &r, why, sizeof why)
                         : result_load(path, &r, why, sizeof why)))
                warn("%s %s: left out", path, why);
            else if (!stale(path, kernel, r.sha256))
                add_result(a, &r), found = true;
        }
        result_free(&r);
        free(path);
    }
    free(kernel);
}

/* ---- Attempts ---------------------------------------------------------------------- */

/* Load an attempt by its name.  NULL if it has no gen.json, or, with a warning, none of its own. */
static cJSON *attempt_load(const char *root, const char *name, const char *gpu, const char *task) {
    char *path = attempt_path(root, name, gpu, task, ".gen.json"), mode[24], why[300];
    int round, index;
    cJSON *a = NULL;
    if (access(path, F_OK) == 0 && !(a = json_load(path, why, sizeof why)))
        warn("%s %s: left out", path, why);
    if (a && (json_number(a, "schema", 0) != 1 || strcmp(json_text(a, "attempt", ""), name) ||
              strcmp(json_text(a, "gpu", ""), gpu) || strcmp(json_text(a, "task", ""), task))) {
        warn("%s is not of schema 1 and of the attempt in its path: left out", path);
        cJSON_Delete(a);
        a = NULL;
    }
    free(path);
    if (!a) return NULL;
    attempt_parse(name, mode, &round, &index);
    set_text(a, "mode", mode);
    set(a, "round", cJSON_CreateNumber(round));
    set(a, "index", cJSON_CreateNumber(index));
    set(a, "rank", cJSON_CreateNumber(CLASS_UNKNOWN));
    if (!strcmp(json_text(a, "outcome", ""), "code")) load_result(a, root, name, gpu, task);
    if (!strcmp(json_text(a, "outcome", ""), "duplicate")) set_text(a, "verdict", "duplicate");
    return a;
}

cJSON *attempt_current(const char *gpu, const char *task, const char *kernel) {
    char *built = text_format("build/%s/%s.time.json", gpu, task), why[300], sha[65], code[65];
    char *source = file_read(kernel, NULL);
    struct recorded recorded;
    struct result r = {0};
    cJSON *a = cJSON_CreateObject();
    file_sha256(kernel, sha);
    attempt_code_hash(source, code);
    set_text(a, "attempt", "current");
    set_text(a, "outcome", "code");
    set_text(a, "code_sha256", code);
    recorded_open(&recorded, "results", gpu);
    bool found = result_load(built, &r, why, sizeof why) && !strcmp(r.sha256, sha);
    if (!found) {
        result_free(&r);
        found = recorded_find(&recorded, task, &r) == FOUND_USABLE && !strcmp(r.sha256, sha);
    }
    if (found) add_result(a, &r);
    result_free(&r);
    recorded_close(&recorded);
    free(built);
    free(source);
    return a;
}

/* scandir: the folders of attempts, and their order. */
static int is_attempt(const struct dirent *e) {
    char mode[24];
    int round, index;
    return attempt_parse(e->d_name, mode, &round, &index);
}

static int by_place(const struct dirent **x, const struct dirent **y) {
    char mode[2][24];
    int round[2], index[2];
    attempt_parse((*x)->d_name, mode[0], &round[0], &index[0]);
    attempt_parse((*y)->d_name, mode[1], &round[1], &index[1]);
    int c = strcmp(mode[0], mode[1]);
    if (c) return c;
    return round[0] != round[1] ? round[0] - round[1] : index[0] - index[1];
}

cJSON *attempts_load(const char *root, const char *gpu, const char *task, const char *mode) {
    struct dirent **entry = NULL;
    cJSON *all = cJSON_CreateArray();
    int n = scandir(root, &entry, is_attempt, by_place);
    if (n < 0 && errno != ENOENT) warn("%s cannot be read (%s): left out", root, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        size_t length = (size_t)(strchr(name, '.') - name);
        cJSON *a = mode && (strlen(mode) != length || strncmp(mode, name, length))
                       ? NULL
                       : attempt_load(root, name, gpu, task);
        if (a) cJSON_AddItemToArray(all, a);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return all;
}
