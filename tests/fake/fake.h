/* fake.h: a pretend GPU, on which the harness is tested without one.
 *
 * libcuda.so.1 and libcudart.so are replaced by libraries of the same names with what the
 * harness and the test kernels call.  Device memory is memory of the host, mapped as the
 * driver would map it: shared by file descriptor, read-only where that was asked for, with
 * nothing between allocations.  A kernel is a C function that does the whole grid's work.
 * Everything runs at once when it is enqueued, except under capture; a kernel that faults
 * leaves the sticky error 700 behind, as a GPU does.  The clock is pretended, too: a kernel
 * takes 500 us, whatever it does.
 *
 * The driver's opaque types are defined here, so that handles are plain pointers. */
#ifndef KP_FAKE_H
#define KP_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAKE_PARAMS = 16, FAKE_ATTRIBUTES = 32 };

struct CUfunc_st { /* a kernel; the runtime's `const void *func` points to one, too */
    const char *name;
    void (*run)(void **args);
    size_t param[FAKE_PARAMS]; /* sizes; 0 ends the list */
    int attribute[FAKE_ATTRIBUTES];
};

/* KERNEL(relu, 8, 8, 8) { ... }: a kernel by its name and the sizes of its parameters. */
#define KERNEL(NAME, ...)                                                          \
    static void NAME##_run(void **args);                                           \
    struct CUfunc_st NAME = {                                                      \
        .name = #NAME,                                                             \
        .run = NAME##_run,                                                         \
        .param = {__VA_ARGS__},                                                    \
        .attribute = {[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1}}; \
    static void NAME##_run(void **args)

/* Parameter k of the kernel that is running. */
#define PARAM(k, type) (*(type *)args[k])

/* A module variable, where harness/base/elf.c looks for those of a cubin. */
#define MODULE_VARIABLE __attribute__((section(".nv.global.init")))

/* Where parameter `index` lies in the parameter block; false if there are fewer. */
bool fake_param(const struct CUfunc_st *f, size_t index, size_t *at, size_t *size);

/* The error that everything now fails with: 0, or 700 once a kernel has faulted. */
extern CUresult fake_sticky;

/* What may not be done while a stream is captured globally: invalidates the capture. */
CUresult fake_unsafe(void);

/* Enqueue a host function, or a copy to or from memory of the host. */
CUresult fake_host_function(CUstream s, void (*run)(void *), void *context);
CUresult fake_copy(CUstream s, void *to, const void *from, size_t bytes, bool host);

#endif
