/* process.h: the referee starts processes and talks to them. */
#ifndef KP_PROCESS_H
#define KP_PROCESS_H

#include <sys/types.h>
#include "gpu/buffers.h"
#include "gpu/protocol.h"

struct kp_process {
    pid_t pid;
    int to, from; /* a socket and a pipe */
    const char *name;
    bool candidates; /* it runs a candidate */
    int served;      /* cells before this one */
};

/* Start a candidate's program, which opens the driver and waits for its setup.  It gets requests on
 * descriptor 0, sends replies on 3, and prints to stderr.  Of the environment it gets what CUDA
 * needs: no keys, no secrets; and CUDA loads all code before it is used. */
void process_spawn(struct kp_process *p, const char *name, char *const argv[]);

/* Tell a recorder, a runner or a baseline's process, which waits for it, what its cell is, and pass
 * on standard error. */
void process_tell(struct kp_process *p, const void *what, size_t n);

/* A cell begins.  `family` is what it shares with the cells whose processes it may take over, NULL
 * if nothing: the kernel of a family of tasks, which differ in their sizes alone.  What earlier
 * cells have left and this one has no use for ends. */
void process_begin(const char *family);

/* Start a recorder, which opens the driver and waits for what to record: for the cell that comes
 * next, or now.  No code of a candidate's has run in it. */
void process_recorder_ahead(void);
void process_start_recorder(struct kp_process *p, const struct runner_recording *what);

/* Start a runner of the candidate's, which opens the driver and waits for its cell: of the cell
 * that comes next, or now.  No code of a candidate's has run in it, unless it is of this family:
 * one that another shape has left is taken first.  The tape may come until the setup is sent. */
void process_runner_ahead(void);
void process_start_runner(struct kp_process *p, const char *name, const char *prefix);

/* Send it the setup, and pass on the descriptors of the shared memory. */
void process_setup(struct kp_process *p, const struct runner_setup *setup,
                   const struct kp_shared *shared);

/* Both for a baseline's program: one that an earlier cell has left, or else a new one.  choices: of
 * library calls (cuda_base/vendor_choice.h), or NULL. */
void process_start_baseline(struct kp_process *p, const char *name, const char *task,
                            const char *math, const char *choices, const struct runner_setup *setup,
                            const struct kp_shared *shared);

/* The cell ends: a process that works gives back its memory, and is left for the next cell.  A
 * runner of the candidate's that is of no family ends. */
void process_leave(struct kp_process *p, double seconds);

/* Wait for a reply, at most `seconds`, and return its status.  A process that says nothing in time
 * is killed: RUNNER_TIMEOUT.  One that a signal ended has crashed: RUNNER_CRASH; if that signal may
 * be the end of the whole job, this answers a second later.  One that exited without a reply has
 * failed, and die() has said why: RUNNER_MACHINE.  *text, if asked for, is a
 * new string. */
enum runner_status process_wait(struct kp_process *p, double seconds, struct runner_reply *reply,
                                char **text);

/* Send a request. */
void process_send(struct kp_process *p, const struct runner_request *q);

/* Send a request and wait, at most `seconds` and at most *left seconds, from which what it took is
 * taken.  When nothing is left: RUNNER_TIMEOUT, as above. */
enum runner_status process_ask(struct kp_process *p, const struct runner_request *q, double seconds,
                               double *left, struct runner_reply *reply);

/* Kill n processes, and do not wait: the driver takes a tenth of a second to clear up.  Those that
 * never ran are passed over. */
void process_kill(struct kp_process *p, int n);

/* Kill them, unless it is done, wait until they have ended, and close their descriptors. */
void process_end(struct kp_process *p, int n);

/* Seconds that a contestant may take to answer: KP_DEADLINE of the environment, else 60.  A kernel
 * that takes longer counts as endless. */
enum { KP_DEADLINE_SECONDS = 60 };
double process_deadline(void);

/* Seconds that all runs of a kernel may take in a cell, in verify and time together: so many
 * deadlines.  A kernel of a second a run needs a third of it; one of 50 s is not worth an hour. */
enum { KP_CELL_DEADLINES = 2 };
double process_cell_seconds(void);

#endif
