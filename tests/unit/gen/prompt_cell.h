/* prompt_cell.h: the cell that tests of a prompt's parts are about, in a tree of prompt_tree.h. */
#ifndef KP_PROMPT_CELL_H
#define KP_PROMPT_CELL_H

#include "prompt_tree.h"

#define TASK "l2_076_gemm_add_relu" /* out: t3 f32 [1024,8192] */

static struct kp_task *task;
static struct prompt_cell cell;

static int open_task(void **state) {
    if (enter(state)) return -1;
    task = task_named("level2/" TASK);
    cell = (struct prompt_cell){.task = task, .gpu = "h200", .arch = "90a", .root = ROOT};
    return 0;
}

static int close_task(void **state) {
    task_free(task);
    return leave(state);
}

/* Write a file of an attempt. */
static void put_file(const struct attempt *a, const char *suffix, const char *text) {
    char *path = attempt_path(ROOT, a->name, "h200", TASK, suffix);
    put(path, text);
    free(path);
}

#endif
