/* prompt_build.c: the messages of a turn; see prompt.h.
 *
 * The system message is the same for every task on a GPU: rules, a worked example, the GPU, the
 * interfaces of the project's headers.  The user message is the task, then the headers that the
 * turn's kernels include, which change least, then the parts of this turn.  Values of the
 * templates:
 *
 *   system.txt, gpu.txt   gpu and limits of prompts/values.jq; interfaces
 *   task.txt              see prompt_task.c
 *   ask_*.txt             shown, failed, ledger, idea, of values.jq; ideas_wanted, sample (its
 * number among the proposals) */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CODE = 64 << 10, /* of one kernel or header in a prompt */
    LEAST_CODE = 1 << 10  /* if fewer bytes are left, show no kernels */
};

/* Tell each sample its number, and ask all but the first for something unusual.  Samples of one
 * request must differ, and some models have no temperature.  Repairs and implemented ideas
 * differ by their starting point; a sample that is one of one is an independent draw. */
static char *sample_text(const struct prompt_turn *t) {
    bool alike = strcmp(t->ask, "repair") && strcmp(t->ask, "implement") && t->of > 1;
    if (!alike) return text_format("(Request %s.)", t->attempt);
    return text_format(
        "(Request %s: proposal %d of %d, which are written independently. %s)", t->attempt,
        t->number > 1 ? t->number : 1, t->of,
        t->number > 1 ? "Make it differ in kind from what the others are likely to be: not the "
                        "first approach that comes to mind with other sizes, but another good one."
                      : "Take the approach that you judge best.");
}

/* Check that the turn has what its ask requires. */
static void check_turn(const struct prompt_turn *t) {
    const struct {
        const char *ask, *needs;
        bool given;
    } needs[] = {{"repair", "a failed attempt", t->failed != NULL},
                 {"optimise", "a kernel to start from", t->nshown > 0},
                 {"contrastive", "kernels to compare", t->nshown > 0},
                 {"ideas", "a number of ideas", t->ideas_wanted > 0},
                 {"implement", "an idea", t->idea && *t->idea}};
    if (!t->ask || !t->attempt || t->nshown < 0 ||
        t->nshown > (int)(sizeof t->shown / sizeof *t->shown) ||
        t->ask[strspn(t->ask, "abcdefghijklmnopqrstuvwxyz_")])
        die(KP_BUG, "a prompt for a turn without a name, an attempt or room");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (!strcmp(needs[i].ask, t->ask) && !needs[i].given)
            die(KP_BUG, "%s: the request %s needs %s", t->attempt, t->ask, needs[i].needs);
}

/* Expand a template with the values of this turn, of which it must use those that are of `must`. */
static char *expand(const char *file, struct prompt_values *v, bool must) {
    bool was[PROMPT_VALUES];
    for (int i = 0; i < v->n; i++) was[i] = v->v[i].must, v->v[i].must &= must;
    char *text = prompt_expand(file, v);
    for (int i = 0; i < v->n; i++) v->v[i].must = was[i], v->v[i].used = false;
    return text;
}

/* Both messages, with at most `most` bytes of each kernel.  Returns their length. */
static size_t build(const struct prompt_cell *c, const struct prompt_turn *t, size_t most,
                    struct llm_message out[PROMPT_MESSAGES]) {
    struct prompt_values v = {0};
    char *ask_file = text_format("ask_%s.txt", t->ask);
    prompt_data_values(c, t, most, &v);
    values_add(&v, "interfaces", prompt_interfaces(), false);
    values_add(&v, "ideas_wanted", t->ideas_wanted > 0 ? text_format("%d", t->ideas_wanted) : NULL,
               !strcmp(t->ask, "ideas"));
    values_add(&v, "sample", sample_text(t), true);
    char *rules = expand("system.txt", &v, false), *example = expand("example.txt", &v, false),
         *gpu = expand("gpu.txt", &v, false), *included = prompt_included(c, t, most);
    prompt_task_values(c->task, &v);
    char *task = expand("task.txt", &v, false);
    char *ask = expand(ask_file, &v, true);
    char *stable = text_format("%s\n%s%s", task, included, *included ? "\n" : "");
    out[0] = (struct llm_message){"system", text_format("%s\n%s\n%s", rules, example, gpu), 0};
    out[1] = (struct llm_message){"user", text_format("%s%s", stable, ask), strlen(stable)};
    values_free(&v);
    free(rules), free(example), free(gpu), free(ask), free(included), free(task), free(stable);
    free(ask_file);
    return strlen(out[0].text) + strlen(out[1].text);
}

void prompt_build(const struct prompt_cell *c, const struct prompt_turn *t,
                  struct llm_message out[PROMPT_MESSAGES]) {
    check_turn(t);
    for (size_t most = MOST_CODE; build(c, t, most, out) > PROMPT_MAX_BYTES; most /= 2) {
        if (most <= LEAST_CODE)
            die(KP_INPUT,
                "%s: the prompt of %s is longer than %d KB even with kernels cut: show fewer",
                c->task->name, t->attempt, PROMPT_MAX_BYTES >> 10);
        free(out[0].text), free(out[1].text);
    }
}
