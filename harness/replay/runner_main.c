/* runner_main.c: the candidate's runner, started by verify and time, for one cell, or for the
 * shapes of one kernel, one after another.
 *
 * It loads the kernel's cubin and replays its tape.  It loads the cubin once for each placement of
 * the buffers, because the code's address affects short kernels.  No host code of the candidate
 * runs here, and nothing is mapped but inputs (read-only), outputs and scratch. */
#include "replay/runner.h"
#include "base/elf.h"
#include "base/json.h"
#include "gpu/device.h"
#include "replay/tape_graph.h"
#include "replay/tensor_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A module variable has a slot of so many bytes to itself.  The rest of the slot could hide state,
 * so it is watched, too. */
enum { VARIABLE_SLOT = 256 };

struct variable { /* a module variable and the image that every replay must leave */
    char *name;
    CUdeviceptr at;
    size_t bytes;
    void *image, *now;
};

struct candidate {
    struct tape *tape;
    char *cubin;
    long cubin_size;
    const char *cubin_path;
    const struct kp_span *at;               /* the buffers of all placements */
    CUmodule module[RUNNER_MAX_PLACEMENTS]; /* of each */
    int nmodules;
    uint32_t nbuffers;
    CUgraphNode events[2]; /* of the graph that was captured last, if it has any */
    int nevents;
    size_t nvariables;
    struct variable *variables;
    size_t local_bytes; /* of a thread, the most of all kernels that are launched */
};

/* The tape with its buffers at these addresses; NULL and a message if that cannot be. */
static struct tape *placed(struct candidate *c, const struct kp_span *at, char *message) {
    struct tape_span spans[KP_MAX_BUFFERS];
    for (uint32_t i = 0; i < c->nbuffers; i++)
        spans[i] = (struct tape_span){at[i].base + at[i].offset, at[i].bytes};
    struct tape *t = tape_place(c->tape, spans, (int)c->nbuffers, message);
    if (!t || tensor_maps_make(t, message)) return t;
    tape_free(t);
    return NULL;
}

/* Watch every module variable of the cubin that was just loaded: remember its initial image. */
static void find_variables(struct candidate *c, CUmodule module) {
    char why[512];
    struct elf *e = elf_parse(c->cubin, (size_t)c->cubin_size, c->cubin_path, why, sizeof why);
    if (!e) die(KP_INPUT, "%s", why);
    struct elf_variable *list;
    size_t n = elf_variables(e, &list);
    c->variables = realloc(c->variables, (c->nvariables + n + 1) * sizeof *c->variables);
    if (!c->variables) die(KP_MACHINE, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (!list[i].size) continue;
        struct variable *v = &c->variables[c->nvariables];
        if (cu.cuModuleGetGlobal(&v->at, &v->bytes, module, list[i].name)) {
            if (list[i].constant) continue; /* some of the compiler's own have no address */
            snprintf(why, sizeof why, "the module variable %.200s cannot be watched", list[i].name);
            runner_reply(RUNNER_TAPE, 0, 0, why, NULL);
        }
        /* Constants lie side by side, without slots.  (A kernel can write them by their address.)
         */
        size_t slots = (v->bytes + VARIABLE_SLOT - 1) / VARIABLE_SLOT;
        size_t slot = list[i].constant ? v->bytes : slots * VARIABLE_SLOT;
        v->name = strdup(list[i].name);
        v->image = malloc(slot);
        v->now = malloc(slot);
        if (!v->name || !v->image || !v->now) die(KP_MACHINE, "out of memory");
        if (cu.cuMemcpyDtoH(v->image, v->at, slot) == CUDA_SUCCESS) v->bytes = slot;
        KP_CU(cu.cuMemcpyDtoH(v->image, v->at, v->bytes));
        c->nvariables++;
    }
    free(list);
    elf_free(e);
}

static bool prepare(void *self, char *message) {
    struct candidate *c = self;
    CUmodule module;
    CUresult e = cu.cuModuleLoadData(&module, c->cubin);
    if (e)
        snprintf(message, KP_TAPE_MESSAGE, "the cubin cannot be loaded here: %s", driver_error(e));
    if (e) return false;
    c->module[c->nmodules++] = module;
    find_variables(c, module);
    return true;
}

/* How much local memory must be scrubbed between runs.  False and a message if that is too much. */
static bool find_local(struct candidate *c, const struct tape *t, CUmodule module, char *message) {
    for (int i = 0; i < t->nnodes; i++) {
        CUfunction f;
        int bytes = 0;
        const char *name = t->nodes[i].name;
        if (t->nodes[i].type != TAPE_KERNEL || cu.cuModuleGetFunction(&f, module, name))
            continue; /* tape_capture() says that there is none */
        KP_CU(cu.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f));
        if ((size_t)bytes > c->local_bytes) c->local_bytes = (size_t)bytes;
        if (bytes <= KP_MOST_LOCAL) continue;
        snprintf(message, KP_TAPE_MESSAGE,
                 "a thread of %.200s has %d bytes of local memory: more than %d cannot be "
                 "overwritten between runs",
                 name, bytes, KP_MOST_LOCAL);
        return false;
    }
    return true;
}

static bool enqueue(void *self, const struct kp_span *at, CUstream s, CUevent start, CUevent stop,
                    char *message) {
    struct candidate *c = self;
    CUmodule module = c->module[(size_t)(at - c->at) / c->nbuffers];
    struct tape *t = placed(c, at, message);
    c->nevents = start ? 2 : 0;
    bool ok = t && find_local(c, t, module, message) &&
              tape_capture(t, module, s, start, stop, c->events, message);
    tape_free(t);
    return ok;
}

/* Whether so many launches of a tape, from the first on, equal another tape, and whether each of
 * them waits for something, unless nothing comes before them. */
static bool part_equal(const struct tape *whole, int first, const struct tape *meant, char *why) {
    struct tape part = {.nnodes = meant->nnodes, .nodes = whole->nodes + first};
    bool *waits = calloc((size_t)part.nnodes + 1, sizeof *waits);
    part.edges = calloc((size_t)whole->nedges + 1, sizeof *part.edges);
    if (!waits || !part.edges) die(KP_MACHINE, "out of memory");
    for (int k = 0; k < whole->nedges; k++) {
        struct tape_edge e = whole->edges[k];
        e.from -= first, e.to -= first;
        if (e.to < 0 || e.to >= part.nnodes) continue;
        waits[e.to] = true;
        if (e.from >= 0) part.edges[part.nedges++] = e;
    }
    bool ok = tape_equal(meant, &part, why);
    for (int i = 0; i < part.nnodes && first && ok; i++) {
        ok = waits[i];
        if (!ok) snprintf(why, KP_TAPE_MESSAGE, "launch %d waits for no run before it", i);
    }
    free(waits), free(part.edges);
    return ok;
}

/* Read the rebuilt graph back: it must equal the tape, launch for launch, at each placement. */
static bool inspect(void *self, const struct kp_span *at, int n, CUgraph graph, char *message) {
    struct candidate *c = self;
    char why[KP_TAPE_MESSAGE] = "";
    struct tape *found = tape_from_graph(graph, c->events, c->nevents, why);
    bool ok = found && found->nnodes == n * c->tape->nnodes;
    if (found && !ok) snprintf(why, sizeof why, "it has %d launches", found->nnodes);
    for (int p = 0; p < n && ok; p++) {
        struct tape *meant = placed(c, at + (size_t)p * c->nbuffers, why);
        ok = meant && part_equal(found, p * c->tape->nnodes, meant, why);
        tape_free(meant);
    }
    if (!ok) snprintf(message, KP_TAPE_MESSAGE, "the rebuilt graph is not the tape: %.400s", why);
    tape_free(found);
    return ok;
}

static bool kept(void *self, char *message) {
    struct candidate *c = self;
    for (size_t i = 0; i < c->nvariables; i++) {
        struct variable *v = &c->variables[i];
        KP_CU(cu.cuMemcpyDtoH(v->now, v->at, v->bytes));
        if (!memcmp(v->now, v->image, v->bytes)) continue;
        snprintf(
            message, KP_TAPE_MESSAGE,
            "the module variable %.200s was left changed: what a run computes may not depend on "
            "earlier runs",
            v->name);
        return false;
    }
    return true;
}

/* Forget a cell, but for how much local memory its kernels had: what they left there is scrubbed in
 * the next cell, too. */
static void forget(struct candidate *c) {
    for (int i = 0; i < c->nmodules; i++) KP_CU(cu.cuModuleUnload(c->module[i]));
    for (size_t i = 0; i < c->nvariables; i++)
        free(c->variables[i].name), free(c->variables[i].image), free(c->variables[i].now);
    free(c->variables);
    tape_free(c->tape);
    free(c->cubin);
    *c = (struct candidate){.local_bytes = c->local_bytes};
}

/* Serve one cell, and give back all that it took. */
static void serve(struct candidate *c, const struct runner_replaying *what) {
    char message[KP_TAPE_MESSAGE] = "";
    struct runner_setup setup;
    struct kp_region region;
    struct kp_span *at;
    size_t n = runner_receive(&setup, &region, &at);
    char *text = file_read(what->tape, NULL); /* it may have been made in the meantime */
    c->cubin = file_read(what->cubin, &c->cubin_size);
    c->cubin_path = what->cubin;
    c->tape = tape_parse(text, message);
    c->nbuffers = setup.nbuffers, c->at = at;
    if (!c->tape) runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
    free(text);
    const struct runner_contestant who = {c, &c->local_bytes, prepare, enqueue, inspect, kept};
    runner_serve(&setup, at, &who);
    for (size_t i = 0; i < n; i++) buffer_free(&at[i]);
    region_free(&region);
    free(at);
    forget(c);
}

int main(int argc, char **argv) {
    kp_program("runner");
    (void)argv;
    if (argc != 1) die(KP_USAGE, "usage: runner (run by verify and time)");
    struct candidate c;
    memset(&c, 0, sizeof c);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    driver_open();
    for (;;) {
        struct runner_replaying what; /* it may come much later: runners are started ahead */
        if (!runner_told(&what, sizeof what)) return KP_MACHINE;
        what.tape[sizeof what.tape - 1] = what.cubin[sizeof what.cubin - 1] = 0;
        serve(&c, &what);
        /* Who waits for the end of what a cell says must not wait for this. */
        runner_say_to(nothing);
        runner_reply(RUNNER_OK, 0, 0, NULL, NULL);
    }
}
