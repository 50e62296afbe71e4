/* prompt.h: what a model is told.
 *
 * Everything is assembled from harness/gen/prompts/: templates with {{name}} for what differs, and
 * data (ops.json: the meaning of each op; arch.json: limits and instructions of each architecture).
 * The order is from what is the same for all tasks to what is new in this turn, so that providers'
 * prompt caches hit. */
#ifndef KP_PROMPT_H
#define KP_PROMPT_H

#include "gen/attempt.h"
#include "llm/llm.h"
#include "task/taskfile.h"

enum { PROMPT_MESSAGES = 2, PROMPT_MAX_BYTES = 131072 }; /* both messages together */

struct prompt_cell { /* what does not change from turn to turn */
    const struct kp_task *task;
    const char *gpu;               /* h200 */
    const char *arch;              /* what the compiler is given: 90a, 86 */
    const char *root;              /* build/attempts */
    const char *kernel;            /* source of the cell's present kernel; NULL if there is none */
    const struct attempt *current; /* its result, as an attempt; NULL if not measured */
};

/* One turn: which template asks, and what fills it.  Each is NULL or empty where the turn has no
 * use for it. */
struct prompt_turn {
    const char *ask;     /* one_shot, repair, optimise, contrastive, ideas, implement:
                            harness/gen/prompts/ask_*.txt */
    const char *attempt; /* name of the attempt asked for, e.g. one_shot.r1a3: part of the prompt,
                            so that samples differ */
    int number, of;      /* this is sample `number` of `of` */
    const struct attempt *shown[8]; /* with code and results, slowest first */
    int nshown;
    const struct attempt *failed; /* repair: what went wrong, with its evidence */
    const char *idea;             /* implement: what to realise */
    int idea_index;               /* its index among the ideas of the round */
    const char *ledger;           /* ideas tried and their outcomes; text */
    int ideas_wanted;
};

/* The messages: system, user.  Free each text.  Compiler logs and kernels are fenced as data by a
 * fence that does not occur in them. */
void prompt_build(const struct prompt_cell *c, const struct prompt_turn *t,
                  struct llm_message out[PROMPT_MESSAGES]);

#endif
