/* fake.h: a pretend GPU, on which the harness is tested without one.
 *
 * libcuda.so.1 and libcudart.so are replaced by libraries of the same names with what the
 * harness and the test kernels call.  Device memory is memory of the host, mapped as the
 * driver would map it: shared by file descriptor, read-only where that was asked for, with
 * nothing between allocations.  A kernel is a C function that does the whole grid's work.
 * Everything runs at once when it is enqueued, except under capture; a kernel that faults
 * leaves the sticky error 700 behind, as a GPU does.  The clock is pretended, too: a kernel
 * takes 500 us, unless it says otherwise, and the host sees its end 2 us late.
 *
 * A test turns knobs: words NAME=VALUE in CUDA_VISIBLE_DEVICES, the only variable of free
 * content that the harness hands on to its runners.
 *     candidate=US fp32=US tf32=US   what a kernel of this contestant takes
 *     noise=SHARE                    the candidate's times vary by as much to both sides
 *     mood=SHARE                     so do they from one process to the next
 *     sway=SHARE                     the tf32 baseline's times are longer or shorter by as much
 *     event=US                       what an event takes (else 1)
 *     host=US                        how long the host waits for a replay
 *     skew=FACTOR                    the references' outputs are off by this factor
 *     some=N                         elements that the oracle takes where not all are asked for
 *     tampered=N node=K              node K of capture N is read back with another grid
 *     log=PATH                       who did what is appended to this file, a line each
 *
 * The driver's opaque types are defined here, so that handles are plain pointers. */
#ifndef KP_FAKE_H
#define KP_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_PARAMS = 16, FAKE_ATTRIBUTES = 32 };

struct CUfunc_st { /* a kernel; the runtime's `const void *func` points to one, too */
    const char *name;
    void (*run)(void **args);
    size_t param[FAKE_PARAMS]; /* sizes; 0 ends the list */
    int attribute[FAKE_ATTRIBUTES];
    double us; /* what a run takes; the kernel itself may set it; 0: as usual */
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

/* The value of a knob, or NULL, until the next call; the same as a number. */
const char *fake_word(const char *name);
double fake_number(const char *name, double otherwise);

/* Append a line to the log, if there is one: the program's name and this. */
void fake_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Where parameter `index` lies in the parameter block; false if there are fewer. */
bool fake_param(const struct CUfunc_st *f, size_t index, size_t *at, size_t *size);

/* How a tensor map holds an address, and the address again. */
static inline uint64_t fake_hidden(uint64_t address) {
    return ~(address << 13 | address >> 51);
}
static inline uint64_t fake_found(uint64_t hidden) {
    return ~hidden << 51 | ~hidden >> 13;
}

/* The pretend clock, and what the last replay took by it. */
extern double fake_clock_us, fake_replay_us;

/* The error that everything now fails with: 0, or 700 once a kernel has faulted. */
extern CUresult fake_sticky;

/* What may not be done while a stream is captured globally: invalidates the capture. */
CUresult fake_unsafe(void);

/* Enqueue a host function, or a copy to or from memory of the host. */
CUresult fake_host_function(CUstream s, void (*run)(void *), void *context);
CUresult fake_copy(CUstream s, void *to, const void *from, size_t bytes, bool host);

#endif
