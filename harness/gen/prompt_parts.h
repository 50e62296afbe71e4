/* prompt_parts.h: shared by the files that build prompts, and by those that write a line of one:
 * the search and the judge. */
#ifndef KP_PROMPT_PARTS_H
#define KP_PROMPT_PARTS_H

#include "gen/prompt.h"

#include <cjson/cJSON.h>
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

/* The template FILE of PROMPT_FOLDER with its {{name}}s filled in. */
enum { PROMPT_VALUES = 64 };
struct prompt_values {
    int n;
    cJSON *json; /* whose names they are; NULL */
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

/* ---- Values: prompt_data.c, prompt_task.c, prompt_headers.c ----------------------------- */

/* Add what prompts/values.jq makes of the GPU, the recorded results, the turn's attempts, ledger
 * and idea, with at most `most` bytes of each kernel.  KP_USAGE for a malformed GPU or
 * architecture. */
void prompt_data_values(const struct prompt_cell *c, const struct prompt_turn *t, size_t most,
                        struct prompt_values *v);

/* Add the task: its tensors, graph, task.h and so on. */
void prompt_task_values(const struct kp_task *t, struct prompt_values *v);

/* What each header of the project offers: its declarations and their comments.  Free it. */
char *prompt_interfaces(void);

/* The headers of the project that the turn's kernels include, and the headers that those
 * include, with at most `most` bytes of each.  Free it. */
char *prompt_included(const struct prompt_cell *c, const struct prompt_turn *t, size_t most);

/* Their names for one source, separated by blanks.  Free it. */
char *prompt_header_names(const char *source);

/* Whether an attempt is the cell's current kernel. */
bool attempt_is_current(const struct prompt_cell *c, const struct attempt *a);

/* The kernel of an attempt without its lines of provenance, and the number of those lines; NULL
 * if there is none.  Free it. */
char *attempt_code(const struct prompt_cell *c, const struct attempt *a, int *skipped);

#endif
