/* protocol.h: what the referee (measure/) and the contestants' processes (replay/) say to each
 * other.
 *
 * A contestant's process is a runner or the recorder.  It reads requests from descriptor 0 and
 * writes replies to descriptor 3.  The referee first sends a runner_setup and the kp_shared of
 * every buffer, a recorder two of them, at other addresses; the memory itself comes as file
 * descriptors, which descriptor 0, a socket, passes on.  The process replies once when it is ready
 * (the recorder says then what its sandbox is), and once to each request.  After a reply whose
 * status is not RUNNER_OK it ends. */
#ifndef KP_PROTOCOL_H
#define KP_PROTOCOL_H

#include <limits.h>
#include <stdint.h>
#include "base/tape.h"
#include "cuda_base/vendor_choice.h"

enum {
    RUNNER_MAGIC = 0x4b500001,
    RUNNER_REPLY_FD = 3,
    KP_RECORDINGS = 2,         /* of `launch`, at other addresses */
    RUNNER_MAX_PLACEMENTS = 64 /* as many as modes take at most: a larger number is no setup */
};

/* Bytes of scratch that a kernel may have: more than any of the suite has use for. */
#define KP_MOST_SCRATCH (64ull << 30)

enum runner_status {
    RUNNER_OK,
    RUNNER_TAPE,    /* what was enqueued cannot be recorded or rebuilt */
    RUNNER_CRASH,   /* the GPU reported an error */
    RUNNER_STATE,   /* a module variable was left changed */
    RUNNER_MACHINE, /* not the candidate's fault */
    RUNNER_TIMEOUT  /* set by the referee: no answer before the deadline */
};

enum runner_what {
    RUNNER_SAMPLE = 1, /* empty the L2, one timed replay */
    RUNNER_EMPTY,      /* the same with an empty graph: two event nodes, nothing between them */
    RUNNER_NEXT,       /* give back what this cell took, and await another's */
    RUNNER_BURST,      /* replays back to back, timed as one: so many turns over the placements */
    RUNNER_SERVE,      /* a gap on the host, then one timed replay: the L2 is as it was left */
    RUNNER_RECORD      /* a recorder's: the first recording, then the second */
};

struct runner_setup {
    uint32_t magic, nplacements, nbuffers, pad;
    uint64_t flush_bytes; /* clean memory to empty the L2 with, the same for all runners: its
                           * kp_shared follows the others */
    uint64_t layout_seed; /* decides where in the address space buffers lie */
};

/* A process is told first what to run, and gets standard error: a recorder once, others for each
 * cell that they serve. */
struct runner_baseline {
    char task[PATH_MAX], math[8], choices[KP_CHOICES]; /* of library calls */
};
struct runner_replaying {
    char tape[PATH_MAX], cubin[PATH_MAX];
};
struct runner_recording {
    char library[PATH_MAX];
    uint32_t ntensors, noutputs;
};

struct runner_request {
    uint32_t what, placement;
    uint32_t placements, turns; /* of a burst: over the first so many placements, so often */
    uint32_t gap_us;            /* before a replay that is served */
};

struct runner_reply {
    int32_t status;
    uint32_t length; /* bytes of text that follow: the recorder's raw tape */
    double event_us; /* between the events: of a burst that of all its replays */
    double host_us;  /* from the launch until all is synchronised, by the host's clock */
    char message[KP_TAPE_MESSAGE];
};

#endif
