/* hopper.cuh: optimized/include/hopper.cuh for tests/emulate. Copies and products happen as late as
 * they may; barriers count, and too many arrivals are an error. */
#pragma once
#include <unordered_map>
#include <vector>
namespace emulator {
struct Bar {
    int count = 0, arrived = 0, phase = 0;
    long long bytes = 0;
};
inline std::unordered_map<uint32_t, Bar> bars;
inline Barrier cluster_bar;
inline Bar &bar_at(uint32_t a) {
    auto i = bars.find(a);
    if (i == bars.end()) {
        fail("no barrier at %x", (int)a);
    }
    return i->second;
}
inline void bar_check(Bar &b) {
    if (b.arrived == b.count && b.bytes == 0) b.arrived = 0, b.phase++;
    if (b.arrived > b.count) emulator::fail("too many arrivals");
}
inline void bar_arrive(uint32_t a) {
    Bar &b = bar_at(a);
    b.arrived++;
    bar_check(b);
}
/* A thread's groups of copies. */
struct Groups {
    int closed = 0, come = 0;
};
inline std::map<Thread *, Groups> groups;
inline uint32_t at_rank(uint32_t a, int rank) {
    if (!(self->block + rank - self->block->rank)->live)
        fail("what goes to block %d comes after it has left", rank);
    return a + (uint32_t)((rank - self->block->rank) * (1 << 18));
}
inline char *shared_at(uint32_t a) {
    return (char *)(uintptr_t)a;
}
struct Instr {
    float *d;
    uint32_t a[4];
    uint64_t b;
    bool add;
    int n, type;
    uint64_t left = 0; /* where a lies in shared memory, or 0: in `a` */
};
struct WarpGroup {
    Barrier meet;
    std::vector<Instr> queue[128];
    std::vector<int> groups[128];
};
inline std::map<std::pair<Block *, int>, WarpGroup> warpgroups;
inline float cut(double x) { /* toward zero */
    float f = (float)x;
    if (isfinite(f) && fabs((double)f) > fabs(x)) f = nextafterf(f, 0.0f);
    return f;
}
inline double half_of(uint32_t w, int upper, int type) {
    const uint16_t h = (uint16_t)(upper ? w >> 16 : w);
    if (type == 1) {
        const uint32_t u = (uint32_t)h << 16;
        float f;
        memcpy(&f, &u, 4);
        return f;
    }
    __half x;
    memcpy(&x, &h, 2);
    return __half2float(x);
}
inline double tf32_of(uint32_t w) {
    w &= 0xffffe000;
    float f;
    memcpy(&f, &w, 4);
    return f;
}
/* An operand in shared memory: `rows` rows of 32 bytes of the depth. */
inline void read_operand(double *to, char *base, uint64_t operand, int rows, int type) {
    const uint32_t start = (operand & 0x3fff) << 4;
    for (int c = 0; c < rows; c++)
        for (int k = 0; k < 8; k++) {
            /* the address of the word, then the swizzle: bits 4 to 6 by bits 7 to 9 */
            uint32_t at = start + c / 8 * 1024 + c % 8 * 128 + k * 4;
            at ^= (at >> 7 & 7) << 4;
            uint32_t v;
            memcpy(&v, base + at, 4);
            if (type == 0)
                *to++ = tf32_of(v);
            else
                for (int e = 0; e < 2; e++) *to++ = half_of(v, e, type);
        }
}
inline void multiply(WarpGroup &w, char *base, size_t index) {
    const Instr &first = w.queue[0][index];
    const int steps = first.type == 0 ? 8 : 16, n = first.n;
    std::vector<double> A(64 * steps), B(n * steps);
    if (first.left) read_operand(A.data(), base, first.left, 64, first.type);
    for (int i = 0; i < 128 && !first.left; i++) {
        const Instr &q = w.queue[i][index];
        const int g = i % 32 / 4, t = i % 4;
        for (int r = 0; r < 4; r++) {
            const int row = i / 32 * 16 + g + r % 2 * 8, word = t + r / 2 * 4;
            if (first.type == 0)
                A[row * 8 + word] = tf32_of(q.a[r]);
            else
                for (int e = 0; e < 2; e++)
                    A[row * 16 + word * 2 + e] = half_of(q.a[r], e, first.type);
        }
    }
    read_operand(B.data(), base, first.b, n, first.type);
    for (int i = 0; i < 128; i++) {
        const Instr &q = w.queue[i][index];
        const int g = i % 32 / 4, t = i % 4;
        for (int j = 0; j < n / 8; j++)
            for (int h = 0; h < 2; h++)
                for (int e = 0; e < 2; e++) {
                    const int row = i / 32 * 16 + g + 8 * h, col = 8 * j + 2 * t + e;
                    double s = q.add ? q.d[4 * j + 2 * h + e] : 0;
                    for (int k = 0; k < steps; k++) s += A[row * steps + k] * B[col * steps + k];
                    q.d[4 * j + 2 * h + e] = cut(s);
                }
    }
}
/* A block's threads have what the launch gave them, and one that wants more waits until others of
 * the block gave that: not more in all. */
inline void registers_want(int count) {
    Block &b = *self->block;
    const int each = 65536 / b.threads / 8 * 8;
    b.registers += count - each;
    if (++b.chose == b.threads && b.registers > 0)
        fail("a block wants %d registers more than it has: it waits for ever", b.registers);
}
} // namespace emulator
namespace kp {
constexpr int WARP_ARRIVALS = 1;
inline uint32_t shared_address(const void *p) {
    return (uint32_t)(uintptr_t)p;
}
inline void bar_init(uint32_t bar, int n) {
    emulator::Bar b;
    b.count = n;
    emulator::bars[bar] = b;
}
inline void bar_init_done() {}
inline void bar_wait(uint32_t bar, int parity) {
    emulator::Bar &b = emulator::bar_at(bar);
    while ((b.phase & 1) == parity) emulator::wait_change(&b.phase, b.phase, "mbarrier");
}
inline void bar_arrive_at(uint32_t bar, int rank) {
    emulator::bar_arrive(emulator::at_rank(bar, rank));
}
inline void bar_expect(uint32_t bar, int bytes) {
    emulator::Bar &b = emulator::bar_at(bar);
    b.bytes += bytes;
    b.arrived++;
    emulator::bar_check(b);
}
template <int BYTES> void copy_async(uint32_t to, const void *from, bool there = true) {
    if (to % BYTES || (there && (uintptr_t)from % BYTES)) {
        emulator::fail("a copy of %d bytes is not aligned", BYTES);
    }
    memset(emulator::shared_at(to), 0xff, BYTES); /* until it comes */
    emulator::later_copy(to, there ? from : nullptr, BYTES);
}
inline void copies_wait() {
    int gen = 0;
    int *done = &gen;
    emulator::later_event([done] { *done = 1; });
    emulator::wait_change(done, 0, "copies");
}
inline void copies_close() {
    emulator::Groups &g = emulator::groups[emulator::self];
    g.closed++;
    emulator::later_event([&g] { g.come++; });
}
template <int LEFT> void copies_wait_but() {
    emulator::Groups &g = emulator::groups[emulator::self];
    while (g.closed - g.come > LEFT) emulator::wait_change(&g.come, g.come, "copies");
}
inline void bar_arrive_copied(uint32_t bar) {
    emulator::later_event([bar] { emulator::bar_arrive(bar); });
}
template <int CLUSTER> void bar_arrive_warp(uint32_t bar) {
    if (threadIdx.x % 32 < CLUSTER) bar_arrive_at(bar, threadIdx.x % 32);
}
template <int CLUSTER> void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t bar) {
    if (to % 16 || (uintptr_t)from % 16 || bytes % 16) emulator::fail("bulk copy is not aligned");
    for (int r = 0; r < CLUSTER; r++) {
        const uint32_t there = CLUSTER > 1 ? emulator::at_rank(to, r) : to,
                       b = CLUSTER > 1 ? emulator::at_rank(bar, r) : bar;
        memset(emulator::shared_at(there), 0xff, bytes);
        emulator::later_event([=] {
            memcpy(emulator::shared_at(there), from, bytes);
            emulator::Bar &x = emulator::bar_at(b);
            x.bytes -= bytes;
            emulator::bar_check(x);
        });
    }
}
inline int cluster_rank() {
    return emulator::self->block->rank;
}
inline void cluster_sync() {
    emulator::barrier(emulator::cluster_bar, emulator::cluster_live, "cluster_sync");
}
template <int R> void registers_take() {
    emulator::registers_want(R);
}
template <int R> void registers_give() {
    emulator::registers_want(R);
}
template <int CLUSTER, class... P, class... A>
void launch_cluster(void (*kernel)(P...), int blocks, int threads, cudaStream_t, const A &...a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    const int bytes = 227 * 1024;
#else
    const int bytes = 99 * 1024;
#endif
    if (blocks % CLUSTER) emulator::fail("%d blocks are not whole clusters", blocks);
    emulator::bars.clear(), emulator::warpgroups.clear(),
        emulator::cluster_bar = emulator::Barrier();
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    emulator::cluster_size = CLUSTER;
#endif
    emulator::launch(emulator::Config(blocks, threads, bytes), [=] { kernel(a...); });
}
inline void wgmma_begin() {}
inline void wgmma_end() {
    auto &w = emulator::warpgroups[{emulator::self->block, emulator::self->linear / 128}];
    w.groups[emulator::self->linear % 128].push_back(
        (int)w.queue[emulator::self->linear % 128].size());
}
template <int PENDING> void wgmma_wait() {
    auto &w = emulator::warpgroups[{emulator::self->block, emulator::self->linear / 128}];
    const int gen = w.meet.gen;
    if (++w.meet.arrived < 128) {
        emulator::wait_change(&w.meet.gen, gen, "wgmma");
        return;
    }
    w.meet.arrived = 0;
    const int ready = (int)w.groups[0].size() - PENDING;
    const int n = ready > 0 ? w.groups[0][ready - 1] : 0;
    for (int i = 0; i < n; i++) emulator::multiply(w, emulator::self->block->shared, i);
    for (int t = 0; t < 128; t++) {
        w.queue[t].erase(w.queue[t].begin(), w.queue[t].begin() + n);
        if (ready > 0) w.groups[t].erase(w.groups[t].begin(), w.groups[t].begin() + ready);
        for (int &g : w.groups[t]) g -= n;
    }
    w.meet.gen++;
}
inline uint64_t wgmma_operand(uint32_t address) {
    if (address % 1024) emulator::fail("operand not aligned");
    return (uint64_t)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
inline uint32_t pack_bf16(float first, float second) {
    auto r = [](float f) -> uint32_t {
        uint32_t u;
        memcpy(&u, &f, 4);
        if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
        return (u + 0x7fff + (u >> 16 & 1)) >> 16;
    };
    return r(first) | r(second) << 16;
}
struct Tf32 {
    enum { ID = 0 };
};
struct Bf16 {
    enum { ID = 1 };
};
struct F16 {
    enum { ID = 2 };
};
template <class Type, int N> struct Wgmma {
    template <bool ADD>
    static void multiply(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b) {
        emulator::Instr q = {d, {a[0], a[1], a[2], a[3]}, b, ADD, N, Type::ID};
        emulator::warpgroups[{emulator::self->block, emulator::self->linear / 128}]
            .queue[emulator::self->linear % 128]
            .push_back(q);
    }
};
} // namespace kp
