/* norm.cu: layer, group, instance and batch normalisation of dense tensors.
 *
 * All four are one thing: rows, each normalised by its own mean and (biased)
 * variance, then scaled and shifted.  A row is `segments` runs of `span`
 * contiguous elements (several runs for batch_norm only, whose runs of one
 * element are columns: norm_columns.cu).  Short rows stay in
 * registers; rows enough to fill the machine take one block each; few long rows
 * are cut into parts, with one launch for statistics and one to apply them.
 * Means and squared deviations are merged pairwise (Chan), never as a
 * difference of large sums. */
#include "cuda_base/noise.cuh"
#include "cuda_ops/moments.cuh"
#include "cuda_ops/norm_columns.h"

#include <cooperative_groups.h>

namespace {

using namespace kp;

enum {
    BLOCK = 256,
    SHORT_PACKS = 32 * 8, /* a row that 32 lanes hold, 8 packs each */
    MANY_ROWS = 512,      /* from here on one block a row fills the machine */
    PART_BLOCKS = 4096,   /* blocks wanted when rows are cut */
    MIN_PART = 4 * BLOCK  /* packs; smaller parts are not worth a block */
};

struct Rows {
    int64_t rows, segments, span; /* span: elements of one contiguous run */
    int64_t row_stride, segment_stride;
    /* Weight of element j of a run of row r: (r % modulus) * channels + j / per. */
    int64_t modulus, channels, per;
};

/* Offset of pack t of a row from the row's start; *j: its place within its run. */
template <int V>
__device__ inline int64_t place(const Rows &g, unsigned t, unsigned run_packs, unsigned *j) {
    if (g.segments == 1) {
        *j = t * V;
        return (int64_t)t * V;
    }
    unsigned k = t / run_packs;
    *j = (t - k * run_packs) * V;
    return k * g.segment_stride + *j;
}

/* Moments of this thread's packs among [begin,end) of a row. */
template <class T, int V>
__device__ inline Moments<Acc<T>> scan(const Rows &g, const T *__restrict__ row, unsigned begin,
                                       unsigned end) {
    using A = Acc<T>;
    Moments<A> m = {0, 0, 0};
    unsigned run = (unsigned)(g.span / V), j, t = begin + threadIdx.x;
    for (; t + (kInFlight - 1) * BLOCK < end; t += kInFlight * BLOCK) {
        A x[kInFlight * V];
#pragma unroll
        for (int u = 0; u < kInFlight; u++) {
            Pack<T, V> p = load<V>(row + place<V>(g, t + u * BLOCK, run, &j));
#pragma unroll
            for (int e = 0; e < V; e++) x[u * V + e] = widen(p.v[e]);
        }
        m = Merge()(m, moments_of(x));
    }
    for (; t < end; t += BLOCK) {
        A x[V];
        Pack<T, V> p = load<V>(row + place<V>(g, t, run, &j));
#pragma unroll
        for (int e = 0; e < V; e++) x[e] = widen(p.v[e]);
        m = Merge()(m, moments_of(x));
    }
    return m;
}

/* (x - mean) * scale, times weight, plus bias, for one pack at place j of a run.
 * A pack has either one weight for all or V consecutive ones (per == 1). */
template <class T, int V>
__device__ inline Pack<T, V> normalise(Pack<T, V> p, Acc<T> mean, Acc<T> scale,
                                       const T *__restrict__ weight, const T *__restrict__ bias,
                                       unsigned first, unsigned j, unsigned per) {
    using A = Acc<T>;
    A w[V], b[V];
    unsigned c = first + (per == 1 ? j : j / per);
    if (per == 1) {
        Pack<T, V> pw, pb;
        if (weight) pw = load<V>(weight + c);
        if (bias) pb = load<V>(bias + c);
#pragma unroll
        for (int e = 0; e < V; e++) {
            w[e] = weight ? widen(pw.v[e]) : A(1);
            b[e] = bias ? widen(pb.v[e]) : A(0);
        }
    } else {
        A one_w = weight ? widen(weight[c]) : A(1), one_b = bias ? widen(bias[c]) : A(0);
#pragma unroll
        for (int e = 0; e < V; e++) {
            w[e] = one_w;
            b[e] = one_b;
        }
    }
#pragma unroll
    for (int e = 0; e < V; e++) p.v[e] = narrow<T>((widen(p.v[e]) - mean) * scale * w[e] + b[e]);
    return p;
}

/* Normalise packs [begin,end) of row r. */
template <class T, int V>
__device__ inline void apply(const Rows &g, int64_t r, unsigned begin, unsigned end,
                             Moments<Acc<T>> m, Acc<T> eps, const T *__restrict__ in,
                             T *__restrict__ out, const T *__restrict__ weight,
                             const T *__restrict__ bias) {
    using A = Acc<T>;
    A scale = A(1) / sqrt(m.m2 / m.n + eps);
    unsigned run = (unsigned)(g.span / V), first = (unsigned)(r % g.modulus * g.channels);
    int64_t base = r * g.row_stride;
    unsigned per = (unsigned)g.per;
#pragma unroll 4
    for (unsigned t = begin + threadIdx.x; t < end; t += BLOCK) {
        unsigned j;
        int64_t at = base + place<V>(g, t, run, &j);
        store<V>(out + at,
                 normalise<T, V>(load<V>(in + at), m.mean, scale, weight, bias, first, j, per));
    }
}

/* One block a row: statistics, then the row once more (from cache, mostly). */
template <class T, int V>
__global__ void __launch_bounds__(BLOCK)
    norm_row(Rows g, const T *__restrict__ in, T *__restrict__ out, const T *__restrict__ weight,
             const T *__restrict__ bias, Acc<T> eps) {
    using A = Acc<T>;
    unsigned packs = (unsigned)(g.segments * (g.span / V));
    int64_t r = blockIdx.x;
    Moments<A> m = scan<T, V>(g, in + r * g.row_stride, 0, packs);
    m = block_reduce(m, Moments<A>{0, 0, 0}, Merge());
    apply<T, V>(g, r, 0, packs, m, eps, in, out, weight, bias);
}

/* Moments of part blockIdx.y of row blockIdx.x. */
template <class T, int V>
__global__ void __launch_bounds__(BLOCK)
    norm_part(Rows g, const T *__restrict__ in, Moments<Acc<T>> *parts, unsigned part_packs) {
    using A = Acc<T>;
    unsigned packs = (unsigned)(g.segments * (g.span / V)), begin = blockIdx.y * part_packs;
    unsigned end = min(begin + part_packs, packs);
    Moments<A> m = scan<T, V>(g, in + blockIdx.x * g.row_stride, begin, end);
    m = block_reduce(m, Moments<A>{0, 0, 0}, Merge());
    if (threadIdx.x == 0) parts[(int64_t)blockIdx.x * gridDim.y + blockIdx.y] = m;
}

/* The same parts, normalised.  Rows run along grid x, so that blocks that share
 * weights (layer_norm) run together and find them in cache. */
template <class T, int V>
__global__ void __launch_bounds__(BLOCK)
    norm_apply(Rows g, const T *__restrict__ in, T *__restrict__ out, const T *__restrict__ weight,
               const T *__restrict__ bias, const Moments<Acc<T>> *__restrict__ parts,
               unsigned part_packs, Acc<T> eps) {
    using A = Acc<T>;
    unsigned packs = (unsigned)(g.segments * (g.span / V)), begin = blockIdx.y * part_packs;
    Moments<A> m = {0, 0, 0};
    for (unsigned i = threadIdx.x; i < gridDim.y; i += BLOCK)
        m = Merge()(m, parts[(int64_t)blockIdx.x * gridDim.y + i]);
    m = block_reduce(m, Moments<A>{0, 0, 0}, Merge());
    apply<T, V>(g, blockIdx.x, begin, min(begin + part_packs, packs), m, eps, in, out, weight,
                bias);
}

/* Short rows of one run: `lanes` neighbouring lanes hold one row, K packs each. */
template <class T, int V, int K>
__global__ void __launch_bounds__(BLOCK)
    norm_short(Rows g, const T *__restrict__ in, T *__restrict__ out, const T *__restrict__ weight,
               const T *__restrict__ bias, int lanes, Acc<T> eps) {
    using A = Acc<T>;
    int64_t r = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / lanes;
    int lane = threadIdx.x % lanes;
    int packs = r < g.rows ? (int)(g.span / V) : 0; /* all lanes stay for the shuffles */
    const T *from = in + r * g.row_stride;
    Pack<T, V> p[K];
    A sum = 0, m2 = 0;

#pragma unroll
    for (int k = 0; k < K; k++)
        if (lane + k * lanes < packs) p[k] = load<V>(from + (lane + k * lanes) * V);
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int e = 0; e < V; e++)
            if (lane + k * lanes < packs) sum += widen(p[k].v[e]);
    A mean = warp_reduce(sum, Add(), lanes) / A(g.span);
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int e = 0; e < V; e++)
            if (lane + k * lanes < packs) {
                A d = widen(p[k].v[e]) - mean;
                m2 += d * d;
            }
    A scale = A(1) / sqrt(warp_reduce(m2, Add(), lanes) / A(g.span) + eps);
    unsigned first = (unsigned)(r % g.modulus * g.channels), per = (unsigned)g.per;
#pragma unroll
    for (int k = 0; k < K; k++) {
        unsigned j = (lane + k * lanes) * V;
        if (lane + k * lanes < packs)
            store<V>(out + r * g.row_stride + j,
                     normalise<T, V>(p[k], mean, scale, weight, bias, first, j, per));
    }
}

/* How many parts each row is cut into; 1 if rows are not cut.  Chosen for packs of
 * one element, so that it does not depend on T or on alignment. */
unsigned part_count(const Rows &g) {
    int64_t row = g.segments * g.span, wanted = (PART_BLOCKS + g.rows - 1) / g.rows;
    int64_t most = (row + 4 * MIN_PART - 1) / (4 * MIN_PART);
    if (g.rows >= MANY_ROWS || most < 2) return 1;
    return (unsigned)(wanted < most ? wanted : most);
}

/* The axes of [N, C, ...] that normalisations distinguish; space: elements of one channel. */
struct Axes {
    int64_t n, channels, space;
};
/* Those of a call's operand. */
Axes axes_of(const struct kp_call *c) {
    const struct kp_array *x = &c->in[0];
    Axes a = {x->dim[0], x->n > 1 ? x->dim[1] : 1, 1};
    for (int i = 2; i < x->n; i++) a.space *= x->dim[i];
    return a;
}

/* The rows and weights of each op. */
Rows batch_rows(const struct kp_call *c) {
    Axes a = axes_of(c);
    return {a.channels, a.n, a.space, a.space, a.channels * a.space, a.channels, 1, a.space};
}
Rows instance_rows(const struct kp_call *c) {
    Axes a = axes_of(c);
    return {a.n * a.channels, 1, a.space, a.space, 0, a.channels, 1, a.space};
}
Rows group_rows(const struct kp_call *c) {
    Axes a = axes_of(c);
    int64_t groups = op_int(c->op, "num_groups", 1), each = a.channels / groups;
    return {a.n * groups, 1, each * a.space, each * a.space, 0, groups, each, a.space};
}
Rows layer_rows(const struct kp_call *c) {
    const struct kp_array *x = &c->in[0];
    int axes = op_attr(c->op, "shape")->n; /* the trailing ones */
    int64_t span = 1;
    for (int i = x->n - axes; i < x->n; i++) span *= x->dim[i];
    return {kp_array_count(x) / span, 1, span, span, 0, 1, 0, 1};
}

/* What prepare() decides. */
struct State {
    unsigned parts; /* fixed when prepared: a slice may have fewer rows later */
};

/* Launch the form that suits the rows, in packs of V. */
template <class T, int V>
void launch(const Rows &g, const struct kp_call *c, unsigned parts, void *scratch,
            cudaStream_t stream) {
    using A = Acc<T>;
    const T *in = (const T *)c->in[0].data;
    const T *weight = c->present[1] ? (const T *)c->in[1].data : NULL;
    const T *bias = c->present[2] ? (const T *)c->in[2].data : NULL;
    T *out = (T *)c->out[0].data;
    A eps = (A)op_float(c->op, "eps", 1e-5);
    int64_t packs = g.segments * (g.span / V);

    if (g.segments == 1 && packs <= SHORT_PACKS) {
        int lanes = 1;
        while (lanes < 32 && lanes * 4 < packs) lanes *= 2;
        unsigned blocks = (unsigned)((g.rows * lanes + BLOCK - 1) / BLOCK);
        if (packs <= lanes * 4)
            norm_short<T, V, 4><<<blocks, BLOCK, 0, stream>>>(g, in, out, weight, bias, lanes, eps);
        else
            norm_short<T, V, 8><<<blocks, BLOCK, 0, stream>>>(g, in, out, weight, bias, lanes, eps);
    } else if (parts == 1) {
        norm_row<T, V><<<(unsigned)g.rows, BLOCK, 0, stream>>>(g, in, out, weight, bias, eps);
    } else {
        Moments<A> *moments = (Moments<A> *)scratch;
        unsigned each = (unsigned)((packs + parts - 1) / parts);
        dim3 grid((unsigned)g.rows, parts);
        norm_part<T, V><<<grid, BLOCK, 0, stream>>>(g, in, moments, each);
        KP_CUDA(cudaGetLastError());
        norm_apply<T, V><<<grid, BLOCK, 0, stream>>>(g, in, out, weight, bias, moments, each, eps);
    }
    KP_CUDA(cudaGetLastError());
}

/* Packs need runs and weights that packs never straddle. */
template <class T>
void launch_type(const Rows &g, const struct kp_call *c, unsigned parts, void *scratch,
                 cudaStream_t stream) {
    bool wide = packs<T>(c->in[0].data, g.span) && packs<T>(c->out[0].data, g.span) &&
                (g.per == 1 || g.per % kPack<T> == 0);
    for (int k = 1; k <= 2; k++)
        if (c->present[k] && !packs<T>(c->in[k].data, 0)) wide = false;
    if (wide)
        launch<T, kPack<T>>(g, c, parts, scratch, stream);
    else
        launch<T, 1>(g, c, parts, scratch, stream);
}

/* ---- the same with noise: what two honest passes over a row round ---- */

enum {
    ROUGH_BLOCK = 1024,
    ROUGH_PART = 4 * ROUGH_BLOCK, /* elements; smaller parts are not worth a block */
    ROUGH_EACH = 16, /* a thread's at most, where rows fill the machine: fewer wait for others */
    OF_MEAN = 1,
    OF_VARIANCE,
    OF_LOST,
    OF_SWAMPED
};

/* Noise swamps a row whose normalised elements it moves by a quarter.  An honest row is then what a
 * few steps of the type make of it, and an element may be as large as the root of its length.
 * Smooth noise never makes that: such elements are drawn anew, up to the root of so much. */
enum { SWAMPED = 4, MOST_STEPS = 64 };

/* The blocks that share a row: each has every `parts`-th run of blockDim.x elements. */
struct Team {
    unsigned parts, part; /* how many, and which this one is */
    int64_t row;
    Sums *shared; /* of two turns, of each row, of each part */
    unsigned turn;

    __device__ unsigned first() const { return part * blockDim.x + threadIdx.x; }
    __device__ unsigned step() const { return parts * blockDim.x; }

    /* The sum over all threads of the team; every thread gets it.  What one turn wrote is read
     * while the next writes elsewhere. */
    __device__ Sums all(Sums s) {
        s = block_reduce(s, Sums{0, 0}, Add());
        if (parts == 1) return s;
        Sums *own = shared + (turn++ % 2 * gridDim.x + row) * parts;
        if (threadIdx.x == 0) own[part] = s;
        cooperative_groups::this_grid().sync();
        s = {0, 0};
        for (unsigned i = threadIdx.x; i < parts; i += blockDim.x) s = s + own[i];
        return block_reduce(s, Sums{0, 0}, Add());
    }
};

/* The sum of f(x) over a row, and of its square. */
template <class F>
__device__ inline Sums row_sums(const Rows &g, Team &team, const double *row, F f) {
    Sums s = {0, 0};
    unsigned n = (unsigned)(g.segments * g.span), j;
#pragma unroll 4
    for (unsigned t = team.first(); t < n; t += team.step())
        s.add(f(row[place<1>(g, t, (unsigned)g.span, &j)]));
    return team.all(s);
}

/* One team of blocks a row.  The noise of the mean and of the variance is common to the row.
 * Squares below the rounding of a chain's sum may all be lost: where elements differ much in scale,
 * most of them are about the mean's square, and are rounded alike. */
__global__ void __launch_bounds__(ROUGH_BLOCK)
    norm_rough(Rows g, const double *__restrict__ in, double *__restrict__ out,
               const double *__restrict__ exact_out, const double *__restrict__ weight,
               const double *__restrict__ bias, double eps, kp_noise noise, Sums *shared) {
    int64_t r = blockIdx.x, first = r % g.modulus * g.channels;
    Team team = {gridDim.y, blockIdx.y, r, shared, 0};
    unsigned n = (unsigned)(g.segments * g.span), j;
    in += r * g.row_stride;
    out += r * g.row_stride;
    exact_out += r * g.row_stride;

    Sums sum = row_sums(g, team, in, [](double x) { return x; });
    double exact = sum.c / n;
    Rough mean = Rough(noisy(sum, n, noise, OF_MEAN, r), noise.seed) / Rough(n);
    double off = mean.v - exact; /* deviations from a mean that is off are larger */
    double chain = fmin(1.0 * n, 1.0 * KP_SUM_CHAIN);
    double little = noise.sum * (sum.q / n - exact * exact) * chain;
    Sums lost = {0, 0};
    Sums squares = row_sums(g, team, in, [&](double x) {
        double square = (x - exact) * (x - exact);
        if (square < little) lost.c += square;
        return square;
    });
    double of_lost = team.all(lost).c * noise_even(noise_bits(noise.seed, OF_LOST), r);
    Rough m2 = {noisy(squares, n, noise, OF_VARIANCE, r) + of_lost + n * off * off, noise.seed};
    Rough scale = Rough(1) / sqrt(m2 / Rough(n) + Rough(eps));
    double most = sqrt(fmin(1.0 * n, 1.0 * MOST_STEPS));
    Sums apart = {0, 0}; /* what noise did, squared, and what that is of */
#pragma unroll 4
    for (unsigned t = team.first(); t < n; t += team.step()) {
        int64_t at = place<1>(g, t, (unsigned)g.span, &j), c = first + j / g.per;
        double w = weight ? weight[c] : 1, b = bias ? bias[c] : 0;
        double noise_did = (in[at] - mean.v) * scale.v * w + b - exact_out[at];
        apart.c += noise_did * noise_did;
        apart.q += w * w;
    }
    apart = team.all(apart);
    bool swamped = SWAMPED * SWAMPED * apart.c > apart.q;
#pragma unroll 2
    for (unsigned t = team.first(); t < n; t += team.step()) {
        int64_t at = place<1>(g, t, (unsigned)g.span, &j), c = first + j / g.per;
        Rough y = (Rough(in[at], noise.seed) - Rough(mean.v)) * scale;
        if (swamped) {
            double even = noise_even(noise_bits(noise.seed, OF_SWAMPED), r * (uint64_t)n + t);
            y = Rough(most * even * even * even, noise.seed);
        }
        if (weight) y = y * Rough(weight[c]);
        if (bias) y = y + Rough(bias[c]);
        out[at] = y.v;
    }
}

/* Blocks of norm_rough that run at a time. */
unsigned rough_blocks() {
    static unsigned known;
    int device, sms, each;
    if (known) return known;
    KP_CUDA(cudaGetDevice(&device));
    KP_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    KP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, norm_rough, ROUGH_BLOCK, 0));
    return known = (unsigned)(sms * each);
}

/* Bytes of scratch, where norm_rough may use it, too. */
size_t with_rough(const struct kp_call *c, size_t bytes) {
    size_t shared = c->math == KP_MATH_F64 ? 2 * rough_blocks() * sizeof(Sums) : 0;
    return bytes > shared ? bytes : shared;
}

/* ---- what the ops call ---- */

/* Decide how rows are cut; room for the moments of the parts. */
template <Rows rows_of(const struct kp_call *)>
void *prepare(const struct kp_call *c, size_t *scratch) {
    Rows g = rows_of(c);
    if (g.rows > INT32_MAX || g.segments * g.span > INT32_MAX)
        die(KP_INPUT, "%s: rows of more than 2^31 elements, or more than 2^31 rows",
            c->op->def->name);
    State *s = (State *)malloc(sizeof *s);
    if (!s) die(KP_MACHINE, "%s: out of memory", c->op->def->name);
    s->parts = part_count(g);
    *scratch =
        with_rough(c, s->parts > 1 ? (size_t)g.rows * s->parts * sizeof(Moments<double>) : 0);
    return s;
}

/* Enqueue the normalisation of these rows. */
template <Rows rows_of(const struct kp_call *)>
void run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    Rows g = rows_of(c);
    unsigned parts = ((State *)state)->parts;
    KP_BY_TYPE(c->in[0].dtype, launch_type<T>(g, c, parts, scratch, stream))
}

/* batch_norm of [N, C]: neighbours are of different rows. */
bool by_columns(const struct kp_call *c) {
    Axes a = axes_of(c);
    return a.space == 1 && a.n > 1;
}
void *prepare_batch(const struct kp_call *c, size_t *scratch) {
    if (!by_columns(c)) return prepare<batch_rows>(c, scratch);
    *scratch = with_rough(c, kp_norm_columns_bytes(c));
    return NULL;
}
void run_batch(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    if (by_columns(c))
        kp_norm_columns(c, scratch, stream);
    else
        run<batch_rows>(c, state, scratch, stream);
}

/* Enqueue the normalisation of these rows with noise.  Blocks that share a row wait for each other:
 * all must run at a time. */
template <Rows rows_of(const struct kp_call *)>
void rough(const struct kp_call *c, void *, void *scratch, cudaStream_t stream) {
    Rows g = rows_of(c);
    int64_t n = g.segments * g.span, most = (n + ROUGH_PART - 1) / ROUGH_PART;
    int64_t share = rough_blocks() / g.rows, parts = share < 1 ? 1 : share < most ? share : most;
    unsigned threads = 32, running = rough_blocks() * ROUGH_BLOCK; /* at a time */
    while (threads < ROUGH_BLOCK && threads < n &&
           (threads * ROUGH_EACH < n || threads * g.rows < running))
        threads *= 2;
    const double *in = (const double *)c->in[0].data, *exact = (const double *)c->exact[0];
    const double *weight = c->present[1] ? (const double *)c->in[1].data : NULL;
    const double *bias = c->present[2] ? (const double *)c->in[2].data : NULL;
    double *out = (double *)c->out[0].data, eps = op_float(c->op, "eps", 1e-5);
    kp_noise noise = *c->noise;
    void *args[] = {&g, &in, &out, &exact, &weight, &bias, &eps, &noise, &scratch};
    dim3 grid((unsigned)g.rows, (unsigned)parts);
    if (parts > 1)
        KP_CUDA(cudaLaunchCooperativeKernel(norm_rough, grid, dim3(threads), args, 0, stream));
    else
        KP_CUDA(cudaLaunchKernel(norm_rough, grid, dim3(threads), args, 0, stream));
}

} // namespace

KP_IMPL(layer_norm, prepare<layer_rows>, run<layer_rows>, rough<layer_rows>, free, KP_DENSE);
KP_IMPL(group_norm, prepare<group_rows>, run<group_rows>, rough<group_rows>, free, KP_DENSE);
KP_IMPL(instance_norm, prepare<instance_rows>, run<instance_rows>, rough<instance_rows>, free,
        KP_DENSE);
KP_IMPL(batch_norm, prepare_batch, run_batch, rough<batch_rows>, free, KP_DENSE);
