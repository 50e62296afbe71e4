/* inputs.h: what a number was measured of, as hashes of sources, and whether that has changed
 * since.
 *
 * Any machine can tell, without nvcc and without a GPU.  Comments and blanks are not hashed (see
 * base/code_normal.h), nor a kernel's static_asserts: they make no code.  What a hash is of:
 *
 * - task: the task file without its title, source and notes
 * - kernel: the .cu, and what it includes of optimized/include
 * - reference: the executor and the noise (reference/cuda, cuda_base); and for each op of the
 *   graph its row of harness/task/op_table.h and the files of reference/cuda_ops or
 *   cuda_products that implement it, so that an op that is added changes no hash of a task that
 *   lacks it
 * - harness: what measures and judges, what fills a task's tensors and counts its work (a list in
 *   inputs.c); not what reads and checks a task file, as another op alters that
 *
 * make measures a cell again where the last two have changed (inputs_main.c, make/stamps.mk).
 *
 * Paths are relative to the root of the tree, which is the current folder. */
#ifndef KP_INPUTS_H
#define KP_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

enum input { INPUT_TASK, INPUT_KERNEL, INPUT_REFERENCE, INPUT_HARNESS, INPUTS };

struct inputs {
    char hash[INPUTS][65]; /* "" for a kernel that does not exist */
};

struct sources; /* what was hashed already, so that nothing is read twice */
struct sources *sources_open(void);
bool sources_here(void); /* whether the current folder has any: without them nothing can be told */
void sources_close(struct sources *s);

/* Hash the inputs of a cell: of a task, as the text of its file, and a kernel, as a path or NULL.
 * Ends the program with KP_INPUT if a source is missing. */
void inputs_of(struct sources *s, const char *task, const char *kernel, struct inputs *in);

/* Of these only the reference and the harness.  A family's template is as good as a task file here.
 */
void inputs_of_programs(struct sources *s, const char *task, struct inputs *in);

/* As a JSON object: a member each, null for a kernel that does not exist.  The caller deletes it.
 */
struct cJSON *inputs_json(const struct inputs *in);

/* Whether a result says what it was measured of. */
bool inputs_known(const struct cJSON *result);

/* Name in `what` those inputs of such a result that differ from `now`: "kernel, harness".  Returns
 * how many do. */
int inputs_changed(const struct cJSON *result, const struct inputs *now, char *what, size_t size);

#endif
