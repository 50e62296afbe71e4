/* conv_cudnn.c: a convolution as a cuDNN graph of one operation.  A transposed one is that of the
 * gradient of a convolution's operand, which cuDNN calls backward data.
 *
 * Engines are tried in the order in which PyTorch tries them without benchmarking: those of the
 * instant heuristic, then the fallback list.  The first one that finalises is used.  Engines that
 * round more than the arithmetic allows are skipped. */
#include "cuda_products/conv_parts.h"
#include "cuda_base/check.h"

#include <stdlib.h>
#include "base/error.h"

#ifdef KP_NO_CUDNN

/* See conv_parts.h. */
struct kp_conv_plan *kp_conv_plan(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math,
                                  size_t *workspace) {
    (void)g, (void)dtype, (void)math, (void)workspace;
    return NULL;
}

/* See conv_parts.h. */
void kp_conv_plan_run(struct kp_conv_plan *p, const void *x, const void *w, void *y,
                      void *workspace, cudaStream_t stream) {
    (void)p, (void)x, (void)w, (void)y, (void)workspace, (void)stream;
    die(KP_BUG, "convolution planned for cuDNN in a build without it");
}

/* See conv_parts.h; NULL is allowed. */
void kp_conv_plan_destroy(struct kp_conv_plan *p) {
    (void)p;
}

#else

#include <cudnn.h>

typedef cudnnBackendDescriptor_t descriptor;

enum { ID_X = 'x', ID_W = 'w', ID_Y = 'y', ALIGNMENT = 16, MAX_CONFIGS = 256 };
static const int64_t max_workspace = (int64_t)8 << 30;

struct kp_conv_plan { /* a finished plan refers to everything that it was made from */
    descriptor x, w, y, conv, operation, graph, config, plan;
};

/* A new descriptor of this type. */
static descriptor create(cudnnBackendDescriptorType_t type) {
    descriptor d;
    KP_CUDNN(cudnnBackendCreateDescriptor(type, &d));
    return d;
}

/* Frees a descriptor; NULL is allowed. */
static void drop(descriptor d) {
    if (d) KP_CUDNN(cudnnBackendDestroyDescriptor(d));
}

/* Set an attribute of n values. */
static void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *values) {
    KP_CUDNN(cudnnBackendSetAttribute(d, name, type, n, values));
}

/* Set an attribute that is another descriptor. */
static void set_descriptor(descriptor d, cudnnBackendAttributeName_t name, descriptor value) {
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

/* A dense tensor [a, b, spatial...] known by `id`. */
static descriptor tensor(int64_t id, cudnnDataType_t type, int64_t a, int64_t b, int axes,
                         const int64_t *spatial) {
    int64_t dim[5] = {a, b}, stride[5], alignment = ALIGNMENT;
    int n = axes + 2;
    for (int i = 0; i < axes; i++) dim[2 + i] = spatial[i];
    stride[n - 1] = 1;
    for (int i = n - 2; i >= 0; i--) stride[i] = stride[i + 1] * dim[i + 1];

    descriptor d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, dim);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, stride);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    KP_CUDNN(cudnnBackendFinalize(d));
    return d;
}

/* Stride, padding and dilation; sums in float whatever the storage. */
static descriptor convolution(int64_t axes, const int64_t *stride, const int64_t *pad,
                              const int64_t *dilation) {
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    descriptor d = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, axes, stride);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, axes, pad);
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, axes, pad);
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, axes, dilation);
    KP_CUDNN(cudnnBackendFinalize(d));
    return d;
}

/* cuDNN's operation and the names of what it takes: from x to y, plain and transposed. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
} operations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}};

/* Describe the convolution up to its operation graph.  One spatial axis becomes
 * two, as in PyTorch: cuDNN's engines expect at least four axes. */
static void describe(struct kp_conv_plan *p, const struct kp_conv *g, cudnnDataType_t type) {
    int axes = g->axes < 2 ? 2 : g->axes, skip = 3 - axes, way = g->transposed;
    int64_t from = way ? g->out_channels : g->in_channels; /* channels that a filter reads */
    int64_t to = way ? g->in_channels : g->out_channels;
    float alpha = 1, beta = 0;
    cudnnHandle_t handle = kp_cudnn();

    p->x = tensor(ID_X, type, g->batch, g->in_channels, axes, g->in + skip);
    p->w = tensor(ID_W, type, to, from / g->groups, axes, g->kernel + skip);
    p->y = tensor(ID_Y, type, g->batch, g->out_channels, axes, g->out + skip);
    p->conv = convolution(axes, g->stride + skip, g->pad + skip, g->dilation + skip);
    p->operation = create(operations[way].type);
    set_descriptor(p->operation, operations[way].x, p->x);
    set_descriptor(p->operation, operations[way].w, p->w);
    set_descriptor(p->operation, operations[way].y, p->y);
    set_descriptor(p->operation, operations[way].conv, p->conv);
    set(p->operation, operations[way].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    set(p->operation, operations[way].beta, CUDNN_TYPE_FLOAT, 1, &beta);
    KP_CUDNN(cudnnBackendFinalize(p->operation));
    p->graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(p->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set_descriptor(p->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, p->operation);
    KP_CUDNN(cudnnBackendFinalize(p->graph));
}

/* True if the engine of `config` rounds its inputs more than `math` allows: to a
 * narrower type (never for f32 tensors), or to TF32 in tensor cores. */
static bool too_coarse(descriptor config, enum kp_math math) {
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    bool found = false;
    descriptor engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    KP_CUDNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine));
    KP_CUDNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                      CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                      &n, note));
    for (int64_t i = 0; i < n; i++)
        found = found || (note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && math == KP_MATH_FP32) ||
                (note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS && math != KP_MATH_HALF);
    drop(engine);
    return found;
}

/* The finished plan of `config`, or NULL if it does not support this convolution
 * or wants too much memory; *workspace: what it wants. */
static descriptor finish(descriptor config, int64_t *workspace) {
    cudnnHandle_t handle = kp_cudnn();
    int64_t n = 0;
    descriptor d = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set_descriptor(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (cudnnBackendFinalize(d) == CUDNN_STATUS_SUCCESS) {
        KP_CUDNN(cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &n, workspace));
        if (*workspace <= max_workspace) return d;
    }
    drop(d);
    return NULL;
}

/* Ask one heuristic; sets p->config and p->plan and returns true if one of its
 * engines can be used. */
static bool search(struct kp_conv_plan *p, cudnnBackendHeurMode_t mode, enum kp_math math,
                   int64_t *workspace) {
    descriptor config[MAX_CONFIGS], heuristic = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0, n = 0;

    set_descriptor(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p->graph);
    set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (cudnnBackendFinalize(heuristic) == CUDNN_STATUS_SUCCESS)
        KP_CUDNN(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL));
    if (count > MAX_CONFIGS) count = MAX_CONFIGS;
    for (int64_t i = 0; i < count; i++) config[i] = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (count)
        KP_CUDNN(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &n, config));
    for (int64_t i = 0; i < n && !p->plan; i++) {
        if (too_coarse(config[i], math)) continue;
        p->plan = finish(config[i], workspace);
        if (p->plan) p->config = config[i];
    }
    for (int64_t i = 0; i < count; i++)
        if (config[i] != p->config) drop(config[i]);
    drop(heuristic);
    return p->plan != NULL;
}

/* See conv_parts.h. */
struct kp_conv_plan *kp_conv_plan(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math,
                                  size_t *workspace) {
    cudnnDataType_t type = dtype == KP_F16    ? CUDNN_DATA_HALF
                           : dtype == KP_BF16 ? CUDNN_DATA_BFLOAT16
                                              : CUDNN_DATA_FLOAT;
    struct kp_conv_plan *p = calloc(1, sizeof *p);
    int64_t bytes = 0;

    if (!p) die(KP_MACHINE, "convolution: out of memory");
    describe(p, g, type);
    if (search(p, CUDNN_HEUR_MODE_INSTANT, math, &bytes) ||
        search(p, CUDNN_HEUR_MODE_FALLBACK, math, &bytes)) {
        *workspace = (size_t)bytes;
        return p;
    }
    warn("cuDNN has no engine for this convolution; it is done by cuBLAS");
    kp_conv_plan_destroy(p);
    return NULL;
}

/* See conv_parts.h. */
void kp_conv_plan_run(struct kp_conv_plan *p, const void *x, const void *w, void *y,
                      void *workspace, cudaStream_t stream) {
    int64_t id[] = {ID_X, ID_W, ID_Y};
    const void *data[] = {x, w, y};
    cudnnHandle_t handle = kp_cudnn();
    descriptor pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

    KP_CUDNN(cudnnSetStream(handle, stream));
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, id);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    KP_CUDNN(cudnnBackendFinalize(pack));
    KP_CUDNN(cudnnBackendExecute(handle, p->plan, pack));
    drop(pack);
}

/* See conv_parts.h; NULL is allowed. */
void kp_conv_plan_destroy(struct kp_conv_plan *p) {
    if (!p) return;
    drop(p->plan);
    drop(p->config);
    drop(p->graph);
    drop(p->operation);
    drop(p->conv);
    drop(p->y);
    drop(p->w);
    drop(p->x);
    free(p);
}

#endif
