/* buffers.c: see buffers.h. */
#include "gpu/buffers.h"

#include <string.h>

enum {
    GUARD = 2 << 20, /* bytes: unmapped space between buffers comes in units of a large page */
    MAX_GAPS = 64,   /* a gap is 1 to 63 guards wide, by lot */
    CANARY = 256     /* bytes: at least so many lie before a buffer, less than so many behind it */
};

static CUmemAllocationProp properties(void) {
    CUmemAllocationProp p;
    memset(&p, 0, sizeof p);
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return p;
}

size_t buffer_granularity(void) {
    static size_t g;
    CUmemAllocationProp p = properties();
    if (!g) KP_CU(cu.cuMemGetAllocationGranularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return g;
}

void region_reserve(struct kp_region *r, size_t bytes, int nbuffers, uint64_t seed) {
    size_t g = buffer_granularity();
    r->size = bytes + (size_t)(nbuffers + 1) * (MAX_GAPS * (size_t)GUARD + g);
    r->size = (r->size + g - 1) / g * g;
    r->used = 0;
    r->seed = seed;
    /* An odd seed skips a stretch of the same size, so that two recordings, one with an even and
     * one with an odd seed, share no address. */
    CUdeviceptr skipped;
    if (seed & 1) KP_CU(cu.cuMemAddressReserve(&skipped, r->size, 0, 0, 0));
    KP_CU(cu.cuMemAddressReserve(&r->base, r->size, 0, 0, 0));
}

void region_free(struct kp_region *r) {
    if (r->size) KP_CU(cu.cuMemAddressFree(r->base, r->size));
    memset(r, 0, sizeof *r);
}

/* The next place for `mapped` bytes, after a random gap. */
static CUdeviceptr place(struct kp_region *r, size_t mapped) {
    size_t g = buffer_granularity();
    r->seed = r->seed * 6364136223846793005ull + 1442695040888963407ull;
    size_t gap = (size_t)GUARD * (1 + (r->seed >> 33) % (MAX_GAPS - 1));
    r->used += (gap + g - 1) / g * g;
    if (r->used + mapped + GUARD > r->size) die(KP_BUG, "address region too small");
    CUdeviceptr at = r->base + r->used;
    r->used += mapped;
    return at;
}

/* Map memory.  From then on the mapping alone keeps it, and descriptors that were exported. */
static void map(CUdeviceptr at, CUmemGenericAllocationHandle handle, size_t mapped, bool readonly) {
    CUmemAccessDesc access;
    memset(&access, 0, sizeof access);
    access.location = properties().location;
    access.flags = readonly ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    KP_CU(cu.cuMemMap(at, mapped, 0, handle, 0));
    KP_CU(cu.cuMemSetAccess(at, mapped, &access, 1));
    KP_CU(cu.cuMemRelease(handle));
}

static void shape(size_t bytes, struct kp_span *span) {
    size_t g = buffer_granularity(), padded = (bytes + CANARY - 1) / CANARY * CANARY;
    span->bytes = bytes;
    span->mapped = (padded + CANARY + g - 1) / g * g;
    span->offset = span->mapped - padded;
}

bool buffer_create(struct kp_region *r, size_t bytes, bool readonly, struct kp_span *span,
                   struct kp_shared *shared) {
    memset(span, 0, sizeof *span);
    memset(shared, 0, sizeof *shared);
    shared->fd = -1;
    if (!bytes) return true;
    CUmemAllocationProp p = properties();
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    shape(bytes, span);
    CUresult e = cu.cuMemCreate(&handle, span->mapped, &p, 0);
    if (e == CUDA_ERROR_OUT_OF_MEMORY) return memset(span, 0, sizeof *span), false;
    driver_check(e, "cuMemCreate", __func__);
    KP_CU(
        cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    span->base = place(r, span->mapped);
    map(span->base, handle, span->mapped, false);
    *shared = (struct kp_shared){fd, readonly, span->bytes, span->mapped, span->offset};
    return true;
}

void buffer_import(struct kp_region *r, const struct kp_shared *shared, struct kp_span *span) {
    memset(span, 0, sizeof *span);
    if (shared->fd < 0) return;
    CUmemGenericAllocationHandle handle;
    KP_CU(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)shared->fd,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    span->bytes = shared->bytes, span->mapped = shared->mapped, span->offset = shared->offset;
    span->base = place(r, span->mapped);
    map(span->base, handle, span->mapped, shared->readonly);
}

void buffer_private(struct kp_region *r, size_t bytes, struct kp_span *span) {
    CUmemAllocationProp p = properties();
    CUmemGenericAllocationHandle handle;
    memset(span, 0, sizeof *span);
    if (!bytes) return;
    shape(bytes, span);
    KP_CU(cu.cuMemCreate(&handle, span->mapped, &p, 0));
    span->base = place(r, span->mapped);
    map(span->base, handle, span->mapped, false);
}

void buffer_free(struct kp_span *span) {
    if (span->bytes) KP_CU(cu.cuMemUnmap(span->base, span->mapped));
    memset(span, 0, sizeof *span);
}
