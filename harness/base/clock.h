/* clock.h: time that only goes forward, for deadlines and durations. */
#ifndef KP_CLOCK_H
#define KP_CLOCK_H

#include <time.h>

static inline double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
