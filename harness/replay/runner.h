/* runner.h: what every contestant's process does: receive buffers and reply (talk.c), serve
 * samples. The loop, and the clock, are in timed_sample.c. */
#ifndef KP_RUNNER_H
#define KP_RUNNER_H

#include "gpu/buffers.h"
#include "gpu/driver.h"
#include "gpu/protocol.h"

/* Read exactly n bytes.  Ends the process if the referee has closed its end: it needs this process
 * no more. */
void runner_take(void *to, size_t n);

/* Read what the cell is, and let standard output and error be where it says things.  False if that
 * did not come. */
bool runner_told(void *what, size_t n);

/* Standard output and error are this file from here on. */
void runner_say_to(int fd);

/* Read the setup and map every buffer: at[placement * nbuffers + buffer].  The clean memory, if
 * there is any, follows the last.  Returns how many there are. */
size_t runner_receive(struct runner_setup *setup, struct kp_region *region, struct kp_span **at);

/* Send a reply, and `text` unless it is NULL.  Ends the process if the status is not RUNNER_OK. */
void runner_reply(enum runner_status status, double event_us, double host_us, const char *message,
                  const char *text);

/* What differs between contestants.  A function that may be NULL is then left out. */
struct runner_contestant {
    void *self;
    /* Bytes of local memory that a thread of its kernels has, known once they are enqueued.  NULL:
     * it is not a candidate's, and need not be scrubbed.  */
    const size_t *local_bytes;
    /* Before a placement is captured: load what cannot be loaded under capture.  May be NULL. */
    bool (*prepare)(void *self, char *message);
    /* Enqueue on a stream under capture: start, the work on these buffers, stop.  Without these
     * two events, the work alone, behind all that was captured before.  False and a message if that
     * fails. */
    bool (*enqueue)(void *self, const struct kp_span *at, CUstream s, CUevent start, CUevent stop,
                    char *message);
    /* Compare the captured graph with what was meant: the work on n sets of buffers, from `at` on,
     * one after the other.  May be NULL. */
    bool (*inspect)(void *self, const struct kp_span *at, int n, CUgraph graph, char *message);
    /* After a replay: false and a message if it left state behind.  May be NULL. */
    bool (*kept)(void *self, char *message);
};

/* Serve requests until the referee asks for the next cell, with nothing left of this one; or until
 * it closes its end, and then never return. */
void runner_serve(const struct runner_setup *setup, const struct kp_span *at,
                  const struct runner_contestant *who);

#endif
