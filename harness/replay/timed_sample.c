/* timed_sample.c: where the clock is read.  This one loop samples every contestant: the same flush,
 * the same events, the same synchronisation.
 *
 * A contestant's work is captured once for each placement, between two event nodes: start, work,
 * stop.  A sample scrubs the multiprocessors, empties the L2, launches that graph and reports the
 * time between the events.  Nothing else is what a result quotes.
 *
 * Two more requests are for the modes of measure/modes.h, which never empty the L2.  A burst is one
 * graph with the work of all placements, captured when it is first asked for, launched again and
 * again between two events.  A replay that is served comes after a gap on the host. */
#define _GNU_SOURCE
#include "replay/runner.h"
#include "gpu/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct loop {
    CUstream stream;
    CUevent start, stop, flushed;
    CUgraphExec *graphs, empty;
    CUgraphExec rotation; /* of so many placements, one after the other; 0: not captured yet */
    uint32_t rotating, nbuffers;
    const struct kp_span *at, *clean;
    const struct runner_contestant *who;
};

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Reply that the contestant failed with this CUDA error, and end. */
static void crash(CUresult e) {
    char message[KP_TAPE_MESSAGE];
    const char *name = "?";
    cu.cuGetErrorName(e, &name);
    snprintf(message, sizeof message, "%s: %s", name, driver_error(e));
    runner_reply(RUNNER_CRASH, 0, 0, message, NULL);
}

/* If a graph cannot be made executable, that is the contestant's fault: it may hold a memset into a
 * read-only input. */
static CUgraphExec instantiate(CUgraph graph, CUstream stream) {
    CUgraphExec exec;
    CUresult e = cu.cuGraphInstantiate(&exec, graph, 0);
    if (!e) e = cu.cuGraphUpload(exec, stream);
    if (e) crash(e);
    KP_CU(cu.cuGraphDestroy(graph));
    return exec;
}

/* Overwrite what the last run may have left on the multiprocessors.  (Shared memory: the flush.) */
static void scrub(struct loop *l) {
    device_scrub(span_data(l->clean), l->who->local_bytes ? *l->who->local_bytes : 0,
                 (cudaStream_t)l->stream);
}

/* The buffers of a placement. */
static const struct kp_span *placed(const struct loop *l, uint32_t placement) {
    return l->at + (size_t)placement * l->nbuffers;
}

/* Capture the work on n placements, from `first` on: between these two events, or NULL. */
static CUgraphExec capture(struct loop *l, uint32_t first, uint32_t n, CUevent start,
                           CUevent stop) {
    char message[KP_TAPE_MESSAGE] = "";
    CUgraph graph = NULL;
    KP_CU(cu.cuStreamBeginCapture(l->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (uint32_t p = first; p < first + n; p++)
        if (!l->who->enqueue(l->who->self, placed(l, p), l->stream, start, stop, message))
            runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
    KP_CU(cu.cuStreamEndCapture(l->stream, &graph));
    if (l->who->inspect && !l->who->inspect(l->who->self, placed(l, first), (int)n, graph, message))
        runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
    scrub(l); /* so that local memory has its size before the graph is uploaded */
    return instantiate(graph, l->stream);
}

/* The graph of a sample at this placement. */
static CUgraphExec build(struct loop *l, uint32_t placement) {
    char message[KP_TAPE_MESSAGE] = "";
    if (l->who->prepare && !l->who->prepare(l->who->self, message))
        runner_reply(RUNNER_TAPE, 0, 0, message, NULL);
    return capture(l, placement, 1, l->start, l->stop);
}

static CUgraphExec build_empty(struct loop *l) {
    CUgraph graph = NULL;
    KP_CU(cu.cuStreamBeginCapture(l->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    KP_CU(cu.cuEventRecordWithFlags(l->start, l->stream, CU_EVENT_RECORD_EXTERNAL));
    KP_CU(cu.cuEventRecordWithFlags(l->stop, l->stream, CU_EVENT_RECORD_EXTERNAL));
    KP_CU(cu.cuStreamEndCapture(l->stream, &graph));
    return instantiate(graph, l->stream);
}

/* Enqueue the flush and the replay after it, and return once the host sees that the flush has
 * ended.  The replay then starts without waiting for the host. */
static CUresult flush_and_launch(struct loop *l, CUgraphExec graph) {
    KP_CU(cu.cuCtxResetPersistingL2Cache());
    scrub(l);
    device_flush(span_data(l->clean), l->clean->bytes, (cudaStream_t)l->stream);
    KP_CU(cu.cuEventRecordWithFlags(l->flushed, l->stream, CU_EVENT_RECORD_DEFAULT));
    CUresult e = cu.cuGraphLaunch(graph, l->stream), q = CUDA_ERROR_NOT_READY;
    while (!e && q == CUDA_ERROR_NOT_READY) q = cu.cuEventQuery(l->flushed);
    return e ? e : q;
}

/* Enqueue a burst.  One turn goes ahead of the first event: the GPU works while the host launches
 * the others. */
static CUresult launch_turns(struct loop *l, const struct runner_request *q) {
    if (!l->rotating) l->rotation = capture(l, 0, q->placements, NULL, NULL);
    if (!l->rotating) l->rotating = q->placements;
    if (l->rotating != q->placements) die(KP_BUG, "a burst over other placements than before");
    CUresult e = cu.cuGraphLaunch(l->rotation, l->stream);
    if (!e) e = cu.cuEventRecordWithFlags(l->start, l->stream, CU_EVENT_RECORD_DEFAULT);
    for (uint32_t i = 0; i < q->turns && !e; i++) e = cu.cuGraphLaunch(l->rotation, l->stream);
    return e ? e : cu.cuEventRecordWithFlags(l->stop, l->stream, CU_EVENT_RECORD_DEFAULT);
}

/* Sleep for the gap, at least; nothing has run since the last reply.  Then launch. */
static CUresult wait_and_launch(struct loop *l, const struct runner_request *q) {
    struct timespec gap = {q->gap_us / 1000000, (long)(q->gap_us % 1000000) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &gap, &gap) == EINTR) continue;
    return cu.cuGraphLaunch(l->graphs[q->placement], l->stream);
}

/* One replay, or one burst.  The whole device is synchronised after it, so that no stream runs on
 * beyond the clock. */
static void replay(struct loop *l, const struct runner_request *q) {
    char message[KP_TAPE_MESSAGE];
    float ms = 0;
    CUgraphExec graph = q->what == RUNNER_EMPTY ? l->empty : l->graphs[q->placement];
    CUresult e = q->what == RUNNER_BURST   ? launch_turns(l, q)
                 : q->what == RUNNER_SERVE ? wait_and_launch(l, q)
                                           : flush_and_launch(l, graph);
    double t0 = now_us();
    if (!e) e = cu.cuCtxSynchronize();
    double t1 = now_us();
    if (!e) e = cu.cuEventElapsedTime(&ms, l->start, l->stop);
    if (e) crash(e);
    if (q->what != RUNNER_EMPTY && l->who->kept && !l->who->kept(l->who->self, message))
        runner_reply(RUNNER_STATE, 0, 0, message, NULL);
    runner_reply(RUNNER_OK, ms * 1e3, t1 - t0, NULL, NULL);
}

static void close_loop(struct loop *l, uint32_t nplacements) {
    KP_CU(cu.cuCtxSynchronize());
    for (uint32_t p = 0; p < nplacements; p++) KP_CU(cu.cuGraphExecDestroy(l->graphs[p]));
    KP_CU(cu.cuGraphExecDestroy(l->empty));
    if (l->rotating) KP_CU(cu.cuGraphExecDestroy(l->rotation));
    KP_CU(cu.cuEventDestroy(l->start));
    KP_CU(cu.cuEventDestroy(l->stop));
    KP_CU(cu.cuEventDestroy(l->flushed));
    KP_CU(cu.cuStreamDestroy(l->stream));
    free(l->graphs);
}

void runner_serve(const struct runner_setup *setup, const struct kp_span *at,
                  const struct runner_contestant *who) {
    struct loop l = {.who = who, .at = at, .nbuffers = setup->nbuffers};
    l.graphs = calloc(setup->nplacements, sizeof *l.graphs);
    if (!l.graphs) die(KP_MACHINE, "out of memory");
    KP_CU(cu.cuStreamCreate(&l.stream, CU_STREAM_NON_BLOCKING));
    KP_CU(cu.cuEventCreate(&l.start, CU_EVENT_DEFAULT));
    KP_CU(cu.cuEventCreate(&l.stop, CU_EVENT_DEFAULT));
    KP_CU(cu.cuEventCreate(&l.flushed, CU_EVENT_DISABLE_TIMING));
    if (!setup->flush_bytes) die(KP_BUG, "no clean memory to empty the L2 with");
    l.clean = placed(&l, setup->nplacements);
    l.empty = build_empty(&l);
    for (uint32_t p = 0; p < setup->nplacements; p++) l.graphs[p] = build(&l, p);
    KP_CU(cu.cuCtxSynchronize());
    runner_reply(RUNNER_OK, 0, 0, NULL, NULL);
    for (;;) {
        struct runner_request q;
        runner_take(&q, sizeof q);
        if (q.what == RUNNER_NEXT) break;
        if (q.placement >= setup->nplacements || q.placements > setup->nplacements)
            die(KP_BUG, "request %u for placement %u", q.what, q.placement);
        replay(&l, &q);
    }
    close_loop(&l, setup->nplacements);
}
