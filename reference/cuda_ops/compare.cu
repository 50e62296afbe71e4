/* compare.cu: comparisons of elements, of any type; the result is a mask. */
#include "cuda_base/device.cuh"
#include "cuda_base/strided.h"

namespace {

using namespace kp;

struct Equal {
    template <class A> static __device__ bool of(A a, A b) { return a == b; }
};

/* What is compared: integers as they are, floating types in the type that is computed in. */
template <class T> struct Compared { using type = Acc<T>; };
template <> struct Compared<long long> { using type = long long; };
template <> struct Compared<int> { using type = int; };
template <> struct Compared<uint8_t> { using type = int; };
__device__ inline long long widen(long long x) {
    return x;
}
__device__ inline int widen(int x) {
    return x;
}
__device__ inline int widen(uint8_t x) {
    return x;
}
using kp::widen;

/* An operand, or a number. */
template <class T> struct Side {
    const T *data; /* NULL: the number */
    typename Compared<T>::type number;
    bool moves; /* along the last axis */
};

/* V elements from `at` on, as they are compared. */
template <int V, class T, class A>
__device__ inline void read(const Side<T> &s, int64_t at, A (&to)[V]) {
    if (V > 1 && s.data && s.moves) {
        Pack<T, V> p = load<V>(s.data + at);
#pragma unroll
        for (int e = 0; e < V; e++) to[e] = widen(p.v[e]);
    } else {
        A one = s.data ? widen(s.data[at]) : s.number;
#pragma unroll
        for (int e = 0; e < V; e++) to[e] = one;
    }
}

/* Items of V elements. */
template <class F, class T, int V>
__global__ void __launch_bounds__(KP_THREADS)
    compare(uint8_t *out, Side<T> a, Side<T> b, struct kp_loop l, uint32_t items) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    typename Compared<T>::type x[KP_UNROLL][V], y[KP_UNROLL][V];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        int64_t at[KP_WALKERS];
        kp_loop_at(l, i, at);
        read<V>(a, at[0], x[u]);
        read<V>(b, at[1], y[u]);
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        Pack<uint8_t, V> r;
#pragma unroll
        for (int e = 0; e < V; e++) r.v[e] = F::of(x[u][e], y[u][e]);
        store<V>(out + (int64_t)i * V, r);
    }
}

/* Whether a side can be read in packs of V. */
template <class T> bool side_packs(const kp_walk &w, int k, const Side<T> &s, int V) {
    return !s.data || kp_walk_packs(&w, k, s.data, V, sizeof(T));
}

/* Launch it, in parts if 32 bits cannot count the items. */
template <class F, class T>
void launch(uint8_t *out, Side<T> a, Side<T> b, kp_walk w, cudaStream_t stream) {
    constexpr int V = 16 / sizeof(T);
    int last = w.n - 1;
    bool wide = w.dim[last] % V == 0 && (uintptr_t)out % V == 0 && side_packs(w, 0, a, V) &&
                side_packs(w, 1, b, V);
    int64_t items = w.count / (wide ? V : 1);
    if (items > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        kp_walk rest = kp_walk_split(&w, &at, shift);
        launch<F, T>(out, a, b, w, stream);
        if (a.data) a.data += shift[0];
        if (b.data) b.data += shift[1];
        launch<F, T>(out + at, a, b, rest, stream);
        return;
    }
    a.moves = w.stride[0][last] != 0;
    b.moves = w.stride[1][last] != 0;
    if (wide)
        compare<F, T, V><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, a, b, kp_loop_make(&w, V), (uint32_t)items);
    else
        compare<F, T, 1><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, a, b, kp_loop_make(&w, 1), (uint32_t)items);
    KP_CUDA(cudaGetLastError());
}

/* Operand k of the call, or the number there. */
template <class T> Side<T> side(const kp_call *c, int k) {
    Side<T> s = {NULL, (typename Compared<T>::type)c->op->in[k].scalar, false};
    if (c->present[k]) s.data = (const T *)c->in[k].data;
    return s;
}

template <class F> void run(const kp_call *c, void *, void *, cudaStream_t stream) {
    const kp_array *x[KP_WALKERS] = {c->present[0] ? &c->in[0] : NULL,
                                     c->present[1] ? &c->in[1] : NULL};
    kp_walk w = kp_walk_make(&c->out[0], x);
    uint8_t *out = (uint8_t *)c->out[0].data;
    enum kp_dtype type = c->in[c->present[0] ? 0 : 1].dtype;
    switch (type) {
    case KP_I64: launch<F>(out, side<long long>(c, 0), side<long long>(c, 1), w, stream); return;
    case KP_I32: launch<F>(out, side<int>(c, 0), side<int>(c, 1), w, stream); return;
    case KP_BOOL: launch<F>(out, side<uint8_t>(c, 0), side<uint8_t>(c, 1), w, stream); return;
    default: KP_BY_TYPE(type, launch<F>(out, side<T>(c, 0), side<T>(c, 1), w, stream))
    }
}

} // namespace

KP_IMPL(eq, NULL, run<Equal>, NULL, NULL, KP_STRIDED);
