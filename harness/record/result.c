/* result.c: see result.h. */
#include "record/result.h"
#include "base/error.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const verdicts[] = {"ok",    "missing", "build", "gate",       "tape",
                                       "crash", "timeout", "wrong", "impossible", "skipped"};

/* The line on which byte `at` of `text` stands, counted from 1. */
static int line_of(const char *text, const char *at) {
    int line = 1;
    for (; text < at; text++) line += *text == '\n';
    return line;
}

cJSON *json_load(const char *path, char *why, size_t size) {
    struct stat st;
    if (stat(path, &st) || access(path, R_OK)) {
        snprintf(why, size, "cannot be read (%s)", strerror(errno));
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(why, size, "is not a regular file");
        return NULL;
    }
    char *text = file_read(path, NULL);
    const char *end = text;
    cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
    if (!json)
        snprintf(why, size, "is not JSON from line %d on (cut short?)", line_of(text, end));
    else if (!cJSON_IsObject(json)) {
        snprintf(why, size, "holds no JSON object");
        cJSON_Delete(json);
        json = NULL;
    }
    free(text);
    return json;
}

double usable_number(double x) {
    return x >= 1e-12 && x <= 1e12 ? x : 0;
}

double result_number(const cJSON *object, const char *key) {
    return usable_number(json_number(object, key, 0));
}

bool is_name(const char *s) {
    return *s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

/* Copy the string at `key` into a field, cut to its size. */
static void word(char *field, size_t size, const cJSON *object, const char *key) {
    snprintf(field, size, "%s", json_text(object, key, ""));
}

/* Whether the last parts of `path` are GPU/TASK.json or GPU/TASK.STEP.json. */
static bool path_fits(const char *path, const struct result *r) {
    char cell[sizeof r->gpu + sizeof r->task + 2];
    int n = snprintf(cell, sizeof cell, "%s/%s.", r->gpu, r->task);
    const char *file = strrchr(path, '/');
    if (!file || file == path) return true; /* no folder in the path to compare with */
    while (file > path && file[-1] != '/') file--;
    return strncmp(file, cell, (size_t)n) == 0;
}

/* Fill in the numbers of an `ok` result.  Returns false, and says why, if it lacks them. */
static bool load_numbers(struct result *r, char *why, size_t size) {
    const cJSON *speedup = cJSON_GetObjectItemCaseSensitive(r->json, "speedup");
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(r->json, "time_us");
    word(r->against, sizeof r->against, speedup, "against");
    r->ratio = result_number(speedup, "ratio");
    r->low = result_number(speedup, "low");
    r->high = json_number(speedup, "high", INFINITY);
    r->candidate_us =
        result_number(cJSON_GetObjectItemCaseSensitive(times, "candidate"), "midmean");
    r->against_us = result_number(cJSON_GetObjectItemCaseSensitive(times, r->against), "midmean");
    if (!(r->ratio > 0 && r->low <= r->ratio && r->ratio <= r->high)) {
        snprintf(why, size, "is ok but its speedup has no ratio inside low and high");
        return false;
    }
    if (!(r->candidate_us > 0)) {
        snprintf(why, size, "is ok but has no usable time_us.candidate.midmean");
        return false;
    }
    return true;
}

/* List the flags. */
static void load_flags(struct result *r) {
    const cJSON *flags = cJSON_GetObjectItemCaseSensitive(r->json, "flags"), *flag;
    r->flags = calloc((size_t)cJSON_GetArraySize(flags) + 1, sizeof *r->flags);
    if (!r->flags) die(KP_MACHINE, "out of memory");
    cJSON_ArrayForEach(flag, flags) {
        if (cJSON_IsString(flag)) r->flags[r->nflags++] = flag->valuestring;
    }
}

/* Whether the file is of a step before timing, where `ok` means: so far. */
static bool unfinished(const char *path) {
    const char *step = strrchr(path, '/');
    step = strchr(step ? step : path, '.');
    return step && (!strcmp(step, ".build.json") || !strcmp(step, ".verify.json"));
}

/* Fill in r from r->json.  Returns false, and why, when it does not fit. */
static bool load_fields(const char *path, struct result *r, char *why, size_t size) {
    const cJSON *json = r->json;
    double schema = result_number(json, "schema");
    word(r->task, sizeof r->task, json, "task");
    word(r->suite, sizeof r->suite, json, "suite");
    word(r->gpu, sizeof r->gpu, json, "gpu");
    word(r->verdict, sizeof r->verdict, json, "verdict");
    word(r->reason, sizeof r->reason, json, "reason");
    word(r->class, sizeof r->class, json, "class");
    const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(json, "kernel");
    word(r->sha256, sizeof r->sha256, kernel, "sha256");
    word(r->headers, sizeof r->headers, kernel, "headers_sha256");
    word(r->code, sizeof r->code, kernel, "code_sha256");
    word(r->sources, sizeof r->sources, cJSON_GetObjectItemCaseSensitive(json, "inputs"), "kernel");
    r->floor_us = result_number(json, "floor_us");
    load_flags(r);

    size_t known = 0;
    while (known < sizeof verdicts / sizeof *verdicts && strcmp(verdicts[known], r->verdict))
        known++;
    if (schema != 1)
        snprintf(why, size, "has schema %g; this program reads schema 1", schema);
    else if (!is_name(r->task) || !is_name(r->gpu) || (*r->suite && !is_name(r->suite)))
        snprintf(why, size, "lacks a usable task, suite or gpu");
    else if (!path_fits(path, r))
        snprintf(why, size, "is a result of %s/%s, not of the cell in its path", r->gpu, r->task);
    else if (known == sizeof verdicts / sizeof *verdicts)
        snprintf(why, size, "has the unknown verdict \"%s\"", r->verdict);
    else
        return !result_ok(r) || unfinished(path) || load_numbers(r, why, size);
    return false;
}

bool result_take(cJSON *json, const char *path, struct result *r, char *why, size_t size) {
    memset(r, 0, sizeof *r);
    r->json = json;
    if (load_fields(path, r, why, size)) return true;
    result_free(r);
    return false;
}

bool result_load(const char *path, struct result *r, char *why, size_t size) {
    cJSON *json = json_load(path, why, size);
    if (json) return result_take(json, path, r, why, size);
    memset(r, 0, sizeof *r);
    return false;
}

void result_free(struct result *r) {
    free(r->flags);
    r->flags = NULL, r->nflags = 0;
    cJSON_Delete(r->json);
    r->json = NULL;
}

bool result_ok(const struct result *r) {
    return strcmp(r->verdict, "ok") == 0;
}

const char *result_board(const struct result *r) {
    return json_text(cJSON_GetObjectItemCaseSensitive(r->json, "machine"), "uuid_hash", "");
}

int class_rank(const char *class) {
    static const char *const classes[CLASS_UNKNOWN] = {"fp32", "fp32-normwise", "tf32", "f16",
                                                       "bf16"};
    int rank = 0;
    if (!strcmp(class, "exact")) return rank;
    while (rank < CLASS_UNKNOWN && strcmp(class, classes[rank])) rank++;
    return rank;
}

enum flag_kind flag_kind(const char *flag) {
    static const struct {
        const char *name;
        enum flag_kind kind;
    } known[] = {{"degenerate", FLAG_VOID},      {"no-influence", FLAG_VOID},
                 {"weak-baseline", FLAG_WEAK},   {"cannot-tell", FLAG_WEAK},
                 {"below-floor", FLAG_WEAK},     {"slow-quarter", FLAG_WEAK},
                 {"throttled", FLAG_WEAK},       {"control-ratio", FLAG_DOUBT},
                 {"decoy-ratio", FLAG_DOUBT}, /* the same in earlier results */
                 {"clocks-disagree", FLAG_DOUBT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].name); /* a colon and details may follow */
        if (!strncmp(flag, known[i].name, n) && (!flag[n] || flag[n] == ':')) return known[i].kind;
    }
    return FLAG_REMARK;
}

bool flag_is_listed(const struct result *r, int i) {
    enum { LISTED = 12 };
    size_t n = strcspn(r->flags[i], ":");
    int same = 0;
    while (same < i && (strncmp(r->flags[same], r->flags[i], n) ||
                        (r->flags[same][n] && r->flags[same][n] != ':')))
        same++;
    return i < LISTED || same == i;
}

const char *result_flag(const cJSON *json, enum flag_kind kind) {
    const cJSON *flag;
    cJSON_ArrayForEach(flag, cJSON_GetObjectItemCaseSensitive(json, "flags")) {
        if (cJSON_IsString(flag) && flag_kind(flag->valuestring) == kind) return flag->valuestring;
    }
    return NULL;
}
