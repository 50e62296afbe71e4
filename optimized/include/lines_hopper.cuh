/* lines_hopper.cuh: how convolve_lines.cuh multiplies with sm_90a's instructions. */
#pragma once
#include "convolve_lines.cuh"

namespace kp {

/* The input of a tile for 32 channels, in shared memory: places from the first one's left
 * neighbours to the last one's right ones. Where a tile goes on in the next strip, that has
 * neighbours of its own, HALO places further. */
template <class L> struct LineSlab {
    using X = typename L::X;
    static constexpr int STEP = L::template STEP<X>, HALO = STEP * (X::KERNEL - 1);
    static constexpr int WIDTH = L::PLACES + 2 * HALO, LINES = L::LINES + L::Y::KERNEL - 1;
    static constexpr int PLANE = (WIDTH * LINES + 23) / 32 * 32 + 8; /* for the banks */
    static constexpr int BYTES = TILE_K * PLANE * 4;
};

/* Where a tile begins. */
template <class L> struct LineStart {
    int strip, x, left; /* of all images; and how many places are left in the strip */
    __device__ __forceinline__ explicit LineStart(int m)
        : strip(m * L::PLACES / L::X::OUT), x(m * L::PLACES % L::X::OUT), left(L::X::OUT - x) {}
};

/* A ring of stages in shared memory: data, then the barriers that say full, then those for empty.
 */
template <int COUNT_, int BYTES_> struct LineRing {
    static constexpr int COUNT = COUNT_, BYTES = BYTES_;
    uint32_t data, bars;
    int stage, turn; /* of who waits for `full`; `empty` is waited for with turn ^ 1 */
    __device__ __forceinline__ uint32_t full() const { return bars + stage * 8; }
    __device__ __forceinline__ uint32_t empty(int at) const { return bars + (COUNT + at) * 8; }
    __device__ __forceinline__ uint32_t at() const { return data + stage * BYTES; }
    __device__ __forceinline__ void next() {
        if (++stage == COUNT) stage = 0, turn ^= 1;
    }
};

/* B's, then A's: two stages, or one where there is no room for two. */
template <class T, class L> struct LineRings {
    static constexpr int ALL = 226 * 1024, TAP = T::B_BYTES + 16, INPUT = LineSlab<L>::BYTES + 16;
    static constexpr int INPUTS = 2 * INPUT + 3 * TAP <= ALL ? 2 : 1;
    static constexpr int ROOM = (ALL - INPUTS * INPUT) / TAP, TAPS = ROOM < 8 ? ROOM : 8;
    static_assert(TAPS > 2, "two taps are multiplied at a time");
    LineRing<TAPS, T::B_BYTES> b;
    LineRing<INPUTS, LineSlab<L>::BYTES> a;
    __device__ __forceinline__ explicit LineRings(uint32_t memory) {
        b.data = memory, a.data = memory + TAPS * T::B_BYTES;
        b.bars = a.data + INPUTS * LineSlab<L>::BYTES, a.bars = b.bars + TAPS * 16;
        a.stage = b.stage = a.turn = b.turn = 0;
    }
};

/* What the first fetching warp does. One thread. */
template <class L, class T>
__device__ __forceinline__ void fetch_filters(LineRings<T, L> rings, const float *blocks) {
    auto &ring = rings.b;
    const int rank = T::CLUSTER > 1 ? cluster_rank() : 0, part = T::B_BYTES / T::CLUSTER;
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<L, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<L, T>(index, rank);
        const float *from = blocks + (long long)at.n * L::SLABS * T::B_WORDS + rank * part / 4;
        for (int slab = 0; slab < L::SLABS; slab++, from += T::B_WORDS, ring.next()) {
            bar_wait(ring.empty(ring.stage), ring.turn ^ 1);
            bar_expect(ring.full(), T::B_BYTES);
            copy_bulk<T::CLUSTER>(ring.at() + rank * part, from, part, ring.full());
        }
    }
}

constexpr int LINE_FETCHERS = 96; /* threads that fetch A */

/* What the others do. */
template <class L, class T>
__device__ __forceinline__ void fetch_lines(LineRings<T, L> rings, const float *data) {
    using X = typename L::X;
    using Y = typename L::Y;
    using Slab = LineSlab<L>;
    auto &ring = rings.a;
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<L, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<L, T>(index, T::CLUSTER > 1 ? cluster_rank() : 0);
        const LineStart<L> start(at.m);
        for (int c = 0; c < L::DEPTH; c += TILE_K, ring.next()) {
            bar_wait(ring.empty(ring.stage), ring.turn ^ 1);
#pragma unroll 1
            for (int i = threadIdx.x % 128 - 32; i < Slab::LINES * Slab::WIDTH;
                 i += LINE_FETCHERS) {
                int strip = start.strip, x = i % Slab::WIDTH;
                if (x < start.left + Slab::HALO)
                    x += start.x;
                else
                    x -= start.left + Slab::HALO, strip++;
                x = L::template input<X>(0) + x;
                const int image = strip / L::STRIPS;
                const int y =
                    L::template input<Y>(L::top(strip)) + i / Slab::WIDTH * L::template STEP<Y>;
                const bool inside = image < L::IMAGES && (unsigned)x < (unsigned)X::IN &&
                                    (unsigned)y < (unsigned)Y::IN;
                const float *from =
                    data + ((long long)image * L::CHANNELS + c) * L::AREA + y * X::IN + x;
                const uint32_t to = ring.at() + i * 4;
#pragma unroll
                for (int k = 0; k < TILE_K; k++)
                    copy_async<4>(to + k * Slab::PLANE * 4, from + (long long)k * L::AREA, inside);
            }
            bar_arrive_copied(ring.full());
        }
    }
}

/* f(0), f(1) ... f(COUNT - 1), as types. */
template <class F, int... I>
__device__ __forceinline__ void for_each(F &&f, std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>()), ...);
}

/* part += the products of 32 channels with all taps. `slab` is the thread's first word of the
 * input: of its first place and line, and of its first channel; that of its second place is
 * `second` words further. */
template <class L, class T>
__device__ __forceinline__ void multiply_lines(const float *slab, int second,
                                               decltype(LineRings<T, L>::b) &b,
                                               Part<false, T::N> &part) {
    using Slab = LineSlab<L>;
    constexpr int TAPS = L::Y::KERNEL, RUN = T::RUN;
    Splits pair[2];
    auto split = [&](Splits &to, int p, int x) {
        float v[4][4];
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                v[s][e] = slab[(s * 8 + e / 2 * 4) * Slab::PLANE + e % 2 * second +
                               p * Slab::WIDTH + x * Slab::STEP];
        split_part<T>(v, to);
    };
    split(pair[0], 0, 0);
#pragma unroll 1
    for (int x = 0; x < L::X::KERNEL; x++) {
        float sum[2][T::N / 2];
        const int next_x = min(x + 1, L::X::KERNEL - 1);
        int last = 0; /* the stage of the tap before */
        for_each(
            [&](auto step) {
                constexpr int p = step.value;
                if constexpr (p < TAPS) {
                    bar_wait(b.full(), b.turn);
                    start_slab<T, p % RUN != 0>(pair[p % 2], wgmma_operand(b.at()), sum[0]);
                }
                if constexpr (p > 0)
                    start_slab<T, (p - 1) % RUN != 0>(
                        pair[p % 2], wgmma_operand(b.data + last * b.BYTES), sum[1]);
                wgmma_wait<p % TAPS == 0 ? 1 : 2>(); /* for nothing; see multiply_ahead() */
                split(pair[(p + 1) % 2], p < TAPS ? p + 1 : 0, p < TAPS ? x : next_x);
                wgmma_wait<0>();
                if constexpr (p > 0) bar_arrive_warp<T::CLUSTER>(b.empty(last));
                if constexpr (p < TAPS && (p % RUN == RUN - 1 || p == TAPS - 1))
#pragma unroll
                    for (int j = 0; j < T::N / 2; j++) part.v[0][j] += sum[0][j];
                if constexpr (p > 0 && ((p - 1) % RUN == RUN - 1 || p == TAPS))
#pragma unroll
                    for (int j = 0; j < T::N / 2; j++) part.v[1][j] += sum[1][j];
                last = b.stage;
                if constexpr (p < TAPS) b.next();
            },
            std::make_integer_sequence<int, TAPS + 1>());
    }
}

/* What the fourth warpgroup does, if there is one (norm_behind.cuh). */
template <class L, class T, class Store>
__device__ __forceinline__ void follow(LineRing<1, 0> stored, const Store &store) {
    const int warp = threadIdx.x / 32 - 12;
    if (warp >= 2) {
        store.template map_all<T>(blockIdx.x * 2 + warp - 2);
    } else if (warp == 1) {
        store.template join_all<T>(blockIdx.x, gridDim.x);
    } else if (threadIdx.x % 32 == 0) {
        for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<L, T>();
             index += gridDim.x / T::CLUSTER, stored.next()) {
            const TileAt at = find_tile<L, T>(index, T::CLUSTER > 1 ? cluster_rank() : 0);
            bar_wait(stored.full(), stored.turn);
            store.announce(at.m);
            bar_arrive(stored.empty(0));
        }
        store.stop();
    }
}

/* The block's whole work, by the halo. */
template <class S, class T, class C, class Store>
__device__ __forceinline__ void run_block(const Patches<InLines<C>> &a, const float *b,
                                          const Store &store, unsigned char *memory) {
    using L = InLines<C>;
    using Slab = LineSlab<L>;
    LineRings<T, L> rings(shared_address(memory));
    LineRing<1, 0> stored = {0, rings.b.data + rings.ALL, 0, 0}; /* of tiles, for who is behind */
    if (threadIdx.x == 0) {
        for (int s = 0; s < rings.TAPS; s++) {
            bar_init(rings.b.bars + s * 8, 1);
            bar_init(rings.b.empty(s), 8 * T::CLUSTER * WARP_ARRIVALS);
        }
        for (int s = 0; s < rings.INPUTS; s++) {
            bar_init(rings.a.bars + s * 8, LINE_FETCHERS);
            bar_init(rings.a.empty(s), 8 * WARP_ARRIVALS);
        }
        if (T::BEHIND) {
            bar_init(stored.full(), 8 * WARP_ARRIVALS);
            bar_init(stored.empty(0), 1);
        }
        bar_init_done();
    }
    if (T::CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x >= 256) {
        registers_give<T::FETCHER>();
        if constexpr (T::BEHIND)
            if (threadIdx.x >= 384) follow<L, T>(stored, store);
        if (threadIdx.x >= 288 && threadIdx.x < 384)
            fetch_lines<L, T>(rings, a.data);
        else if (threadIdx.x == 256)
            fetch_filters<L, T>(rings, b);
        __syncwarp();
    } else {
        registers_take<T::MULTIPLIER>();
        const int row = first_row<false>(), place = L::place(row), line = row / 32 % 2 * 2;
        const int first = threadIdx.x % 4 * Slab::PLANE + line * Slab::WIDTH + place;
        for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<L, T>();
             index += gridDim.x / T::CLUSTER) {
            const TileAt at = find_tile<L, T>(index, T::CLUSTER > 1 ? cluster_rank() : 0);
            const LineStart<L> start(at.m);
            const int own = first + (place >= start.left ? Slab::HALO : 0);
            const int second = 8 + (place < start.left && place + 8 >= start.left ? Slab::HALO : 0);
            Part<false, T::N> part = {};
#pragma unroll 1
            for (int c = 0; c < L::DEPTH; c += TILE_K, rings.a.next()) {
                bar_wait(rings.a.full(), rings.a.turn);
                const float *slab = (const float *)(memory + (rings.a.at() - rings.b.data));
                multiply_lines<L, T>(slab + own, second, rings.b, part);
                if (threadIdx.x % 32 < WARP_ARRIVALS) bar_arrive(rings.a.empty(rings.a.stage));
            }
            store.tile(part, 0, at.m * TILE_M + row, at.n * T::N + threadIdx.x % 4 * 2);
            if constexpr (T::BEHIND) {
                bar_wait(stored.empty(0), stored.turn ^ 1);
                __syncwarp();
                if (threadIdx.x % 32 < WARP_ARRIVALS) bar_arrive(stored.full());
                stored.next();
            }
        }
    }
    if (T::CLUSTER > 1) cluster_sync(); /* nobody leaves while others still send to it */
}

} // namespace kp
