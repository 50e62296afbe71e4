/* logsumexp.cu: the log of a sum of exponentials along an axis, read once.
 *
 * What is kept is the largest x so far and the sum of exp(x - largest). */
#include "cuda_base/noise.cuh"
#include "cuda_ops/reduce.cuh"

namespace {

template <class T> struct LogSumExp {
    using A = Acc<T>;
    using State = Online<A>;
    static __device__ State empty() { return online_empty<A>(); }
    static __device__ State take(T x, int64_t) { return {widen(x), A(1)}; }
    static __device__ void put(const Target<T> &to, int64_t i, State s) {
        if (to.value) to.value[i] = narrow<T>(s.max + log(s.sum));
    }
    /* Equal infinities have no difference.  A NaN stays in the sum. */
    __device__ State operator()(State a, State b) const {
        A less = a.max == b.max ? A(1) : exp(-fabs(a.max - b.max));
        return a.max > b.max ? State{a.max, a.sum + b.sum * less}
                             : State{b.max, b.sum + a.sum * less};
    }
};

/* One block a row, row after row: the log of the noisy sum, in rough arithmetic. */
__global__ void __launch_bounds__(BLOCK)
    logsumexp_rough(const double *__restrict__ in, double *__restrict__ out, Axis s,
                    kp_noise noise) {
    for (int64_t r = blockIdx.x; r < s.outer * s.inner; r += gridDim.x) {
        int64_t base = r / s.inner * s.n * s.inner + r % s.inner;
        double max = -INFINITY;
        Sums sum = {0, 0};
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x)
            max = fmax(max, in[base + i * s.inner]);
        max = block_reduce(max, -(double)INFINITY, [](double a, double b) { return fmax(a, b); });
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x)
            sum.add(exp_below(Rough(in[base + i * s.inner], noise.seed), max).v);
        sum = block_reduce(sum, Sums{0, 0}, Add());
        Rough total = {noisy(sum, (double)s.n, noise, 1, r), noise.seed};
        if (threadIdx.x == 0) out[r] = (log(total) + Rough(max)).v;
    }
}

/* Enqueue it with noise. */
void rough(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    Axis s = axis_of(c);
    int64_t rows = s.outer * s.inner;
    int threads = s.n < BLOCK ? 32 : BLOCK;
    logsumexp_rough<<<(unsigned)(rows < INT32_MAX ? rows : INT32_MAX), threads, 0, stream>>>(
        (const double *)c->in[0].data, (double *)c->out[0].data, s, *c->noise);
    KP_CUDA(cudaGetLastError());
}

} // namespace

KP_IMPL(logsumexp, prepare, (run<LogSumExp, false>), rough, free, KP_DENSE);
