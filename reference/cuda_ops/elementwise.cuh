/* elementwise.cuh: ops of one or two operands, broadcasting as NumPy does.
 *
 * Tables of define/ have the ops: functions of up to three arguments, which are elements of
 * operands or numbers (a slope, an exponent).  One kernel has three forms: operands that lie as
 * the result does; operands that are even or constant along the last axis, also read 16 bytes at
 * a time; and anything else, element by element.  Arithmetic is double for double and float for
 * the rest, as in PyTorch.  A thread reads its elements before it writes them, and no others: the
 * result may take an operand's place.
 *
 * A table is included twice: first with ELEMENTWISE defined as FORM, which makes its functions,
 * then with it defined as ELEMENTWISE_IMPL, and FORM as nothing. */
#ifndef KP_ELEMENTWISE_CUH
#define KP_ELEMENTWISE_CUH

#include "cuda_base/check.h"
#include "cuda_base/impl.h"
#include "cuda_base/noise.cuh"
#include "cuda_base/strided.h"
#include "base/error.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>
#include <type_traits>

template <typename T>
using math_type = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T> struct operand {
    const T *data; /* NULL: the constant */
    math_type<T> constant;
    bool packed; /* moves along the last axis */
};

/* A mask that stands for numbers of type T, 0 and 1. */
template <typename T> struct mask_operand {
    const unsigned char *data; /* not NULL */
    math_type<T> constant;
    bool packed;
};

/* The second argument, and the number that is the third. */
template <typename T> struct operand_and_number : operand<T> { math_type<T> third; };

/* A function: how many operands and numbers it takes, and what it computes. */
#define FORM(name, operands_, numbers_, expression)                                   \
    struct form_##name {                                                              \
        static constexpr int operands = operands_, numbers = numbers_;                \
        template <typename C> static __device__ __forceinline__ C of(C x, C y, C z) { \
            return expression;                                                        \
        }                                                                             \
    };
/* What function F is given as its second argument, and as its third. */
template <class F, typename T>
using rest_of =
    std::conditional_t<(F::operands + F::numbers > 2), operand_and_number<T>, operand<T>>;

/* A stored value in the type that is computed in, and back, rounded to nearest. */
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

/* The same of a mask, as numbers. */
template <typename T, int V>
__device__ __forceinline__ kp_pack<T, V> load(const mask_operand<T> &x, int64_t at, int64_t left) {
    kp_pack<unsigned char, V> m;
    kp_pack<T, V> r;
    if (V > 1 && x.packed && left >= V) {
        m = *(const kp_pack<unsigned char, V> *)(x.data + at);
    } else {
#pragma unroll
        for (int j = 0; j < V; j++)
            if (j < left) m.v[j] = x.data[at + (x.packed ? j : 0)];
    }
#pragma unroll
    for (int j = 0; j < V; j++) r.v[j] = narrow<T>(j < left ? m.v[j] : 0);
    return r;
}

/* Items of V elements, KP_UNROLL a thread, all loads before the arithmetic.  FLAT: operands lie as
 * the result does, and the last item may be short.  B: rest_of<F, T>, or mask_operand<T>. */
template <class F, typename T, int V, bool FLAT, class B>
__global__ void __launch_bounds__(KP_THREADS)
    elementwise(T *out, operand<T> a, B b, struct kp_loop l, int64_t count) {
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
    math_type<T> third = 0; /* what few functions have */
    if constexpr (F::operands + F::numbers > 2) third = b.third;
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        int64_t i = first + u * KP_THREADS, left = count - i * V;
        if (left <= 0) continue;
        kp_pack<T, V> z;
#pragma unroll
        for (int j = 0; j < V; j++)
            z.v[j] = narrow<T>(F::of(a.data ? widen(x[u].v[j]) : a.constant,
                                     b.data ? widen(y[u].v[j]) : b.constant, third));
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
template <class X> static bool lies_flat(const struct kp_walk *w, int k, const X *x) {
    return !x->data || (w->n == 1 && w->stride[k][0] == 1 && (uintptr_t)x->data % 16 == 0);
}

/* Choose the form and launch it, in parts if 32 bits cannot count it. */
template <class F, typename T, class B>
static void launch(T *out, operand<T> a, B b, struct kp_walk w, cudaStream_t stream) {
    constexpr int V = 16 / sizeof(T);
    constexpr bool binary = F::operands == 2;
    int last = w.n - 1;
    bool aligned = (uintptr_t)out % 16 == 0;
    bool flat = aligned && lies_flat(&w, 0, &a) && lies_flat(&w, 1, &b);
    bool packs = !flat && binary && aligned && w.dim[last] % V == 0 &&
                 kp_walk_packs(&w, 0, a.data, V, sizeof(T)) &&
                 kp_walk_packs(&w, 1, b.data, V, sizeof *b.data);
    int64_t items = flat || packs ? (w.count + V - 1) / V : w.count;
    if (!flat && items > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        struct kp_walk rest = kp_walk_split(&w, &at, shift);
        launch<F>(out, a, b, w, stream);
        if (a.data) a.data += shift[0];
        if (b.data) b.data += shift[1];
        launch<F>(out + at, a, b, rest, stream);
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

/* Argument k of the call: an operand, or this number. */
template <typename T> static operand<T> take(const struct kp_call *c, int k, double number) {
    operand<T> x = {NULL, (math_type<T>)number, false};
    if (c->present[k]) x.data = (const T *)c->in[k].data;
    return x;
}

/* Whether a function takes a mask as its second argument as it is. */
template <class F> constexpr bool takes_mask = false;

/* Launch F on the arrays of a call whose elements are T. */
template <class F, typename T> static void run_type(const struct kp_call *c, cudaStream_t stream) {
    const struct kp_array *x[KP_WALKERS] = {c->present[0] ? &c->in[0] : NULL,
                                            c->present[1] ? &c->in[1] : NULL};
    struct kp_walk w = kp_walk_make(&c->out[0], x);
    double number[KP_MAX_ARGUMENTS];
    op_arguments(c->op, number);
    if constexpr (takes_mask<F> && !std::is_same_v<T, double>) {
        if (c->present[1] && c->in[1].dtype == KP_BOOL) {
            mask_operand<T> m = {(const unsigned char *)c->in[1].data, 0, false};
            launch<F>((T *)c->out[0].data, take<T>(c, 0, number[0]), m, w, stream);
            return;
        }
    }
    rest_of<F, T> b;
    static_cast<operand<T> &>(b) = take<T>(c, 1, number[1]);
    if constexpr (F::operands + F::numbers > 2) b.third = (math_type<T>)number[2];
    launch<F>((T *)c->out[0].data, take<T>(c, 0, number[0]), b, w, stream);
}

/* Refuse types that no form has.  There is no scratch and no state: pointers decide the form. */
static void *prepare(const struct kp_call *c, size_t *scratch) {
    enum kp_dtype t = c->out[0].dtype;
    if (t != KP_F64 && t != KP_F32 && t != KP_F16 && t != KP_BF16)
        die(KP_INPUT, "%s:%d: %s of %s values is not implemented; use a floating type",
            c->task->path, c->op->line, c->op->def->name, kp_dtype_name(t));
    *scratch = 0;
    return NULL;
}

/* Enqueue F on a call. */
template <class F> static void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    switch (c->out[0].dtype) {
    case KP_F64: run_type<F, double>(c, stream); break;
    case KP_F32: run_type<F, float>(c, stream); break;
    case KP_F16: run_type<F, __half>(c, stream); break;
    case KP_BF16: run_type<F, __nv_bfloat16>(c, stream); break;
    default: die(KP_BUG, "elementwise op of an integer type");
    }
}

/* ---- the same with noise: every operation of the expression rounds at random ---- */

template <class F>
__global__ void __launch_bounds__(KP_THREADS)
    elementwise_rough(double *out, operand<double> a, operand<double> b, double third,
                      struct kp_loop l, int64_t count, uint64_t seed) {
    using kp::Rough;
    int64_t i = blockIdx.x * (int64_t)KP_THREADS + threadIdx.x, at[KP_WALKERS];
    if (i >= count) return;
    kp_loop_at(l, (uint32_t)i, at);
    Rough x = a.data ? Rough(a.data[at[0]], seed) : Rough(a.constant);
    Rough y = b.data ? Rough(b.data[at[1]], seed) : Rough(b.constant);
    out[i] = F::of(x, y, Rough(third)).v;
}

/* Launch it, in parts if 32 bits cannot count the elements. */
template <class F>
static void launch_rough(double *out, operand<double> a, operand<double> b, double third,
                         struct kp_walk w, uint64_t seed, cudaStream_t stream) {
    if (w.count > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        struct kp_walk rest = kp_walk_split(&w, &at, shift);
        launch_rough<F>(out, a, b, third, w, seed, stream);
        if (a.data) a.data += shift[0];
        if (b.data) b.data += shift[1];
        launch_rough<F>(out + at, a, b, third, rest, seed, stream);
        return;
    }
    unsigned blocks = (unsigned)((w.count + KP_THREADS - 1) / KP_THREADS);
    elementwise_rough<F>
        <<<blocks, KP_THREADS, 0, stream>>>(out, a, b, third, kp_loop_make(&w, 1), w.count, seed);
    KP_CUDA(cudaGetLastError());
}

/* Enqueue F with noise on a call. */
template <class F> static void rough(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    const struct kp_array *x[KP_WALKERS] = {c->present[0] ? &c->in[0] : NULL,
                                            c->present[1] ? &c->in[1] : NULL};
    double number[KP_MAX_ARGUMENTS];
    op_arguments(c->op, number);
    launch_rough<F>((double *)c->out[0].data, take<double>(c, 0, number[0]),
                    take<double>(c, 1, number[1]), number[2], kp_walk_make(&c->out[0], x),
                    c->noise->seed, stream);
}

#define ELEMENTWISE_IMPL(name, operands, numbers, expression)          \
    KP_IMPL(name, prepare, run<form_##name>, rough<form_##name>, NULL, \
            KP_ONE_TYPE | KP_IN_PLACE | (takes_mask<form_##name> ? KP_MASKS : 0));

#endif
