/* cuda.c: the pretend driver's devices, memory and modules; see fake.h.  Streams and graphs
 * are in graph.c. */
#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Allocations and guards of the harness are multiples of it; small, so that tests are fast. */
enum { GRANULARITY = 64 << 10 };

struct CUctx_st {
    int unused;
};

struct allocation {
    int fd; /* -1: memory of this process alone */
    size_t bytes;
    bool own; /* made by this process */
};

static size_t used;

enum { MOST_MAPPED = 4096 };
static CUdeviceptr mapped[MOST_MAPPED]; /* what counts as used, as long as it is mapped */

/* ---- Device --------------------------------------------------------------------- */

static void *idle(void *unused) {
    for (;;) pause();
    return unused;
}

/* The driver has threads of its own, which are there before any sandbox is. */
CUresult cuInit(unsigned flags) {
    pthread_t thread;
    fake_log("open");
    if (pthread_create(&thread, NULL, idle, NULL)) return CUDA_ERROR_UNKNOWN;
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult e, const char **name) {
    *name = e == CUDA_SUCCESS                            ? "CUDA_SUCCESS"
            : e == CUDA_ERROR_INVALID_VALUE              ? "CUDA_ERROR_INVALID_VALUE"
            : e == CUDA_ERROR_OUT_OF_MEMORY              ? "CUDA_ERROR_OUT_OF_MEMORY"
            : e == CUDA_ERROR_INVALID_IMAGE              ? "CUDA_ERROR_INVALID_IMAGE"
            : e == CUDA_ERROR_NOT_FOUND                  ? "CUDA_ERROR_NOT_FOUND"
            : e == CUDA_ERROR_ILLEGAL_ADDRESS            ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : e == CUDA_ERROR_STREAM_CAPTURE_UNJOINED    ? "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
            : e == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                                                         : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult e, const char **words) {
    return cuGetErrorName(e, words);
}

CUresult cuDriverGetVersion(int *version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = 0;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    (void)device;
    return snprintf(name, (size_t)size, "NVIDIA H200 (pretend)") < size ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetAttribute(int *x, CUdevice_attribute a, CUdevice device) {
    (void)device;
    *x = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR                      ? 9
         : a == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ? 1
                                                                                : 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    static struct CUctx_st only;
    (void)device;
    *context = &only;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    (void)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
    CUresult e = fake_unsafe();
    fake_clock_us += fake_number("host", fake_replay_us + 2);
    return e ? e : fake_sticky;
}

CUresult cuCtxResetPersistingL2Cache(void) {
    return fake_sticky;
}

/* ---- Memory --------------------------------------------------------------------- */

/* KP_FAKE_MEMORY is how many bytes the GPU has. */
CUresult cuMemGetInfo(size_t *available, size_t *total) {
    const char *text = getenv("KP_FAKE_MEMORY");
    *total = text ? strtoull(text, NULL, 10) : (size_t)8 << 30;
    *available = *total > used ? *total - used : 0;
    return fake_sticky;
}

/* An address that is asked for is a hint to mmap, and to the driver, too. */
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
    (void)alignment, (void)flags;
    void *p = mmap((void *)(uintptr_t)hint, bytes + GRANULARITY, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *at = ((CUdeviceptr)(uintptr_t)p + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    return p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
    return munmap((void *)(uintptr_t)at, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *p,
                                       CUmemAllocationGranularity_flags option) {
    (void)p, (void)option;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

/* A file in memory.  Where files may not grow (the recorder's limits, which a GPU's memory
 * does not feel) it cannot be shared. */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *p, unsigned long long flags) {
    (void)p, (void)flags;
    size_t available, total;
    struct rlimit limit;
    struct allocation *a = calloc(1, sizeof *a);
    cuMemGetInfo(&available, &total);
    if (!a || bytes > available) return free(a), CUDA_ERROR_OUT_OF_MEMORY;
    a->bytes = bytes, a->own = true;
    bool file = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
    a->fd = file ? memfd_create("device memory", MFD_CLOEXEC) : -1;
    if (file && (a->fd < 0 || ftruncate(a->fd, (off_t)bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)a;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    struct allocation *a = (struct allocation *)(uintptr_t)handle;
    if (a->fd >= 0) close(a->fd);
    free(a);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *to, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    struct allocation *a = (struct allocation *)(uintptr_t)handle;
    (void)type, (void)flags;
    *(int *)to = a->fd < 0 ? -1 : fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
    return *(int *)to < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        CUmemAllocationHandleType type) {
    struct stat s;
    struct allocation *a = calloc(1, sizeof *a);
    (void)type;
    if (!a || fstat((int)(intptr_t)from, &s)) return CUDA_ERROR_INVALID_VALUE;
    *a = (struct allocation){dup((int)(intptr_t)from), (size_t)s.st_size, false};
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)a;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    struct allocation *a = (struct allocation *)(uintptr_t)handle;
    (void)flags;
    if (offset + bytes > a->bytes) return CUDA_ERROR_INVALID_VALUE;
    int i = 0;
    while (i < MOST_MAPPED - 1 && mapped[i]) i++;
    if (a->own) mapped[i] = at, used += bytes;
    void *p = mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
                   MAP_FIXED | MAP_SHARED | (a->fd < 0 ? MAP_ANONYMOUS : 0), a->fd, (off_t)offset);
    return p == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
    for (int i = 0; i < MOST_MAPPED; i++)
        if (mapped[i] == at) mapped[i] = 0, used -= bytes;
    void *p = mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count) {
    bool write = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    (void)count;
    return mprotect((void *)(uintptr_t)at, bytes, PROT_READ | (write ? PROT_WRITE : 0))
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
    if (!fake_sticky) memcpy(to, (void *)(uintptr_t)from, bytes);
    return fake_sticky;
}

/* ---- Modules -------------------------------------------------------------------- */

/* A pretend cubin is a shared object, whose section headers come last. */
static size_t image_bytes(const void *image) {
    const ElfW(Ehdr) *h = image;
    bool good = !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_type == ET_DYN;
    return good ? h->e_shoff + (size_t)h->e_shnum * h->e_shentsize : 0;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    char path[64];
    size_t bytes = image_bytes(image);
    int fd = bytes ? memfd_create("cubin", MFD_CLOEXEC) : -1;
    if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes) return CUDA_ERROR_INVALID_IMAGE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(fd);
    return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleUnload(CUmodule module) {
    return dlclose(module) ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name) {
    *f = dlsym(module, name);
    return *f ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *p = dlsym(module, name);
    if (!p || !dladdr1(p, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return CUDA_ERROR_NOT_FOUND;
    *at = (CUdeviceptr)(uintptr_t)p, *bytes = symbol->st_size;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f) {
    *name = f->name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *f, CUkernel kernel) {
    *f = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

bool fake_param(const struct CUfunc_st *f, size_t index, size_t *at, size_t *size) {
    size_t offset = 0;
    for (size_t i = 0; i < FAKE_PARAMS && f->param[i]; i++) {
        size_t alignment = f->param[i] % 8 == 0 ? 8 : f->param[i] % 4 == 0 ? 4 : 1;
        offset = (offset + alignment - 1) / alignment * alignment;
        if (i == index) return *at = offset, *size = f->param[i], true;
        offset += f->param[i];
    }
    return false;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *at, size_t *size) {
    return fake_param(f, index, at, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncGetAttribute(int *x, CUfunction_attribute a, CUfunction f) {
    if ((int)a >= FAKE_ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
    *x = f->attribute[a];
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int x) {
    if ((int)a >= FAKE_ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
    f->attribute[a] = x;
    return CUDA_SUCCESS;
}

/* ---- Tensor maps ---------------------------------------------------------------- */

/* The address is not to be found in a map: only the driver knows how it is held. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *dimension,
                                const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *element_stride, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
    if (rank < 1 || rank > 5 || (uintptr_t)address % 16) return CUDA_ERROR_INVALID_VALUE;
    *to = (CUtensorMap){{fake_hidden((uint64_t)(uintptr_t)address), rank, type, interleave,
                         (cuuint64_t)swizzle << 32 | promotion, fill}};
    for (cuuint32_t i = 0; i < rank; i++) {
        if (!dimension[i] || !box[i] || box[i] > 256 || !element_stride[i])
            return CUDA_ERROR_INVALID_VALUE;
        to->opaque[6 + i] = (dimension[i] << 16 | box[i]) * element_stride[i];
        if (i + 1 < rank) to->opaque[11 + i] = stride[i];
    }
    return CUDA_SUCCESS;
}
