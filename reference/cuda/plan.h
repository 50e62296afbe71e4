/* plan.h: a task's graph as a list of steps on planned memory.
 *
 * A plan has three phases.  WHOLE runs once.  For the oracle, SLICE then runs for each full slice
 * of rows, and REST for the shorter last slice; the other arithmetics do everything in WHOLE.
 * Memory is planned over the three phases as one timeline: a buffer lives from the step that
 * writes it to the last step that reads it.  What WHOLE leaves for the slices lives to the end. */
#ifndef KP_PLAN_H
#define KP_PLAN_H

#include "cuda_base/impl.h"

enum kp_phase { KP_PHASE_WHOLE, KP_PHASE_SLICE, KP_PHASE_REST, KP_PHASES };

enum kp_where { KP_NOWHERE, KP_IN_TENSOR, KP_IN_OUTPUT, KP_IN_BUFFER };

struct kp_ref { /* an array, and where it will be when the step runs */
    enum kp_where where;
    int index;         /* of the tensor, output or buffer */
    int64_t offset;    /* bytes from its beginning to the array's */
    int64_t row_bytes; /* in a slice from row r the array begins r * row_bytes further */
    struct kp_array array;
};

struct kp_step {
    enum { KP_STEP_OP, KP_STEP_COPY, KP_STEP_SINK } kind;
    const struct kp_impl *impl; /* OP */
    void *state;
    struct kp_call call; /* OP: its arrays are those of the refs; a run fills in their data */
    struct kp_ref *in;   /* COPY, SINK: one; OP: as many as call.in has */
    struct kp_ref out[KP_MAX_RESULTS]; /* COPY: one */
    int nin;                           /* entries of in */
    int scratch;                       /* buffer, or -1 */
    int output;                        /* SINK */
    bool exact; /* noise changes nothing: no operand has any, and the step adds none */
};

struct kp_buffer {
    size_t size, offset;
    int first, last; /* steps between which it lives, inclusive */
    bool shared;     /* by all draws of the oracle: scratch, or what an exact step wrote */
};

struct kp_plan {
    const struct kp_task *task;
    enum kp_math math;
    int axis;                      /* of the outputs along which the oracle cuts them into rows */
    int64_t rows, slice;           /* rows in all and in a slice; 0: the oracle cannot be cut */
    int64_t inner[KP_MAX_OUTPUTS]; /* elements of a row behind that axis; 0: it is not cut */
    int nsteps;
    struct kp_step *steps;
    int begin[KP_PHASES + 1]; /* first step of each phase, then nsteps */
    int nbuffers;
    struct kp_buffer *buffers;
    size_t shared_bytes, world_bytes; /* of workspace: once, and for each draw */
};

/* Plan a task.  `slice`: rows in a slice of the oracle; 0 for all of them, and
 * for the other arithmetics. */
struct kp_plan *kp_plan_make(const struct kp_task *t, enum kp_math m, int64_t slice);
void kp_plan_free(struct kp_plan *p);

/* Whether noise leaves what is there as it is. */
bool kp_ref_exact(const struct kp_plan *p, const struct kp_ref *r);

#endif
