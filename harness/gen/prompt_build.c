/* prompt_build.c: the messages of a turn; see prompt.h.
 *
 * The system message is the same for every task on a GPU: rules, a worked example, the GPU.  The
 * user message is the task, then the parts of this turn.  Values of the templates:
 *
 *   gpu.txt       see prompt_gpu.c
 *   task.txt      see prompt_task.c
 *   ask_*.txt     included (headers that the kernels include: the text that changes least comes
 *                 first), shown, failed, ledger, idea, ideas_wanted, attempt, sample (its number
 *                 among the proposals) */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CODE = 64 << 10, /* of one kernel or header in a prompt */
    LEAST_CODE = 1 << 10, /* if fewer bytes are left, show no kernels */
    MOST_LEDGER = 32 << 10,
    MOST_IDEA = 8 << 10
};

/* ---- The system message ------------------------------------------------------------------ */

static char *system_text(const struct prompt_gpu *g) {
    struct prompt_values none = {0};
    char *rules = prompt_expand("system.txt", &none),
         *example = prompt_expand("example.txt", &none), *gpu = prompt_gpu_text(g),
         *all = text_format("%s\n%s\n%s", rules, example, gpu);
    free(rules);
    free(example);
    free(gpu);
    return all;
}

/* ---- The user message ---------------------------------------------------------------------- */

/* The end of a list of outcomes, as data; the oldest are dropped. */
static char *ledger_text(const struct prompt_cell *c, const char *ledger) {
    if (!ledger || !*ledger) return NULL;
    size_t n = strlen(ledger);
    const char *from = ledger;
    if (n > MOST_LEDGER) {
        from = strchr(ledger + n - MOST_LEDGER, '\n');
        from = from ? from + 1 : ledger + n;
    }
    struct draft lines, t;
    char *name = text_format("%s.cu", c->task->name);
    draft_open(&lines);
    for (const char *line = from; *line; line += n) {
        n = strcspn(line, "\n");
        failure_message(lines.out, line, n, name, 0);
        n += line[n] == '\n';
        fputc('\n', lines.out);
    }
    char *body = draft_close(&lines);
    draft_open(&t);
    fputs("# What was tried, and what came of it\n\n", t.out);
    if (from > ledger) fputs("(older entries are left out)\n\n", t.out);
    text_fence(t.out, "text", body, SIZE_MAX);
    free(body);
    free(name);
    return draft_close(&t);
}

static char *idea_text(const char *idea) {
    if (!idea || !*idea) return NULL;
    struct draft t;
    draft_open(&t);
    fputs("# The idea to carry out\n\n", t.out);
    text_fence(t.out, "text", idea, MOST_IDEA);
    return draft_close(&t);
}

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

/* The part of this turn, with at most `most` bytes of each kernel. */
static char *ask_text(const struct prompt_cell *c, const struct prompt_turn *t, size_t most) {
    struct prompt_values v = {0};
    values_add(&v, "shown", prompt_shown(c, t, most), true);
    values_add(&v, "failed", prompt_failed(c, t->failed, most), true);
    values_add(&v, "included", prompt_included(c, t, most), true);
    values_add(&v, "ledger", ledger_text(c, t->ledger), true);
    values_add(&v, "idea", idea_text(t->idea), true);
    values_add(&v, "ideas_wanted", t->ideas_wanted > 0 ? text_format("%d", t->ideas_wanted) : NULL,
               !strcmp(t->ask, "ideas"));
    values_add(&v, "attempt", text_format("%s", t->attempt), false);
    values_add(&v, "sample", sample_text(t), true);
    char *file = text_format("ask_%s.txt", t->ask), *text = prompt_expand(file, &v);
    values_free(&v);
    free(file);
    return text;
}

void prompt_build(const struct prompt_cell *c, const struct prompt_turn *t,
                  struct llm_message out[PROMPT_MESSAGES]) {
    struct prompt_gpu g;
    check_turn(t);
    prompt_gpu_read(c->gpu, c->arch, &g);
    char *rules = system_text(&g), *task = prompt_task_text(c->task, &g), *ask = NULL;
    for (size_t most = MOST_CODE;; most /= 2) {
        free(ask);
        ask = ask_text(c, t, most);
        if (strlen(rules) + strlen(task) + strlen(ask) + 1 <= PROMPT_MAX_BYTES) break;
        if (most <= LEAST_CODE)
            die(KP_INPUT,
                "%s: the prompt of %s is longer than %d KB even with kernels cut: show fewer",
                c->task->name, t->attempt, PROMPT_MAX_BYTES >> 10);
    }
    out[0] = (struct llm_message){"system", rules, 0};
    out[1] = (struct llm_message){"user", text_format("%s\n%s", task, ask), 0};
    free(task);
    free(ask);
}
