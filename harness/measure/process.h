/* process.h: the processes that a referee starts, and talking to them. */
#ifndef KP_PROCESS_H
#define KP_PROCESS_H

#include <sys/types.h>
#include "gpu/buffers.h"
#include "gpu/protocol.h"

struct kp_process {
    pid_t pid;
    int to, from; /* pipes */
    const char *name;
};

/* Start a program with a bare environment (nothing but what CUDA needs: no keys, no
 * secrets), the given descriptors inherited, requests on 0 and replies on 3, and send
 * it the setup.  What it prints goes to stderr. */
void process_start(struct kp_process *p, const char *name, char *const argv[], bool eager,
                   const struct runner_setup *setup, const struct kp_shared *shared);

/* Wait for a reply, at most `seconds`.  A process that says nothing in time is killed
 * (RUNNER_TIMEOUT); one that a signal ends has crashed (RUNNER_CRASH); one that exits without a
 * word has failed (RUNNER_MACHINE: die() has said why).  *text, if asked for, is a new
 * string.  Returns reply->status. */
enum runner_status process_wait(struct kp_process *p, double seconds, struct runner_reply *reply,
                                char **text);

/* Send a request and wait. */
enum runner_status process_ask(struct kp_process *p, enum runner_what what, int placement,
                               double seconds, struct runner_reply *reply);

/* Close the pipes, make sure the process is gone. */
void process_end(struct kp_process *p);

/* Seconds that a contestant may take to answer: KP_DEADLINE, or 60. */
double process_deadline(void);

#endif
