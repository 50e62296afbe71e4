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
#include "gen/prompt_parts.h"
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

/* The system message and the user message of a prompt; free both. */
struct built {
    char *rules, *user;
};

static inline struct built build(const struct prompt_cell *c, const struct prompt_turn *t) {
    struct llm_message m[PROMPT_MESSAGES];
    prompt_build(c, t, m);
    assert_string_equal(m[0].role, "system");
    assert_string_equal(m[1].role, "user");
    return (struct built){m[0].text, m[1].text};
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
