/* recorder_main.c: the recorder: `recorder LIBRARY TENSORS OUTPUTS`, started by verify.
 *
 * This is the only process that runs a candidate's host code: in a sandbox, and once for each of
 * two sets of addresses.  It says what the sandbox is, captures `launch` and sends the raw tape.
 * Candidate code shares this process, so nothing that it says is trusted: the runner checks the
 * tape, and the referee judges what the tape computes. */
#define _GNU_SOURCE
#include "replay/runner.h"
#include "gpu/device.h"
#include "replay/sandbox.h"
#include "replay/tape_graph.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef size_t scratch_function(void);
typedef void launch_function(void *const *in, void *const *out, void *scratch, cudaStream_t stream);

static const uint64_t most_scratch = 64ull
                                     << 30;     /* more than any kernel of the suite has use for */
static const uint64_t scratch_margin = 1 << 20; /* address space for the scratch's padding */
static const uint64_t scratch_seed = 0x5c;      /* its addresses are not the other buffers' */

static void refuse(const char *format, const char *what) {
    char message[KP_TAPE_MESSAGE];
    snprintf(message, sizeof message, format, what);
    runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
}

/* Map memory that stands for the scratch in this recording.  No kernel runs, so none uses it. */
static void map_scratch(void *library, const struct runner_setup *setup, struct kp_span *span) {
    scratch_function *scratch = (scratch_function *)dlsym(library, "scratch_bytes");
    uint64_t bytes = scratch ? scratch() : 0;
    char text[64];
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    if (bytes > most_scratch) refuse("scratch_bytes() asks for %s bytes; the most is 64 GiB", text);
    size_t free_bytes = 0, total = 0;
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    if (bytes > free_bytes) refuse("scratch_bytes() asks for %s bytes, more than is free", text);
    struct kp_region region;
    region_reserve(&region, bytes + scratch_margin, 2, setup->layout_seed ^ scratch_seed);
    buffer_private(&region, bytes, span);
}

static CUgraph capture(launch_function *launch, struct kp_span *at, int ntensors, int noutputs,
                       CUstream stream) {
    void *in[KP_MAX_BUFFERS], *out[KP_MAX_BUFFERS];
    for (int i = 0; i < ntensors; i++) in[i] = span_data(&at[i]);
    for (int i = 0; i < noutputs; i++) out[i] = span_data(&at[ntensors + i]);
    CUgraph graph = NULL;
    const char *name = "?";
    KP_CU(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(in, out, span_data(&at[ntensors + noutputs]), (cudaStream_t)stream);
    CUresult e = cu.cuStreamEndCapture(stream, &graph);
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

int main(int argc, char **argv) {
    kp_program("recorder");
    if (argc != 4) die(KP_USAGE, "usage: recorder LIBRARY TENSORS OUTPUTS (run by verify)");
    int ntensors = atoi(argv[2]), noutputs = atoi(argv[3]);
    char level[1024], message[KP_TAPE_MESSAGE] = "";
    driver_open();
    struct runner_setup setup;
    struct kp_span *at;
    CUstream stream;
    runner_receive(&setup, &at);
    if ((int)setup.nbuffers != ntensors + noutputs + 1) die(KP_BUG, "%u buffers", setup.nbuffers);
    device_check(cudaFree(0), "starting the CUDA runtime");
    KP_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    sandbox_enter(argv[1], level, sizeof level);
    runner_reply(RUNNER_OK, 0, 0, level, NULL); /* while no code of the candidate's has run */
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) refuse("the library cannot be opened: %s", dlerror());
    launch_function *launch = (launch_function *)dlsym(library, "launch");
    if (!launch) refuse("%s is not defined: it needs extern \"C\"", "launch");
    map_scratch(library, &setup, &at[ntensors + noutputs]);
    CUgraph graph = capture(launch, at, ntensors, noutputs, stream);
    struct tape *t = tape_from_graph(graph, NULL, 0, message);
    if (!t) refuse("%s", message);
    if (!t->nnodes) refuse("launch enqueued %s on the given stream", "nothing");
    runner_reply(RUNNER_OK, 0, 0, NULL, report(at, setup.nbuffers, t));
    return 0;
}
