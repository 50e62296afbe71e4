/* protocol.h: what the referee and the processes it starts say to each other.
 *
 * A contestant's process (a runner, or the recorder) is started with requests on
 * descriptor 0 and replies on descriptor 3.  The referee first sends a runner_setup
 * and its runner_buffers; the memory itself arrives as inherited file descriptors.
 * It answers once when ready (the recorder: what its sandbox is), then once per request.
 * After a reply whose status is not RUNNER_OK the process ends. */
#ifndef KP_PROTOCOL_H
#define KP_PROTOCOL_H

#include <stdint.h>
#include "base/tape.h"

enum { RUNNER_MAGIC = 0x4b500001, RUNNER_REPLY_FD = 3 };

enum runner_status {
    RUNNER_OK,
    RUNNER_TAPE,    /* what was enqueued cannot be recorded or rebuilt */
    RUNNER_CRASH,   /* the GPU reported an error */
    RUNNER_STATE,   /* a module variable was left changed */
    RUNNER_MACHINE, /* not the candidate's fault */
    RUNNER_TIMEOUT  /* set by the referee: no answer before the deadline */
};

enum runner_what {
    RUNNER_RUN = 1, /* one replay, no flush */
    RUNNER_SAMPLE,  /* empty the L2, one timed replay */
    RUNNER_EMPTY    /* time two event nodes and nothing between them */
};

struct runner_setup {
    uint32_t magic, nplacements, nbuffers, pad;
    uint64_t flush_bytes; /* clean memory to empty the L2 with, the same for all runners: one more
                           * kp_shared follows the others; 0: never asked for RUNNER_SAMPLE */
    uint64_t layout_seed; /* where in the address space buffers go */
};

struct runner_request {
    uint32_t what, placement;
};

struct runner_reply {
    int32_t status;
    uint32_t length; /* bytes of text that follow (recorder: the raw tape) */
    double event_us; /* between the event nodes */
    double host_us;  /* launch to synchronised, by the host's clock */
    char message[KP_TAPE_MESSAGE];
};

#endif
