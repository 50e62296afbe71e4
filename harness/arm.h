/* arm.h: what the referee and the processes it starts say to each other.
 *
 * A contestant's process (an arm, or the recorder) is started with requests on
 * descriptor 0 and replies on descriptor 3.  The referee first sends an arm_setup
 * and its arm_buffers; the memory itself arrives as inherited file descriptors.
 * It answers once when ready (the recorder: what its sandbox is), then once per request.
 * After a reply whose status is not ARM_OK the process ends. */
#ifndef KP_ARM_H
#define KP_ARM_H

#include <stdint.h>
#include "buffers.h"
#include "driver.h"
#include "tape.h"

enum { ARM_MAGIC = 0x4b500001, ARM_REPLY_FD = 3 };

enum arm_status {
    ARM_OK,
    ARM_TAPE,    /* what was enqueued cannot be recorded or rebuilt */
    ARM_CRASH,   /* the GPU reported an error */
    ARM_STATE,   /* a module variable was left changed */
    ARM_MACHINE, /* not the candidate's fault */
    ARM_TIMEOUT  /* set by the referee: no answer before the deadline */
};

enum arm_what {
    ARM_RUN = 1, /* one replay, no flush */
    ARM_SAMPLE,  /* empty the L2, one timed replay */
    ARM_EMPTY    /* time two event nodes and nothing between them */
};

struct arm_setup {
    uint32_t magic, nplacements, nbuffers, pad;
    uint64_t flush_bytes; /* clean memory to empty the L2 with, the same for all arms: one more
                           * kp_shared follows the others; 0: never asked for ARM_SAMPLE */
    uint64_t layout_seed; /* where in the address space buffers go */
};

struct arm_request {
    uint32_t what, placement;
};

struct arm_reply {
    int32_t status;
    uint32_t length; /* bytes of text that follow (recorder: the raw tape) */
    double event_us; /* between the event nodes */
    double host_us;  /* launch to synchronised, by the host's clock */
    char message[KP_TAPE_MESSAGE];
};

/* Read the setup and map every buffer: at[placement * nbuffers + buffer], and after the
 * last the clean memory, if there is any. */
void arm_receive(struct arm_setup *setup, struct kp_span **at);

/* Send a reply (and `text`, if any); ends the process if the status is not ARM_OK. */
void arm_reply(enum arm_status status, double event_us, double host_us, const char *message,
               const char *text);

/* What differs between contestants. */
struct arm_contestant {
    void *self;
    /* Before a placement is captured: load what a capture may not; NULL: nothing to load. */
    bool (*prepare)(void *self, char *message);
    /* Enqueue on a stream under capture: start, the work on these buffers, stop.
     * Returns false and a message if it cannot. */
    bool (*enqueue)(void *self, const struct kp_span *at, CUstream s, CUevent start, CUevent stop,
                    char *message);
    /* Compare the captured graph with what was meant; NULL: nothing to compare. */
    bool (*inspect)(void *self, const struct kp_span *at, CUgraph graph, char *message);
    /* After a replay: false and a message if state outlived it; NULL: has none. */
    bool (*kept)(void *self, char *message);
};

/* Serve requests until the referee closes the pipe.  Never returns. */
KP_NORETURN void arm_serve(const struct arm_setup *setup, const struct kp_span *at,
                           const struct arm_contestant *who);

#endif
