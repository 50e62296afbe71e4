/* prompt_tree.h: a tree for tests of prompts: a temporary folder with links to the project's
 * templates, tasks and headers, and with results and attempts that a test writes. */
#ifndef KP_PROMPT_TREE_H
#define KP_PROMPT_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "gen/attempt.h"
#include "gen/prompt.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "build/attempts"

static char tree[] = "/tmp/kernelproof-XXXXXX", home[4096];

static void link_in(const char *name) {
    char *from = text_format("%s/%s", home, name);
    assert_int_equal(symlink(from, name), 0);
    free(from);
}

static int enter(void **state) {
    (void)state;
    if (!getcwd(home, sizeof home) || !mkdtemp(tree) || chdir(tree)) return -1;
    mkdir("harness", 0700);
    mkdir("harness/gen", 0700);
    link_in("harness/gen/prompts");
    link_in("harness/measure");
    link_in("tasks");
    link_in("optimized");
    return 0;
}

/* Remove everything a test may have made; missing folders are fine. */
static inline int clean(void **state) {
    (void)state;
    return system("rm -rf build results");
}

static int leave(void **state) {
    (void)state;
    char *command = text_format("rm -rf '%s'", tree);
    int bad = chdir("/") || system(command);
    free(command);
    return bad;
}

/* Write a file, and create its folders. */
static inline void put(const char *path, const char *text) {
    char *p = text_format("%s", path);
    for (char *s = p; (s = strchr(s + 1, '/'));) {
        *s = 0;
        mkdir(p, 0700);
        *s = '/';
    }
    FILE *f = fopen(path, "w");
    if (!f) fail_msg("%s: cannot write", path);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    free(p);
}

static inline struct kp_task *task_named(const char *name) {
    char *path = text_format("tasks/%s.json", name);
    struct kp_task *t = task_load(path);
    free(path);
    return t;
}

/* An attempt; `more` are members besides, as JSON: ",\"ratio\":2". */
static inline cJSON *attempt_of(const char *name, const char *outcome, const char *verdict,
                                const char *reason, const char *more) {
    cJSON *a = cJSON_CreateObject(), *rest = cJSON_Parse(more), *item;
    cJSON_AddStringToObject(a, "attempt", name);
    cJSON_AddStringToObject(a, "outcome", outcome);
    if (*verdict) cJSON_AddStringToObject(a, "verdict", verdict);
    if (*reason) cJSON_AddStringToObject(a, "reason", reason);
    assert_non_null(rest);
    while ((item = cJSON_DetachItemFromArray(rest, 0)))
        cJSON_AddItemToObject(a, item->string, item);
    cJSON_Delete(rest);
    return a;
}

/* A turn that asks so, and is about nothing yet; *shown, *failed and others are added to it. */
static inline cJSON *turn_of(const char *ask, const char *attempt) {
    cJSON *t = cJSON_CreateObject();
    cJSON_AddStringToObject(t, "ask", ask);
    cJSON_AddStringToObject(t, "attempt", attempt);
    cJSON_AddNumberToObject(t, "number", 1);
    cJSON_AddNumberToObject(t, "of", 1);
    cJSON_AddArrayToObject(t, "shown");
    return t;
}

static inline void show(cJSON *turn, cJSON *attempt) {
    cJSON_AddItemToArray(cJSON_GetObjectItem(turn, "shown"), attempt);
}

/* The system message and the user message of a prompt; free both. */
struct built {
    char *rules, *user;
    size_t stable; /* bytes at the front of the user's */
};

/* Add the files of an attempt, as gen does. */
static inline void add_files(cJSON *attempt, const char *gpu, const char *task) {
    char *stem = attempt_path(ROOT, json_text(attempt, "attempt", ""), gpu, task, "");
    if (cJSON_IsObject(attempt)) prompt_add_files(attempt, stem, NULL);
    free(stem);
}

/* The prompt of a turn, which is deleted. */
static inline struct built build(const struct kp_task *t, const char *gpu, const char *arch,
                                 cJSON *turn) {
    cJSON *data = prompt_data(t, gpu, arch), *a, *item;
    cJSON_ArrayForEach(a, cJSON_GetObjectItem(turn, "shown")) add_files(a, gpu, t->name);
    add_files(cJSON_GetObjectItem(turn, "failed"), gpu, t->name);
    while ((item = cJSON_DetachItemFromArray(turn, 0)))
        cJSON_AddItemToObject(data, item->string, item);
    cJSON *messages = prompt_jq("prompt", "fitted(65536)", data), *m[2];
    for (int i = 0; i < 2; i++) m[i] = cJSON_GetArrayItem(messages, i);
    assert_string_equal(json_text(m[0], "role", ""), "system");
    assert_string_equal(json_text(m[1], "role", ""), "user");
    struct built b = {text_format("%s", json_text(m[0], "text", "")),
                      text_format("%s", json_text(m[1], "text", "")),
                      (size_t)json_number(m[1], "stable", -1)};
    cJSON_Delete(messages);
    cJSON_Delete(data);
    cJSON_Delete(turn);
    return b;
}

static inline void built_free(struct built *b) {
    free(b->rules);
    free(b->user);
}

static inline void holds(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("'%s' is not in\n%s", words, text);
}

static inline void lacks(const char *text, const char *words) {
    const char *at = strstr(text, words);
    if (at) fail_msg("'%s' is in: %.200s", words, at > text + 80 ? at - 80 : text);
}

/* Find the blocks of a text as a reader of Markdown sees them.  Fails the test if one is
 * unclosed; calls `each`, if not NULL, with each block's tag and body. */
typedef void each_block(void *context, const char *tag, const char *body);
static inline int blocks(const char *text, each_block *each, void *context) {
    int n = 0;
    for (const char *line = text; *line;) {
        size_t width = strspn(line, "`");
        const char *next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if (width >= 3) {
            char *tag = strndup(line + width, (size_t)(next - line) - width - 1);
            const char *body = next, *end = body;
            while (*end && !(strspn(end, "`") >= width && end[strspn(end, "`")] == '\n')) {
                end = strchr(end, '\n');
                end = end ? end + 1 : "";
            }
            if (!*end) fail_msg("a block is not closed: %.300s", line);
            char *inside = strndup(body, (size_t)(end - body));
            if (each) each(context, tag, inside);
            free(inside);
            free(tag);
            next = strchr(end, '\n') + 1;
            n++;
        }
        line = next;
    }
    return n;
}

#endif
