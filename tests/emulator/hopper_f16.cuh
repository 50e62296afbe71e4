/* hopper_f16.cuh: optimized/include/hopper_f16.cuh for tests/emulate. Copies and products happen as
 * late as they may. */
#pragma once
#include <deque>
#include <functional>
#include "hopper.cuh"
namespace emulator {
/* Blocks of a cluster arrive, and wait later. */
inline std::map<Block *, Barrier> splits; /* of the clusters, by their first blocks */
inline int cluster_threads;
inline Barrier &cluster_split() {
    return splits[self->block - self->block->rank];
}
inline std::map<Thread *, int> cluster_arrived; /* how often the barrier was complete by then */

/* What a tensor map says, in its first bytes. */
struct Map {
    const char *matrix;
    long long pitch;
    int rows, columns, box, sign;
};
enum { MAP_SIGN = 0x7ab5 };

/* Copies a box of 64 halves by `box` rows, zeros beyond the matrix, as the copy engine does. */
inline void copy_rows(uint32_t to, const Map &map, int row, int column) {
    for (int r = 0; r < map.box; r++)
        for (int p = 0; p < 8; p++) {
            char *piece = shared_at(to + r * 128 + ((p ^ (r & 7)) * 16));
            const bool there = row + r < map.rows && column + p * 8 < map.columns;
            if (there)
                memcpy(piece, map.matrix + (row + r) * map.pitch + (column + p * 8) * 2, 16);
            else
                memset(piece, 0, 16);
        }
}
/* What threads have asked to be copied to a matrix, and is not yet read. */
inline std::map<Thread *, std::deque<std::function<void()>>> copies_out;
} // namespace emulator
namespace kp {
inline void fence_async() {}
inline void bar_arrive(uint32_t bar) {
    emulator::bar_arrive(bar);
}
inline unsigned count_next(unsigned *counter, unsigned most) {
    const unsigned before = *counter;
    *counter = before >= most ? 0 : before + 1;
    return before;
}
inline void count_up(unsigned *counter, unsigned most) {
    count_next(counter, most);
}
inline void count_wait(const unsigned *counter, unsigned all) {
    while (*counter < all) emulator::wait_change((const int *)counter, (int)*counter, "count_wait");
}
template <int CLUSTER> bool run_at_once(int blocks, int processors) {
    return CLUSTER <= 2 && blocks <= processors;
}
inline void cluster_arrive() {
    emulator::Barrier &b = emulator::cluster_split();
    if (!emulator::cluster_arrived.emplace(emulator::self, b.gen).second)
        emulator::fail("a second arrival without a wait");
    if (++b.arrived == emulator::cluster_threads) b.arrived = 0, b.gen++;
}
inline void cluster_wait() {
    const auto mine = emulator::cluster_arrived.find(emulator::self);
    if (mine == emulator::cluster_arrived.end()) emulator::fail("a wait without an arrival");
    const int gen = mine->second;
    emulator::cluster_arrived.erase(mine);
    emulator::Barrier &b = emulator::cluster_split();
    if (b.gen == gen) emulator::wait_change(&b.gen, gen, "cluster_wait");
}
inline uint32_t at_rank(uint32_t address, int rank) {
    return emulator::at_rank(address, rank);
}
inline void send_at(uint32_t there, float4 v, uint32_t bar) {
    if (there % 16) emulator::fail("what is sent is not aligned");
    memset(emulator::shared_at(there), 0xff, sizeof v);
    emulator::later_event([=] {
        memcpy(emulator::shared_at(there), &v, sizeof v);
        emulator::Bar &b = emulator::bar_at(bar);
        b.bytes -= sizeof v;
        emulator::bar_check(b);
    });
}
inline void sent_wait(uint32_t bar) {
    bar_wait(bar, 0);
}
template <int CLUSTER, class... P, class... A>
void launch_sized(void (*kernel)(P...), int blocks, int threads, int bytes, cudaStream_t,
                  bool together, const A &...a) {
    if (blocks % CLUSTER) emulator::fail("%d blocks are not whole clusters", blocks);
    emulator::bars.clear(), emulator::warpgroups.clear(), emulator::cluster_arrived.clear();
    emulator::copies_out.clear();
    emulator::cluster_bar = emulator::Barrier(), emulator::splits.clear();
    emulator::cluster_size = together ? blocks : CLUSTER, emulator::cluster_width = CLUSTER;
    emulator::cluster_threads = CLUSTER * threads;
    emulator::launch(emulator::Config(blocks, threads, bytes), [=] { kernel(a...); });
}
struct alignas(128) TensorMap {
    uint32_t words[32];
};
inline TensorMap map_of(const __half *matrix, int rows, int columns, int box, int = 2) {
    if ((uintptr_t)matrix % 16 || box > 256) emulator::fail("a box of %d rows", box);
    const emulator::Map said = {(const char *)matrix, columns * 2ll, rows, columns, box,
                                emulator::MAP_SIGN};
    TensorMap map = {};
    memcpy(&map, &said, sizeof said);
    return map;
}
inline bool elect_one() {
    return threadIdx.x % 32 == 0;
}
inline void map_prefetch(const TensorMap *) {}
template <int CLUSTER>
void copy_box(uint32_t to, const TensorMap *at, int row, int column, uint32_t bar) {
    emulator::Map map;
    memcpy(&map, at, sizeof map);
    if (map.sign != emulator::MAP_SIGN) emulator::fail("no tensor map");
    if (to % 1024) emulator::fail("a box is not aligned");
    for (int r = 0; r < CLUSTER; r++) {
        const uint32_t there = CLUSTER > 1 ? emulator::at_rank(to, r) : to,
                       b = CLUSTER > 1 ? emulator::at_rank(bar, r) : bar;
        memset(emulator::shared_at(there), 0xff, map.box * 128);
        emulator::later_event([=] {
            emulator::copy_rows(there, map, row, column);
            emulator::Bar &x = emulator::bar_at(b);
            x.bytes -= map.box * 128;
            emulator::bar_check(x);
        });
    }
}
inline void copy_box_out(const TensorMap *at, int row, int column, uint32_t from) {
    emulator::Map map;
    memcpy(&map, at, sizeof map);
    if (map.sign != emulator::MAP_SIGN) emulator::fail("no tensor map");
    if (from % 1024) emulator::fail("a box is not aligned");
    const char *box = emulator::shared_at(from);
    emulator::copies_out[emulator::self].push_back([=] {
        for (int r = 0; r < map.box; r++)
            for (int p = 0; p < 8; p++)
                if (row + r < map.rows && column + p * 8 < map.columns)
                    memcpy((char *)map.matrix + (row + r) * map.pitch + (column + p * 8) * 2,
                           box + r * 128 + ((p ^ (r & 7)) * 16), 16);
    });
}
inline void copy_bulk_out(void *to, uint32_t from, int bytes) {
    if (from % 16 || (uintptr_t)to % 16 || bytes % 16) emulator::fail("bulk copy is not aligned");
    const char *there = emulator::shared_at(from);
    emulator::copies_out[emulator::self].push_back([=] { memcpy(to, there, bytes); });
}
template <int LEFT> void copies_out_wait() {
    auto &mine = emulator::copies_out[emulator::self];
    for (; mine.size() > LEFT; mine.pop_front()) mine.front()();
}
inline void store_matrices(uint32_t to, const uint32_t (&r)[4]) {
    const int lane = threadIdx.x % 32;
    for (int m = 0; m < 4; m++)
        for (int row = 0; row < 8; row++) {
            const uint32_t there = __shfl_sync(~0u, to, m * 8 + row);
            if (lane / 4 == row) memcpy(emulator::shared_at(there) + lane % 4 * 4, &r[m], 4);
        }
}
template <int N> void wgmma_hold(float (&)[N]) {}
/* Both operands lie in shared memory, where they must stay until they are multiplied. */
template <int N> struct WgmmaShared {
    static void multiply(float (&d)[N / 2], uint64_t a, uint64_t b, int add) {
        emulator::Instr q = {d, {}, b, add != 0, N, F16::ID, a};
        emulator::warpgroups[{emulator::self->block, emulator::self->linear / 128}]
            .queue[emulator::self->linear % 128]
            .push_back(q);
    }
};
} // namespace kp
