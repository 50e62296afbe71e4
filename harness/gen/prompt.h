/* prompt.h: the messages that a model gets.
 *
 * They are assembled from harness/gen/prompts/: templates with {{name}} for values, and data
 * (ops.json: the meaning of each op; arch.json: limits and instructions of each architecture).  The
 * parts that all tasks share come first and the parts of this turn come last, for prompt caches. */
#ifndef KP_PROMPT_H
#define KP_PROMPT_H

#include "gen/attempt.h"
#include "llm/llm.h"
#include "task/taskfile.h"

enum { PROMPT_MESSAGES = 2, PROMPT_MAX_BYTES = 262144 }; /* both messages together */

struct prompt_cell { /* the same in every turn */
    const struct kp_task *task;
    const char *gpu;               /* h200 */
    const char *arch;              /* as the compiler gets it: 90a, 86 */
    const char *root;              /* build/attempts */
    const char *kernel;            /* source of the cell's current kernel; NULL if there is none */
    const struct attempt *current; /* its result, as an attempt; NULL if it is not measured */
};

/* One turn: the template that asks, and its values.  Unused ones are NULL or empty. */
struct prompt_turn {
    const char *ask;     /* one_shot, repair, optimise, contrastive, ideas, implement:
                            harness/gen/prompts/ask_*.txt */
    const char *attempt; /* name of the requested attempt, e.g. one_shot.r1a3: part of the
                          * prompt, so that samples differ */
    int number, of;      /* this is sample `number` of `of` */
    const struct attempt *shown[8]; /* with code and results, slowest first */
    int nshown;
    const struct attempt *failed; /* repair: the failed attempt, shown with its evidence */
    const char *idea;             /* implement: the idea to implement */
    int idea_index;               /* its index among the ideas of the round */
    const char *ledger;           /* ideas and their outcomes, as text */
    int ideas_wanted;
};

/* The messages: system, user.  Free each text.  Compiler logs and kernels are enclosed as data,
 * by fences that do not occur in them. */
void prompt_build(const struct prompt_cell *c, const struct prompt_turn *t,
                  struct llm_message out[PROMPT_MESSAGES]);

#endif
