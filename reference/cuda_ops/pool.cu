/* pool.cu: the largest or the mean of each window, one thread for each output.  Padding counts as
 * -inf or as zeros; a NaN in the window wins. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"
#include "cuda_base/strided.h"

namespace {

using namespace kp;

enum { BLOCK = 256, AXES = 3 }; /* absent axes come first and have size 1 */

struct Windows {
    int in[AXES], kernel[AXES], stride[AXES], pad[AXES], dilation[AXES];
    struct kp_divisor out[AXES];
    bool pad_counts;
};

/* What becomes of the values of a window; `nothing` is a value that changes nothing.  A mean is of
 * `counted` places, of which `real` are in the operand; i is the number of the output. */
template <class T> struct Largest {
    using State = Acc<T>;
    static __device__ Acc<T> nothing() { return -INFINITY; }
    static __device__ State empty() { return -INFINITY; }
    static __device__ void take(State &s, Acc<T> v) { s = (v > s) | (v != v) ? v : s; }
    __device__ T result(State s, Acc<T>, Acc<T>, int64_t) const { return narrow<T>(s); }
};

template <class T> struct Mean {
    using State = Acc<T>;
    static __device__ Acc<T> nothing() { return 0; }
    static __device__ State empty() { return 0; }
    static __device__ void take(State &s, Acc<T> v) { s += v; }
    __device__ T result(State s, Acc<T>, Acc<T> counted, int64_t) const {
        return narrow<T>(s / counted);
    }
};

struct RoughMean {
    using State = Sums;
    kp_noise noise;
    static __device__ double nothing() { return 0; }
    static __device__ State empty() { return {0, 0}; }
    static __device__ void take(State &s, double v) { s.add(v); }
    __device__ double result(State s, double real, double counted, int64_t i) const {
        return (Rough(noisy(s, real, noise, 0, (uint64_t)i), noise.seed) / Rough(counted)).v;
    }
};

/* Divides n < 2^31; n becomes the remainder. */
__device__ inline unsigned divide(unsigned &n, const struct kp_divisor &by) {
    unsigned q = (__umulhi(n, by.multiplier) + n) >> by.shift;
    n -= q * by.d;
    return q;
}

/* How many steps it takes to go as far, or further. */
__device__ inline int rounds(int distance, int step) {
    return step == 1 ? distance : (distance + step - 1) / step;
}

/* USED: of the axes, the last ones that may be longer than 1.  K: the size of windows along each of
 * these, undilated, or 0 if it is another.  `first` is the number of output 0. */
template <class Op, class T, int USED, int K>
__global__ void __launch_bounds__(BLOCK) pool(const T *__restrict__ in, T *__restrict__ out,
                                              unsigned count, Windows w, Op op, int64_t first) {
    unsigned id = blockIdx.x * BLOCK + threadIdx.x, rest = id;
    if (id >= count) return;
    int from[AXES], step[AXES], lo[AXES], n[AXES]; /* n places, from lo on, are in the operand */
    Acc<T> real = 1, counted = 1;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
        from[d] = lo[d] = 0, n[d] = step[d] = 1;
        if (d < AXES - USED) continue;
        unsigned o = rest;
        rest = divide(o, w.out[d]);
        step[d] = K ? 1 : w.dilation[d];
        from[d] = (int)o * w.stride[d] - w.pad[d];
        lo[d] = from[d] < 0 ? from[d] + rounds(-from[d], step[d]) * step[d] : from[d];
        int end = from[d] + (K ? K : w.kernel[d]) * step[d];
        n[d] = max(rounds(min(end, w.in[d]) - lo[d], step[d]), 0);
        real *= (Acc<T>)n[d];
        counted *= (Acc<T>)(w.pad_counts ? min(end, w.in[d] + w.pad[d]) - from[d] : n[d]);
    }
    in += (int64_t)rest * (w.in[0] * w.in[1] * w.in[2]);
    typename Op::State s = Op::empty();
    if constexpr (K > 0) { /* loads that depend on nothing, so that all are in flight at once */
#pragma unroll
        for (int i = 0; i < (USED == AXES ? K * K * K : K * K); i++) {
            int z = from[0] + i / (K * K), y = from[1] + i / K % K, x = from[2] + i % K;
            bool inside = (unsigned)z < (unsigned)w.in[0] && (unsigned)y < (unsigned)w.in[1] &&
                          (unsigned)x < (unsigned)w.in[2];
            Acc<T> v = widen(in[inside ? (z * w.in[1] + y) * w.in[2] + x : 0]);
            Op::take(s, inside ? v : Op::nothing());
        }
    } else {
        for (int a = 0; a < n[0]; a++)
            for (int b = 0; b < n[1]; b++) {
                int z = lo[0] + a * step[0], y = lo[1] + b * step[1];
                const T *row = in + (z * w.in[1] + y) * w.in[2] + lo[2];
#pragma unroll kInFlight
                for (int c = 0; c < n[2]; c++) Op::take(s, widen(row[c * step[2]]));
            }
    }
    out[id] = op.result(s, real, counted, first + id);
}

/* Launch over planes, as many at a time as 32 bits can count the outputs of. */
template <class Op, class T, int USED, int K>
void launch(const struct kp_call *c, const Windows &w, Op op, cudaStream_t stream) {
    const struct kp_array *x = &c->in[0], *y = &c->out[0];
    int64_t planes = x->dim[0] * x->dim[1], in = kp_array_count(x) / planes;
    int64_t out = kp_array_count(y) / planes, most = INT32_MAX / out;
    for (int64_t at = 0; at < planes; at += most) {
        unsigned count = (unsigned)((planes - at < most ? planes - at : most) * out);
        pool<Op, T, USED, K><<<(count + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(
            (const T *)x->data + at * in, (T *)y->data + at * out, count, w, op, at * out);
        KP_CUDA(cudaGetLastError());
    }
}

/* The size of all windows of a call along both or all three axes, undilated; else 0. */
int size_of(const Windows &w, int axes) {
    int k = axes < 2 ? 0 : w.kernel[AXES - 1];
    for (int d = AXES - axes; d < AXES; d++)
        if (w.kernel[d] != k || w.dilation[d] != 1) k = 0;
    return k;
}

/* Launch the form for the windows' size: small ones are common. */
template <class Op, class T, int USED>
void launch_for(const struct kp_call *c, const Windows &w, Op op, cudaStream_t stream) {
    int k = size_of(w, c->op->def->axes);
    if (k == 2)
        launch<Op, T, USED, 2>(c, w, op, stream);
    else if (k == 3)
        launch<Op, T, USED, 3>(c, w, op, stream);
    else
        launch<Op, T, USED, 0>(c, w, op, stream);
}

/* An attribute of n axes; along those that are not there it is `absent`. */
void attribute(const struct kp_op *op, const char *key, int64_t otherwise, int absent,
               int to[AXES]) {
    int64_t v[AXES];
    int n = op->def->axes;
    op_list(op, key, n, otherwise, v);
    for (int d = 0; d < AXES; d++) to[d] = d < AXES - n ? absent : (int)v[d - (AXES - n)];
}

/* The windows of a call. */
Windows windows_of(const struct kp_call *c) {
    const int64_t *in = c->in[0].dim + 2, *out = c->out[0].dim + 2;
    int absent = AXES - c->op->def->axes;
    int64_t places = 1, outputs = 1;
    Windows w;
    for (int d = 0; d < AXES; d++) {
        places *= d < absent ? 1 : in[d - absent];
        outputs *= d < absent ? 1 : out[d - absent];
        if (places > INT32_MAX || outputs > INT32_MAX)
            die(KP_INPUT, "%s: a channel has more than 2^31 places; use a smaller task",
                c->op->def->name);
        w.in[d] = d < absent ? 1 : (int)in[d - absent];
        w.out[d] = kp_divisor_make(d < absent ? 1 : out[d - absent]);
    }
    attribute(c->op, "kernel_size", 1, 1, w.kernel);
    attribute(c->op, "stride", 1, 1, w.stride);
    attribute(c->op, "padding", 0, 0, w.pad);
    attribute(c->op, "dilation", 1, 1, w.dilation);
    w.pad_counts = op_bool(c->op, "count_include_pad", true);
    return w;
}

/* Enqueue a pool. */
template <class Op, class T> void enqueue(const struct kp_call *c, Op op, cudaStream_t stream) {
    Windows w = windows_of(c);
    if (c->op->def->axes == AXES)
        launch_for<Op, T, AXES>(c, w, op, stream);
    else
        launch_for<Op, T, 2>(c, w, op, stream);
}

template <template <class> class Op>
void run(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    KP_BY_TYPE(c->in[0].dtype, enqueue<Op<T>, T>(c, Op<T>(), stream))
}

/* A mean with the noise of its sum and its division. */
void rough_mean(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    enqueue<RoughMean, double>(c, RoughMean{*c->noise}, stream);
}

} // namespace

KP_IMPL(max_pool1d, NULL, run<Largest>, NULL, NULL, KP_DENSE);
KP_IMPL(max_pool2d, NULL, run<Largest>, NULL, NULL, KP_DENSE);
KP_IMPL(max_pool3d, NULL, run<Largest>, NULL, NULL, KP_DENSE);
KP_IMPL(avg_pool1d, NULL, run<Mean>, rough_mean, NULL, KP_DENSE);
KP_IMPL(avg_pool2d, NULL, run<Mean>, rough_mean, NULL, KP_DENSE);
KP_IMPL(avg_pool3d, NULL, run<Mean>, rough_mean, NULL, KP_DENSE);
