/* recurrent.cu: lstm and gru: by cuDNN where it has the type, else a launch for each step.
 *
 * In such a launch a warp computes one cell of one sample: the products of x and of h with its
 * gates' weights, and its new state.  Both directions of a layer run in the same launches.  Warps
 * of a block are samples of one cell, and so read the same weights.
 *
 * The oracle computes its draws in the same launches, too.  The products of x wait for no step:
 * cuBLAS multiplies many steps of a layer at once, so that a launch has those of h alone.  There
 * eight lanes have a cell of a sample in all worlds, and a block some cells of some samples, whose
 * weights and h come through shared memory. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"
#include "cuda_products/recurrent_cudnn.h"
#include "cuda_products/recurrent_parts.h"

#include <cuda_pipeline.h>

namespace {

using namespace kp;

enum { BLOCK = 256 };

/* In all worlds at once: a lane for each draw, and blocks so small that no multiprocessor is idle.
 * They multiply DEPTH terms while the next STAGES - 1 times as many are on their way. */
enum { LANES = KP_DRAWS, CELLS = 8, SAMPLES = 2 };
enum { SMALL_BLOCK = LANES * CELLS * SAMPLES, DEPTH = 32, STAGES = 3 };

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
__device__ inline void new_state(const Step<T> &s, int direction, M m,
                                 const typename M::Sum *from_x, const typename M::Sum *from_h,
                                 int64_t n, int64_t u) {
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
    Step<double> of[KP_WORLDS];
    kp_x_at from_x; /* the products of its x */
    kp_x_strides strides;
    kp_noise noise;
    uint64_t seed[KP_WORLDS];
};

/* Rows that a block multiplies: weights, gate by gate, then h, sample by sample.  They are so long
 * that neighbouring cells' terms lie in different banks. */
template <int G> struct Operands {
    enum { WEIGHTS = G * CELLS, ROWS = WEIGHTS + SAMPLES * KP_WORLDS };
    const double *row[ROWS];
    double term[STAGES][ROWS][DEPTH + LANES];
};

/* The sum over the lanes of a cell, in each of them. */
__device__ inline double over_lanes(double x) {
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    return x;
}

/* The sum over them of v[i], in lane i.  Two lanes that meet share what both still have: each hands
 * over one half, and adds up the other. */
__device__ inline double over_lanes(double (&v)[LANES]) {
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) {
        bool upper = threadIdx.x & d;
#pragma unroll
        for (int i = 0; i < d; i++) {
            double keep = upper ? v[i + d] : v[i], give = upper ? v[i] : v[i + d];
            v[i] = keep + __shfl_xor_sync(~0u, give, d);
        }
    }
    return v[0];
}

/* Where the rows are of a block whose first sample is n, and cell u.  Beyond the last it takes the
 * last again. */
template <int G>
__device__ inline void find_rows(Operands<G> &o, const Worlds &w, int direction, int64_t n,
                                 int64_t u) {
    static_assert(Operands<G>::ROWS <= SMALL_BLOCK, "a thread for each");
    const Step<double> &s = w.of[0];
    const Direction<double> &d = s.of[direction];
    int row = (int)threadIdx.x, h = row - Operands<G>::WEIGHTS;
    if (h < 0) {
        int64_t cell = min(u + row % CELLS, s.hidden - 1);
        o.row[row] = d.weight[KP_W_HH] + (row / CELLS * s.hidden + cell) * s.hidden;
    } else if (h < SAMPLES * KP_WORLDS) {
        int64_t sample = min(n + h / KP_WORLDS, s.batch - 1);
        o.row[row] = w.of[h % KP_WORLDS].of[direction].h + sample * d.h_row;
    }
}

/* Begin to copy stage i of all rows, of n terms; zeros behind the last. */
template <int G> __device__ inline void fetch(Operands<G> &o, int i, int n) {
    static_assert(DEPTH == 32, "a lane for each term");
    int lane = threadIdx.x % 32, k = i * DEPTH + lane;
    if (i * DEPTH < n)
        for (int row = threadIdx.x / 32; row < Operands<G>::ROWS; row += SMALL_BLOCK / 32) {
            double *to = &o.term[i % STAGES][row][lane];
            if (k < n)
                __pipeline_memcpy_async(to, o.row[row] + k, sizeof *to);
            else
                *to = 0;
        }
    __pipeline_commit(); /* a group for each stage, be it empty */
}

/* The products of h, n elements, with the weights of a cell and a sample of the block: of world 0,
 * and of the lane's draw.  The sum of squares is that of world 0: noise on h changes it too little
 * to matter. */
template <int G>
__device__ inline void products_of_worlds(double (&exact)[G], Sums (&drawn)[G], Operands<G> &o,
                                          int cell, int sample, int n) {
    int lane = threadIdx.x % LANES, h = Operands<G>::WEIGHTS + sample * KP_WORLDS;
    double sum[G][KP_WORLDS] = {}, q[G] = {};
    for (int i = 0; i < STAGES - 1; i++) fetch(o, i, n);
    for (int i = 0; i * DEPTH < n; i++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads(); /* all have stage i, and are done with the one before: its place is free */
        fetch(o, i + STAGES - 1, n);
        const auto &term = o.term[i % STAGES];
#pragma unroll
        for (int k = 0; k < DEPTH; k += LANES) {
            double w[G];
#pragma unroll
            for (int g = 0; g < G; g++) w[g] = term[g * CELLS + cell][k + lane];
#pragma unroll
            for (int world = 0; world < KP_WORLDS; world++) {
                double x = term[h + world][k + lane];
#pragma unroll
                for (int g = 0; g < G; g++) {
                    Sums one = {sum[g][world], q[g]};
                    Noisy::add(one, x, w[g]);
                    sum[g][world] = one.c;
                    if (world == 0) q[g] = one.q;
                }
            }
        }
    }
#pragma unroll
    for (int g = 0; g < G; g++) {
        double draw[LANES];
#pragma unroll
        for (int i = 0; i < LANES; i++) draw[i] = sum[g][1 + i];
        exact[g] = over_lanes(sum[g][0]);
        drawn[g] = {over_lanes(draw), over_lanes(q[g])};
    }
}

/* One cell of one sample has LANES lanes, a warp neighbouring cells of one sample. */
template <int G>
__global__ void __launch_bounds__(SMALL_BLOCK) worlds_kernel(const __grid_constant__ Worlds w) {
    __shared__ Operands<G> operands;
    const Step<double> &s = w.of[0];
    int64_t across = (s.batch + SAMPLES - 1) / SAMPLES;
    int64_t n = blockIdx.x % across * SAMPLES, u = blockIdx.x / across * CELLS;
    int lane = threadIdx.x % LANES, direction = (int)blockIdx.y;
    int cell = threadIdx.x / LANES % CELLS, sample = threadIdx.x / LANES / CELLS;
    find_rows<G>(operands, w, direction, n, u);
    __syncthreads();
    n += sample, u += cell;
    bool mine = n < s.batch && u < s.hidden;
    double exact_x[G] = {}, exact_h[G];
    Sums drawn_x[G] = {}, drawn_h[G];
    const double *from = w.from_x.of[direction] + n * w.strides.row + u;
#pragma unroll
    for (int g = 0; g < G && mine; g++, from += s.hidden) {
        exact_x[g] = *from;
        drawn_x[g] = {from[(1 + lane) * w.strides.world], from[KP_WORLDS * w.strides.world]};
    }
    products_of_worlds<G>(exact_h, drawn_h, operands, cell, sample, (int)s.hidden);
    if (!mine) return; /* it computed with the others */
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
    kp_strides in = kp_strides_of(&r, width), out = kp_strides_of(&r, wide);
    Step<T> s = {{}, r.batch, width, r.hidden, in.row, out.row, (uint64_t)(l * r.steps + t)};
    for (int k = 0; k < r.directions; k++) {
        Direction<T> &d = s.of[k];
        int64_t now = kp_time_of(&r, k, t), before = k ? now + 1 : now - 1;
        int64_t at = (l * r.directions + k) * r.batch * r.hidden;
        for (int w = 0; w < KP_CELL_WEIGHTS; w++)
            d.weight[w] = (const T *)c->in[recurrent_slot(&r, l, k, w)].data;
        d.x = x + now * in.time;
        d.y = y + now * out.time + k * r.hidden;
        d.h = t ? y + before * out.time + k * r.hidden : (const T *)c->in[1].data + at;
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
    for (int w = 1; w < KP_WORLDS; w++)
        for (int k = 1 + r.states; k < c->nin; k++)
            if (c[w].in[k].data != c->in[k].data) return false;
    return true;
}

/* All steps of all layers in all worlds; false if their weights differ. */
template <int G>
bool together(const struct kp_call *c, void *, void *scratch_, cudaStream_t stream) {
    kp_recurrent r = recurrent_of(c->op, c->in[0].dim, c->in[1].dim);
    if (!same_weights(r, c)) return false;
    char *scratch = (char *)scratch_, *behind = scratch + KP_WORLDS * bytes_of_world(r, c);
    int64_t blocks = ((r.batch + SAMPLES - 1) / SAMPLES) * ((r.hidden + CELLS - 1) / CELLS);
    dim3 grid((unsigned)blocks, (unsigned)r.directions);
    const double *x[KP_WORLDS];
    double *y[KP_WORLDS];
    Worlds s = {.strides = kp_x_strides_of(&r), .noise = *c[1].noise};
    for (int w = 0; w < KP_WORLDS; w++) {
        x[w] = (const double *)c[w].in[0].data;
        if (w) s.seed[w] = c[w].noise->seed;
    }
    for (int l = 0; l < r.layers; l++) {
        for (int w = 0; w < KP_WORLDS; w++)
            y[w] = sequence_of<double>(r, &c[w], l, scratch + w * bytes_of_world(r, c));
        for (int64_t t = 0; t < r.steps; t++) {
            s.from_x = kp_x_multiply(&r, c, l, t, x, behind, stream);
            for (int w = 0; w < KP_WORLDS; w++) {
                double *own = (double *)(scratch + w * bytes_of_world(r, c));
                s.of[w] = step_of<double>(r, &c[w], l, t, x[w], y[w], own);
            }
            worlds_kernel<G><<<grid, SMALL_BLOCK, 0, stream>>>(s);
            KP_CUDA(cudaGetLastError());
        }
        for (int w = 0; w < KP_WORLDS; w++) x[w] = y[w];
    }
    return true;
}

/* cuDNN's plan, or NULL; scratch for either way. */
void *prepare(const struct kp_call *c, size_t *scratch) {
    kp_recurrent r = recurrent_of(c->op, c->in[0].dim, c->in[1].dim);
    struct kp_recurrent_plan *plan = kp_recurrent_plan(c, scratch);
    if (r.batch * r.hidden > INT32_MAX / 32)
        die(KP_INPUT, "%s: more than 2^26 cells; use a smaller task", c->op->def->name);
    size_t each = bytes_of_world(r, c);
    if (!plan) *scratch = c->math == KP_MATH_F64 ? KP_WORLDS * each + kp_x_bytes(&r) : each;
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
