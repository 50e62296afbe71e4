/* prompt_parts.h: what the files of the prompts share, that of the judge included.  Nothing else
 * includes it. */
#ifndef KP_PROMPT_PARTS_H
#define KP_PROMPT_PARTS_H

#include "gen/prompt.h"

#include <stdio.h>

/* Where a prompt's parts lie, from the root of the tree. */
#define PROMPT_FOLDER  "harness/gen/prompts"
#define PROMPT_HEADERS "optimized/include"

/* ---- Text: prompt_text.c ---------------------------------------------------------- */

struct draft { /* a text that grows */
    FILE *out;
    char *s;
    size_t size;
};
void draft_open(struct draft *t);
char *draft_close(struct draft *t); /* the text; free it */

/* A block that its contents cannot close: fenced by the shortest run of three backticks or more
 * that does not occur in `body`.  Of a body longer than `most` bytes whole lines are kept, and a
 * line after the block says how much is missing. */
void text_fence(FILE *out, const char *tag, const char *body, size_t most);

/* `s` on one line, at most `most` bytes of it. */
void text_line(FILE *out, const char *s, size_t most);

/* Microseconds with three digits or more. */
void text_us(FILE *out, double us);

/* The number with two significant digits: what a measurement of a machine is worth from one
 * day to the next, so that a prompt stays the same. */
double round_two(double x);

/* A template of PROMPT_FOLDER with its {{name}}s filled in. */
enum { PROMPT_VALUES = 32 };
struct prompt_values {
    int n;
    struct {
        const char *name;
        char *text; /* NULL: not known */
        bool must;  /* a template without it would lose what this turn is about */
        bool used;
    } v[PROMPT_VALUES];
};

/* Add a value; the text is taken over.  An empty one counts as not known. */
void values_add(struct prompt_values *v, const char *name, char *text, bool must);
void values_free(struct prompt_values *v);

/* Expand FILE, of PROMPT_FOLDER unless it has a folder itself.  A line with a value that is not known is left out, and of blank lines in a row
 * one is kept.  KP_INPUT: no such file, a {{name}} that nobody knows, a value that must be in it
 * and is not.  Free it. */
char *prompt_expand(const char *file, struct prompt_values *v);

/* ---- Facts: prompt_gpu.c, prompt_task.c -------------------------------------------- */

struct prompt_gpu { /* numbers are 0 where they are not known */
    const char *slug, *arch;
    char device[96];
    double sms, l2_bytes, memory_bytes;
    double read_gbs, copy_gbs, f16_tflops, tf32_tflops, fp32_tflops, f64_tflops; /* two digits */
};

/* What is recorded of this kind of GPU: by the first result of results/GPU that describes a machine
 * of this architecture, else the peaks in build/GPU. */
void prompt_gpu_read(const char *gpu, const char *arch, struct prompt_gpu *g);

/* The block on the GPU, and that on the task.  Free them. */
char *prompt_gpu_text(const struct prompt_gpu *g);
char *prompt_task_text(const struct kp_task *t, const struct prompt_gpu *g);

/* ---- Attempts: prompt_text.c, prompt_feedback.c, prompt_failure.c ------------------- */

/* Whether an attempt is the cell's present kernel. */
bool attempt_is_current(const struct prompt_cell *c, const struct attempt *a);

/* The kernel of an attempt without the lines that say where it comes from, and how many lines
 * those are; NULL if there is none.  Free it. */
char *attempt_code(const struct prompt_cell *c, const struct attempt *a, int *skipped);

/* Each of these is a block with its heading, NULL if the turn has none.  `most` bytes of each
 * kernel are shown.  Free them. */
char *prompt_shown(const struct prompt_cell *c, const struct prompt_turn *t, size_t most);
char *prompt_failed(const struct prompt_cell *c, const struct attempt *a, size_t most);

/* The headers of the project that the turn's kernels include, and those that these include. */
char *prompt_included(const struct prompt_cell *c, const struct prompt_turn *t, size_t most);

/* In one line: what came of an attempt that is not ok; as in failure_message. */
void failure_line(FILE *out, const struct prompt_cell *c, const struct attempt *a, int skipped);

/* n bytes of a message, without this machine's folders: the kernel, whose file is `name`, is called
 * kernel.cu, and its line numbers are less by the `skipped` lines that are not shown; of other
 * files, the last name is left. */
void failure_message(FILE *out, const char *line, size_t n, const char *name, int skipped);

#endif
