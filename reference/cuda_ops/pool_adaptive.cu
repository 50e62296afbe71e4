/* pool_adaptive.cu: means of as many windows as the result has places, which cover the operand
 * evenly.  One window of everything is the reduction `mean`; of others each has a thread. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"
#include "cuda_ops/reduce.h"
#include "task/ops.h"

namespace {

using namespace kp;

enum { BLOCK = 256, AXES = 3 }; /* absent axes come first and have size 1 */

struct Plane {
    int64_t in[AXES], out[AXES];
};

template <class T> struct Mean {
    using State = Acc<T>;
    static __device__ State of(T x) { return widen(x); }
    __device__ T result(State s, int64_t count, int64_t) const {
        return narrow<T>(s / (Acc<T>)count);
    }
};

struct RoughMean {
    using State = Sums;
    kp_noise noise;
    static __device__ State of(double x) { return {x, x * x}; }
    __device__ double result(State s, int64_t count, int64_t i) const {
        double n = (double)count;
        return (Rough(noisy(s, n, noise, 0, (uint64_t)i), noise.seed) / Rough(n)).v;
    }
};

/* Place o of the result is the mean of places o * in / out, rounded down, to (o + 1) * in / out,
 * rounded up, along each axis. */
template <class Op, class T>
__global__ void __launch_bounds__(BLOCK)
    adaptive(const T *__restrict__ in, T *__restrict__ out, int64_t count, Plane p, Op op) {
    int64_t id = blockIdx.x * (int64_t)BLOCK + threadIdx.x, rest = id;
    if (id >= count) return;
    int64_t from[AXES], to[AXES], n = 1;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
        int64_t o = rest % p.out[d];
        rest /= p.out[d];
        from[d] = o * p.in[d] / p.out[d];
        to[d] = ((o + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
        n *= to[d] - from[d];
    }
    typename Op::State s = {};
    for (int64_t z = from[0]; z < to[0]; z++)
        for (int64_t y = from[1]; y < to[1]; y++) {
            const T *row = in + ((rest * p.in[0] + z) * p.in[1] + y) * p.in[2];
            for (int64_t x = from[2]; x < to[2]; x++) s = s + Op::of(row[x]);
        }
    out[id] = op.result(s, n, id);
}

/* Launch it. */
template <class Op, class T> void launch(const struct kp_call *c, Op op, cudaStream_t stream) {
    int64_t count = kp_array_count(&c->out[0]);
    int absent = AXES - c->op->def->axes;
    Plane p;
    for (int d = 0; d < AXES; d++) {
        p.in[d] = d < absent ? 1 : c->in[0].dim[2 + d - absent];
        p.out[d] = d < absent ? 1 : c->out[0].dim[2 + d - absent];
    }
    adaptive<Op, T><<<(unsigned)((count + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(
        (const T *)c->in[0].data, (T *)c->out[0].data, count, p, op);
    KP_CUDA(cudaGetLastError());
}

/* The mean over all spatial axes of a call. */
struct State {
    struct kp_op op;
    void *state; /* of mean */
};

/* That mean as a call. */
struct kp_call mean_of(const struct kp_call *c, const State *s) {
    struct kp_call mean = *c;
    mean.op = &s->op;
    return mean;
}

/* NULL, or the mean that the op is where its result has one place. */
void *prepare(const struct kp_call *c, size_t *scratch) {
    *scratch = 0;
    int n = c->op->def->axes;
    for (int d = 0; d < n; d++)
        if (c->out[0].dim[2 + d] != 1) return NULL;
    State *s = (State *)calloc(1, sizeof *s);
    if (!s) die(KP_MACHINE, "%s: out of memory", c->op->def->name);
    s->op.def = op_find("mean");
    s->op.nattr = 1;
    struct kp_attr *dim = &s->op.attr[0];
    strcpy(dim->key, "dim");
    dim->kind = KP_ATTR_LIST;
    dim->n = n;
    for (int d = 0; d < n; d++) dim->list[d] = 2 + d;
    struct kp_call mean = mean_of(c, s);
    s->state = kp_impl_mean.prepare(&mean, scratch);
    return s;
}

/* Enqueue the mean, or the windows. */
void run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    const State *s = (const State *)state;
    if (s) {
        struct kp_call mean = mean_of(c, s);
        kp_impl_mean.run(&mean, s->state, scratch, stream);
        return;
    }
    KP_BY_TYPE(c->in[0].dtype, launch<Mean<T>, T>(c, Mean<T>(), stream))
}

/* The same in float64 with the noise of a sum and a division. */
void rough(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    const State *s = (const State *)state;
    if (s) {
        struct kp_call mean = mean_of(c, s);
        kp_impl_mean.rough(&mean, s->state, scratch, stream);
        return;
    }
    launch<RoughMean, double>(c, RoughMean{*c->noise}, stream);
}

/* Free the mean. */
void destroy(void *state) {
    State *s = (State *)state;
    if (s) kp_impl_mean.destroy(s->state);
    free(s);
}

} // namespace

KP_IMPL(adaptive_avg_pool1d, prepare, run, rough, destroy, KP_DENSE);
KP_IMPL(adaptive_avg_pool2d, prepare, run, rough, destroy, KP_DENSE);
KP_IMPL(adaptive_avg_pool3d, prepare, run, rough, destroy, KP_DENSE);
