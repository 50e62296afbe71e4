/* recorded.h: where the recorded result of a cell is.
 *
 * The result of GPU/TASK is the file RESULTS/GPU/TASK.json.  If there is none, it is the line of
 * this task in a file of a family, RESULTS/GPU/SUITE.jsonl, where TASK is SUITE_WORD.
 *
 * A line of such a file is a result.  It names in `like` those of the file's shared parts that it
 * consists of besides (results/SCHEMA.md).  A line that cannot be used costs one line on stderr and
 * its own cell. */
#ifndef KP_RECORDED_H
#define KP_RECORDED_H

#include "record/result.h"

struct family; /* a file of a family */

struct recorded { /* the recorded results of a GPU */
    char *folder; /* RESULTS/GPU */
    int nfamilies;
    struct family *family; /* by suite; each is read when it is first needed */
};

enum found { FOUND_NONE, FOUND_USABLE, FOUND_BROKEN };

/* Begin to look at what RESULTS has of a GPU.  A folder that does not exist has nothing. */
void recorded_open(struct recorded *from, const char *results, const char *gpu);
void recorded_close(struct recorded *from);

/* Find the result of a task.  Only if it is usable, *r is filled in, and must be released with
 * result_free().  A broken one costs a line on stderr. */
enum found recorded_find(struct recorded *from, const char *task, struct result *r);

/* Called with each recorded result.  `json` belongs to the callee; it is NULL for one that is no
 * JSON object, after a line on stderr.  `where` is for messages: the file, and the line if it has
 * several.  `as` is the path to give to result_take().  Returns whether to go on. */
typedef bool recorded_use(void *state, const char *where, const char *as, struct cJSON *json);

/* Call use() for each result until it returns false: files first, each in order of name.  Nothing
 * can be found afterwards. */
void recorded_each(struct recorded *from, recorded_use *use, void *state);

#endif
