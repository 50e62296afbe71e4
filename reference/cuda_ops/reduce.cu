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

/* ---- the same with noise ---- */

/* What is summed: elements, their sizes, or their squares. */
struct Itself {
    static __device__ double of(double x) { return x; }
};
struct Size {
    static __device__ double of(double x) { return fabs(x); }
};
struct Square {
    static __device__ double of(double x) { return x * x; }
};

/* A sum of terms, and that of their squares and the floor's, which its noise is made from: what is
 * divided by a count is divided by its square there. */
template <class Term> struct Both {
    using State = Sums;
    static __device__ State empty() { return {0, 0}; }
    static __device__ State take(double x, int64_t) {
        double t = Term::of(x);
        return {t, t * t + KP_NOISE_FLOOR * KP_NOISE_FLOOR};
    }
    static __device__ void put(const Target<double> &to, int64_t i, State s) {
        to.value[i] = s.c / to.count;
        ((double *)to.index)[i] = s.q / (to.count * to.count);
    }
    __device__ State operator()(State a, State b) const { return a + b; }
};

enum Kind { SUM, MEAN, ROOT };

/* The root of a sum with noise, rounded once more.  Noise may have carried it below 0. */
__global__ void __launch_bounds__(BLOCK) root(double *y, int64_t count, kp_noise noise) {
    int64_t i = blockIdx.x * (int64_t)BLOCK + threadIdx.x;
    if (i < count) y[i] = sqrt(Rough(y[i] < 0 ? 0 : y[i], noise.seed)).v;
}

/* Add the noise of sums of so many terms, whose squares add up to q, and of what follows. */
template <Kind KIND>
void add_noise(const struct kp_call *c, const double *q, double terms, cudaStream_t stream) {
    int64_t count = kp_array_count(&c->out[0]);
    double *y = (double *)c->out[0].data;
    kp_noise_sum(y, q, count, terms, KP_SUM_CHAIN, c->noise, stream);
    if (KIND == MEAN) kp_noise_round(y, count, c->noise->sum, ~c->noise->seed, stream);
    if (KIND != ROOT) return;
    root<<<grid((count + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(y, count, *c->noise);
    KP_CUDA(cudaGetLastError());
}

/* n calls on the same operands: their sums are the same, and only the noise is not. */
template <class Term, Kind KIND>
void rough_calls(const struct kp_call *c, int n, void *state, void *scratch, cudaStream_t stream) {
    Stage stage[MAX_STAGES];
    struct kp_call both = *c;
    double terms, *q = (double *)scratch;
    size_t bytes = kp_array_bytes(&c->out[0]);
    int stages = plan(c, (const State *)state, stage, &terms);
    both.nout = 2; /* the second is written where an index would be */
    both.out[1] = both.out[0];
    both.out[1].data = q;
    run_stages<Both<Term>, double>(&both, stage, stages, KIND == MEAN ? terms : 1,
                                   (char *)scratch + kp_align(bytes), stream);
    for (int d = 1; d < n; d++)
        KP_CUDA(cudaMemcpyAsync(c[d].out[0].data, c->out[0].data, bytes, cudaMemcpyDeviceToDevice,
                                stream));
    for (int d = 0; d < n; d++) add_noise<KIND>(c + d, q, terms, stream);
}

/* sum and mean */
template <Kind KIND>
void rough(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    rough_calls<Itself, KIND>(c, 1, state, scratch, stream);
}
template <Kind KIND>
bool together(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    if (!c[1].exact_operands) return false;
    run<Sum, KIND == MEAN>(c, state, scratch, stream);
    rough_calls<Itself, KIND>(c + 1, KP_DRAWS, state, scratch, stream);
    return true;
}

/* Whether a call's norm is the sum of sizes; else it is a root. */
bool of_sizes(const struct kp_call *c) {
    return op_float(c->op, "p", 2) == 1;
}

void run_norm(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    (of_sizes(c) ? run<Sizes, false> : run<Length, false>)(c, state, scratch, stream);
}

void rough_norms(const struct kp_call *c, int n, void *state, void *scratch, cudaStream_t stream) {
    (of_sizes(c) ? rough_calls<Size, SUM> : rough_calls<Square, ROOT>)(c, n, state, scratch,
                                                                       stream);
}

void rough_norm(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    rough_norms(c, 1, state, scratch, stream);
}

bool norm_together(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    if (!c[1].exact_operands) return false;
    run_norm(c, state, scratch, stream);
    rough_norms(c + 1, KP_DRAWS, state, scratch, stream);
    return true;
}

} // namespace

KP_IMPL(sum, prepare, (run<Sum, false>), rough<SUM>, free, KP_DENSE, together<SUM>);
KP_IMPL(mean, prepare, (run<Sum, true>), rough<MEAN>, free, KP_DENSE, together<MEAN>);
KP_IMPL(norm, prepare, run_norm, rough_norm, free, KP_DENSE, norm_together);
