/* graph.c: the pretend driver's streams, events, captures and graphs; see fake.h.
 *
 * Whatever is enqueued is a node.  Outside a capture it is executed at once; under one it
 * joins the graph, behind the nodes that its stream depends on.  Nodes keep the order in
 * which they were captured, so that executing them in that order respects every edge.
 * Nothing is freed: processes are short. */
#define _GNU_SOURCE
#include "fake.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ATTRIBUTES = 8 };

struct edges { /* nodes that something depends on */
    size_t n;
    CUgraphNode *node;
    CUgraphEdgeData *data;
};

struct CUgraphNode_st {
    CUgraphNodeType type;
    struct edges from;
    bool reached; /* from where the capture ends */
    int capture;  /* which it was captured in */
    size_t index; /* its place there */
    CUDA_KERNEL_NODE_PARAMS kernel;
    unsigned nattributes;
    CUlaunchAttribute attribute[ATTRIBUTES];
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_MEMCPY3D copy;
    CUevent event;
    CUhostFn host;
    void *context;
};

struct CUgraph_st { /* also stands for its executable form, and for a capture under way */
    size_t n;
    CUgraphNode *node;
    CUstream origin;
    bool global, invalid;
    int number; /* of the capture, from 0 */
};

struct CUstream_st {
    CUgraph capture; /* NULL: none under way */
    struct edges at;
    CUstream next; /* all streams, to end a capture in each that joined it */
};

struct CUevent_st {
    double us;
    CUgraph capture; /* recorded in it (not as an external event), behind `at` */
    struct edges at;
};

CUresult fake_sticky;
static struct CUstream_st legacy;
static CUstream streams;
static int captures;
double fake_clock_us, fake_replay_us;

/* ---- Executing ---------------------------------------------------------------------- */

static sigjmp_buf fault;
static volatile sig_atomic_t executing;

/* A fault of a kernel becomes an error; any other ends the process as usual. */
static void on_fault(int number) {
    if (executing) siglongjmp(fault, 1);
    signal(number, SIG_DFL);
}

static void fill(char *row, const CUDA_MEMSET_NODE_PARAMS *m) {
    for (size_t i = 0; i < m->width; i++)
        memcpy(row + i * m->elementSize, &m->value, m->elementSize);
}

static uint64_t next_random(uint64_t x) {
    x = (x + 1) * 6364136223846793005ull;
    return x ^ x >> 33;
}

/* Its upper bits as a number in [-1,1). */
static double share(uint64_t x) {
    return 2 * (double)(x >> 40) * 0x1p-24 - 1;
}

/* What a run of a kernel takes. */
static double kernel_us(const struct CUfunc_st *f) {
    static uint64_t state = 1; /* the same noise in each process */
    uint64_t process = (uint64_t)getpid();
    bool candidate = !strcmp(program_invocation_short_name, "runner");
    double us = f->us ? f->us : candidate ? fake_number("candidate", 500) : 500;
    if (!candidate) return us;
    for (int i = 0; i < 3; i++) process = next_random(process);
    state = next_random(state);
    return us *
           (1 + fake_number("noise", 0) * share(state) + fake_number("mood", 0) * share(process));
}

static void work(CUgraphNode n) {
    if (n->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        n->kernel.func->run(n->kernel.kernelParams);
        fake_clock_us += kernel_us(n->kernel.func);
    } else if (n->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        for (size_t y = 0; y < n->set.height; y++)
            fill((char *)(uintptr_t)n->set.dst + y * n->set.pitch, &n->set);
        fake_clock_us += 2;
    } else if (n->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        memmove((void *)(uintptr_t)n->copy.dstDevice, (void *)(uintptr_t)n->copy.srcDevice,
                n->copy.WidthInBytes);
        fake_clock_us += 2;
    } else if (n->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        n->event->us = fake_clock_us;
        fake_clock_us += fake_number("event", 1);
    } else if (n->type == CU_GRAPH_NODE_TYPE_HOST) {
        n->host(n->context);
    }
}

/* Do a node's work.  As on a GPU, its fault shows only in what is called after it. */
static void execute(CUgraphNode n) {
    if (fake_sticky) return;
    struct sigaction before[2], now = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &now, &before[0]);
    sigaction(SIGBUS, &now, &before[1]);
    executing = 1;
    if (sigsetjmp(fault, 1) == 0)
        work(n);
    else
        fake_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    executing = 0;
    sigaction(SIGSEGV, &before[0], NULL);
    sigaction(SIGBUS, &before[1], NULL);
}

/* ---- Enqueuing ---------------------------------------------------------------------- */

static void *copy_of(const void *from, size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) abort();
    return bytes ? memcpy(p, from, bytes) : p;
}

static void depend(struct edges *e, CUgraphNode node, CUgraphEdgeData data) {
    for (size_t i = 0; i < e->n; i++)
        if (e->node[i] == node) return;
    e->node = realloc(e->node, (e->n + 1) * sizeof *e->node);
    e->data = realloc(e->data, (e->n + 1) * sizeof *e->data);
    if (!e->node || !e->data) abort();
    e->node[e->n] = node, e->data[e->n++] = data;
}

static void add(CUstream s, CUgraphNode n) {
    CUgraph g = s->capture;
    n = copy_of(n, sizeof *n);
    n->from = s->at;
    g->node = realloc(g->node, (g->n + 1) * sizeof(CUgraphNode));
    if (!g->node) abort();
    n->capture = g->number, n->index = g->n;
    g->node[g->n++] = n;
    s->at = (struct edges){0};
    depend(&s->at, n, (CUgraphEdgeData){0});
}

static CUresult submit(CUstream s, CUgraphNode n) {
    s = s ? s : &legacy;
    if (s->capture && s->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s->capture)
        add(s, n);
    else
        execute(n);
    return CUDA_SUCCESS;
}

/* A launch may be refused; captured parameters are copied, as the driver does. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **args, void **extra) {
    struct CUgraphNode_st n = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUstream s = c->hStream ? c->hStream : &legacy;
    size_t at, size, k = 0;
    size_t threads = (size_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    bool programmatic = false;
    if (extra || !threads || threads > 1024 || !c->gridDimX || !c->gridDimY || !c->gridDimZ ||
        c->numAttrs > ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    n.kernel = (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                         .gridDimX = c->gridDimX,
                                         .gridDimY = c->gridDimY,
                                         .gridDimZ = c->gridDimZ,
                                         .blockDimX = c->blockDimX,
                                         .blockDimY = c->blockDimY,
                                         .blockDimZ = c->blockDimZ,
                                         .sharedMemBytes = c->sharedMemBytes,
                                         .kernelParams = args};
    n.nattributes = c->numAttrs;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        n.attribute[i] = c->attrs[i];
        programmatic |= c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    }
    if (s->capture) {
        n.kernel.kernelParams = calloc(FAKE_PARAMS, sizeof *args);
        for (; fake_param(f, k, &at, &size); k++) n.kernel.kernelParams[k] = copy_of(args[k], size);
    }
    for (size_t i = 0; programmatic && i < s->at.n; i++)
        if (s->at.node[i]->type == CU_GRAPH_NODE_TYPE_KERNEL)
            s->at.data[i] = (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                              .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    return submit(s, &n);
}

static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                    size_t height, CUstream s) {
    struct CUgraphNode_st n = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                               .set = {to, pitch, value, element, width, height}};
    return submit(s, &n);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char x, size_t n, CUstream s) {
    return set(to, 0, x, 1, n, 1, s);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short x, size_t n, CUstream s) {
    return set(to, 0, x, 2, n, 1, s);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned x, size_t n, CUstream s) {
    return set(to, 0, x, 4, n, 1, s);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char x, size_t width,
                           size_t height, CUstream s) {
    return set(to, pitch, x, 1, width, height, s);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short x, size_t width,
                            size_t height, CUstream s) {
    return set(to, pitch, x, 2, width, height, s);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned x, size_t width, size_t height,
                            CUstream s) {
    return set(to, pitch, x, 4, width, height, s);
}

CUresult fake_copy(CUstream s, void *to, const void *from, size_t bytes, bool host) {
    CUmemorytype type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    struct CUgraphNode_st n = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                               .copy = {.srcMemoryType = type,
                                        .srcDevice = (CUdeviceptr)(uintptr_t)from,
                                        .dstMemoryType = type,
                                        .dstDevice = (CUdeviceptr)(uintptr_t)to,
                                        .WidthInBytes = bytes,
                                        .Height = 1,
                                        .Depth = 1}};
    return submit(s, &n);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    return fake_copy(s, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, false);
}

CUresult fake_host_function(CUstream s, void (*run)(void *), void *context) {
    struct CUgraphNode_st n = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = run, .context = context};
    return submit(s, &n);
}

/* ---- Streams and events --------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    (void)flags;
    CUstream s = calloc(1, sizeof *s);
    if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
    s->next = streams;
    *stream = streams = s;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
    CUstream *s = &streams;
    while (*s && *s != stream) s = &(*s)->next;
    if (!*s) return CUDA_ERROR_INVALID_VALUE;
    *s = stream->next;
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* External: a node that takes the time.  Otherwise, under capture: a point to wait for. */
CUresult cuEventRecordWithFlags(CUevent event, CUstream s, unsigned flags) {
    struct CUgraphNode_st n = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};
    s = s ? s : &legacy;
    if (!s->capture || flags & CU_EVENT_RECORD_EXTERNAL) return submit(s, &n);
    event->capture = s->capture;
    event->at = (struct edges){0};
    for (size_t i = 0; i < s->at.n; i++) depend(&event->at, s->at.node[i], s->at.data[i]);
    return CUDA_SUCCESS;
}

/* Waiting for an event of a capture joins it. */
CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned flags) {
    (void)flags;
    s = s ? s : &legacy;
    if (!event->capture) return CUDA_SUCCESS; /* all that was recorded before it is done */
    if (s->capture && s->capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    s->capture = event->capture;
    for (size_t i = 0; i < event->at.n; i++) depend(&s->at, event->at.node[i], event->at.data[i]);
    return CUDA_SUCCESS;
}

/* Whatever was enqueued is done. */
CUresult cuEventQuery(CUevent event) {
    (void)event;
    return fake_sticky;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent stop) {
    *ms = (float)((stop->us - start->us) * 1e-3);
    return fake_sticky;
}

/* ---- Capture ---------------------------------------------------------------------------- */

CUresult fake_unsafe(void) {
    for (CUstream s = streams; s; s = s->next)
        if (s->capture && s->capture->global) {
            s->capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode) {
    if (!s || s->capture) return CUDA_ERROR_INVALID_VALUE;
    s->capture = calloc(1, sizeof *s->capture);
    if (!s->capture) return CUDA_ERROR_OUT_OF_MEMORY;
    s->capture->global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    s->capture->origin = s;
    s->capture->number = captures++;
    s->at = (struct edges){0};
    return CUDA_SUCCESS;
}

static void reach(const struct edges *e) {
    for (size_t i = 0; i < e->n; i++) e->node[i]->reached = true;
}

/* Every node must lie before the end of the stream where the capture began. */
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    CUgraph g = stream->capture;
    CUresult e = CUDA_SUCCESS;
    *graph = NULL;
    if (!g || g->origin != stream) return CUDA_ERROR_INVALID_VALUE;
    reach(&stream->at);
    for (size_t i = g->n; i-- > 0;) /* every edge points forward */
        if (g->node[i]->reached)
            reach(&g->node[i]->from);
        else
            e = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (g->invalid) e = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (CUstream s = streams; s; s = s->next)
        if (s->capture == g) s->capture = NULL, s->at = (struct edges){0};
    if (!e) *graph = g;
    return e;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes,
                                   const CUgraphEdgeData **data, size_t *n) {
    (void)id;
    *status = s->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (graph) *graph = s->capture;
    *nodes = s->at.node, *data = s->at.data, *n = s->at.n;
    return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream s, CUgraphNode *nodes,
                                              const CUgraphEdgeData *data, size_t n,
                                              unsigned flags) {
    if (!s->capture || flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    s->at = (struct edges){0};
    for (size_t i = 0; i < n; i++) depend(&s->at, nodes[i], data ? data[i] : (CUgraphEdgeData){0});
    return CUDA_SUCCESS;
}

/* ---- Graphs ------------------------------------------------------------------------------- */

/* The graph itself is what is launched: nobody changes it any more. */
CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    *exec = (CUgraphExec)graph;
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    (void)exec;
    return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream s) {
    (void)exec, (void)s;
    return fake_sticky;
}

CUresult cuGraphDestroy(CUgraph graph) {
    (void)graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream s) {
    CUgraph g = (CUgraph)exec;
    if (s->capture) return CUDA_ERROR_INVALID_VALUE;
    fake_log("launch %d", g->number);
    double before = fake_clock_us;
    for (size_t i = 0; i < g->n; i++) execute(g->node[i]);
    fake_replay_us = fake_clock_us - before;
    return CUDA_SUCCESS;
}

/* In any order, says CUDA: with KP_FAKE_REVERSED in the environment the last comes first. */
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    for (size_t i = 0; nodes && i < *n; i++)
        nodes[i] = g->node[getenv("KP_FAKE_REVERSED") ? g->n - 1 - i : i];
    if (!nodes) *n = g->n;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                            size_t *n) {
    size_t k = 0;
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->node[i]->from.n; j++, k++) {
            if (!from) continue;
            from[k] = g->node[i]->from.node[j], to[k] = g->node[i];
            data[k] = g->node[i]->from.data[j];
        }
    *n = k;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type) {
    *type = n->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p) {
    *p = n->kernel;
    if (n->capture == fake_number("tampered", -1) && (double)n->index == fake_number("node", 0))
        p->gridDimX++;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue *value) {
    memset(value, 0, sizeof *value);
    for (unsigned i = 0; i < n->nattributes; i++)
        if (n->attribute[i].id == id) *value = n->attribute[i].value;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p) {
    *p = n->set;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D *p) {
    *p = n->copy;
    return CUDA_SUCCESS;
}
