/* prompt_parts.h: shared by the files that build prompts, and by those that write a line of one:
 * the search and the judge. */
#ifndef KP_PROMPT_PARTS_H
#define KP_PROMPT_PARTS_H

#include "gen/prompt.h"

#include <stdio.h>

/* Folders of a prompt's parts, from the root of the tree. */
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

/* Print a block that its contents cannot close: its fence is the shortest run of at least three
 * backticks that is not in `body`.  A body longer than `most` bytes is cut after whole lines,
 * and a line after the block says how much is missing. */
void text_fence(FILE *out, const char *tag, const char *body, size_t most);

/* Print `s` on one line, at most `most` bytes of it. */
void text_line(FILE *out, const char *s, size_t most);
char *text_one_line(const char *s, size_t most); /* the same as a text; free it */

/* Print microseconds with at least three digits. */
void text_us(FILE *out, double us);

/* Round to two significant digits, the repeatability of a machine's measurements, so that
 * prompts stay the same from day to day. */
double round_two(double x);

/* The template FILE of PROMPT_FOLDER with its {{name}}s filled in. */
enum { PROMPT_VALUES = 32 };
struct prompt_values {
    int n;
    struct {
        const char *name;
        char *text; /* NULL: unknown */
        bool must;  /* the template must use it: the turn is about this value */
        bool used;
    } v[PROMPT_VALUES];
};

/* Add a value; takes over the text.  An empty text counts as unknown. */
void values_add(struct prompt_values *v, const char *name, char *text, bool must);
void values_free(struct prompt_values *v);

/* Expand FILE, which is in PROMPT_FOLDER unless it names a folder.  Drops lines with an unknown
 * value and repeated blank lines.  KP_INPUT: the file is missing, a {{name}} is undefined, or a
 * `must` value is not used.  Free it. */
char *prompt_expand(const char *file, struct prompt_values *v);

/* ---- Facts: prompt_gpu.c, prompt_task.c -------------------------------------------- */

struct prompt_gpu { /* numbers are 0 if unknown */
    const char *slug, *arch;
    char device[96];
    double sms, l2_bytes, memory_bytes;
    double read_gbs, copy_gbs, f16_tflops, tf32_tflops, fp32_tflops, f64_tflops; /* two digits */
};

/* Read the recorded machine of this kind of GPU: from the first result of results/GPU that
 * describes a machine of this architecture, else from the peaks in build/GPU. */
void prompt_gpu_read(const char *gpu, const char *arch, struct prompt_gpu *g);

/* The blocks on the GPU and on the task.  Free them. */
char *prompt_gpu_text(const struct prompt_gpu *g);
char *prompt_task_text(const struct kp_task *t, const struct prompt_gpu *g);

/* ---- Attempts: prompt_text.c, prompt_feedback.c, prompt_failure.c ------------------- */

/* Whether an attempt is the cell's current kernel. */
bool attempt_is_current(const struct prompt_cell *c, const struct attempt *a);

/* The kernel of an attempt without its lines of provenance, and the number of those lines; NULL
 * if there is none.  Free it. */
char *attempt_code(const struct prompt_cell *c, const struct attempt *a, int *skipped);

/* Each of these is a block with its heading; NULL if the turn has none.  Shows at most `most`
 * bytes of each kernel.  Free them. */
char *prompt_shown(const struct prompt_cell *c, const struct prompt_turn *t, size_t most);
char *prompt_failed(const struct prompt_cell *c, const struct attempt *a, size_t most);

/* The headers of the project that the turn's kernels include, and the headers that those
 * include. */
char *prompt_included(const struct prompt_cell *c, const struct prompt_turn *t, size_t most);

/* Print the outcome of a failed attempt in one line, cleaned as in failure_message. */
void failure_line(FILE *out, const struct prompt_cell *c, const struct attempt *a, int skipped);

/* Print n bytes of a message without this machine's folders: the kernel, whose file is `name`,
 * is called kernel.cu, and its line numbers are reduced by the `skipped` lines that are not
 * shown; other files keep only their names. */
void failure_message(FILE *out, const char *line, size_t n, const char *name, int skipped);

#endif
