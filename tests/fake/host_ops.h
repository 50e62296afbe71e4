/* host_ops.h: what the real planner and executor (reference/cuda) need to run without a GPU: every
 * op by its meaning (reference/define) on strided arrays in the host's memory, and cases of tasks.
 */
#ifndef KP_HOST_OPS_H
#define KP_HOST_OPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cuda/exec.h"

#include <cjson/cJSON.h>

extern bool ask_dense;    /* every op asks for dense operands */
extern bool noisy;        /* results with noise are off by what the noise's seed says */
extern int rounded;       /* results that were rounded to 16 bits */
extern int exact_runs;    /* of an op, without noise */
extern int together_done; /* ops that computed all worlds at once */

enum { MOST_TENSORS = 64 };
struct fixture {
    struct kp_task *task;
    const char *name;
    double *in[MOST_TENSORS], *want[KP_MAX_OUTPUTS], *got[KP_MAX_OUTPUTS];
    void *tensor[MOST_TENSORS];
    int64_t taken[KP_MAX_OUTPUTS]; /* elements that the oracle handed over */
    unsigned char *seen[KP_MAX_OUTPUTS];
};

/* Aligned memory for `count` items that hold no number. */
void *memory(int64_t count, size_t size);

int64_t count_of(const struct kp_task *t, int v);

/* Load a case with tensors of a type, draw them, and compute what is wanted. */
void begin(struct fixture *f, const cJSON *c, const char *dtype);
void end(struct fixture *f);

/* The same of a graph, which becomes its name, with x and what else it reads, as in ops.json. */
void begin_graph(struct fixture *f, const char *tensors, const char *graph, const char *dtype);

/* Fails where an output is off by more than `bound` of 1 and its size. */
void compare(const struct fixture *f, const char *what, double bound);

/* One run of the oracle.  Returns the bytes of workspace that it took. */
size_t run_oracle(struct fixture *f, const char *what, size_t limit, bool noise);

#endif
