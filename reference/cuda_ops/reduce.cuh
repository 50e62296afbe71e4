/* reduce.cuh: reductions of a dense tensor over any set of axes, by any associative operation.
 *
 * Neighbouring axes that are reduced merge into one, and such groups are reduced
 * one after another from the innermost, each as [outer, n, inner] -> [outer,
 * inner].  Where that leaves too few blocks, n is cut into parts and the partial
 * results are reduced again.  Partial results stay in the operation's state.
 *
 * An operation Op has a State of at most 16 bytes; empty(), the state of no element; take(x, i),
 * that of element i alone; put(), which writes a result; and joins two states when it is called. */
#ifndef KP_REDUCE_CUH
#define KP_REDUCE_CUH

#include "cuda_base/device.cuh"

namespace {

using namespace kp;

enum {
    BLOCK = 256,
    SHORT_ROW = 4 * 32 * 8, /* packs; up to here a warp takes a row, not a block */
    ENOUGH_BLOCKS = 2048,   /* below, rows are cut into parts */
    MIN_PART = 4096,        /* elements of a row in a part, at least */
    MIN_COLUMN = 64,        /* the same, where elements are `inner` apart */
    WIDE = 4,               /* columns a thread, when there are enough */
    MAX_STAGES = 2 * KP_MAX_DIMS
};

struct Stage { /* [outer, n, inner] -> [outer, parts, inner] */
    int64_t outer, n, inner;
    int parts;
};

/* What a stage reads: elements of the tensor, or partial results of a stage before. */
template <class Op, class T> struct Elements {
    using In = T;
    static __device__ typename Op::State take(T x, int64_t i) { return Op::take(x, i); }
};
template <class Op> struct Partials {
    using In = typename Op::State;
    static __device__ In take(In x, int64_t) { return x; }
};

/* Where results go: partial results, or values (divided by `count`) and indices. */
template <class T> struct Target {
    void *partial;      /* not NULL: State[], and nothing else is written */
    T *value;           /* may be NULL */
    void *index;        /* may be NULL */
    bool index_is_real; /* float64 runs keep indices as double */
    double count;
};

/* Write result i of Op, or a partial one. */
template <class Op, class T>
__device__ inline void put(const Target<T> &to, int64_t i, const typename Op::State &s) {
    if (to.partial)
        ((typename Op::State *)to.partial)[i] = s;
    else
        Op::put(to, i, s);
}

/* One thread's share of packs [first, end) by `step`; those in flight are combined in pairs.
 * Packs begin at element `head` of the row, whose positions are indices. */
template <class Op, class Src, int V>
__device__ inline typename Op::State scan(const typename Src::In *__restrict__ row, int64_t head,
                                          int64_t first, int64_t end, int step) {
    using S = typename Op::State;
    Op op;
    static_assert(kInFlight == 4, "combined in two pairs");
    S s = Op::empty();
    int64_t i = first;
    for (; i + (kInFlight - 1) * (int64_t)step < end; i += kInFlight * step) {
        Pack<typename Src::In, V> p[kInFlight];
        S part[kInFlight];
#pragma unroll
        for (int u = 0; u < kInFlight; u++) p[u] = load<V>(row + head + (i + u * step) * V);
#pragma unroll
        for (int u = 0; u < kInFlight; u++) {
            int64_t at = head + (i + u * step) * V;
            part[u] = Src::take(p[u].v[0], at);
#pragma unroll
            for (int e = 1; e < V; e++) part[u] = op(part[u], Src::take(p[u].v[e], at + e));
        }
        s = op(s, op(op(part[0], part[1]), op(part[2], part[3])));
    }
    for (; i < end; i += step) {
        Pack<typename Src::In, V> p = load<V>(row + head + i * V);
#pragma unroll
        for (int e = 0; e < V; e++) s = op(s, Src::take(p.v[e], head + i * V + e));
    }
    return s;
}

/* Contiguous rows (inner == 1), wherever they begin and end.  A warp or a block takes one part of
 * one row: the first also what is before the row's packs of 16 bytes, the last what is behind. */
template <class Op, class Src, class T, int V, bool WARP>
__global__ void __launch_bounds__(BLOCK)
    reduce_rows(const typename Src::In *__restrict__ in, Stage g, Target<T> to) {
    int64_t job = WARP ? (int64_t)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32 : blockIdx.x;
    int lane = WARP ? threadIdx.x % 32 : threadIdx.x;
    if (job >= g.outer * g.parts) return; /* whole warps, or whole blocks */
    int64_t part = job % g.parts;
    in += job / g.parts * g.n;
    int64_t head = V > 1 ? min((int64_t)(-(uintptr_t)in % 16 / sizeof *in), g.n) : 0;
    int64_t packs = (g.n - head) / V, each = (packs + g.parts - 1) / g.parts, begin = part * each;
    Op op;
    typename Op::State s =
        scan<Op, Src, V>(in, head, begin + lane, min(begin + each, packs), WARP ? 32 : BLOCK);
    if (part == 0 && lane < head) s = op(s, Src::take(in[lane], lane));
    int64_t last = head + packs * V + lane;
    if (part == g.parts - 1 && last < g.n) s = op(s, Src::take(in[last], last));
    if constexpr (WARP)
        s = warp_reduce(s, op);
    else
        s = block_reduce(s, Op::empty(), op);
    if (lane == 0) put<Op>(to, job, s);
}

/* Elements `inner` apart: threadIdx.x walks columns, threadIdx.y shares each. */
template <class Op, class Src, class T, int C>
__global__ void __launch_bounds__(BLOCK)
    reduce_columns(const typename Src::In *__restrict__ in, Stage g, Target<T> to, int64_t tiles) {
    using S = typename Op::State;
    __shared__ S part[C][BLOCK];
    Op op;
    int64_t tile = blockIdx.x % tiles, job = blockIdx.x / tiles; /* job: outer and part */
    int64_t each = (g.n + g.parts - 1) / g.parts, begin = job % g.parts * each;
    int64_t end = min(begin + each, g.n), column[C]; /* past the edge: the last, not stored */
    int id = threadIdx.y * blockDim.x + threadIdx.x, step = blockDim.y;
    S s[C];

    in += job / g.parts * g.n * g.inner;
#pragma unroll
    for (int c = 0; c < C; c++) {
        column[c] = min((tile * C + c) * blockDim.x + threadIdx.x, g.inner - 1);
        s[c] = Op::empty();
    }
    int64_t i = begin + threadIdx.y;
    for (; i + (kInFlight - 1) * step < end; i += kInFlight * step) {
        typename Src::In x[kInFlight][C];
#pragma unroll
        for (int u = 0; u < kInFlight; u++)
#pragma unroll
            for (int c = 0; c < C; c++) x[u][c] = in[(i + u * step) * g.inner + column[c]];
#pragma unroll
        for (int c = 0; c < C; c++) {
            S p = op(Src::take(x[0][c], i), Src::take(x[1][c], i + step));
            S q = op(Src::take(x[2][c], i + 2 * step), Src::take(x[3][c], i + 3 * step));
            s[c] = op(s[c], op(p, q));
        }
    }
    for (; i < end; i += step)
#pragma unroll
        for (int c = 0; c < C; c++) s[c] = op(s[c], Src::take(in[i * g.inner + column[c]], i));

#pragma unroll
    for (int c = 0; c < C; c++) part[c][id] = s[c];
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int c = 0; c < C; c++)
                part[c][id] = op(part[c][id], part[c][id + half * blockDim.x]);
    }
    if (threadIdx.y == 0)
#pragma unroll
        for (int c = 0; c < C; c++)
            if ((tile * C + c) * blockDim.x + threadIdx.x < g.inner)
                put<Op>(to, job * g.inner + column[c], part[c][id]);
}

/* Width of a tile of columns, in threads. */
int across(int64_t inner) {
    int n = 1;
    while (n < 32 && n < inner) n *= 2;
    return n;
}

/* Blocks of a launch; too many are an error. */
unsigned grid(int64_t blocks) {
    if (blocks > INT32_MAX) die(KP_INPUT, "reduction: more than 2^31 blocks; use a smaller task");
    return (unsigned)blocks;
}

/* Launch one stage in the form that suits its shape. */
template <class Op, class Src, class T>
void launch_stage(const void *in_, const Stage &g, const Target<T> &to, cudaStream_t stream) {
    using In = typename Src::In;
    constexpr int V = sizeof(In) < 16 ? kPack<In> : 1;
    const In *in = (const In *)in_;
    int64_t jobs = g.outer * g.parts;

    if (g.inner > 1) {
        int x = across(g.inner);
        bool wide = g.inner >= WIDE * 32;
        int64_t width = wide ? WIDE * x : x, tiles = (g.inner + width - 1) / width;
        dim3 block(x, BLOCK / x);
        if (wide)
            reduce_columns<Op, Src, T, WIDE>
                <<<grid(jobs * tiles), block, 0, stream>>>(in, g, to, tiles);
        else
            reduce_columns<Op, Src, T, 1>
                <<<grid(jobs * tiles), block, 0, stream>>>(in, g, to, tiles);
    } else if (g.n / V / g.parts <= SHORT_ROW) {
        reduce_rows<Op, Src, T, V, true><<<grid((jobs + 7) / 8), BLOCK, 0, stream>>>(in, g, to);
    } else {
        reduce_rows<Op, Src, T, V, false><<<grid(jobs), BLOCK, 0, stream>>>(in, g, to);
    }
    KP_CUDA(cudaGetLastError());
}

/* Into how many parts to cut n, so that about ENOUGH_BLOCKS blocks run. */
int part_count(int64_t outer, int64_t n, int64_t inner) {
    int64_t tiles = inner > 1 ? (inner + 32 * WIDE - 1) / (32 * WIDE) : 1;
    int64_t least = inner > 1 ? MIN_COLUMN : MIN_PART, most = (n + least - 1) / least;
    int64_t wanted = (ENOUGH_BLOCKS + outer * tiles - 1) / (outer * tiles);
    int64_t parts = wanted < most ? wanted : most;
    return parts > 1024 ? 1024 : (int)parts;
}

struct State {
    int parts[MAX_STAGES]; /* fixed when prepared: a slice may be smaller later */
};

/* The stages of a call, in order; returns how many.  With `fixed`, parts are taken
 * from there, else chosen.  *count: elements behind each result. */
int plan(const struct kp_call *c, const State *fixed, Stage *stage, double *count) {
    const struct kp_array *x = &c->in[0];
    unsigned axes = op_reduced_axes(c->op, x->n);
    int64_t inner = 1; /* what has been kept inside of the current group */
    int stages = 0;

    *count = 1;
    for (int i = x->n - 1; i >= 0;) {
        if (!(axes & 1u << i)) {
            inner *= x->dim[i--];
            continue;
        }
        Stage s = {1, 1, inner, 1};
        for (; i >= 0 && (axes & 1u << i); i--) s.n *= x->dim[i];
        for (int k = 0; k <= i; k++) s.outer *= x->dim[k];
        *count *= (double)s.n;
        s.parts = fixed ? fixed->parts[stages] : part_count(s.outer, s.n, s.inner);
        stage[stages++] = s;
        if (s.parts > 1) stage[stages++] = {s.outer, s.parts, s.inner, 1};
    }
    if (!stages) stage[stages++] = {1, 1, 1, 1}; /* a scalar */
    return stages;
}

/* Where the results of a call go: values, indices, or values and their indices. */
template <class T> Target<T> target_of(const struct kp_call *c, double count) {
    const struct kp_array *value = &c->out[0], *index = c->nout > 1 ? &c->out[1] : NULL;
    if (value->dtype == KP_I64) index = value, value = NULL;
    Target<T> to = {NULL, value ? (T *)value->data : NULL, NULL, false, count};
    if (index) to.index = index->data, to.index_is_real = index->dtype == KP_F64;
    return to;
}

/* Run the stages; partial results go to `scratch`, one area after another. */
template <class Op, class T>
void run_stages(const struct kp_call *c, const Stage *stage, int stages, double count,
                char *scratch, cudaStream_t stream) {
    using S = typename Op::State;
    const void *in = c->in[0].data;
    for (int i = 0; i < stages; i++) {
        Target<T> to = target_of<T>(c, count);
        if (i + 1 < stages) to.partial = scratch;
        if (i == 0)
            launch_stage<Op, Elements<Op, T>, T>(in, stage[i], to, stream);
        else
            launch_stage<Op, Partials<Op>, T>(in, stage[i], to, stream);
        in = scratch;
        scratch += (stage[i].outer * stage[i].parts * stage[i].inner * sizeof(S) + 255) / 256 * 256;
    }
}

/* Cut long rows into parts; room for their partial results. */
inline void *prepare(const struct kp_call *c, size_t *scratch) {
    Stage stage[MAX_STAGES];
    double count;
    int n = plan(c, NULL, stage, &count);
    State *s = (State *)malloc(sizeof *s);
    if (!s) die(KP_MACHINE, "%s: out of memory", c->op->def->name);
    *scratch = 0;
    for (int i = 0; i < n; i++) {
        s->parts[i] = stage[i].parts;
        if (i + 1 < n) /* 16 bytes: the largest state */
            *scratch += (size_t)(stage[i].outer * stage[i].parts * stage[i].inner) * 16 + 256;
    }
    if (c->math == KP_MATH_F64) *scratch += kp_align(kp_array_bytes(&c->out[0])); /* of rough() */
    return s;
}

/* Reduce with Op.  MEAN: results are divided by how many elements they are of. */
template <template <class> class Op, bool MEAN>
void run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    Stage stage[MAX_STAGES];
    double count;
    int n = plan(c, (const State *)state, stage, &count);
    if (!MEAN) count = 1;
    KP_BY_TYPE(c->in[0].dtype, run_stages<Op<T>, T>(c, stage, n, count, (char *)scratch, stream))
}

} // namespace
#endif
