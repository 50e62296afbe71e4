/* export_check.c: check that files of export are as export.h says. */
#define _GNU_SOURCE
#include "export/export.h"
#include "base/error.h"
#include "base/json.h"
#include "record/result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check { /* of one line */
    char *why;
    size_t size;
};

/* Record the first error.  Always false. */
__attribute__((format(printf, 2, 3))) static bool no(const struct check *c, const char *format,
                                                     ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->why, c->size, format, ap);
    va_end(ap);
    return false;
}

/* ---- bytes ------------------------------------------------------------------------ */

/* The length of the UTF-8 character at p, before `end`; 0 if it is invalid: cut short, overlong,
 * a surrogate, or above U+10FFFF. */
static size_t character(const unsigned char *p, const unsigned char *end) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*p < 0x80) return *p != 0;
    size_t n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
    if (*p < 0xc2 || *p > 0xf4 || (size_t)(end - p) < n) return 0;
    unsigned code = *p & (0x7f >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[n] || surrogate || code > 0x10ffff ? 0 : n;
}

/* Whether the bytes are UTF-8 without an escaped NUL, which would cut the string in C. */
static bool is_text(const struct check *c, const char *line, size_t size) {
    const unsigned char *p = (const unsigned char *)line, *end = p + size;
    while (p < end) {
        size_t n = character(p, end);
        if (n == 0) return no(c, "byte %td is not UTF-8", p - (const unsigned char *)line + 1);
        if (*p == '\\' && p + 1 < end) {
            if (end - p >= 6 && !memcmp(p, "\\u0000", 6)) return no(c, "a text holds a NUL");
            n = 1 + character(p + 1, end); /* skip the escaped character, which may be a
                                            * backslash */
        }
        p += n ? n : 1;
    }
    return true;
}

/* ---- columns ---------------------------------------------------------------------- */

/* Whether an object has exactly these keys, in any order. */
static bool has_keys(const struct check *c, const cJSON *object, const char *where,
                     const char *const *key, int n) {
    if (!cJSON_IsObject(object)) return no(c, "%s is no object", where);
    for (int i = 0; i < n; i++)
        if (!cJSON_GetObjectItemCaseSensitive(object, key[i]))
            return no(c, "%s lacks \"%s\"", where, key[i]);
    const cJSON *one;
    cJSON_ArrayForEach(one, object) {
        int i = 0;
        while (i < n && strcmp(key[i], one->string)) i++;
        if (i == n) return no(c, "%s has \"%.40s\", which is no column", where, one->string);
    }
    if (cJSON_GetArraySize(object) != n) return no(c, "%s has a column twice", where);
    return true;
}

static bool is_among(const char *word, const char *const *list, int n) {
    for (int i = 0; i < n; i++)
        if (!strcmp(word, list[i])) return true;
    return false;
}

/* A text that is not empty. */
static bool filled(const struct check *c, const cJSON *object, const char *key) {
    return *json_text(object, key, "") || no(c, "\"%s\" is no text, or empty", key);
}

/* Whether a member is a number from `least` to `most`, or null if it may be unknown. */
static bool between(const struct check *c, const cJSON *object, const char *key, double least,
                    double most, bool or_null) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (or_null && cJSON_IsNull(v)) return true;
    if (!cJSON_IsNumber(v)) return no(c, "\"%s\" is no number", key);
    double x = v->valuedouble;
    return (x >= least && x <= most) ||
           no(c, "\"%s\" is %g, not from %g to %g", key, x, least, most);
}

/* Whether the messages are an optional system message, then user and assistant in turn, ending
 * with `last`. */
static bool conversation(const struct check *c, const cJSON *list, const char *name,
                         const char *last) {
    static const char *const key[] = {"role", "content"};
    const char *expected = strcmp(last, "user") ? last : "system", *role = "";
    const cJSON *m;
    if (!cJSON_IsArray(list) || !list->child) return no(c, "\"%s\" is no list of messages", name);
    cJSON_ArrayForEach(m, list) {
        if (!has_keys(c, m, name, key, 2) || !filled(c, m, "role") || !filled(c, m, "content"))
            return false;
        role = json_text(m, "role", "");
        if (!strcmp(expected, "system") && strcmp(role, "system")) expected = "user";
        if (strcmp(role, expected))
            return no(c, "\"%s\": a message of \"%.20s\" where \"%s\" speaks", name, role,
                      expected);
        expected = strcmp(role, "user") ? "user" : "assistant";
    }
    return !strcmp(role, last) || no(c, "\"%s\" ends with \"%.20s\"", name, role);
}

/* Check the columns about the attempt, which both kinds have. */
static bool attempt_of(const struct check *c, const cJSON *object, char *task, char *split) {
    static const char *const sides[] = {"train", "test"};
    const char *name = json_text(object, "task", ""), *side = json_text(object, "split", "");
    if (!is_name(name) || strlen(name) > 63) return no(c, "\"task\" is no task's name");
    if (!is_name(json_text(object, "gpu", ""))) return no(c, "\"gpu\" is no GPU's name");
    if (!filled(c, object, "attempt")) return false;
    if (!is_among(side, sides, 2)) return no(c, "\"split\" is neither train nor test");
    strcpy(task, name);
    strcpy(split, side);
    return true;
}

static bool is_class(const struct check *c, const cJSON *object) {
    return class_rank(json_text(object, "class", "")) < CLASS_UNKNOWN ||
           no(c, "\"class\" is no arithmetic class");
}

static bool pair_row(const struct check *c, const cJSON *row, char *task, char *split) {
    static const char *const key[] = {"prompt",  "completion", "task",  "gpu",
                                      "attempt", "speedup",    "class", "split"};
    const cJSON *completion = cJSON_GetObjectItemCaseSensitive(row, "completion");
    if (!has_keys(c, row, "the line", key, 8) || !attempt_of(c, row, task, split) ||
        !conversation(c, cJSON_GetObjectItemCaseSensitive(row, "prompt"), "prompt", "user") ||
        !conversation(c, completion, "completion", "assistant"))
        return false;
    if (cJSON_GetArraySize(completion) != 1) return no(c, "\"completion\" is not one message");
    return between(c, row, "speedup", 1e-9, 1e9, true) && is_class(c, row);
}

/* Check the verdict of an answer and its numbers. */
static bool judgment(const struct check *c, const cJSON *row, const cJSON *extra) {
    static const char *const verdicts[] = {"ok",      "build", "gate",       "tape",     "crash",
                                           "timeout", "wrong", "impossible", "doubtful", "no-code",
                                           "cut",     "empty", "refused",    "invalid"};
    const char *verdict = json_text(row, "verdict", "");
    bool ok = !strcmp(verdict, "ok");
    if (!is_among(verdict, verdicts, 14)) return no(c, "\"verdict\" is none");
    if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(row, "answer")))
        return no(c, "\"answer\" is no text");
    if (ok && !is_class(c, extra)) return false;
    if (!ok && !cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(extra, "class")))
        return no(c, "\"class\" is given, and the verdict is not ok");
    double least = ok ? 1e-9 : 0, most = ok ? 1e9 : 0;
    return between(c, row, "ratio", least, most, false) &&
           between(c, extra, "score", 0, most, false) &&
           between(c, row, "reward", -EXPORT_CLIP, EXPORT_CLIP, false) &&
           between(c, extra, "bucket_variance", 0, INFINITY, true);
}

static bool rl_row(const struct check *c, const cJSON *row, char *task, char *split) {
    static const char *const key[] = {"data_source",  "prompt",     "ability",
                                      "reward_model", "extra_info", "answer",
                                      "verdict",      "ratio",      "reward"};
    static const char *const rule[] = {"style", "ground_truth"};
    static const char *const more[] = {"split", "index", "task",  "gpu",   "attempt",        "mode",
                                       "round", "model", "class", "score", "bucket_variance"};
    const cJSON *extra = cJSON_GetObjectItemCaseSensitive(row, "extra_info");
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(row, "reward_model");
    char cell[160];
    if (!has_keys(c, row, "the line", key, 9) || !has_keys(c, extra, "extra_info", more, 11) ||
        !has_keys(c, model, "reward_model", rule, 2) || !filled(c, row, "data_source") ||
        !filled(c, row, "ability") || !filled(c, extra, "mode") ||
        !attempt_of(c, extra, task, split) ||
        !conversation(c, cJSON_GetObjectItemCaseSensitive(row, "prompt"), "prompt", "user"))
        return false;
    if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(extra, "model")))
        return no(c, "\"model\" is no text"); /* empty if the server did not name it */
    double index = json_number(extra, "index", -1);
    if (index < 0 || index != floor(index)) return no(c, "\"index\" is no whole number");
    if (strcmp(json_text(model, "style", ""), "rule")) return no(c, "\"style\" is not rule");
    snprintf(cell, sizeof cell, "%s/%s", json_text(extra, "gpu", ""), task);
    if (strcmp(json_text(model, "ground_truth", ""), cell))
        return no(c, "\"ground_truth\" is not %s", cell);
    return between(c, extra, "round", 1, 1e6, false) && judgment(c, row, extra);
}

bool export_check_line(const char *line, size_t size, enum export_kind *kind, char *task,
                       char *split, char *why, size_t why_size) {
    struct check c = {why, why_size};
    *kind = EXPORT_NONE;
    if (!is_text(&c, line, size)) return false;
    const char *end = NULL;
    cJSON *row = cJSON_ParseWithLengthOpts(line, size + 1, &end, 1);
    bool good = cJSON_IsObject(row);
    if (!good) {
        no(&c, "not a JSON object");
    } else if (cJSON_GetObjectItemCaseSensitive(row, "data_source")) {
        *kind = EXPORT_RL;
        good = rl_row(&c, row, task, split);
    } else {
        *kind = EXPORT_PAIR;
        good = pair_row(&c, row, task, split);
    }
    cJSON_Delete(row);
    return good;
}

/* ---- files ------------------------------------------------------------------------ */

struct side { /* the first place of a task */
    char task[64], split[8];
    const char *path;
    long line;
};

/* Remember a task's side; ends the program if the task is also on the other one. */
static void take_side(struct side **sides, int *n, const struct side *now) {
    for (int i = 0; i < *n; i++) {
        const struct side *then = &(*sides)[i];
        if (strcmp(then->task, now->task)) continue;
        if (!strcmp(then->split, now->split)) return;
        die(KP_INPUT, "%s:%ld: %s is in %s, and in %s at %s:%ld; export again", now->path,
            now->line, now->task, now->split, then->split, then->path, then->line);
    }
    *sides = realloc(*sides, ((size_t)*n + 1) * sizeof **sides);
    if (!*sides) die(KP_MACHINE, "out of memory");
    (*sides)[(*n)++] = *now;
}

/* Check one file and print its length. */
static void check_file(const char *path, struct side **sides, int *n) {
    enum export_kind kind, first = EXPORT_NONE;
    char *line = NULL, why[200];
    size_t room = 0;
    ssize_t size;
    struct side now = {.path = path};
    FILE *f = fopen(path, "r");
    if (!f) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
    errno = 0;
    while ((size = getline(&line, &room, f)) >= 0) {
        now.line++;
        if (size && line[size - 1] == '\n') line[--size] = 0;
        if (!export_check_line(line, (size_t)size, &kind, now.task, now.split, why, sizeof why))
            die(KP_INPUT, "%s:%ld: %s; export again", path, now.line, why);
        if (now.line == 1) first = kind;
        if (kind != first)
            die(KP_INPUT, "%s:%ld: not of the same kind as the first line; export again", path,
                now.line);
        take_side(sides, n, &now);
    }
    if (ferror(f)) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
    free(line);
    fclose(f);
    printf("export: %s: %ld lines are in order\n", path, now.line);
}

void export_check(char **paths) {
    struct side *sides = NULL;
    int n = 0, test = 0;
    for (; *paths; paths++) check_file(*paths, &sides, &n);
    for (int i = 0; i < n; i++) test += !strcmp(sides[i].split, "test");
    printf("export: %d tasks train, %d test\n", n - test, test);
    free(sides);
}
