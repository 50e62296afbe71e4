/* cat.cu: operands of any strides, one after the other along an axis of a dense result.
 *
 * Seen along that axis, most operands are rows: runs of elements, some steps apart in the operand
 * and some in the result.  One launch moves the rows of up to PARTS operands, in the widest units
 * that suit all of them.  An operand whose last axis is not even, or that is not rows, has a launch
 * of its own. */
#include "cuda_base/strided.h"
#include "cuda_ops/bits.cuh"

namespace {

using namespace kp;

enum { PARTS = 64 };

struct Part { /* one operand's rows, in units */
    const void *in;
    int64_t to; /* where its first row begins in the result */
    int64_t in_step, out_step;
    uint32_t items;    /* of all rows */
    kp_divisor length; /* of a row */
};

struct Parts {
    int n;
    Part of[PARTS];
};

/* Block (x, y): units of part y. */
template <class U>
__global__ void __launch_bounds__(KP_THREADS)
    move_rows(U *out, const __grid_constant__ Parts parts) {
    const Part &p = parts.of[blockIdx.y];
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    if (first >= p.items) return;
    const U *in = (const U *)p.in;
    U x[KP_UNROLL];
    int64_t to[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= p.items) continue;
        int64_t row = (__umulhi(i, p.length.multiplier) + i) >> p.length.shift;
        int64_t column = i - row * p.length.d;
        x[u] = in[row * p.in_step + column];
        to[u] = p.to + row * p.out_step + column;
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++)
        if (first + u * KP_THREADS < p.items) out[to[u]] = x[u];
}

/* Element by element, from walker 0 to walker 1. */
template <class U>
__global__ void __launch_bounds__(KP_THREADS)
    move_any(U *out, const U *in, struct kp_loop l, uint32_t count) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    U x[KP_UNROLL];
    int64_t at[KP_UNROLL][KP_WALKERS];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= count) continue;
        kp_loop_at(l, i, at[u]);
        x[u] = in[at[u][0]];
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++)
        if (first + u * KP_THREADS < count) out[at[u][1]] = x[u];
}

/* Launch it, in parts if 32 bits cannot count the elements. */
template <class U> void launch_any(U *out, const U *in, kp_walk w, cudaStream_t stream) {
    if (w.count > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        kp_walk rest = kp_walk_split(&w, &at, shift);
        launch_any(out, in, w, stream);
        launch_any(out + shift[1], in + shift[0], rest, stream);
        return;
    }
    move_any<U><<<kp_blocks(w.count), KP_THREADS, 0, stream>>>(out, in, kp_loop_make(&w, 1),
                                                               (uint32_t)w.count);
    KP_CUDA(cudaGetLastError());
}

/* The walk over operand x (walker 0) and over its place in the result (walker 1). */
kp_walk walk_of(const kp_array *x, const kp_array *out) {
    kp_array place = *out;
    memcpy(place.dim, x->dim, sizeof place.dim);
    const kp_array *both[KP_WALKERS] = {x, &place};
    return kp_walk_make(&place, both);
}

/* The rows of a walk, in elements.  False if it is none, or of more than 2^31 elements. */
bool rows_of(const kp_walk &w, const void *in, int64_t to, Part *p) {
    int last = w.n - 1;
    bool one = w.count == 1;
    if (w.n > 2 || w.count > INT32_MAX) return false;
    if (!one && (w.stride[0][last] != 1 || w.stride[1][last] != 1)) return false;
    p->in = in;
    p->to = to;
    p->in_step = w.n == 2 ? w.stride[0][0] : 0;
    p->out_step = w.n == 2 ? w.stride[1][0] : 0;
    p->items = (uint32_t)w.count;
    p->length.d = (uint32_t)w.dim[last];
    return true;
}

/* Bytes of the widest unit, a power of two up to 16, that all parts consist of. */
int unit_of(const Parts &parts, const void *out, int size) {
    uint64_t all = (uint64_t)(uintptr_t)out | 16;
    for (int i = 0; i < parts.n; i++) {
        const Part &p = parts.of[i];
        uint64_t elements =
            (uint64_t)p.to | (uint64_t)p.in_step | (uint64_t)p.out_step | p.length.d;
        all |= (uint64_t)(uintptr_t)p.in | elements * (uint64_t)size;
    }
    return (int)(all & -all);
}

/* Enqueue the rows, and empty the list. */
void launch_rows(Parts &parts, void *out, int size, cudaStream_t stream) {
    if (!parts.n) return;
    int unit = unit_of(parts, out, size), wide = unit / size;
    uint32_t most = 0;
    for (int i = 0; i < parts.n; i++) {
        Part &p = parts.of[i];
        p.to /= wide;
        p.in_step /= wide;
        p.out_step /= wide;
        p.items /= wide;
        p.length = kp_divisor_make(p.length.d / wide);
        most = p.items > most ? p.items : most;
    }
    dim3 grid(kp_blocks(most), (unsigned)parts.n);
    if (unit == 16)
        move_rows<uint4><<<grid, KP_THREADS, 0, stream>>>((uint4 *)out, parts);
    else
        KP_BY_SIZE(unit, move_rows<U><<<grid, KP_THREADS, 0, stream>>>((U *)out, parts))
    KP_CUDA(cudaGetLastError());
    parts.n = 0;
}

/* Enqueue all operands. */
void run(const kp_call *c, void *, void *, cudaStream_t stream) {
    const kp_array *out = &c->out[0];
    int axis = op_axis(c->op, "dim", out->n), size = (int)kp_dtype_size(out->dtype);
    int64_t to = 0;
    Parts parts = {};
    for (int k = 0; k < c->nin; k++) {
        const kp_array *x = &c->in[k];
        kp_walk w = walk_of(x, out);
        if (rows_of(w, x->data, to, &parts.of[parts.n]))
            parts.n++;
        else
            KP_BY_SIZE(size, launch_any((U *)out->data + to, (const U *)x->data, w, stream))
        if (parts.n == PARTS) launch_rows(parts, out->data, size, stream);
        to += x->dim[axis] * out->stride[axis];
    }
    launch_rows(parts, out->data, size, stream);
}

} // namespace

KP_IMPL(cat, NULL, run, NULL, NULL, KP_STRIDED);
