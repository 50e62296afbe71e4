/* talk.c: a contestant's process reads what the referee sends and answers: see runner.h. */
#define _GNU_SOURCE
#include "replay/runner.h"
#include "base/descriptors.h"
#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void runner_take(void *to, size_t n) {
    for (char *p = to; n;) {
        ssize_t k = read(0, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) _exit(0);
        p += k, n -= (size_t)k;
    }
}

void runner_say_to(int fd) {
    dup2(fd, 1);
    dup2(fd, 2);
}

bool runner_told(void *what, size_t n) {
    int said;
    runner_take(what, n);
    if (!descriptors_take(0, &said, 1)) return false;
    runner_say_to(said);
    close(said);
    return true;
}

static void give(const void *from, size_t n) {
    for (const char *p = from; n;) {
        ssize_t k = write(RUNNER_REPLY_FD, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) _exit(0);
        p += k, n -= (size_t)k;
    }
}

void runner_reply(enum runner_status status, double event_us, double host_us, const char *message,
                  const char *text) {
    struct runner_reply r;
    memset(&r, 0, sizeof r);
    r.status = (int32_t)status;
    r.event_us = event_us, r.host_us = host_us;
    snprintf(r.message, sizeof r.message, "%s", message ? message : "");
    r.length = text ? (uint32_t)strlen(text) : 0;
    give(&r, sizeof r);
    if (text) give(text, r.length);
    if (status != RUNNER_OK) _exit(0);
}

/* Take the descriptors of the memory, as many at once as go. */
static void take_descriptors(struct kp_shared *shared, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t want[KP_MOST_DESCRIPTORS];
        int fd[KP_MOST_DESCRIPTORS], count = 0;
        for (; i < n && count < KP_MOST_DESCRIPTORS; i++)
            if (shared[i].fd >= 0) want[count++] = i;
        if (!count) return;
        if (!descriptors_take(0, fd, count)) die(KP_MACHINE, "no descriptors of the memory came");
        for (int j = 0; j < count; j++) shared[want[j]].fd = fd[j];
    }
}

size_t runner_receive(struct runner_setup *setup, struct kp_region *region, struct kp_span **at) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* an endless kernel must not outlive the referee */
    runner_take(setup, sizeof *setup);
    if (setup->magic != RUNNER_MAGIC || setup->nbuffers > KP_MAX_BUFFERS ||
        setup->nplacements > RUNNER_MAX_PLACEMENTS)
        die(KP_USAGE, "no setup on descriptor 0: verify and time start this program");
    size_t n = (size_t)setup->nbuffers * setup->nplacements + (setup->flush_bytes > 0), bytes = 0;
    struct kp_shared *shared = calloc(n, sizeof *shared);
    *at = calloc(n, sizeof **at);
    if (!shared || !*at) die(KP_MACHINE, "out of memory");
    runner_take(shared, n * sizeof *shared);
    take_descriptors(shared, n);
    for (size_t i = 0; i < n; i++) bytes += shared[i].mapped;
    region_reserve(region, bytes, (int)n, setup->layout_seed);
    for (size_t i = 0; i < n; i++) {
        buffer_import(region, &shared[i], &(*at)[i]);
        if (shared[i].fd >= 0) close(shared[i].fd);
    }
    free(shared);
    return n;
}
