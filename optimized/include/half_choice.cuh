/* half_choice.cuh: how the product of a shape is cut, on sm_90a: a line of half_table.cuh if there
 * is one, else what a model of its time likes best. Plain C++ for constants: a tuner may include
 * it, too, to list choices and to rank them. */
#pragma once

namespace kp {

constexpr int HALF_PROCESSORS = 132;    /* multiprocessors that the model counts on */
constexpr int HALF_MEMORY = 227 * 1024; /* bytes of shared memory of a block */

/* half_direct.cuh and half_product.cuh say what they do. */
enum HalfWay { HALF_DIRECT, HALF_TOGETHER, HALF_APART, HALF_PAIRED };

struct HalfChoice {
    int m, n, k;
    HalfWay way;
    int tile_m, tile_n;      /* rows and columns of a tile */
    int split;               /* blocks of a cluster that share a tile's depth; HALF_DIRECT: warps */
    int parts;               /* such clusters that share it, by way of scratch memory */
    int walk;                /* rows of tiles that are walked together */
    bool transposed = false; /* out transposed is multiplied, N x M: tiles are of its rows */
};

/* The choice with the sizes of the product that is multiplied. */
constexpr HalfChoice half_multiplied(HalfChoice c) {
    const int m = c.m;
    if (c.transposed) c.m = c.n, c.n = m;
    return c;
}

constexpr HalfChoice HALF_TABLE[] = {
#include "half_table.cuh"
    {0, 0, 0, HALF_DIRECT, 0, 0, 0, 0, 0}};

/* The table of a kernel for one kind of GPU, whose lines count before those. */
constexpr HalfChoice HALF_OWN_TABLE[] = {
#ifdef KP_HALF_TABLE
#include KP_HALF_TABLE
#endif
    {0, 0, 0, HALF_DIRECT, 0, 0, 0, 0, 0}};

/* The tiles that are compiled without spills, as they are tried. */
struct HalfShape {
    HalfWay way;
    int tile_m, tile_n;
};
constexpr HalfShape HALF_SHAPES[] = {
    {HALF_DIRECT, 16, 16},     {HALF_DIRECT, 32, 32},     {HALF_TOGETHER, 128, 256},
    {HALF_TOGETHER, 256, 128}, {HALF_TOGETHER, 128, 128}, {HALF_TOGETHER, 256, 64},
    {HALF_TOGETHER, 64, 256},  {HALF_TOGETHER, 128, 64},  {HALF_TOGETHER, 64, 128},
    {HALF_TOGETHER, 64, 64},   {HALF_TOGETHER, 128, 96},  {HALF_TOGETHER, 192, 128},
    {HALF_TOGETHER, 128, 192}, {HALF_APART, 128, 128},    {HALF_APART, 64, 256},
    {HALF_APART, 128, 64},     {HALF_APART, 64, 128},     {HALF_APART, 64, 64},
    {HALF_APART, 64, 96},      {HALF_PAIRED, 128, 96},    {HALF_PAIRED, 256, 96},
    {HALF_PAIRED, 192, 128},   {HALF_PAIRED, 128, 256},   {HALF_PAIRED, 128, 192},
    {HALF_PAIRED, 128, 128},   {HALF_PAIRED, 256, 128},   {HALF_PAIRED, 64, 256},
    {HALF_PAIRED, 128, 64},    {HALF_PAIRED, 64, 128},    {HALF_PAIRED, 64, 64}};

constexpr int half_rounds(long long work, int at_once) {
    return (int)((work + at_once - 1) / at_once);
}

constexpr int half_walk(int walk, int tiles) {
    while (tiles % walk) walk /= 2;
    return walk;
}

/* Whether a warpgroup stores a tile by a map while it adds up the next. */
constexpr bool half_laps(const HalfChoice &c) {
    return (c.way == HALF_TOGETHER || c.way == HALF_PAIRED) && c.tile_m == 128 &&
           c.tile_n % 64 == 0 && c.split * c.parts == 1 && !c.transposed;
}

/* Blocks of a cluster whose tiles lie below each other. */
constexpr int half_share(const HalfChoice &c) {
    return c.way == HALF_PAIRED ? 2 : 1;
}

/* Rows and columns of tiles; blocks that share B have theirs below each other. */
constexpr int half_rows_of_tiles(const HalfChoice &c) {
    return half_rounds(c.m, half_share(c) * c.tile_m);
}

constexpr int half_columns_of_tiles(const HalfChoice &c) {
    return half_rounds(c.n, c.tile_n);
}

/* Stages of a ring that fit beside so many bytes of sums. */
constexpr int half_fit(int tile_m, int tile_n, int sums) {
    return (HALF_MEMORY - sums - 16) / ((tile_m + tile_n) * 128 + 16);
}

/* Bytes that the others of a cluster send a block which adds up its share of a tile. */
constexpr int half_sent(int tile_m, int tile_n, int split) {
    return tile_m * tile_n * 4 / split * (split - 1);
}

/* The same for a choice, without the rooms of what is stored by maps. */
constexpr int half_stages(const HalfChoice &c) {
    return half_fit(c.tile_m, c.tile_n, half_sent(c.tile_m, c.tile_n, c.split));
}

/* Whether a choice, of the sizes that are multiplied, can be compiled, as the kernels'
 * static_asserts say, and is no waste: tiles that are stored by maps may reach beyond the matrix.
 */
constexpr bool half_possible(const HalfChoice &c) {
    if (c.transposed && c.way == HALF_DIRECT) return false;
    if (half_laps(c)) {
        if (1.0 * half_share(c) * c.tile_m * half_rows_of_tiles(c) * c.tile_n *
                half_columns_of_tiles(c) >
            1.2 * c.m * c.n)
            return false;
    } else if (c.m % (c.tile_m * half_share(c)) || c.n % c.tile_n)
        return false;
    if (c.way == HALF_DIRECT) return c.k % (32 * c.split) == 0 && c.parts == 1 && c.split <= 16;
    if (c.k % (64 * c.split * c.parts)) return false;
    if (c.split * c.parts == 1) return true;
    if (c.way == HALF_APART || (c.way == HALF_PAIRED && c.split > 1) ||
        c.tile_m * c.tile_n / 512 % c.split)
        return false;
    return half_stages(c) >= 3;
}

/* Tiles, of all blocks that share B, and how many clusters that share no depth run at once. */
constexpr long long half_tiles(const HalfChoice &c) {
    return (long long)half_rows_of_tiles(c) * half_columns_of_tiles(c);
}

constexpr int half_at_once(const HalfChoice &c) {
    return HALF_PROCESSORS / half_share(c);
}

/* How clusters share the tiles of the last round (half_last.cuh). */
struct HalfLast {
    int whole, tiles;  /* tiles of the rounds before, and of the last */
    int parts, length; /* each has parts of so many slabs, but for the last of them */
    int rest, helpers; /* slabs of a tile, and clusters, that are left over */
};

/* What sharing costs: a cluster leaves the sums of a piece in the time of so many slabs; then all
 * meet, in so many nanoseconds, and add up, in so many more for each part of a tile. */
constexpr int HALF_LEAVE = 8;
constexpr double HALF_MEET = 3000, HALF_ADD_PART = 300;

constexpr HalfLast half_last(long long tiles, int slabs, int clusters) {
    HalfLast l = {};
    l.tiles = (int)(tiles % clusters), l.whole = (int)tiles - l.tiles;
    if (l.tiles == 0) return l;
    l.parts = clusters / l.tiles, l.helpers = clusters % l.tiles;
    /* Parts are longer by what helpers need to leave the sums of several tiles. */
    const int leaves = l.helpers ? HALF_LEAVE * (l.tiles - l.helpers) : 0;
    l.length = half_rounds((long long)l.tiles * slabs + leaves, clusters);
    if (l.length > slabs) l.length = slabs;
    l.rest = slabs - l.parts * l.length;
    if (l.rest < 0) l.rest = 0;
    return l;
}

/* Nanoseconds of the products of a slab of a tile. */
constexpr double half_products_time(const HalfChoice &c) {
    return c.tile_m * (double)c.tile_n / 32 / 1.63;
}

/* Nanoseconds of the last round if all share its tiles, as it is modelled. */
constexpr double half_last_time(const HalfChoice &c) {
    const HalfLast l = half_last(half_tiles(c), c.k / 64, half_at_once(c));
    return (l.length + HALF_LEAVE) * half_products_time(c) + HALF_MEET + HALF_ADD_PART * l.parts;
}

/* Whether they do: tiles of 256 columns (of 192 it took longer), where it gains more than 3 us, and
 * 1 for each tile of a helper. */
constexpr bool half_shares_last(const HalfChoice &c) {
    if (!half_laps(c) || c.tile_n < 256 || half_tiles(c) <= half_at_once(c)) return false;
    const HalfLast l = half_last(half_tiles(c), c.k / 64, half_at_once(c));
    const double whole = c.k / 64 * half_products_time(c);
    return l.tiles &&
           half_last_time(c) + 3000 + (l.helpers ? 1000.0 * l.tiles / l.helpers : 0) < whole;
}

/* Whether blocks stay in step: those of long products drift apart else, and read from memory what
 * others have read. */
constexpr bool half_in_step(const HalfChoice &c) {
    return half_laps(c) && c.k >= 2048 && half_tiles(c) >= 3 * half_at_once(c);
}

/* Slabs that each of the blocks that share B fetches all of. */
constexpr int half_early(int stages) {
    return stages < 4 ? stages : 4;
}

constexpr double half_most(double x, double y) {
    return x > y ? x : y;
}

/* Rates in bytes a nanosecond, times in nanoseconds: what all multiprocessors get from L2; what
 * they get from the memory of an H200; and what any kernel and the clock's events take. */
constexpr double HALF_FROM_L2 = 16400, HALF_FROM_MEMORY = 4340, HALF_LAUNCH = 3200;

/* The time of two things beside each other, which hinder each other by so much. */
constexpr double half_beside(double x, double y, double hinder) {
    return x > y ? x + hinder * y * y / x : y + hinder * x * x / y;
}

/* The least time that the bytes take. */
constexpr double half_bytes_time(const HalfChoice &c) {
    const double m = c.m, n = c.n, k = c.k;
    return 2 * (m * k + n * k + m * n) / HALF_FROM_MEMORY;
}

/* A block a tile, straight from memory: warps take chunks of 32 of the depth, some at a time. */
constexpr double half_direct_time(const HalfChoice &c) {
    const long long blocks = (long long)c.m / c.tile_m * (c.n / c.tile_n);
    const int warps = c.split * (c.tile_m / 16) / 2, resident = warps < 2 ? 16 : 32 / warps;
    const int chunks = c.k / 32 / c.split, at_once = c.tile_m > 16 ? 2 : 4;
    const int turns = half_rounds(chunks, at_once), first = chunks < at_once ? chunks : at_once;
    const double bytes = (double)(c.tile_m + c.tile_n) * c.k * 2;
    const double latency = half_rounds(blocks, HALF_PROCESSORS * resident) *
                           (first * (c.tile_m > 16 ? 700.0 : 450.0) + (turns - 1) * 1500.0 + 900);
    const double flow = half_rounds(blocks, HALF_PROCESSORS) * bytes / 35;
    return HALF_LAUNCH + half_most(half_most(latency, flow), half_bytes_time(c));
}

/* Nanoseconds of a slab of a tile, where so many blocks have so many slabs each: products, and what
 * is fetched. No slab takes less than `least`, however small; why is not known (NOTES.md). Blocks
 * that share B fetch their first slabs alone. */
constexpr double half_slab_time(const HalfChoice &c, double blocks, double slabs) {
    const double least = half_share(c) == 1 ? 129 : 210;
    const double products = half_most(least, half_products_time(c));
    const int early = half_early(half_stages(c));
    const double alone = half_share(c) == 1 || slabs < early ? 1 : early / slabs;
    const double fetched = (c.tile_m + c.tile_n * (1 + alone) / 2) * 128;
    return half_beside(products, fetched * blocks / HALF_FROM_L2, 0.18);
}

/* Nanoseconds after the last slab of a tile: storing it, and adding up what others have. */
constexpr double half_end_time(const HalfChoice &c) {
    const double tile = (double)c.tile_m * c.tile_n;
    double time = tile * 2 / 40;
    if (c.split > 1) time += 504 + half_sent(c.tile_m, c.tile_n, c.split) / 42.;
    if (c.parts > 1) time += 2380 + 4.0 * c.m * c.n * c.parts / 19000;
    return time;
}

/* Modelled nanoseconds of a choice. The constants fit 6,300 choices of 823 shapes on three H200s:
 * they are off by 7 % (root mean square), and what the model likes best takes 1.024 times as long
 * as the fastest; of 8,100 choices of 642 shapes on five H100s 1.030 times; of 2,800 choices of 767
 * shapes of today's kernel on two H200s 1.023 times. */
constexpr double half_time(const HalfChoice &c) {
    if (c.way == HALF_DIRECT) return half_direct_time(c);
    /* Clusters at a time: not every part of the chip has a multiple of 4 or 8 left. */
    const int fits[] = {0, HALF_PROCESSORS, 66, 0, 30, 0, 0, 0, 14};
    const long long tiles = (long long)half_rows_of_tiles(c) * half_columns_of_tiles(c) * c.parts;
    const int rounds = half_rounds(tiles, fits[c.split * half_share(c)]);
    const double blocks = (double)tiles * c.split * half_share(c);
    const double depth = c.k / 64 / c.split / c.parts;
    const double slabs =
        depth *
        half_slab_time(c, blocks < HALF_PROCESSORS ? blocks : HALF_PROCESSORS, rounds * depth);
    const double end = half_end_time(c);
    double work = rounds * (slabs + end);
    if (c.way == HALF_APART) work = rounds * half_most(slabs, (slabs + end) / 2) + end;
    if (half_laps(c))
        work = (half_shares_last(c) ? (rounds - 1) * half_most(slabs, end) + half_last_time(c)
                                    : rounds * half_most(slabs, end) + end);
    const double bytes = half_bytes_time(c) + (c.split * c.parts > 1 ? end : 0);
    return HALF_LAUNCH + (c.way == HALF_PAIRED ? 1550 : 976) + half_beside(work, bytes, 0.24);
}

/* Calls f(choice) for each that is possible for a shape and no waste. The model knows nothing of
 * the walk; it matters where tiles are many, and they are tried then. */
template <class F> constexpr void half_each(int m, int n, int k, F f) {
    const int walks[] = {m > 4096 ? 16 : 32, 8, m > 4096 ? 32 : 16};
    const int tried = (double)m * n * k >= 8e9 ? 3 : 1;
    for (const HalfShape &s : HALF_SHAPES)
        for (int split = 1; split <= 16; split *= 2)
            for (int parts = 1; parts <= 64; parts *= 2) {
                HalfChoice c = {m, n, k, s.way, s.tile_m, s.tile_n, split, parts, walks[0]};
                if (!half_possible(c) || (s.way != HALF_DIRECT && split > 8)) continue;
                const long long tiles = (long long)half_rows_of_tiles(c) * half_columns_of_tiles(c);
                if (parts > 1 && tiles * half_share(c) * split * parts > HALF_PROCESSORS) continue;
                for (int i = 0; i < (tiles > HALF_PROCESSORS ? tried : 1); i++) {
                    c.walk = walks[i];
                    f(c);
                }
            }
}

/* Whether a product runs for so long that power limits it. What reads least wins then; a tuner,
 * which tries all choices in turn for a second, does not see it. */
constexpr bool half_long(int m, int n, int k) {
    return k >= 8192 && (double)m * n * k >= 0x1p39 && m % 256 == 0 && n % 256 == 0;
}

/* The choice of the least modelled time, but for long products. */
constexpr HalfChoice half_model(int m, int n, int k) {
    if (half_long(m, n, k)) return {m, n, k, HALF_PAIRED, 128, 256, 1, 1, 8};
    HalfChoice best = {};
    double least = 1e30;
    half_each(m, n, k, [&](const HalfChoice &c) {
        const double time = half_time(c);
        if (time < least * 0.999) least = time, best = c;
    });
    return best;
}

/* A table's choice for a shape, else `other`. */
template <int LINES>
constexpr HalfChoice half_line(const HalfChoice (&table)[LINES], int m, int n, int k,
                               const HalfChoice &other) {
    for (const HalfChoice &c : table)
        if (c.m == m && c.n == n && c.k == k) return c;
    return other;
}

/* The choice for a shape, and what it would be if the kernel's table said nothing. */
constexpr HalfChoice half_choice_of_all(int m, int n, int k) {
    return half_line(HALF_TABLE, m, n, k, half_model(m, n, k));
}

constexpr HalfChoice half_choice(int m, int n, int k) {
    return half_line(HALF_OWN_TABLE, m, n, k, half_choice_of_all(m, n, k));
}

} // namespace kp

#ifdef KP_LIST /* a program for harness/inspect/tune */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int n, char **size) {
    using namespace kp;
    static const char *const way[] = {"DIRECT", "TOGETHER", "APART", "PAIRED"};
    if (n != 4) return 2;
    const int rows = atoi(size[1]), columns = atoi(size[2]), depth = atoi(size[3]);
    std::vector<HalfChoice> all;
    const auto add = [&](const HalfChoice &c) {
        for (const HalfChoice &o : all)
            if (c.way == o.way && c.tile_m == o.tile_m && c.tile_n == o.tile_n &&
                c.split == o.split && c.parts == o.parts && c.walk == o.walk &&
                c.transposed == o.transposed)
                return;
        all.push_back(c);
    };
#ifdef KP_HALF_TABLE
    add(half_choice_of_all(rows, columns, depth));
#endif
    add(half_model(rows, columns, depth));
    const HalfChoice own = half_choice(rows, columns, depth), product = half_multiplied(own);
    add(own); /* a table's line must win again, and over other walks */
    const int of_tiles = half_rows_of_tiles(product);
    const bool many = own.way != HALF_DIRECT && !half_long(rows, columns, depth);
    for (int walk = 8; many && walk >= 1; walk /= 2) {
        HalfChoice c = own;
        c.walk = walk;
        if (half_columns_of_tiles(product) > 1 &&
            half_walk(walk, of_tiles) < half_walk(own.walk, of_tiles))
            add(c);
    }
    const size_t first = all.size();
    if (!half_long(rows, columns, depth)) {
        half_each(rows, columns, depth, add);
        half_each(columns, rows, depth, [&](HalfChoice c) {
            c.transposed = true;
            if (half_possible(c)) add(half_multiplied(c));
        });
    }
    std::stable_sort(all.begin() + first, all.end(), [](const HalfChoice &x, const HalfChoice &y) {
        return half_time(half_multiplied(x)) < half_time(half_multiplied(y));
    });
    for (const HalfChoice &c : all)
        printf("kp::HALF_%s, %d, %d, %d, %d, %d%s\t%.2f\n", way[c.way], c.tile_m, c.tile_n, c.split,
               c.parts, c.walk, c.transposed ? ", true" : "", half_time(half_multiplied(c)) * 1e-3);
}
#endif
