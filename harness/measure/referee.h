/* referee.h: what verify and time share: the task's memory, what is in it, and what the outputs
 * hold.  The referee never runs candidate code. */
#ifndef KP_REFEREE_H
#define KP_REFEREE_H

#include "gpu/buffers.h"
#include "gpu/device.h"
#include "measure/process.h"
#include "measure/tolerance.h"
#include "cuda/exec.h"

struct referee {
    const struct kp_task *task;
    int nbuffers;               /* tensors, outputs, scratch: in this order */
    int nplacements;            /* sets of buffers held at once */
    struct kp_span *at;         /* [placement * nbuffers + buffer] */
    struct kp_shared *shared;   /* the same for other processes; last, the clean memory */
    struct kp_region region[2]; /* of what was allocated first, and of scratch added later */
    size_t flush_bytes;         /* of the clean memory; 0: none */
    cudaStream_t stream;
    uint32_t poison;             /* the word in outputs and scratch now */
    uint32_t canary;             /* the word around what may be written, as long as this lives */
    int nguarded;                /* mappings with canaries: those of all placements */
    struct kp_guarded *guarded;  /* device: one for each */
    unsigned long long *changed; /* device: one for each */
    int *guarded_buffer;         /* index into `at` */
    struct kp_compare *found;    /* device: one for each output */
    unsigned long long *counter; /* device */
    double *sum;                 /* device */
};

/* Bytes of an output. */
size_t output_bytes(const struct kp_task *t, int output);

/* All tensors and outputs together. */
size_t task_bytes(const struct kp_task *t);

/* Why a cell is skipped: how much GPU memory it needs, and how much is free.  New string. */
char *referee_short(size_t needed, size_t free_bytes);

/* Allocate `nplacements` sets of buffers, and `flush` bytes of clean memory that every runner
 * reads to empty the L2: the same memory for all, because its address affects times.  False if the
 * GPU has too little memory; *needed says how much all of it takes.  Every buffer is a file
 * descriptor: the soft limit on these is raised, and a hard one that is too low ends the program.
 */
bool referee_open(struct referee *r, const struct kp_task *t, int nplacements, size_t scratch,
                  size_t flush, uint64_t seed, size_t *needed);

/* The clean memory that verify and time flush with: twice the L2's size, so that no line survives.
 */
size_t referee_flush_bytes(void);

/* How many placements a cell with so much scratch is verified and timed at: 8 if it is small,
 * because the address of a small buffer affects times; else 1. */
int referee_placements(const struct kp_task *t, size_t scratch);

/* Give everything back, whether or not it was opened whole.  Nothing uses it any more. */
void referee_close(struct referee *r);

/* Keep the first n placements only.  Before scratch is added. */
void referee_keep(struct referee *r, int n);

/* Give every placement its scratch, which referee_open() was called without.  False if memory is
 * short. */
bool referee_add_scratch(struct referee *r, size_t scratch, uint64_t seed);

/* The buffers of a placement, as executors take them. */
void referee_pointers(const struct referee *r, int placement, const void **tensors, void **outputs);

/* Setup message for a process that maps all of this. */
struct runner_setup referee_setup(const struct referee *r, uint64_t layout_seed);

/* Fill every tensor with new values; fill outputs and scratch with a new secret poison. */
void referee_fill(struct referee *r, int placement, enum kp_distribution d, uint64_t seed);
void referee_poison(struct referee *r, int placement, uint64_t seed);

/* Name of the first buffer whose canaries changed, at whichever placement, or NULL.  *bytes: how
 * many changed. */
const char *referee_canaries(struct referee *r, unsigned long long *bytes);

/* Whether every byte of the outputs still is poison. */
bool referee_untouched(struct referee *r, int placement);

/* Checksum of all tensors (inputs = true) or of all outputs. */
unsigned long long referee_checksum(struct referee *r, int placement, bool inputs);

/* The errors that a comparison found: host copies, one for each output. */
struct kp_error referee_error(const struct kp_task *t, const struct kp_compare *found);

/* Copy outputs. */
void referee_keep_outputs(struct referee *r, void *const *from, void *const *to);

/* Compare outputs y with a baseline's, b, in device memory; rms is that of each b, and `lost` says
 * whether a lost infinity is bad.  Stores one host copy of what was found for each output. */
void referee_compare(struct referee *r, void *const *y, void *const *b, const double *rms,
                     double tolerance, bool lost, struct kp_compare *found);

/* Root mean square of each of these outputs. */
void referee_rms(struct referee *r, void *const *outputs, double *rms);

/* Wait for everything that the referee enqueued. */
void referee_wait(struct referee *r);

/* 64 random bits from the system. */
uint64_t random_seed(void);

#endif
