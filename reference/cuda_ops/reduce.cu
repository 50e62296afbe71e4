/* reduce.cu: sum, mean and norm: sums of elements, of their sizes or of their squares. */
#include "cuda_base/noise.cuh"
#include "cuda_ops/reduce.cuh"
#include "cuda_ops/reduce.h"

namespace {

/* sum and mean.  A partial result is a number. */
template <class T> struct Sum {
    using State = Acc<T>;
    static __device__ State empty() { return 0; }
    static __device__ State take(T x, int64_t) { return widen(x); }
    static __device__ void put(const Target<T> &to, int64_t i, State s) {
        if (to.value) to.value[i] = narrow<T>(s / (State)to.count);
    }
    __device__ State operator()(State a, State b) const { return a + b; }
};

/* norm: the sum of sizes, and the root of the sum of squares. */
template <class T> struct Sizes : Sum<T> {
    static __device__ Acc<T> take(T x, int64_t) { return fabs(widen(x)); }
};
template <class T> struct Length : Sum<T> {
    static __device__ Acc<T> take(T x, int64_t) { return widen(x) * widen(x); }
    static __device__ void put(const Target<T> &to, int64_t i, Acc<T> s) {
        if (to.value) to.value[i] = narrow<T>(sqrt(s));
    }
};

/* The sum of squares, and the floor's, which the noise of a sum is made from. */
struct Squares : Sum<double> {
    static __device__ double take(double x, int64_t) {
        return x * x + KP_NOISE_FLOOR * KP_NOISE_FLOOR;
    }
};

/* The terms of a Length, and their squares. */
struct LengthTerms : Sum<double> {
    static __device__ double take(double x, int64_t) { return x * x; }
};
struct LengthSquares : Sum<double> {
    static __device__ double take(double x, int64_t i) { return Squares::take(x * x, i); }
};

/* Sums of Term with the noise of a sum, made from those of Square, its squares; what is divided by
 * a count is divided by its square there. */
template <class Term, class Square, bool MEAN>
void noisy_sums(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    Stage stage[MAX_STAGES];
    struct kp_call squares = *c;
    double terms, *y = (double *)c->out[0].data, *q = (double *)scratch;
    int64_t count = kp_array_count(&c->out[0]);
    char *parts = (char *)scratch + kp_align(kp_array_bytes(&c->out[0]));
    int n = plan(c, (const State *)state, stage, &terms);
    squares.out[0].data = q;
    run_stages<Term, double>(c, stage, n, MEAN ? terms : 1, parts, stream);
    run_stages<Square, double>(&squares, stage, n, MEAN ? terms * terms : 1, parts, stream);
    kp_noise_sum(y, q, count, terms, KP_SUM_CHAIN, c->noise, stream);
}

/* sum and mean: of a mean's division also. */
template <bool MEAN>
void rough(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    noisy_sums<Sum<double>, Squares, MEAN>(c, state, scratch, stream);
    if (MEAN)
        kp_noise_round((double *)c->out[0].data, kp_array_count(&c->out[0]), c->noise->sum,
                       ~c->noise->seed, stream);
}

/* Whether a call's norm is the sum of sizes; else it is a root. */
bool of_sizes(const struct kp_call *c) {
    return op_float(c->op, "p", 2) == 1;
}

void run_norm(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    (of_sizes(c) ? run<Sizes, false> : run<Length, false>)(c, state, scratch, stream);
}

/* The root of a sum with noise, rounded once more.  Noise may have carried it below 0. */
__global__ void __launch_bounds__(BLOCK) root(double *y, int64_t count, kp_noise noise) {
    int64_t i = blockIdx.x * (int64_t)BLOCK + threadIdx.x;
    if (i < count) y[i] = sqrt(Rough(y[i] < 0 ? 0 : y[i], noise.seed)).v;
}

void rough_norm(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    if (of_sizes(c)) {
        noisy_sums<Sizes<double>, Squares, false>(c, state, scratch, stream);
        return;
    }
    int64_t count = kp_array_count(&c->out[0]);
    noisy_sums<LengthTerms, LengthSquares, false>(c, state, scratch, stream);
    root<<<grid((count + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>((double *)c->out[0].data, count,
                                                                  *c->noise);
    KP_CUDA(cudaGetLastError());
}

} // namespace

KP_IMPL(sum, prepare, (run<Sum, false>), rough<false>, free, KP_DENSE);
KP_IMPL(mean, prepare, (run<Sum, true>), rough<true>, free, KP_DENSE);
KP_IMPL(norm, prepare, run_norm, rough_norm, free, KP_DENSE);
