/* recurrent.cu: lstm and gru: by cuDNN where it has the type, else a launch for each step.
 *
 * In such a launch a warp computes one cell of one sample: the products of x and of h with its
 * gates' weights, and its new state.  Both directions of a layer run in the same launches.  Warps
 * of a block are samples of one cell, and so read the same weights.  The oracle computes its draws
 * in the same launches, too: eight lanes have a cell of a sample in all worlds, and read each weight
 * once. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"
#include "cuda_products/recurrent_cudnn.h"
#include "task/recurrent.h"

namespace {

using namespace kp;

enum { BLOCK = 256 };

/* In all worlds at once: a lane for each draw, and a block that leaves no multiprocessor idle. */
enum { WORLDS = 1 + KP_DRAWS, LANES = KP_DRAWS, CELLS = 32 / LANES, SMALL_BLOCK = 128 };

/* One step of a layer in one direction.  h and c are [batch,hidden]; rows of h lie `h_row` apart:
 * after the first step they are those of y. */
template <class T> struct Direction {
    const T *weight[KP_CELL_WEIGHTS], *x, *h, *c0; /* c0: NULL after the first step */
    Acc<T> *c;
    T *y, *h_end, *c_end; /* the states at the end: NULL before it, or if nobody reads them */
    int64_t h_row;
};
template <class T> struct Step {
    Direction<T> of[2];
    int64_t batch, width, hidden, x_row, y_row;
    uint64_t number; /* of this step among all */
};

/* Plain arithmetic: a sum is a number. */
template <class A> struct Plain {
    using Number = A;
    using Sum = A;
    static __device__ void add(Sum &s, A x, A w) { s += x * w; }
    __device__ Number of(Sum s, int64_t, uint64_t, uint64_t) const { return s; }
    __device__ Number of(A x) const { return x; }
    static __device__ A value(Number x) { return x; }
};

/* The same with noise: that of a product's operands and sums, and of every operation on what comes
 * of it. */
struct Noisy {
    kp_noise noise;
    using Number = Rough;
    using Sum = Sums;
    static __device__ void add(Sum &s, double x, double w) {
        const double floor = KP_NOISE_FLOOR * KP_NOISE_FLOOR;
        s.c += x * w;
        s.q += (x * x + floor) * (w * w + floor);
    }
    /* Product i of a step.  One with an infinite term is NaN in every draw. */
    __device__ Number of(Sum s, int64_t terms, uint64_t step, uint64_t i) const {
        double var =
            2 * s.q * noise.operand * noise.operand +
            noise_of_sum(s.c, s.q, (double)terms, KP_PRODUCT_CHAIN) * noise.sum * noise.sum;
        double off = ::sqrt(var) * noise_even(noise_bits(noise.seed, step), i);
        return {isfinite(var) ? s.c + off : (double)NAN, noise.seed};
    }
    __device__ Number of(double x) const { return {x, noise.seed}; }
    static __device__ double value(Number x) { return x.v; }
};

template <class N> __device__ inline N logistic(N x) {
    return N(1) / (N(1) + exp(-x));
}

/* The products of `n` elements of v with G rows of `weight`, `hidden` rows apart; in every lane. */
template <int G, class M, class T>
__device__ inline void products(typename M::Sum (&sum)[G], const T *v, const T *weight, int64_t n,
                                int64_t hidden) {
    for (int64_t k = threadIdx.x % 32; k < n; k += 32) {
        Acc<T> x = widen(v[k]);
#pragma unroll
        for (int g = 0; g < G; g++) M::add(sum[g], x, widen(weight[g * hidden * n + k]));
    }
#pragma unroll
    for (int g = 0; g < G; g++) sum[g] = warp_reduce(sum[g], Add());
}

/* The new state of one cell, number `at`, of cell u and sample n, from its sums.  G: gates, 4 in an
 * lstm, 3 in a gru; M: the arithmetic; direction: 0 or 1. */
template <int G, class T, class M>
__device__ inline void new_state(const Step<T> &s, int direction, M m, const typename M::Sum *from_x,
                                 const typename M::Sum *from_h, int64_t n, int64_t u) {
    using N = typename M::Number;
    const Direction<T> &d = s.of[direction];
    int64_t at = n * s.hidden + u;
    uint64_t step = 2 * s.number + (uint64_t)direction;
    auto x = [&](int g) -> N {
        return m.of(from_x[g], s.width, step, 2 * (uint64_t)(at * G + g)) +
               m.of(widen(d.weight[KP_B_IH][g * s.hidden + u]));
    };
    auto h = [&](int g) -> N {
        return m.of(from_h[g], s.hidden, step, 2 * (uint64_t)(at * G + g) + 1) +
               m.of(widen(d.weight[KP_B_HH][g * s.hidden + u]));
    };
    N a = logistic(x(0) + h(0)), b = logistic(x(1) + h(1)), y = a;
    if constexpr (G == 4) {
        N c = m.of(d.c0 ? widen(d.c0[at]) : d.c[at]);
        c = b * c + a * tanh(x(2) + h(2));
        y = logistic(x(3) + h(3)) * tanh(c);
        d.c[at] = M::value(c);
        if (d.c_end) d.c_end[at] = narrow<T>(M::value(c));
    } else {
        N fresh = tanh(x(2) + a * h(2)), before = m.of(widen(d.h[n * d.h_row + u]));
        y = (N(1) - b) * fresh + b * before;
    }
    d.y[n * s.y_row + u] = narrow<T>(M::value(y));
    if (d.h_end) d.h_end[at] = narrow<T>(M::value(y));
}

/* One cell of one sample a warp. */
template <int G, class T, class M>
__global__ void __launch_bounds__(BLOCK) step_kernel(Step<T> s, M m) {
    int64_t warp = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / 32;
    int64_t n = warp % s.batch, u = warp / s.batch;
    if (u >= s.hidden) return;
    const Direction<T> &d = s.of[blockIdx.y];
    typename M::Sum from_x[G] = {}, from_h[G] = {};
    products<G, M>(from_x, d.x + n * s.x_row, d.weight[KP_W_IH] + u * s.width, s.width, s.hidden);
    products<G, M>(from_h, d.h + n * d.h_row, d.weight[KP_W_HH] + u * s.hidden, s.hidden, s.hidden);
    if (threadIdx.x % 32 == 0) new_state<G>(s, (int)blockIdx.y, m, from_x, from_h, n, u);
}

/* ---- in all worlds ---- */

/* A step in each world; the weights are those of world 0 in all. */
struct Worlds {
    Step<double> of[WORLDS];
    kp_noise noise;
    uint64_t seed[WORLDS];
};

/* The sum over the lanes of a cell, in each of them. */
__device__ inline double over_lanes(double x) {
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    return x;
}

/* The products of v[world], n elements, with G rows of `weight`: of world 0, and of the lane's draw.
 * The sum of squares is that of world 0: noise on v changes it too little to matter. */
template <int G>
__device__ inline void products_of_worlds(double (&exact)[G], Sums (&drawn)[G],
                                          const double *const (&v)[WORLDS], const double *weight,
                                          int64_t n, int64_t hidden) {
    int lane = threadIdx.x % LANES;
    double sum[WORLDS][G] = {}, q[G] = {};
    for (int64_t k = lane; k < n; k += LANES) {
        double w[G];
#pragma unroll
        for (int g = 0; g < G; g++) w[g] = weight[g * hidden * n + k];
#pragma unroll
        for (int world = 0; world < WORLDS; world++) {
            double x = v[world][k];
#pragma unroll
            for (int g = 0; g < G; g++) {
                Sums one = {sum[world][g], q[g]};
                Noisy::add(one, x, w[g]);
                sum[world][g] = one.c;
                if (world == 0) q[g] = one.q;
            }
        }
    }
#pragma unroll
    for (int g = 0; g < G; g++) {
        exact[g] = over_lanes(sum[0][g]);
        drawn[g] = {exact[g], over_lanes(q[g])};
#pragma unroll
        for (int world = 1; world < WORLDS; world++) {
            double c = over_lanes(sum[world][g]);
            if (lane == world - 1) drawn[g].c = c;
        }
    }
}

/* One cell of one sample has LANES lanes, a warp neighbouring cells of one sample. */
template <int G>
__global__ void __launch_bounds__(SMALL_BLOCK) worlds_kernel(const __grid_constant__ Worlds w) {
    const Step<double> &s = w.of[0];
    int64_t warp = ((int64_t)blockIdx.x * SMALL_BLOCK + threadIdx.x) / 32;
    int64_t n = warp % s.batch, u = warp / s.batch * CELLS + threadIdx.x % 32 / LANES;
    bool mine = u < s.hidden;
    if (!mine) u = s.hidden - 1; /* a lane that has none computes with the others, and stores nothing */
    const Direction<double> &d = s.of[blockIdx.y];
    const double *x[WORLDS], *h[WORLDS];
#pragma unroll
    for (int k = 0; k < WORLDS; k++) {
        x[k] = w.of[k].of[blockIdx.y].x + n * s.x_row;
        h[k] = w.of[k].of[blockIdx.y].h + n * d.h_row;
    }
    double exact_x[G], exact_h[G];
    Sums drawn_x[G], drawn_h[G];
    products_of_worlds<G>(exact_x, drawn_x, x, d.weight[KP_W_IH] + u * s.width, s.width, s.hidden);
    products_of_worlds<G>(exact_h, drawn_h, h, d.weight[KP_W_HH] + u * s.hidden, s.hidden,
                          s.hidden);
    if (!mine) return;
    int lane = threadIdx.x % LANES, direction = (int)blockIdx.y;
    Noisy noisy = {w.noise};
    noisy.noise.seed = w.seed[1 + lane];
    new_state<G>(w.of[1 + lane], direction, noisy, drawn_x, drawn_h, n, u);
    if (lane == 0) new_state<G>(s, direction, Plain<double>(), exact_x, exact_h, n, u);
}

/* ---- all steps ---- */

/* Bytes of the c of one layer, and of a sequence between layers, of which two are needed. */
size_t bytes_of_c(const kp_recurrent &r) {
    return kp_align((size_t)(r.directions * r.batch * r.hidden) * sizeof(double));
}
size_t bytes_of_sequence(const kp_recurrent &r, const struct kp_call *c) {
    return kp_align((size_t)(r.steps * r.batch * r.directions * r.hidden) *
                    kp_dtype_size(c->in[0].dtype));
}

/* Step t of layer l, which reads x and writes y. */
template <class T>
Step<T> step_of(const kp_recurrent &r, const struct kp_call *c, int l, int64_t t, const T *x, T *y,
                Acc<T> *state) {
    int64_t width = recurrent_width(&r, l), wide = r.directions * r.hidden;
    Step<T> s = {{}, r.batch, width, r.hidden, width, wide, (uint64_t)(l * r.steps + t)};
    int64_t x_step = width, y_step = wide; /* from one time to the next */
    if (r.batch_first)
        s.x_row *= r.steps, s.y_row *= r.steps;
    else
        x_step *= r.batch, y_step *= r.batch;
    for (int k = 0; k < r.directions; k++) {
        Direction<T> &d = s.of[k];
        int64_t now = k ? r.steps - 1 - t : t, before = k ? now + 1 : now - 1;
        int64_t at = (l * r.directions + k) * r.batch * r.hidden;
        for (int w = 0; w < KP_CELL_WEIGHTS; w++)
            d.weight[w] = (const T *)c->in[recurrent_slot(&r, l, k, w)].data;
        d.x = x + now * x_step;
        d.y = y + now * y_step + k * r.hidden;
        d.h = t ? y + before * y_step + k * r.hidden : (const T *)c->in[1].data + at;
        d.h_row = t ? s.y_row : r.hidden;
        d.c = state + k * r.batch * r.hidden;
        d.c0 = t || r.states == 1 ? NULL : (const T *)c->in[2].data + at;
        if (t + 1 < r.steps) continue;
        d.h_end = c->out[1].data ? (T *)c->out[1].data + at : NULL;
        d.c_end = r.states > 1 && c->out[2].data ? (T *)c->out[2].data + at : NULL;
    }
    return s;
}

/* Where layer l's sequence goes: between layers two places take turns. */
template <class T>
T *sequence_of(const kp_recurrent &r, const struct kp_call *c, int l, char *scratch) {
    if (l + 1 == r.layers && c->out[0].data) return (T *)c->out[0].data;
    return (T *)(scratch + bytes_of_c(r) + l % 2 * bytes_of_sequence(r, c));
}

/* All steps of all layers in arithmetic m. */
template <int G, class T, class M>
void run_steps(const struct kp_call *c, M m, void *scratch, cudaStream_t stream) {
    kp_recurrent r = recurrent_of(c->op, c->in[0].dim, c->in[1].dim);
    const T *x = (const T *)c->in[0].data;
    int64_t warps = r.batch * r.hidden;
    dim3 grid((unsigned)((warps * 32 + BLOCK - 1) / BLOCK), (unsigned)r.directions);
    for (int l = 0; l < r.layers; l++) {
        T *y = sequence_of<T>(r, c, l, (char *)scratch);
        for (int64_t t = 0; t < r.steps; t++) {
            step_kernel<G, T, M>
                <<<grid, BLOCK, 0, stream>>>(step_of<T>(r, c, l, t, x, y, (Acc<T> *)scratch), m);
            KP_CUDA(cudaGetLastError());
        }
        x = y;
    }
}

/* Bytes of scratch for one world. */
size_t bytes_of_world(const kp_recurrent &r, const struct kp_call *c) {
    return bytes_of_c(r) + 2 * bytes_of_sequence(r, c);
}

/* Whether all weights are the same in all worlds. */
bool same_weights(const kp_recurrent &r, const struct kp_call *c) {
    for (int w = 1; w < WORLDS; w++)
        for (int k = 1 + r.states; k < c->nin; k++)
            if (c[w].in[k].data != c->in[k].data) return false;
    return true;
}

/* All steps of all layers in all worlds; false if their weights differ. */
template <int G> bool together(const struct kp_call *c, void *, void *scratch, cudaStream_t stream) {
    kp_recurrent r = recurrent_of(c->op, c->in[0].dim, c->in[1].dim);
    if (!same_weights(r, c)) return false;
    int64_t warps = r.batch * ((r.hidden + CELLS - 1) / CELLS);
    dim3 grid((unsigned)((warps * 32 + SMALL_BLOCK - 1) / SMALL_BLOCK), (unsigned)r.directions);
    const double *x[WORLDS];
    Worlds s = {.noise = *c[1].noise};
    for (int w = 0; w < WORLDS; w++) {
        x[w] = (const double *)c[w].in[0].data;
        if (w) s.seed[w] = c[w].noise->seed;
    }
    for (int l = 0; l < r.layers; l++) {
        for (int64_t t = 0; t < r.steps; t++) {
            for (int w = 0; w < WORLDS; w++) {
                char *own = (char *)scratch + w * bytes_of_world(r, c);
                s.of[w] = step_of<double>(r, &c[w], l, t, x[w],
                                          sequence_of<double>(r, &c[w], l, own), (double *)own);
            }
            worlds_kernel<G><<<grid, SMALL_BLOCK, 0, stream>>>(s);
            KP_CUDA(cudaGetLastError());
        }
        for (int w = 0; w < WORLDS; w++)
            x[w] = sequence_of<double>(r, &c[w], l, (char *)scratch + w * bytes_of_world(r, c));
    }
    return true;
}

/* cuDNN's plan, or NULL; scratch for either way. */
void *prepare(const struct kp_call *c, size_t *scratch) {
    kp_recurrent r = recurrent_of(c->op, c->in[0].dim, c->in[1].dim);
    struct kp_recurrent_plan *plan = kp_recurrent_plan(c, scratch);
    if (r.batch * r.hidden > INT32_MAX / 32)
        die(KP_INPUT, "%s: more than 2^26 cells; use a smaller task", c->op->def->name);
    if (!plan) *scratch = bytes_of_world(r, c) * (c->math == KP_MATH_F64 ? WORLDS : 1);
    return plan;
}

/* Enqueue the network. */
template <int G> void run(const struct kp_call *c, void *plan, void *scratch, cudaStream_t stream) {
    if (plan) {
        kp_recurrent_plan_run((struct kp_recurrent_plan *)plan, c, scratch, stream);
        return;
    }
    KP_BY_TYPE(c->in[0].dtype, (run_steps<G, T>(c, Plain<Acc<T>>(), scratch, stream)))
}

/* The same with noise.  What splitting operands with one scale leaves (noise.h's `largest`) is not
 * in it: a kernel that does so is judged as fp32 or as tf32. */
template <int G> void rough(const struct kp_call *c, void *, void *scratch, cudaStream_t stream) {
    run_steps<G, double>(c, Noisy{*c->noise}, scratch, stream);
}

void destroy(void *plan) {
    kp_recurrent_plan_destroy((struct kp_recurrent_plan *)plan);
}

} // namespace

KP_IMPL(lstm, prepare, run<4>, rough<4>, destroy, KP_DENSE | KP_BY_CUDNN, together<4>);
KP_IMPL(gru, prepare, run<3>, rough<3>, destroy, KP_DENSE | KP_BY_CUDNN, together<3>);
