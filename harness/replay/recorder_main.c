/* recorder_main.c: the recorder, started by verify.
 *
 * This is the only process that runs a candidate's host code: in a sandbox, and once for each of
 * two sets of addresses, at which the same buffers are mapped.  It says what the sandbox is,
 * captures `launch` and sends the raw tape, and does so again when it is asked.  A CUDA call that
 * fails meanwhile is a reason to refuse: the tape would go on without it.
 * Candidate code shares this process, so nothing that it says is trusted: the runner checks the
 * tape, and the referee judges what the tape computes. */
#define _GNU_SOURCE
#include "replay/runner.h"
#include "gpu/device.h"
#include "replay/sandbox.h"
#include "replay/tape_graph.h"
#include "replay/tensor_map.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What fails ---------------------------------------------------------------- */

/* The runtime's calls by which a kernel's host code makes a tape.  A library that is opened binds
 * to them here, before the runtime's own.  Each is passed on, and the first that fails is
 * remembered: reading the error away with cudaGetLastError() does not hide it. */
static char failure[KP_TAPE_MESSAGE];

/* Remember what failed, unless something did before. */
__attribute__((format(printf, 1, 2))) static void remember(const char *format, ...) {
    va_list words;
    if (*failure) return;
    va_start(words, format);
    vsnprintf(failure, sizeof failure, format, words);
    va_end(words);
}

/* Remember that a call failed, unless it did because of one before it; returns its error. */
static cudaError_t noted(const char *call, cudaError_t e) {
    if (e && e != cudaErrorStreamCaptureInvalidated)
        remember("%s failed in launch: %s", call + strspn(call, "_"), cudaGetErrorString(e));
    return e;
}

/* The same for a launch, with its shape. */
static cudaError_t noted_launch(const char *call, dim3 grid, dim3 block, size_t shared,
                                cudaError_t e) {
    bool first = !*failure;
    noted(call, e);
    size_t n = strlen(failure);
    if (first && n)
        snprintf(failure + n, sizeof failure - n,
                 " (grid %u %u %u, block %u %u %u, %zu bytes of dynamic shared memory)", grid.x,
                 grid.y, grid.z, block.x, block.y, block.z, shared);
    return e;
}

#define CALL(name, parameters, note)                                                  \
    cudaError_t name parameters;                                                      \
    cudaError_t name parameters {                                                     \
        static cudaError_t(*real) parameters;                                         \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name); /* the runtime's own */ \
        return note;                                                                  \
    }
/* clang-format off */
CALL(cudaFuncSetAttribute, (const void *f, enum cudaFuncAttribute a, int x), noted(__func__, real(f, a, x)))
CALL(cudaMemsetAsync, (void *to, int x, size_t n, cudaStream_t s), noted(__func__, real(to, x, n, s)))
CALL(cudaMemset2DAsync, (void *to, size_t pitch, int x, size_t n, size_t rows, cudaStream_t s),
     noted(__func__, real(to, pitch, x, n, rows, s)))
CALL(cudaMemcpyAsync, (void *to, const void *from, size_t n, enum cudaMemcpyKind k, cudaStream_t s),
     noted(__func__, real(to, from, n, k, s)))
CALL(cudaStreamCreate, (cudaStream_t *s), noted(__func__, real(s)))
CALL(cudaStreamCreateWithFlags, (cudaStream_t *s, unsigned flags), noted(__func__, real(s, flags)))
CALL(cudaStreamCreateWithPriority, (cudaStream_t *s, unsigned flags, int priority), noted(__func__, real(s, flags, priority)))
CALL(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags), noted(__func__, real(s, e, flags)))
CALL(cudaEventCreate, (cudaEvent_t *e), noted(__func__, real(e)))
CALL(cudaEventCreateWithFlags, (cudaEvent_t *e, unsigned flags), noted(__func__, real(e, flags)))
CALL(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), noted(__func__, real(e, s)))
CALL(cudaLaunchKernelExC, (const cudaLaunchConfig_t *c, const void *f, void **args),
     noted_launch(__func__, c->gridDim, c->blockDim, c->dynamicSmemBytes, real(c, f, args)))
#define LAUNCH(name) \
    CALL(name, (const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s), \
         noted_launch(__func__, grid, block, shared, real(f, grid, block, args, shared, s)))
LAUNCH(cudaLaunchKernel) /* <<<>>>, CUDA 12 */
LAUNCH(__cudaLaunchKernel) /* <<<>>>, CUDA 13; f is a cudaKernel_t */
LAUNCH(cudaLaunchCooperativeKernel)
/* clang-format on */

/* ---- Tensor maps ---------------------------------------------------------------- */

/* The driver's function, as host code finds it here: what it makes is the form of a map. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *dimension,
                                const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *element_stride, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
    CUresult e = tensor_map_note(to, type, rank, address, dimension, stride, box, element_stride,
                                 interleave, swizzle, promotion, fill);
    if (e) remember("%s failed in launch: %s", __func__, driver_error(e));
    return e;
}

/* The one function of the driver that is offered. */
static cudaError_t entry_point(const char *symbol, void **f,
                               enum cudaDriverEntryPointQueryResult *status) {
    bool offered = !strcmp(symbol, "cuTensorMapEncodeTiled");
    *(__typeof__(cuTensorMapEncodeTiled) **)f = offered ? cuTensorMapEncodeTiled : NULL;
    if (status)
        *status = offered ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (!offered)
        remember("launch asks for %.100s of the driver: only cuTensorMapEncodeTiled is offered",
                 symbol);
    return offered ? cudaSuccess : cudaErrorSymbolNotFound;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **f, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
    (void)flags;
    return entry_point(symbol, f, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **f, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status) {
    (void)version, (void)flags;
    return entry_point(symbol, f, status);
}

/* ---- Recording ----------------------------------------------------------------- */

typedef size_t scratch_function(void);
typedef void launch_function(void *const *in, void *const *out, void *scratch, cudaStream_t stream);

static const uint64_t scratch_margin = 1 << 20; /* address space for the scratch's padding */
static const uint64_t scratch_seed = 0x5c;      /* its addresses are not the other buffers' */

static void refuse(const char *format, const char *what) {
    char message[KP_TAPE_MESSAGE];
    snprintf(message, sizeof message, format, what);
    runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
}

/* What is recorded, and where its buffers lie in each recording. */
struct recording {
    launch_function *launch;
    scratch_function *scratch;
    int ntensors, noutputs;
    CUstream stream;
    struct runner_setup setup[KP_RECORDINGS];
    struct kp_span *at[KP_RECORDINGS];
};

/* Map memory that stands for the scratch in this recording.  No kernel runs, so none uses it. */
static void map_scratch(const struct recording *r, int number, struct kp_span *span) {
    uint64_t bytes = r->scratch ? r->scratch() : 0;
    char text[64];
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    if (bytes > KP_MOST_SCRATCH)
        refuse("scratch_bytes() asks for %s bytes; the most is 64 GiB", text);
    size_t free_bytes = 0, total = 0;
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    if (bytes > free_bytes) refuse("scratch_bytes() asks for %s bytes, more than is free", text);
    struct kp_region region;
    region_reserve(&region, bytes + scratch_margin, 2, r->setup[number].layout_seed ^ scratch_seed);
    buffer_private(&region, bytes, span);
}

static CUgraph capture(const struct recording *r, const struct kp_span *at) {
    void *in[KP_MAX_BUFFERS], *out[KP_MAX_BUFFERS];
    for (int i = 0; i < r->ntensors; i++) in[i] = span_data(&at[i]);
    for (int i = 0; i < r->noutputs; i++) out[i] = span_data(&at[r->ntensors + i]);
    CUgraph graph = NULL;
    const char *name = "?";
    KP_CU(cu.cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    r->launch(in, out, span_data(&at[r->ntensors + r->noutputs]), (cudaStream_t)r->stream);
    CUresult e = cu.cuStreamEndCapture(r->stream, &graph);
    if (*failure) refuse("%s", failure);
    if (e) cu.cuGetErrorName(e, &name);
    if (e)
        refuse("launch did something that cannot be captured (%s): it may only enqueue kernels, "
               "memsets and device copies on the given stream or on streams forked from and joined "
               "to it",
               name);
    e = cu.cuCtxSynchronize();
    if (e) cu.cuGetErrorName(e, &name);
    if (e) refuse("work ran outside the given stream and failed (%s)", name);
    return graph;
}

/* The reply's text: a line with address and size of every buffer here, then the tape. */
static char *report(const struct kp_span *at, uint32_t nbuffers, const struct tape *t) {
    char *text = NULL, *body = tape_print(t);
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) die(KP_MACHINE, "out of memory");
    for (uint32_t i = 0; i < nbuffers; i++)
        fprintf(f, "%llu %llu ", (unsigned long long)(at[i].base + at[i].offset),
                (unsigned long long)at[i].bytes);
    fprintf(f, "\n%s", body);
    fclose(f);
    free(body);
    return text;
}

/* Record once, and send the tape.  The scratch's memory is given back, its addresses are not: the
 * other recording's are others. */
static void record(const struct recording *r, int number) {
    char message[KP_TAPE_MESSAGE] = "";
    struct kp_span *at = r->at[number], *scratch = &at[r->ntensors + r->noutputs];
    map_scratch(r, number, scratch);
    CUgraph graph = capture(r, at);
    struct tape *t = tape_from_graph(graph, NULL, 0, message);
    if (!t) refuse("%s", message);
    if (!t->nnodes) refuse("launch enqueued %s on the given stream", "nothing");
    char *text = report(at, r->setup[number].nbuffers, t);
    KP_CU(cu.cuGraphDestroy(graph));
    buffer_free(scratch);
    tape_free(t);
    runner_reply(RUNNER_OK, 0, 0, NULL, text);
    free(text);
}

/* Open the library, once the sandbox is there. */
static void open_library(struct recording *r, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) refuse("the library cannot be opened: %s", dlerror());
    r->launch = (launch_function *)dlsym(library, "launch");
    r->scratch = (scratch_function *)dlsym(library, "scratch_bytes");
    if (!r->launch) refuse("%s is not defined: it needs extern \"C\"", "launch");
}

int main(int argc, char **argv) {
    kp_program("recorder");
    (void)argv;
    if (argc != 1) die(KP_USAGE, "usage: recorder (run by verify)");
    char level[1024];
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1); /* no kernel runs: fewer queues open sooner */
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    struct runner_recording what; /* it may be told much later: verify starts recorders ahead */
    if (!runner_told(&what, sizeof what)) return KP_MACHINE;
    what.library[sizeof what.library - 1] = 0;
    struct recording r = {.ntensors = (int)what.ntensors, .noutputs = (int)what.noutputs};
    struct kp_region region[KP_RECORDINGS];
    for (int i = 0; i < KP_RECORDINGS; i++) {
        runner_receive(&r.setup[i], &region[i], &r.at[i]);
        if ((int)r.setup[i].nbuffers != r.ntensors + r.noutputs + 1)
            die(KP_BUG, "%u buffers", r.setup[i].nbuffers);
    }
    KP_CU(cu.cuStreamCreate(&r.stream, CU_STREAM_NON_BLOCKING));
    sandbox_enter(what.library, level, sizeof level);
    runner_reply(RUNNER_OK, 0, 0, level, NULL); /* while no code of the candidate's has run */
    open_library(&r, what.library);
    for (int i = 0; i < KP_RECORDINGS; i++) {
        struct runner_request next;
        runner_take(&next, sizeof next);
        record(&r, i);
    }
    return 0;
}
