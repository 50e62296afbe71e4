/* buffers.h: device memory that several processes map.  The referee makes and exports it, the
 * others import it.
 *
 * A buffer lies at the end of its mapping: less than 256 bytes of canary follow it, then unmapped
 * space, so a kernel that goes too far faults or changes a canary.  All that precedes the buffer in
 * its mapping is canary, too. */
#ifndef KP_BUFFERS_H
#define KP_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "gpu/driver.h"
#include "base/error.h"

struct kp_span {      /* a buffer as this process maps it */
    CUdeviceptr base; /* start of the mapping */
    size_t mapped;    /* bytes mapped */
    size_t offset;    /* of the buffer in it */
    size_t bytes;     /* of the buffer; 0: absent, nothing mapped */
};

/* First byte of the buffer, as a pointer for CUDA calls. */
static inline void *span_data(const struct kp_span *s) {
    return (void *)(uintptr_t)(s->base + s->offset);
}

struct kp_shared { /* what another process needs to map it; part of the setup message */
    int32_t fd;    /* -1 for an absent buffer */
    uint32_t readonly;
    uint64_t bytes, mapped, offset;
};

/* A stretch of address space.  Random unmapped gaps separate the buffers in it, so that no
 * buffer's address tells another's. */
struct kp_region {
    CUdeviceptr base;
    size_t size, used;
    uint64_t seed;
};

/* Reserve space for `nbuffers` buffers whose mappings add up to `bytes`.  Two processes that did
 * the same before get regions that do not overlap, one with an even seed and one with an odd. */
void region_reserve(struct kp_region *r, size_t bytes, int nbuffers, uint64_t seed);

/* Give the addresses back, once no buffer is mapped there. */
void region_free(struct kp_region *r);

/* Every physical allocation is a multiple of this many bytes. */
size_t buffer_granularity(void);

/* Referee: allocate, map read-write, export.  Returns false if memory is short. */
bool buffer_create(struct kp_region *r, size_t bytes, bool readonly_for_others,
                   struct kp_span *span, struct kp_shared *shared);

/* Runner or recorder: map what the referee exported. */
void buffer_import(struct kp_region *r, const struct kp_shared *shared, struct kp_span *span);

/* Recorder: allocate and map memory of its own (scratch). */
void buffer_private(struct kp_region *r, size_t bytes, struct kp_span *span);

/* Unmap a buffer that no work uses; *span becomes an absent one. */
void buffer_free(struct kp_span *span);

#endif
