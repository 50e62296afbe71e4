/* replace.cu: ops that copy their operand but for some elements, which become a given number:
 * pad, tril, triu, masked_fill; and full, which has no operand. */
#include "cuda_base/strided.h"
#include "cuda_ops/bits.cuh"

namespace {

using namespace kp;

/* The number that stands in the place of elements, as bits of their type. */
uint64_t value_of(const kp_call *c) {
    return bits_of(op_float(c->op, "value", 0), c->out[0].dtype);
}

/* ---- pad ---- */

struct Frame { /* innermost axis first, in items */
    int n;
    kp_divisor dim[KP_MAX_DIMS]; /* of the result */
    uint32_t before[KP_MAX_DIMS], size[KP_MAX_DIMS];
    int64_t stride[KP_MAX_DIMS]; /* of the operand */
};

/* Items of V elements of the result. */
template <class U, int V>
__global__ void __launch_bounds__(KP_THREADS)
    pad_kernel(U *out, const U *in, const __grid_constant__ Frame f, uint32_t items, U value) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    Pack<U, V> x[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS, rest = i;
        if (i >= items) continue;
        int64_t at = 0;
        bool inside = true;
        for (int d = 0; d < f.n; d++) {
            kp_divisor v = f.dim[d];
            uint32_t q = d + 1 < f.n ? (__umulhi(rest, v.multiplier) + rest) >> v.shift : 0;
            uint32_t place = rest - q * v.d - f.before[d]; /* wraps round below 0 */
            inside = inside && place < f.size[d];
            at += place * f.stride[d];
            rest = q;
        }
        if (inside)
            x[u] = load<V>(in + at);
        else
            for (int e = 0; e < V; e++) x[u].v[e] = value;
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i < items) store<V>(out + (int64_t)i * V, x[u]);
    }
}

/* Places before the operand along axis d of n. */
int64_t before(const kp_op *op, int d, int n) {
    const kp_attr *a = op_attr(op, "pad");
    int k = 2 * (n - 1 - d);
    return k < a->n ? a->list[k] : 0;
}

/* The frame: last axes that are not padded and lie evenly become one, of `inner` elements. */
Frame frame_of(const kp_call *c, int64_t *inner, bool *even) {
    const kp_array *x = &c->in[0], *y = &c->out[0];
    Frame f = {};
    int d = x->n - 1;
    *inner = 1;
    *even = true;
    for (; d >= 0 && y->dim[d] == x->dim[d] && (x->dim[d] == 1 || x->stride[d] == *inner); d--)
        *inner *= x->dim[d];
    if (*inner > 1) { /* an axis of its own */
        f.dim[0] = kp_divisor_make(*inner);
        f.size[0] = (uint32_t)*inner;
        f.stride[f.n++] = 1;
    }
    for (; d >= 0; d--, f.n++) {
        f.dim[f.n] = kp_divisor_make(y->dim[d]);
        f.before[f.n] = (uint32_t)before(c->op, d, x->n);
        f.size[f.n] = (uint32_t)x->dim[d];
        f.stride[f.n] = x->stride[d];
        *even = *even && x->stride[d] % (int64_t)16 == 0;
    }
    return f;
}

template <class U> void launch_pad(const kp_call *c, cudaStream_t stream) {
    constexpr int V = 16 / sizeof(U);
    int64_t inner, count = kp_array_count(&c->out[0]);
    bool even;
    Frame f = frame_of(c, &inner, &even);
    U *out = (U *)c->out[0].data, value = (U)value_of(c);
    const U *in = (const U *)c->in[0].data;
    bool wide = even && packs<U>(in, inner) && packs<U>(out, inner);
    if (count / (wide ? V : 1) > INT32_MAX)
        die(KP_INPUT, "%s:%d: pad to more than 2^31 elements; use a smaller task", c->task->path,
            c->op->line);
    if (wide) {
        f.dim[0] = kp_divisor_make(inner / V);
        f.size[0] /= V;
        f.stride[0] = V;
        pad_kernel<U, V><<<kp_blocks(count / V), KP_THREADS, 0, stream>>>(
            out, in, f, (uint32_t)(count / V), value);
    } else {
        pad_kernel<U, 1>
            <<<kp_blocks(count), KP_THREADS, 0, stream>>>(out, in, f, (uint32_t)count, value);
    }
    KP_CUDA(cudaGetLastError());
}

void run_pad(const kp_call *c, void *, void *, cudaStream_t stream) {
    KP_BY_SIZE(kp_dtype_size(c->out[0].dtype), launch_pad<U>(c, stream))
}

/* ---- tril, triu ---- */

/* Items of V elements of one row, of a dense operand.  What is not kept is not read. */
template <class U, int V, bool LOWER>
__global__ void __launch_bounds__(KP_THREADS)
    triangle(U *out, const U *in, uint32_t items, kp_divisor rows, kp_divisor wide,
             int64_t diagonal) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    Pack<U, V> x[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        uint32_t line = (__umulhi(i, wide.multiplier) + i) >> wide.shift;
        uint32_t row = line - ((__umulhi(line, rows.multiplier) + line) >> rows.shift) * rows.d;
        int64_t column = (int64_t)(i - line * wide.d) * V, edge = row + diagonal;
        bool any = LOWER ? column <= edge : column + V - 1 >= edge;
        if (any) x[u] = load<V>(in + (int64_t)i * V);
#pragma unroll
        for (int e = 0; e < V; e++)
            if (LOWER ? column + e > edge : column + e < edge) x[u].v[e] = 0;
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i < items) store<V>(out + (int64_t)i * V, x[u]);
    }
}

/* Launch it, on as many matrices at a time as 32 bits can count. */
template <class U, int V, bool LOWER> void launch_triangle(const kp_call *c, cudaStream_t stream) {
    const kp_array *y = &c->out[0];
    int64_t rows = y->dim[y->n - 2], wide = y->dim[y->n - 1] / V, left = kp_array_count(y) / V;
    int64_t most = INT32_MAX / (rows * wide) * (rows * wide);
    U *out = (U *)y->data;
    const U *in = (const U *)c->in[0].data;
    if (most == 0)
        die(KP_INPUT, "%s:%d: %s of a matrix of more than 2^31 elements; use a smaller task",
            c->task->path, c->op->line, c->op->def->name);
    while (left > 0) {
        int64_t items = left < most ? left : most;
        triangle<U, V, LOWER><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, in, (uint32_t)items, kp_divisor_make(rows), kp_divisor_make(wide),
            op_int(c->op, "diagonal", 0));
        KP_CUDA(cudaGetLastError());
        out += items * V;
        in += items * V;
        left -= items;
    }
}

template <bool LOWER> void run_triangle(const kp_call *c, void *, void *, cudaStream_t stream) {
    const kp_array *y = &c->out[0];
    KP_BY_SIZE(kp_dtype_size(y->dtype), {
        constexpr int V = 16 / sizeof(U);
        int64_t columns = y->dim[y->n - 1];
        if (packs<U>(y->data, columns) && packs<U>(c->in[0].data, columns))
            launch_triangle<U, V, LOWER>(c, stream);
        else
            launch_triangle<U, 1, LOWER>(c, stream);
    })
}

/* ---- masked_fill ---- */

/* Items of V elements along the last axis. */
template <class U, int V>
__global__ void __launch_bounds__(KP_THREADS)
    fill_masked(U *out, const U *in, const uint8_t *mask, bool in_moves, bool mask_moves,
                struct kp_loop l, uint32_t items, U value) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    Pack<U, V> x[KP_UNROLL];
    Pack<uint8_t, V> m[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        int64_t at[KP_WALKERS];
        kp_loop_at(l, i, at);
        if (in_moves)
            x[u] = load<V>(in + at[0]);
        else
            for (int e = 0; e < V; e++) x[u].v[e] = in[at[0]];
        if (mask_moves)
            m[u] = load<V>(mask + at[1]);
        else
            for (int e = 0; e < V; e++) m[u].v[e] = mask[at[1]];
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
#pragma unroll
        for (int e = 0; e < V; e++)
            if (m[u].v[e]) x[u].v[e] = value;
        store<V>(out + (int64_t)i * V, x[u]);
    }
}

/* Launch it, in parts if 32 bits cannot count the items. */
template <class U>
void launch_masked(U *out, const U *in, const uint8_t *mask, kp_walk w, U value,
                   cudaStream_t stream) {
    constexpr int V = 16 / sizeof(U);
    int last = w.n - 1;
    bool wide = packs<U>(out, w.dim[last]) && kp_walk_packs(&w, 0, in, V, sizeof(U)) &&
                kp_walk_packs(&w, 1, mask, V, 1);
    int64_t items = w.count / (wide ? V : 1);
    if (items > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        kp_walk rest = kp_walk_split(&w, &at, shift);
        launch_masked(out, in, mask, w, value, stream);
        launch_masked(out + at, in + shift[0], mask + shift[1], rest, value, stream);
        return;
    }
    bool in_moves = w.stride[0][last] != 0, mask_moves = w.stride[1][last] != 0;
    if (wide)
        fill_masked<U, V><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, in, mask, in_moves, mask_moves, kp_loop_make(&w, V), (uint32_t)items, value);
    else
        fill_masked<U, 1><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, in, mask, in_moves, mask_moves, kp_loop_make(&w, 1), (uint32_t)items, value);
    KP_CUDA(cudaGetLastError());
}

void run_masked(const kp_call *c, void *, void *, cudaStream_t stream) {
    const kp_array *x[KP_WALKERS] = {&c->in[0], &c->in[1]};
    kp_walk w = kp_walk_make(&c->out[0], x);
    KP_BY_SIZE(kp_dtype_size(c->out[0].dtype),
               launch_masked((U *)c->out[0].data, (const U *)c->in[0].data,
                             (const uint8_t *)c->in[1].data, w, (U)value_of(c), stream))
}

/* ---- full ---- */

/* Packs of 16 bytes; the last may be short. */
template <class U>
__global__ void __launch_bounds__(KP_THREADS) fill_all(U *out, int64_t count, U value) {
    constexpr int V = 16 / sizeof(U);
    int64_t i = (blockIdx.x * (int64_t)KP_THREADS + threadIdx.x) * V;
    Pack<U, V> x;
#pragma unroll
    for (int e = 0; e < V; e++) x.v[e] = value;
    if (i + V <= count)
        store<V>(out + i, x);
    else
        for (; i < count; i++) out[i] = value;
}

void run_full(const kp_call *c, void *, void *, cudaStream_t stream) {
    int64_t count = kp_array_count(&c->out[0]);
    int64_t threads = ((int64_t)kp_array_bytes(&c->out[0]) + 15) / 16;
    unsigned blocks = (unsigned)((threads + KP_THREADS - 1) / KP_THREADS);
    KP_BY_SIZE(kp_dtype_size(c->out[0].dtype), fill_all<U>
               <<<blocks, KP_THREADS, 0, stream>>>((U *)c->out[0].data, count, (U)value_of(c)))
    KP_CUDA(cudaGetLastError());
}

} // namespace

KP_IMPL(pad, NULL, run_pad, NULL, NULL, KP_STRIDED);
KP_IMPL(tril, NULL, run_triangle<true>, NULL, NULL, KP_DENSE);
KP_IMPL(triu, NULL, run_triangle<false>, NULL, NULL, KP_DENSE);
KP_IMPL(masked_fill, NULL, run_masked, NULL, NULL, KP_STRIDED);
KP_IMPL(full, NULL, run_full, NULL, NULL, KP_STRIDED);
