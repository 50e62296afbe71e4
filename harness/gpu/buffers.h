/* buffers.h: device memory that several processes map: made and exported by the
 * referee, imported by the others.
 *
 * A buffer lies flush with the end of its mapping, with less than 256 bytes of
 * canary behind it and then unmapped space: an element too far either faults or
 * lands in a canary.  What lies before it in the mapping is canary too. */
#ifndef KP_BUFFERS_H
#define KP_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "gpu/driver.h"
#include "base/error.h"

struct kp_span {      /* a buffer as mapped here */
    CUdeviceptr base; /* start of the mapping */
    size_t mapped;    /* bytes mapped */
    size_t offset;    /* of the buffer in it */
    size_t bytes;     /* of the buffer; 0: absent, nothing mapped */
};

/* First byte of the buffer, as a pointer for CUDA calls. */
static inline void *span_data(const struct kp_span *s) {
    return (void *)(uintptr_t)(s->base + s->offset);
}

struct kp_shared { /* how another process gets at it; travels in the setup message */
    int32_t fd;    /* -1 for an absent buffer */
    uint32_t readonly;
    uint64_t bytes, mapped, offset;
};

/* A stretch of address space in which buffers get places with random unmapped gaps
 * between them, so that no buffer's address tells another's. */
struct kp_region {
    CUdeviceptr base;
    size_t size, used;
    uint64_t seed;
};

/* Reserve space for `nbuffers` whose mappings add up to `bytes`.  Regions of an even and
 * of an odd seed, in two processes that did the same before, do not overlap. */
void region_reserve(struct kp_region *r, size_t bytes, int nbuffers, uint64_t seed);

/* Round up to what one physical allocation must be. */
size_t buffer_granularity(void);

/* Referee: allocate, map read-write, export.  Returns false if memory is short. */
bool buffer_create(struct kp_region *r, size_t bytes, bool readonly_for_others,
                   struct kp_span *span, struct kp_shared *shared);

/* Arm or recorder: map what the referee exported. */
void buffer_import(struct kp_region *r, const struct kp_shared *shared, struct kp_span *span);

/* Recorder: memory of its own at a place of its own (scratch). */
void buffer_private(struct kp_region *r, size_t bytes, struct kp_span *span);

#endif
