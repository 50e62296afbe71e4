/* both_phases.cuh: transposed convolutions with stride 2 and padding 1 along x, whose tiles hold
 * both phases of a line of results and store it as a whole.
 *
 * A place i of a line of x adds to result 2 i + t - 1 by tap t of 3 or 4. So results are
 *     2 i      by tap 1, and by tap 3 of place i - 1,
 *     2 i + 1  by tap 2, and by tap 0 of place i + 1.
 *
 * Idea: a product at fp32 accuracy (product.cuh) whose rows are places, and whose columns are the
 * taps along x of each filter: nothing is multiplied twice, and x is read as it lies, 16 bytes at a
 * time. The depth runs over channels, and over the taps along y and z, whose phases are batches
 * (convolve.cuh). A thread has all taps of a filter at four places. It takes what it lacks from its
 * neighbours, by shuffles and between warps through shared memory, and has eight results side by
 * side. A warp's 64 of a filter go through shared memory, too: a store writes 128 bytes in a row.
 * A tile is as many whole lines of x as fit into its 256 rows.
 *
 * What limits it: products as in product.cuh; a tile has few slabs, and nothing is multiplied while
 * it is stored. Reaches 57 to 70 % of the products' floor (l1_073, l2_002), or 51 % of the bytes'
 * (l2_026). */
#pragma once
#include "convolve.cuh"
#include "named_barrier.cuh"

namespace kp::both_phases {

constexpr int TILE_FILTERS = 32;

/* What a product asks for; C: a Convolution (convolve.cuh) with one group. */
template <class C> struct Sizes : C {
    using X = typename C::X;
    using Y = typename C::Y;
    using Z = typename C::Z;
    static constexpr int TAPS = X::KERNEL, OUT_PAD = X::OUT - 2 * X::IN + 4 - TAPS;
    static constexpr int LINES = TILE_M / X::IN; /* of a tile */
    static constexpr int ALL_LINES = (int)(C::ROWS / X::POINTS);
    static constexpr int PIECES = (C::DEPTH + TILE_K - 1) / TILE_K; /* slabs of a tap along y, z */

    static constexpr long long ROWS = (long long)((ALL_LINES + LINES - 1) / LINES) * TILE_M;
    static constexpr int COLUMNS = TAPS * C::FILTERS, SLABS = PIECES * Y::TAPS * Z::TAPS;
    static constexpr int BATCHES = Y::PHASES * Z::PHASES, B_BATCHES = BATCHES;
    /* Phases of unequal taps follow each other. Taken in turn by an even number of clusters, half
     * of these would get the long ones alone. */
    static constexpr bool BATCH_FASTEST = Y::KERNEL % Y::PHASES == 0 && Z::KERNEL % Z::PHASES == 0;
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return PIECES * taps_of(batch);
    }
    static_assert(std::is_same<X, TransposedAxis<X::IN, TAPS, 2, 1, 1, OUT_PAD>>::value &&
                      (TAPS == 3 || TAPS == 4) && X::IN % 4 == 0 && X::IN <= TILE_M,
                  "stride 2, padding 1, and 3 or 4 taps along x");
    static_assert(C::GROUPS == 1 && C::FILTERS % TILE_FILTERS == 0, "one group, whole tiles");

    /* A batch's phases along y and z, and its taps. */
    static __device__ __forceinline__ int y(int batch) { return batch % Y::PHASES; }
    static __device__ __forceinline__ int z(int batch) { return batch / Y::PHASES; }
    static __device__ __forceinline__ int taps_of(int batch) {
        return Y::taps(y(batch)) * Z::taps(z(batch));
    }

    /* The line that a tile's place is in, of an image and of a phase's points along y and z. Not
     * inside: there is none. */
    struct Line {
        int image, y, z;
        bool inside;
    };
    static __device__ __forceinline__ Line line(int tile, int place) {
        const int n = tile * LINES + place / X::IN;
        return {n / (Y::POINTS * Z::POINTS), n % Y::POINTS, n / Y::POINTS % Z::POINTS,
                place < LINES * X::IN && n < ALL_LINES};
    }

    /* Where result 2 i + more of a place i lies in out, of filter 0; or -1 if there is none. */
    static __device__ __forceinline__ long long result(int batch, int tile, int place, int more) {
        const Line at = line(tile, place);
        const int x = place % X::IN * 2 + more, y_out = Y::output(at.y, y(batch));
        const int z_out = Z::output(at.z, z(batch));
        const bool inside = at.inside && x < X::OUT && y_out < Y::OUT && z_out < Z::OUT;
        const int pixel = (z_out * Y::OUT + y_out) * X::OUT + x;
        return inside ? (long long)at.image * C::FILTERS * C::OUT_AREA + pixel : -1;
    }
};

/* The left operand: lines of x. A thread copies four places of every second channel. */
template <class S> struct Places : AcrossSlab {
    using Y = typename S::Y;
    using Z = typename S::Z;
    const float *data;

    struct Place {
        const float *from; /* the first places of what the first taps read, if that is inside */
        int y, z, y_taps;  /* where that is; and taps of the phase */
    };
    static __device__ __forceinline__ int own_row() { return threadIdx.x % 64 * 4; }
    static __device__ __forceinline__ int own_k() { return threadIdx.x % 128 / 64; }
    __device__ __forceinline__ Place place(int batch, int row) const {
        const typename S::Line at = S::line(row / TILE_M, own_row());
        Place p;
        p.y = Y::input(at.y, S::y(batch)), p.z = Z::input(at.z, S::z(batch));
        p.y_taps = Y::taps(S::y(batch));
        p.from = data + ((long long)at.image * S::CHANNELS + own_k()) * S::AREA +
                 (p.z * Y::IN + p.y) * S::X::IN + own_row() % S::X::IN;
        if (!at.inside) p.y = -(1 << 29); /* outside with any tap */
        return p;
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const int tap = slab / S::PIECES, c = slab % S::PIECES * TILE_K;
        const int y = tap % p.y_taps * Y::STEP, z = tap / p.y_taps * Z::STEP;
        const bool inside =
            (unsigned)(p.y + y) < (unsigned)Y::IN && (unsigned)(p.z + z) < (unsigned)Z::IN;
        const float *from = p.from + (long long)c * S::AREA + (z * Y::IN + y) * S::X::IN;
        to += AcrossSlab::word(own_row(), own_k()) * 4;
#pragma unroll
        for (int k = 0; k < TILE_K; k += 2)
            copy_async<16>(to + AcrossSlab::word(0, k) * 4, from + (long long)k * S::AREA,
                           inside && (S::DEPTH % TILE_K == 0 || c + k + own_k() < S::DEPTH));
    }
};

/* The right operand. A thread's columns (Part) are all taps of one filter, then of the fourth after
 * that, and so on. */
template <class S> struct Taps {
    static constexpr bool ALONG_DEPTH = false;
    const float *data;
    __device__ __forceinline__ float at(int batch, int column, int slab, int k) const {
        const int n = column % (TILE_FILTERS * S::TAPS), own = n / 8 * 2 + n % 2;
        const int filter =
            column / (TILE_FILTERS * S::TAPS) * TILE_FILTERS + own / S::TAPS * 4 + n % 8 / 2;
        const int tap = slab / S::PIECES, c = slab % S::PIECES * TILE_K + k;
        if (tap >= S::taps_of(batch) || (S::DEPTH % TILE_K && c >= S::DEPTH)) return 0.0f;
        const int taps_y = S::Y::taps(S::y(batch)), y = S::Y::tap(S::y(batch), tap % taps_y);
        const int z = S::Z::tap(S::z(batch), tap / taps_y);
        return __ldg(data + (long long)(c * S::FILTERS + filter) * S::KERNEL +
                     (z * S::Y::KERNEL + y) * S::TAPS + own % S::TAPS);
    }
};

/* What warps leave for each other, and lanes of a warp, while they store. */
struct Room {
    float first[8][TILE_FILTERS]; /* by tap 0 of a warp's first place */
    float last[8][TILE_FILTERS];  /* and tap 3 of its last */
    using Four = float[4][104];   /* lines of 64 results, of four filters */
    alignas(16) Four lines[8][2]; /* of a warp, and its next ones */
};

/* Where result n of a line lies: of each eight, the second four are further on, so that neither who
 * writes nor who reads meets others in a bank. */
__device__ __forceinline__ int word_of(int n) {
    return n / 4 % 2 * 48 + n / 8 * 4 + n % 4;
}

/* v = f of eight results of a filter, side by side; the lanes 4, 8 ... further have the next ones.
 * A task that needs its line as a whole has such a function for its own F. */
template <class F>
__device__ __forceinline__ void finish(const F &f, float (&v)[8], int row, int filter) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = f(v[i], row + i / 2, filter);
}

/* f(value, row, filter) to out[image][filter][pixel]; f is the base. T: the product's tile. */
template <class F, class S, class T> struct Results : F {
    using X = typename S::X;
    using A = Places<S>;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    static constexpr int ROOM = T::template stages<A>() * (T::template stage<A>() + 16);
#else
    static constexpr int ROOM = T::PART_BYTES + A::SLAB_BYTES; /* the second stage, now empty */
#endif
    static_assert(ROOM % 16 == 0 && sizeof(Room) <= ROOM && ROOM + sizeof(Room) <= 227 * 1024,
                  "room behind the stages, or in one");
    static constexpr int MEET = TILE_M / 2 % X::IN ? 256 : 128; /* threads that share lines */
    static constexpr int WIDE = X::OUT % 4 == 0 ? 4 : 1;        /* words that a lane stores */
    static constexpr int WAYS = WIDE > 1 ? 1 : 2;               /* stores of a line of 64 */
    float *out;

    /* By tap t of place r, both of the thread's, for its filter q: of the tile 4 q + lane % 4. */
    template <class P>
    static __device__ __forceinline__ auto &by_tap(P &part, int q, int r, int t) {
        const int own = q * S::TAPS + t;
        return part.v[r / 2][own / 2 * 4 + r % 2 * 2 + own % 2];
    }

    template <class P>
    static __device__ __forceinline__ void leave_ends(const P &part, Room &room) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int q = 0; q < TILE_FILTERS / 4; q++) {
            if (lane < 4) room.first[warp][q * 4 + lane] = by_tap(part, q, 0, 0);
            if (S::TAPS > 3 && lane >= 28)
                room.last[warp][q * 4 + lane - 28] = by_tap(part, q, 3, S::TAPS - 1);
        }
    }

    /* v = the thread's eight results of its filter q; `place`: its first. */
    template <class P>
    static __device__ __forceinline__ void add_taps(const P &part, const Room &room, int place,
                                                    int q, float (&v)[8]) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = q * 4 + lane % 4;
        float after = __shfl_down_sync(0xffffffffu, by_tap(part, q, 0, 0), 4);
        if (place % X::IN == X::IN - 4)
            after = 0.0f;
        else if (lane >= 28)
            after = room.first[(warp + 1) % 8][own];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            v[2 * r] = by_tap(part, q, r, 1);
            v[2 * r + 1] = by_tap(part, q, r, 2) + (r < 3 ? by_tap(part, q, r + 1, 0) : after);
        }
        if constexpr (S::TAPS > 3) {
            float before = __shfl_up_sync(0xffffffffu, by_tap(part, q, 3, 3), 4);
            if (place % X::IN == 0)
                before = 0.0f;
            else if (lane < 4)
                before = room.last[(warp + 7) % 8][own];
            v[0] += before;
#pragma unroll
            for (int r = 1; r < 4; r++) v[2 * r] += by_tap(part, q, r - 1, 3);
        }
    }

    /* Stores a warp's results of four filters from `filter` on; `at`: where the lane's lie. */
    __device__ __forceinline__ void store(const Room::Four &lines, const long long (&at)[WAYS],
                                          int filter) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 8 / WIDE; i++) {
            const int n = (i * 32 + lane) * WIDE, line = n / 64;
            const float *from = lines[line] + word_of(n % 64);
            float *to = out + at[i % WAYS] + (long long)(filter + line) * S::OUT_AREA;
            if (at[i % WAYS] < 0) continue;
            if (WIDE > 1)
                *(float4 *)to = *(const float4 *)from;
            else
                *to = *from;
        }
    }

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        extern __shared__ __align__(1024) unsigned char memory[];
        Room &room = *(Room *)(memory + ROOM);
        const F &f = *this;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, place = row % TILE_M;
        const int filter = column / P::N * TILE_FILTERS; /* the first of the tile */
        leave_ends(part, room);
        meet<MEET>(1 + warp * 32 / MEET);
        long long at[WAYS];
#pragma unroll
        for (int i = 0; i < WAYS; i++) {
            const int n = (lane * WIDE + 32 * i) % 64;
            at[i] = S::result(batch, row / TILE_M, warp * 32 + n / 2, n % 2);
        }
        /* A line of 2 IN + 1 ends with a result by the last place alone. */
        constexpr bool ENDS = X::OUT > 2 * X::IN;
        const bool ends = ENDS && place % X::IN == X::IN - 4;
        const long long end = ends ? S::result(batch, row / TILE_M, place + 3, 2) : -1;
#pragma unroll
        for (int q = 0; q < TILE_FILTERS / 4; q++) {
            const int own = filter + 4 * q + lane % 4;
            float v[8];
            add_taps(part, room, place, q, v);
            finish(f, v, row, own);
            float *to = room.lines[warp][q % 2][lane % 4];
            *(float4 *)(to + word_of(lane / 4 * 8)) = make_float4(v[0], v[1], v[2], v[3]);
            *(float4 *)(to + word_of(lane / 4 * 8 + 4)) = make_float4(v[4], v[5], v[6], v[7]);
            __syncwarp();
            store(room.lines[warp][q % 2], at, filter + 4 * q);
            if constexpr (ENDS)
                if (end >= 0)
                    out[end + (long long)own * S::OUT_AREA] =
                        f(by_tap(part, q, 3, S::TAPS - 1), row + 3, own);
        }
        meet<MEET>(1 + warp * 32 / MEET); /* before others overwrite what they left */
    }
};

/* ---- host ---- */

template <class C> using TileOf = Tile<TILE_FILTERS * Sizes<C>::TAPS, Tf32Rest>;

/* Bytes of scratch for convolve(). */
template <class C> constexpr size_t scratch_bytes() {
    return split_bytes<Sizes<C>, TileOf<C>>();
}

/* Enqueues out = f(convolution of x with weight). */
template <class C, class F>
static void convolve(const float *x, const float *weight, float *out, const F &f, void *scratch,
                     cudaStream_t stream) {
    using S = Sizes<C>;
    const Places<S> places = {{}, x};
    const Taps<S> taps = {weight};
    const Results<F, S, TileOf<C>> results = {f, out};
    product<S, TileOf<C>>(places, taps, results, scratch, stream);
}

} // namespace kp::both_phases
