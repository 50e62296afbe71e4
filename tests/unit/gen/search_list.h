/* search_list.h: invented attempts for the tests of searches. */
#ifndef KP_SEARCH_LIST_H
#define KP_SEARCH_LIST_H

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/code_normal.h"
#include "gen/search.h"
#include "base/hash.h"
#include "base/json.h"

enum { MOST = 200 };
static struct attempt list[MOST];
static struct attempts past;
static struct kp_task task = {.name = "l1_019_relu"};
static struct prompt_cell cell;
static struct search_options options;

static inline int begin(void **state) {
    (void)state;
    static const char *const names[] = {"WIDTH",   "SEED_KERNEL", "TURNS",      "TAU",
                                        "BUCKETS", "IDEAS",       "SEARCH_SEED"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    past = (struct attempts){0, list};
    cell = (struct prompt_cell){.task = &task, .gpu = "h200", .arch = "90", .root = "/nowhere"};
    search_options_read(&options);
    return 0;
}

static inline int end(void **state) {
    (void)state;
    for (int i = 0; i < past.n; i++) cJSON_Delete(list[i].gen);
    return 0;
}

/* Add an attempt; `ask` is its question. */
static inline struct attempt *add(const char *name, const char *ask, const char *outcome) {
    struct attempt *a = &list[past.n++];
    assert_true(past.n <= MOST);
    *a = (struct attempt){.idea = -1, .cost = NAN};
    assert_true(attempt_parse(name, a->mode, &a->round, &a->index));
    strcpy(a->name, name);
    strcpy(a->outcome, outcome);
    a->gen = cJSON_CreateObject();
    cJSON_AddStringToObject(a->gen, "ask", ask);
    if (!strcmp(outcome, "code")) strcpy(a->code_hash, name); /* all different */
    if (!strcmp(outcome, "duplicate")) strcpy(a->verdict, "duplicate");
    return a;
}

static inline struct attempt *add_ok(const char *name, const char *ask, double ratio) {
    struct attempt *a = add(name, ask, "code");
    strcpy(a->verdict, "ok");
    strcpy(a->class, "fp32");
    a->ratio = ratio, a->low = 0.99 * ratio, a->high = 1.01 * ratio;
    return a;
}

static inline struct attempt *add_bad(const char *name, const char *ask, const char *verdict) {
    struct attempt *a = add(name, ask, "code");
    strcpy(a->verdict, verdict);
    snprintf(a->reason, sizeof a->reason, "reason of %s", name);
    return a;
}

static inline struct prompt_turn turn_of(const char *mode, int round, int index) {
    struct prompt_turn t;
    memset(&t, 0x55, sizeof t); /* every field must be filled in */
    search_turn(&options, mode, round, index, &past, &cell, &t);
    char *name = text_format("%s.r%da%d", mode, round, index);
    assert_string_equal(t.attempt, name);
    free(name);
    return t;
}

/* Expect the turn to ask `ask` and to show these attempts in order: "a b c". */
static void asks(const struct prompt_turn *t, const char *ask, const char *shown) {
    char found[600] = "";
    for (int i = 0; i < t->nshown; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                 t->shown[i]->name);
    assert_string_equal(t->ask, ask);
    assert_string_equal(found, shown);
}

#endif
