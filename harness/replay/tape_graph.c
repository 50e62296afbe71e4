/* tape_graph.c: see tape_graph.h.
 *
 * A graph is rebuilt by capturing the same launches with explicit dependencies, because only a
 * captured launch takes every attribute (cooperative, cluster, programmatic).  Parameters are
 * passed by pointer, because a cooperative launch refuses the packed form. */
#include "replay/tape_graph.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARAMETERS = 4096, /* 32,764 bytes, all that a kernel may take, hold 4095 pointers */
    SHARED_USUAL = 48 << 10 /* bytes of shared memory beyond which a kernel must ask */
};

static void *zeroed(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) die(KP_MACHINE, "out of memory");
    return p;
}

/* ---- From a graph -------------------------------------------------------------- */

/* Name a launch attribute that changes what runs and that a tape cannot hold; NULL if there is
 * none. */
static const char *refused_attribute(CUgraphNode node) {
    CUlaunchAttributeValue v;
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v) &&
        v.accessPolicyWindow.num_bytes)
        return "an access policy window (it would keep data in the L2 between runs)";
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &v) &&
        v.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT)
        return "a memory synchronisation domain";
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v) && v.priority)
        return "a launch priority";
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                          &v) &&
        v.deviceUpdatableKernelNode.deviceUpdatable)
        return "a device-updatable node";
    return NULL;
}

static void read_attributes(CUgraphNode node, CUfunction fn, struct tape_node *n) {
    CUlaunchAttributeValue v;
    int x = 0;
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &v)) {
        n->cluster[0] = v.clusterDim.x;
        n->cluster[1] = v.clusterDim.y;
        n->cluster[2] = v.clusterDim.z;
    }
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v))
        n->cooperative = v.cooperative != 0;
    memset(&v, 0, sizeof v);
    if (!cu.cuGraphKernelNodeGetAttribute(
            node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &v))
        n->cluster_policy = (int)v.clusterSchedulingPolicyPreference;
    n->carveout = -1;
    if (!cu.cuFuncGetAttribute(&x, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, fn))
        n->carveout = x;
    if (!cu.cuFuncGetAttribute(&x, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, fn))
        n->nonportable = x != 0;
}

static bool read_kernel(CUgraphNode node, struct tape_node *n, char *message) {
    CUDA_KERNEL_NODE_PARAMS p;
    memset(&p, 0, sizeof p);
    KP_CU(cu.cuGraphKernelNodeGetParams(node, &p));
    CUfunction fn = p.func;
    const char *name;
    if (!fn) KP_CU(cu.cuKernelGetFunction(&fn, p.kern));
    KP_CU(cu.cuFuncGetName(&name, fn));
    n->type = TAPE_KERNEL;
    n->name = strdup(name);
    const char *refused = refused_attribute(node);
    if (refused || p.extra) {
        snprintf(message, KP_TAPE_MESSAGE, "launch of %s has %s", name,
                 refused ? refused : "packed parameters");
        return false;
    }
    n->grid[0] = p.gridDimX, n->grid[1] = p.gridDimY, n->grid[2] = p.gridDimZ;
    n->block[0] = p.blockDimX, n->block[1] = p.blockDimY, n->block[2] = p.blockDimZ;
    n->shared = p.sharedMemBytes;
    read_attributes(node, fn, n);
    size_t at, size;
    for (size_t i = 0; cu.cuFuncGetParamInfo(fn, i, &at, &size) == CUDA_SUCCESS; i++) {
        if (at + size > n->param_bytes) {
            n->params = realloc(n->params, at + size);
            if (!n->params) die(KP_MACHINE, "out of memory");
            memset(n->params + n->param_bytes, 0, at + size - n->param_bytes);
            n->param_bytes = (uint32_t)(at + size);
        }
        memcpy(n->params + at, p.kernelParams[i], size);
    }
    return true;
}

static bool read_memory(CUgraphNode node, CUgraphNodeType type, struct tape_node *n,
                        char *message) {
    if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
        CUDA_MEMSET_NODE_PARAMS p;
        KP_CU(cu.cuGraphMemsetNodeGetParams(node, &p));
        n->type = TAPE_MEMSET;
        n->to = p.dst, n->value = p.value, n->element = p.elementSize;
        n->width = p.width, n->height = p.height, n->pitch = p.height > 1 ? p.pitch : 0;
        return true;
    }
    CUDA_MEMCPY3D p;
    KP_CU(cu.cuGraphMemcpyNodeGetParams(node, &p));
    bool device =
        (p.srcMemoryType == CU_MEMORYTYPE_DEVICE || p.srcMemoryType == CU_MEMORYTYPE_UNIFIED) &&
        (p.dstMemoryType == CU_MEMORYTYPE_DEVICE || p.dstMemoryType == CU_MEMORYTYPE_UNIFIED);
    if (!device || p.Height > 1 || p.Depth > 1) {
        snprintf(message, KP_TAPE_MESSAGE, "a copy that is not one row from device to device");
        return false;
    }
    n->type = TAPE_COPY;
    n->from = p.srcDevice + p.srcXInBytes, n->to = p.dstDevice + p.dstXInBytes;
    n->width = p.WidthInBytes;
    return true;
}

static bool read_node(CUgraphNode node, struct tape_node *n, char *message) {
    static const char *const names[] = {"a kernel",
                                        "a copy",
                                        "a memset",
                                        "a host function",
                                        "a child graph",
                                        "an empty node",
                                        "an event wait",
                                        "an event record",
                                        "a semaphore",
                                        "a semaphore wait",
                                        "an allocation",
                                        "a free",
                                        "a batch of memory operations",
                                        "a conditional node"};
    CUgraphNodeType type;
    KP_CU(cu.cuGraphNodeGetType(node, &type));
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) return read_kernel(node, n, message);
    if (type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return read_memory(node, type, n, message);
    snprintf(message, KP_TAPE_MESSAGE,
             "%s was enqueued: only kernels, memsets and device-to-device copies are allowed",
             (size_t)type < sizeof names / sizeof *names ? names[type] : "a node of unknown type");
    return false;
}

/* A node's handle and its number, to find the number by the handle. */
struct numbered {
    CUgraphNode node;
    int number;
};

static int by_handle(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const struct numbered *)a)->node;
    uintptr_t y = (uintptr_t)((const struct numbered *)b)->node;
    return (x > y) - (x < y);
}

/* The number of a node; -1 if it is none of the list. */
static int number_of(const struct numbered *list, int n, CUgraphNode node) {
    const struct numbered key = {node, 0};
    const struct numbered *found = bsearch(&key, list, (size_t)n, sizeof key, by_handle);
    return found ? found->number : -1;
}

/* Read the edges between these nodes, by their numbers. */
static void read_edges(struct tape *t, CUgraph graph, const CUgraphNode *nodes) {
    size_t n = 0;
    KP_CU(cu.cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &n));
    CUgraphNode *from = zeroed(n, sizeof *from), *to = zeroed(n, sizeof *to);
    CUgraphEdgeData *data = zeroed(n, sizeof *data);
    if (n)
        KP_CU(cu.cuGraphGetEdges_v2(graph, from, to, data, &n)); /* asking for none is an error */
    struct numbered *list = zeroed((size_t)t->nnodes, sizeof *list);
    for (int i = 0; i < t->nnodes; i++) list[i] = (struct numbered){nodes[i], i};
    qsort(list, (size_t)t->nnodes, sizeof *list, by_handle);
    t->edges = zeroed(n, sizeof *t->edges);
    for (size_t k = 0; k < n; k++) {
        struct tape_edge e = {number_of(list, t->nnodes, from[k]),
                              number_of(list, t->nnodes, to[k]), data[k].type, data[k].from_port,
                              data[k].to_port};
        if (e.from >= 0 && e.to >= 0) t->edges[t->nedges++] = e;
    }
    free(list), free(from), free(to), free(data);
}

static int by_source(const void *a, const void *b) {
    return ((const struct tape_edge *)a)->from - ((const struct tape_edge *)b)->from;
}

/* The order of a tape's edges: by where they lead to, then by where they come from. */
static int by_target(const void *a, const void *b) {
    const struct tape_edge *x = a, *y = b;
    int d = x->to - y->to;
    if (!d) d = x->from - y->from;
    if (!d) d = x->type - y->type;
    if (!d) d = x->from_port - y->from_port;
    return d ? d : x->to_port - y->to_port;
}

/* Number the nodes anew, so that every edge points forward.  Of those that could come next the
 * first that was captured does, so that two recordings of the same launches agree. */
static void sort_nodes(struct tape *t, CUgraphNode *nodes) {
    size_t n = (size_t)t->nnodes;
    CUgraphNode *sorted = zeroed(n, sizeof *sorted);
    int *waits = zeroed(n, sizeof *waits); /* for so many nodes; -1: has its place */
    int *place = zeroed(n, sizeof *place), *first = zeroed(n + 1, sizeof *first);
    qsort(t->edges, (size_t)t->nedges, sizeof *t->edges, by_source);
    for (int k = 0; k < t->nedges; k++) waits[t->edges[k].to]++, first[t->edges[k].from + 1]++;
    for (size_t i = 0; i < n; i++) first[i + 1] += first[i];
    for (int done = 0, i = 0, next; done < t->nnodes; done++, i = next) {
        while (i < t->nnodes && waits[i]) i++;
        if (i == t->nnodes) die(KP_BUG, "the launches wait for each other");
        sorted[done] = nodes[i], place[i] = done, waits[i] = -1, next = i + 1;
        for (int k = first[i]; k < first[i + 1]; k++) {
            int to = t->edges[k].to;
            if (--waits[to] == 0 && to < next) next = to;
        }
    }
    for (int k = 0; k < t->nedges; k++)
        t->edges[k].from = place[t->edges[k].from], t->edges[k].to = place[t->edges[k].to];
    qsort(t->edges, (size_t)t->nedges, sizeof *t->edges, by_target);
    memcpy(nodes, sorted, n * sizeof *nodes);
    free(sorted), free(waits), free(place), free(first);
}

static bool is_one_of(const CUgraphNode *nodes, int n, CUgraphNode node) {
    for (int i = 0; i < n; i++)
        if (nodes[i] == node) return true;
    return false;
}

struct tape *tape_from_graph(CUgraph graph, const CUgraphNode *skip, int nskip,
                             char message[KP_TAPE_MESSAGE]) {
    size_t n = 0;
    KP_CU(cu.cuGraphGetNodes(graph, NULL, &n));
    CUgraphNode *nodes = zeroed(n, sizeof *nodes);
    if (n) KP_CU(cu.cuGraphGetNodes(graph, nodes, &n)); /* asking for none is an error */
    struct tape *t = zeroed(1, sizeof *t);
    for (size_t i = 0; i < n; i++)
        if (!is_one_of(skip, nskip, nodes[i])) nodes[t->nnodes++] = nodes[i];
    t->nodes = zeroed((size_t)t->nnodes, sizeof *t->nodes);
    read_edges(t, graph, nodes);
    sort_nodes(t, nodes);
    bool ok = true;
    for (int i = 0; i < t->nnodes && ok; i++) ok = read_node(nodes[i], &t->nodes[i], message);
    free(nodes);
    if (ok) return t;
    tape_free(t);
    return NULL;
}

/* ---- To a graph ------------------------------------------------------------------ */

/* What the next launch on a stream would depend on, in a new list. */
static CUgraphNode *depends_on(CUstream stream, size_t *n) {
    CUstreamCaptureStatus status;
    const CUgraphNode *now;
    const CUgraphEdgeData *data;
    KP_CU(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &now, &data, n));
    CUgraphNode *list = zeroed(*n, sizeof *list);
    if (*n) memcpy(list, now, *n * sizeof *list);
    return list;
}

static CUgraphNode last_node(CUstream stream) {
    CUstreamCaptureStatus status;
    const CUgraphNode *now;
    const CUgraphEdgeData *data;
    size_t n;
    KP_CU(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &now, &data, &n));
    if (n != 1) die(KP_BUG, "a captured launch left %zu dependencies", n);
    return now[0];
}

static CUresult launch_kernel(const struct tape_node *n, CUmodule module, CUstream stream,
                              bool programmatic) {
    CUfunction fn;
    CUresult e = cu.cuModuleGetFunction(&fn, module, n->name);
    if (e) return e;
    if (n->shared > SHARED_USUAL)
        e = cu.cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  (int)n->shared);
    if (!e && n->carveout >= 0)
        e = cu.cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                  n->carveout);
    if (!e && n->nonportable)
        e = cu.cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (e) return e;
    CUlaunchAttribute attr[4];
    CUlaunchConfig c = {.gridDimX = n->grid[0],
                        .gridDimY = n->grid[1],
                        .gridDimZ = n->grid[2],
                        .blockDimX = n->block[0],
                        .blockDimY = n->block[1],
                        .blockDimZ = n->block[2],
                        .sharedMemBytes = n->shared,
                        .hStream = stream,
                        .attrs = attr};
    memset(attr, 0, sizeof attr);
    int fixed = 0; /* a kernel that requires its cluster dimensions refuses to be given them */
    cu.cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, fn);
    if (n->cluster[0] && !fixed) {
        attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attr[c.numAttrs].value.clusterDim.x = n->cluster[0];
        attr[c.numAttrs].value.clusterDim.y = n->cluster[1];
        attr[c.numAttrs++].value.clusterDim.z = n->cluster[2];
    }
    if (n->cluster_policy) {
        attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        attr[c.numAttrs++].value.clusterSchedulingPolicyPreference =
            (CUclusterSchedulingPolicy)n->cluster_policy;
    }
    if (n->cooperative) {
        attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attr[c.numAttrs++].value.cooperative = 1;
    }
    if (programmatic) {
        attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attr[c.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
    }
    void *args[MOST_PARAMETERS];
    size_t at, size, k = 0;
    for (; k < MOST_PARAMETERS && cu.cuFuncGetParamInfo(fn, k, &at, &size) == CUDA_SUCCESS; k++) {
        if (at + size > n->param_bytes) return CUDA_ERROR_INVALID_VALUE;
        args[k] = n->params + at;
    }
    return cu.cuLaunchKernelEx(&c, fn, args, NULL);
}

static CUresult launch_memory(const struct tape_node *n, CUstream s) {
    if (n->type == TAPE_COPY) return cu.cuMemcpyDtoDAsync(n->to, n->from, n->width, s);
    if (n->height > 1) {
        if (n->element == 1)
            return cu.cuMemsetD2D8Async(n->to, n->pitch, (unsigned char)n->value, n->width,
                                        n->height, s);
        if (n->element == 2)
            return cu.cuMemsetD2D16Async(n->to, n->pitch, (unsigned short)n->value, n->width,
                                         n->height, s);
        return cu.cuMemsetD2D32Async(n->to, n->pitch, n->value, n->width, n->height, s);
    }
    if (n->element == 1) return cu.cuMemsetD8Async(n->to, (unsigned char)n->value, n->width, s);
    if (n->element == 2) return cu.cuMemsetD16Async(n->to, (unsigned short)n->value, n->width, s);
    return cu.cuMemsetD32Async(n->to, n->value, n->width, s);
}

static void depend(CUstream stream, CUgraphNode *on, const CUgraphEdgeData *edges, size_t n) {
    KP_CU(cu.cuStreamUpdateCaptureDependencies_v2(stream, on, edges, n,
                                                  CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

/* The launches that nothing waits for by a full edge: when they have ended, all have. */
static size_t find_ends(const struct tape *t, const CUgraphNode *nodes, CUgraphNode *ends) {
    bool *waited = zeroed((size_t)t->nnodes, sizeof *waited);
    size_t n = 0;
    for (int k = 0; k < t->nedges; k++)
        waited[t->edges[k].from] |= t->edges[k].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
    for (int i = 0; i < t->nnodes; i++)
        if (!waited[i]) ends[n++] = nodes[i];
    free(waited);
    return n;
}

bool tape_capture(const struct tape *t, CUmodule module, CUstream stream, CUevent start,
                  CUevent stop, CUgraphNode event_nodes[2], char message[KP_TAPE_MESSAGE]) {
    CUgraphNode *nodes = zeroed((size_t)t->nnodes + 1, sizeof *nodes);
    CUgraphNode *on = zeroed((size_t)(t->nedges + t->nnodes) + 1, sizeof *on);
    CUgraphEdgeData *edges = zeroed((size_t)t->nedges + 1, sizeof *edges);
    size_t nbefore;
    if (start) {
        KP_CU(cu.cuEventRecordWithFlags(start, stream, CU_EVENT_RECORD_EXTERNAL));
        nodes[t->nnodes] = event_nodes[0] = last_node(stream);
    }
    CUgraphNode *before = depends_on(stream, &nbefore);
    bool ok = true;
    for (int i = 0, k = 0; i < t->nnodes && ok; i++) {
        size_t n = 0;
        bool programmatic = false;
        for (; k < t->nedges && t->edges[k].to == i; k++) { /* edges are in this order */
            on[n] = nodes[t->edges[k].from];
            memset(&edges[n], 0, sizeof edges[n]);
            edges[n].type = (unsigned char)t->edges[k].type;
            edges[n].from_port = (unsigned char)t->edges[k].from_port;
            edges[n++].to_port = (unsigned char)t->edges[k].to_port;
            programmatic |= t->edges[k].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
        if (n)
            depend(stream, on, edges, n);
        else if (i || nbefore)
            depend(stream, before, NULL, nbefore);
        const struct tape_node *x = &t->nodes[i];
        CUresult e = x->type == TAPE_KERNEL ? launch_kernel(x, module, stream, programmatic)
                                            : launch_memory(x, stream);
        ok = e == CUDA_SUCCESS;
        if (ok) nodes[i] = last_node(stream);
        if (!ok)
            snprintf(message, KP_TAPE_MESSAGE, "launch %d (%s) is refused on replay: %s", i,
                     x->type == TAPE_KERNEL ? x->name : "memory", driver_error(e));
    }
    if (ok && !stop) depend(stream, on, NULL, find_ends(t, nodes, on));
    if (ok && stop) {
        depend(stream, nodes, NULL, (size_t)t->nnodes + 1);
        KP_CU(cu.cuEventRecordWithFlags(stop, stream, CU_EVENT_RECORD_EXTERNAL));
        event_nodes[1] = last_node(stream);
    }
    free(nodes), free(on), free(edges), free(before);
    return ok;
}
