/* elementwise.cu: ops of one or two operands, broadcasting as NumPy does.
 *
 * Every op is a function of two operands, of which the second may be a constant
 * (a slope, an exponent).  Three forms of one kernel: operands that lie exactly
 * as the result does; operands that are even or constant along the last axis,
 * still read 16 bytes at a time; anything else, element by element.  Arithmetic
 * is double for double and float for the rest, as in PyTorch. */
#include "cuda/strided.h"
#include "base/error.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>
#include <type_traits>

enum function {
    RELU,
    GELU_ERF,
    GELU_TANH,
    SIGMOID,
    TANH,
    SOFTPLUS,
    LEAKY_RELU,
    SQRT,
    RSQRT,
    SQUARE,
    CUBE,
    POW,
    ADD,
    SUB,
    MUL,
    DIV
};

template <typename T>
using math_type = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T> struct operand {
    const T *data; /* NULL: the constant */
    math_type<T> constant;
    bool packed; /* moves along the last axis */
};

template <typename T> __device__ __forceinline__ math_type<T> widen(T x) {
    if constexpr (std::is_same_v<T, __half>)
        return __half2float(x);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __bfloat162float(x);
    else
        return x;
}

template <typename T> __device__ __forceinline__ T narrow(math_type<T> x) {
    if constexpr (std::is_same_v<T, __half>)
        return __float2half_rn(x);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __float2bfloat16_rn(x);
    else
        return x;
}

/* The ops.  NaN comes out of each of them where PyTorch lets it: comparisons
 * are written so that they are false for it. */
template <int F, typename C> __device__ __forceinline__ C apply(C a, C b) {
    if constexpr (F == RELU) return a < C(0) ? C(0) : a;
    if constexpr (F == GELU_ERF &&
                  std::is_same_v<C, double>) /* exact far below 0, for the oracle */
        return a * 0.5 * erfc(a * -0.70710678118654752440);
    if constexpr (F == GELU_ERF) return a * C(0.5) * (C(1) + erf(a * C(0.70710678118654752440)));
    if constexpr (F == GELU_TANH) { /* the factor is sqrt(2 / pi) */
        C inner = C(0.79788456080286535588) * (a + C(0.044715) * a * a * a);
        return C(0.5) * a * (C(1) + tanh(inner));
    }
    if constexpr (F == SIGMOID) return C(1) / (C(1) + exp(-a));
    if constexpr (F == TANH) return tanh(a);
    if constexpr (F == SOFTPLUS) return a > C(20) ? a : log1p(exp(a));
    if constexpr (F == LEAKY_RELU) return a > C(0) ? a : a * b;
    if constexpr (F == SQRT) return sqrt(a);
    if constexpr (F == RSQRT) return C(1) / sqrt(a);
    if constexpr (F == SQUARE) return a * a;
    if constexpr (F == CUBE) return a * a * a;
    if constexpr (F == POW) return pow(a, b);
    if constexpr (F == ADD) return a + b;
    if constexpr (F == SUB) return a - b;
    if constexpr (F == MUL) return a * b;
    if constexpr (F == DIV) return a / b;
}

/* V elements from `at`; where fewer are left, only those. */
template <typename T, int V>
__device__ __forceinline__ kp_pack<T, V> load(const operand<T> &x, int64_t at, int64_t left) {
    kp_pack<T, V> r;
    if (V > 1 && x.packed && left >= V) {
        r = *(const kp_pack<T, V> *)(x.data + at);
    } else {
#pragma unroll
        for (int j = 0; j < V; j++)
            if (j < left) r.v[j] = x.data[at + (x.packed ? j : 0)];
    }
    return r;
}

/* Items of V elements, KP_UNROLL a thread, all loads before the arithmetic.
 * FLAT: operands lie as the result does, and the last item may be short. */
template <int F, typename T, int V, bool FLAT>
__global__ void __launch_bounds__(KP_THREADS)
    elementwise(T *out, operand<T> a, operand<T> b, struct kp_loop l, int64_t count) {
    int64_t first = blockIdx.x * (int64_t)(KP_THREADS * KP_UNROLL) + threadIdx.x;
    kp_pack<T, V> x[KP_UNROLL], y[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        int64_t i = first + u * KP_THREADS, left = count - i * V;
        if (left <= 0) continue;
        int64_t at[KP_WALKERS] = {i * V, i * V};
        if (!FLAT) kp_loop_at(l, (uint32_t)i, at);
        if (a.data) x[u] = load<T, V>(a, at[0], left);
        if (b.data) y[u] = load<T, V>(b, at[1], left);
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        int64_t i = first + u * KP_THREADS, left = count - i * V;
        if (left <= 0) continue;
        kp_pack<T, V> z;
#pragma unroll
        for (int j = 0; j < V; j++)
            z.v[j] = narrow<T>(apply<F>(a.data ? widen(x[u].v[j]) : a.constant,
                                        b.data ? widen(y[u].v[j]) : b.constant));
        if (left >= V) {
            *(kp_pack<T, V> *)(out + i * V) = z;
        } else {
#pragma unroll
            for (int j = 0; j < V; j++)
                if (j < left) out[i * V + j] = z.v[j];
        }
    }
}

/* True if an operand lies as the result does, or is a constant. */
template <typename T> static bool lies_flat(const struct kp_walk *w, int k, const operand<T> *x) {
    return !x->data || (w->n == 1 && w->stride[k][0] == 1 && (uintptr_t)x->data % 16 == 0);
}

/* Choose the form and launch it, in parts if 32 bits cannot count it. */
template <int F, typename T>
static void launch(T *out, operand<T> a, operand<T> b, struct kp_walk w, cudaStream_t stream) {
    constexpr int V = 16 / sizeof(T);
    constexpr bool binary = F >= POW;
    int last = w.n - 1;
    bool aligned = (uintptr_t)out % 16 == 0;
    bool flat = aligned && lies_flat(&w, 0, &a) && lies_flat(&w, 1, &b);
    bool packs = !flat && binary && aligned && w.dim[last] % V == 0 &&
                 kp_walk_packs(&w, 0, a.data, V, sizeof(T)) &&
                 kp_walk_packs(&w, 1, b.data, V, sizeof(T));
    int64_t items = flat || packs ? (w.count + V - 1) / V : w.count;
    if (!flat && items > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        struct kp_walk rest = kp_walk_split(&w, &at, shift);
        launch<F, T>(out, a, b, w, stream);
        if (a.data) a.data += shift[0];
        if (b.data) b.data += shift[1];
        launch<F, T>(out + at, a, b, rest, stream);
        return;
    }
    a.packed = flat || w.stride[0][last] != 0;
    b.packed = flat || w.stride[1][last] != 0;
    unsigned blocks = kp_blocks(items);
    struct kp_loop none = {};
    if (flat)
        elementwise<F, T, V, true><<<blocks, KP_THREADS, 0, stream>>>(out, a, b, none, w.count);
    else if constexpr (binary) {
        if (packs)
            elementwise<F, T, V, false>
                <<<blocks, KP_THREADS, 0, stream>>>(out, a, b, kp_loop_make(&w, V), w.count);
    }
    if (!flat && !packs)
        elementwise<F, T, 1, false>
            <<<blocks, KP_THREADS, 0, stream>>>(out, a, b, kp_loop_make(&w, 1), w.count);
    KP_CUDA(cudaGetLastError());
}

/* Operand k of the call, or the constant. */
template <typename T> static operand<T> take(const struct kp_call *c, int k, double constant) {
    operand<T> x = {NULL, (math_type<T>)constant, false};
    if (c->present[k])
        x.data = (const T *)c->in[k].data;
    else if (k < c->op->nin)
        x.constant = (math_type<T>)c->op->in[k].scalar;
    return x;
}

/* The device function of an op.  Small powers are products or roots, as in
 * PyTorch. */
static enum function function_of(const struct kp_call *c) {
    const struct kp_op *op = c->op;
    switch (op->def->id) {
    case KP_OP_RELU: return RELU;
    case KP_OP_GELU:
        return strcmp(op_word(op, "approximate", "none"), "tanh") ? GELU_ERF : GELU_TANH;
    case KP_OP_SIGMOID: return SIGMOID;
    case KP_OP_TANH: return TANH;
    case KP_OP_SOFTPLUS: return SOFTPLUS;
    case KP_OP_LEAKY_RELU: return LEAKY_RELU;
    case KP_OP_SQRT: return SQRT;
    case KP_OP_POW:
        if (c->present[1]) return POW;
        if (op->in[1].scalar == 2) return SQUARE;
        if (op->in[1].scalar == 3) return CUBE;
        if (op->in[1].scalar == 0.5) return SQRT;
        return op->in[1].scalar == -0.5 ? RSQRT : POW;
    case KP_OP_ADD: return ADD;
    case KP_OP_SUB: return SUB;
    case KP_OP_MUL: return MUL;
    case KP_OP_DIV: return DIV;
    default: die(KP_BUG, "%s is not elementwise", op->def->name);
    }
}

/* Launch function f on the arrays of a call whose elements are T. */
template <typename T> static void run_type(const struct kp_call *c, cudaStream_t stream) {
    const struct kp_array *x[KP_WALKERS] = {c->present[0] ? &c->in[0] : NULL,
                                            c->present[1] ? &c->in[1] : NULL};
    struct kp_walk w = kp_walk_make(&c->out[0], x);
    operand<T> a = take<T>(c, 0, 0), b = take<T>(c, 1, op_float(c->op, "negative_slope", 0.01));
    T *out = (T *)c->out[0].data;
    switch (function_of(c)) {
    case RELU: launch<RELU, T>(out, a, b, w, stream); break;
    case GELU_ERF: launch<GELU_ERF, T>(out, a, b, w, stream); break;
    case GELU_TANH: launch<GELU_TANH, T>(out, a, b, w, stream); break;
    case SIGMOID: launch<SIGMOID, T>(out, a, b, w, stream); break;
    case TANH: launch<TANH, T>(out, a, b, w, stream); break;
    case SOFTPLUS: launch<SOFTPLUS, T>(out, a, b, w, stream); break;
    case LEAKY_RELU: launch<LEAKY_RELU, T>(out, a, b, w, stream); break;
    case SQRT: launch<SQRT, T>(out, a, b, w, stream); break;
    case RSQRT: launch<RSQRT, T>(out, a, b, w, stream); break;
    case SQUARE: launch<SQUARE, T>(out, a, b, w, stream); break;
    case CUBE: launch<CUBE, T>(out, a, b, w, stream); break;
    case POW: launch<POW, T>(out, a, b, w, stream); break;
    case ADD: launch<ADD, T>(out, a, b, w, stream); break;
    case SUB: launch<SUB, T>(out, a, b, w, stream); break;
    case MUL: launch<MUL, T>(out, a, b, w, stream); break;
    case DIV: launch<DIV, T>(out, a, b, w, stream); break;
    }
}

/* Needs no scratch and has no state; the form is chosen by the pointers. */
static void *prepare(const struct kp_call *c, size_t *scratch) {
    enum kp_dtype t = c->out[0].dtype;
    if (t != KP_F64 && t != KP_F32 && t != KP_F16 && t != KP_BF16)
        die(KP_INPUT, "%s:%d: %s of %s values is not implemented; use a floating type",
            c->task->path, c->op->line, c->op->def->name, kp_dtype_name(t));
    *scratch = 0;
    return NULL;
}

static void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    switch (c->out[0].dtype) {
    case KP_F64: run_type<double>(c, stream); break;
    case KP_F32: run_type<float>(c, stream); break;
    case KP_F16: run_type<__half>(c, stream); break;
    case KP_BF16: run_type<__nv_bfloat16>(c, stream); break;
    default: die(KP_BUG, "elementwise op of an integer type");
    }
}

extern "C" const struct kp_impl kp_impl_elementwise = {prepare, run, NULL, false};
