/* prompt_cell.h: the task that tests of a prompt's parts are about, in a tree of prompt_tree.h. */
#ifndef KP_PROMPT_CELL_H
#define KP_PROMPT_CELL_H

#include "prompt_tree.h"

#define TASK "l2_076_gemm_add_relu" /* out: t3 f32 [1024,8192] */

static struct kp_task *task;

static int open_task(void **state) {
    if (enter(state)) return -1;
    task = task_named("level2/" TASK);
    return 0;
}

static int close_task(void **state) {
    task_free(task);
    return leave(state);
}

/* Write a file of an attempt. */
static inline void put_file(const char *name, const char *suffix, const char *text) {
    char *path = attempt_path(ROOT, name, "h200", TASK, suffix);
    put(path, text);
    free(path);
}

static inline cJSON *measured(const char *name, double ratio) {
    char *more = text_format("{\"class\":\"fp32\",\"ratio\":%g,\"low\":%g,\"high\":%g,\"us\":%g,"
                             "\"against_us\":2730}",
                             ratio, ratio * 0.99, ratio * 1.01, 2730 / ratio);
    cJSON *a = attempt_of(name, "code", "ok", "", more);
    free(more);
    return a;
}

/* The prompt of a turn about the task. */
static inline struct built built_of(cJSON *turn) {
    struct built b = build(task, "h200", "90a", turn);
    blocks(b.user, NULL, NULL); /* all closed */
    return b;
}

/* The prompt that asks to repair `a`, which is deleted. */
static inline char *repair_of(cJSON *a) {
    cJSON *t = turn_of("repair", "repair.r2a1");
    cJSON_AddItemToObject(t, "failed", a);
    struct built b = built_of(t);
    lacks(b.user, "{{");
    free(b.rules);
    return b.user;
}

/* A kernel as an attempt has it. */
static const char kernel[] = "// provenance: m, attempt repair.r1a1, 2026\n"
                             "// prompt sha256 00; transcript x\n"
                             "// kernel sha256 00\n"
                             "#include \"task.h\"\n"
                             "__global__ void k(float *x) {\n"
                             "    x[0] = foo;\n"
                             "}\n"
                             "extern \"C\" void launch() {}\n";

#endif
