/* contestant_main.c: the process of choose that runs a kernel's choices.
 *
 * It opens one library after another, in a sandbox that lets it read no more than their folder, and
 * serves samples in the suite's own loop.  A library has all choices of a kernel: its `launch` does
 * the one whose number follows the inputs.  To the loop choice i is placement i: the same buffers
 * are mapped as often as there are choices. */
#define _GNU_SOURCE
#include "gpu/device.h"
#include "replay/runner.h"
#include "replay/sandbox.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef size_t scratch_function(void);
typedef void launch_function(void *const *in, void *const *out, void *scratch, cudaStream_t stream);

struct choices {
    const struct runner_recording *told;
    const struct kp_span *at;
    uint32_t nbuffers;
    void *library, *scratch;
    launch_function *launch;
};

static bool enqueue(void *self, const struct kp_span *at, CUstream s, CUevent start, CUevent stop,
                    char *message) {
    struct choices *c = self;
    size_t choice = (size_t)(at - c->at) / c->nbuffers;
    uint32_t n = c->told->ntensors;
    void *in[KP_MAX_BUFFERS + 1], *out[KP_MAX_BUFFERS];
    for (uint32_t k = 0; k < n; k++) in[k] = span_data(&at[k]);
    for (uint32_t k = 0; k < c->told->noutputs; k++) out[k] = span_data(&at[n + k]);
    in[n] = (void *)choice;
    if (start) KP_CU(cu.cuEventRecordWithFlags(start, s, CU_EVENT_RECORD_EXTERNAL));
    c->launch(in, out, c->scratch, (cudaStream_t)s);
    cudaError_t e = cudaGetLastError();
    if (e) snprintf(message, KP_TAPE_MESSAGE, "choice %zu: %s", choice, cudaGetErrorString(e));
    if (e) return false;
    if (stop) KP_CU(cu.cuEventRecordWithFlags(stop, s, CU_EVENT_RECORD_EXTERNAL));
    return true;
}

/* Open the library, and take as much scratch as the choice that needs most.  False and a message if
 * that fails. */
static bool open_library(struct choices *c, char *message) {
    c->library = dlopen(c->told->library, RTLD_NOW | RTLD_LOCAL);
    if (!c->library) snprintf(message, KP_TAPE_MESSAGE, "%s", dlerror());
    if (!c->library) return false;
    c->launch = (launch_function *)dlsym(c->library, "launch");
    if (!c->launch) snprintf(message, KP_TAPE_MESSAGE, "launch is not defined");
    if (!c->launch) return false;
    scratch_function *scratch = (scratch_function *)dlsym(c->library, "scratch_bytes");
    size_t bytes = scratch ? scratch() : 0;
    if (!bytes || !cudaMalloc(&c->scratch, bytes)) return true;
    snprintf(message, KP_TAPE_MESSAGE, "no memory for %zu bytes of scratch", bytes);
    return false;
}

/* Serve one library, and give back all that it took but the library: CUDA's runtime knows kernels
 * by the addresses of their host functions, and confuses them with those that lay there before. */
static void serve(const struct runner_recording *told) {
    char message[KP_TAPE_MESSAGE] = "";
    struct runner_setup setup;
    struct kp_region region;
    struct kp_span *at;
    size_t n = runner_receive(&setup, &region, &at);
    struct choices c = {.told = told, .at = at, .nbuffers = setup.nbuffers};
    if (!open_library(&c, message)) runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
    const struct runner_contestant who = {.self = &c, .enqueue = enqueue};
    runner_serve(&setup, at, &who);
    for (size_t i = 0; i < n; i++) buffer_free(&at[i]);
    region_free(&region);
    device_check(cudaFree(c.scratch), "closing a kernel's choices");
    free(at);
}

int main(int argc, char **argv) {
    (void)argv;
    kp_program("contestant");
    if (argc != 1) die(KP_USAGE, "usage: contestant (run by choose)");
    bool confined = false;
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    for (;;) {
        struct runner_recording told;
        if (!runner_told(&told, sizeof told)) return KP_MACHINE;
        told.library[sizeof told.library - 1] = 0;
        char level[1024], folder[PATH_MAX];
        memcpy(folder, told.library, sizeof folder);
        if (!confined) sandbox_enter(dirname(folder), level, sizeof level);
        confined = true;
        serve(&told);
        runner_reply(RUNNER_OK, 0, 0, NULL, NULL);
    }
}
