/* fibers.cpp: runs a grid, block after block (the blocks of a cluster together), a fiber a thread
 * (tests/emulate), and the few calls of CUDA's runtime that launch functions make. */
#include "device.cuh"
#include <sys/mman.h>
#include <ucontext.h>
#include <deque>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define ASAN 1
#endif

namespace emulator {
Thread *self;
dim3 grid_dim, block_dim;
int cluster_size = 1, cluster_width;
/* Asynchronous work that has not happened yet. */
struct Later {
    uint32_t to;
    const void *from;
    int bytes;
    std::function<void()> event;
};
static std::deque<Later> pending;
int cluster_live;
void later_copy(uint32_t to, const void *from, int bytes) {
    pending.push_back({to, from, bytes, {}});
}
void later_event(std::function<void()> f) {
    pending.push_back({0, nullptr, 0, std::move(f)});
}
/* What is pending happens, up to the next event. Returns whether there was one. */
static bool happen() {
    while (!pending.empty()) {
        Later l = std::move(pending.front());
        pending.pop_front();
        if (l.event) {
            l.event();
            return true;
        }
        if (l.from)
            memcpy((void *)(uintptr_t)l.to, l.from, l.bytes);
        else
            memset((void *)(uintptr_t)l.to, 0, l.bytes);
    }
    return false;
}

struct Fiber {
    ucontext_t context; /* its start */
    void *at[5];        /* where it has yielded */
    bool started;
    char *stack;
    Thread t;
};
static void *scheduler[5];
static void *scheduler_fake;
static const void *scheduler_stack;
static size_t scheduler_size;
enum { STACK = 256 * 1024, MOST_BLOCKS = 132 }; /* at a time: those of a cooperative launch */
static std::vector<Fiber *> fibers;
static const std::function<void()> *body;
static Fiber *running;

/* Switches between fibers. swapcontext calls the system twice, and AddressSanitizer's clears the
 * shadow of two stacks. Without `noipa` the compiler takes variables for unchanged that other
 * fibers write. gcc miscompiles a function that sets one buffer and jumps to another: go_on() is
 * apart. */
#define SWITCH __attribute__((noipa, no_sanitize("address"))) static void
SWITCH go_on(void **at) {
    __builtin_longjmp(at, 1);
}
/* Goes on at `to`, or starts a fiber, until something jumps to `from`. */
SWITCH jump(void **from, void **to) {
    if (!__builtin_setjmp(from)) go_on(to);
}
SWITCH start(void **from, Fiber *f) {
    if (!__builtin_setjmp(from)) setcontext(&f->context);
}
#undef SWITCH

/* What a fiber runs. */
static void entry() {
#ifdef ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
    (*body)();
    self->done = true;
    Block *b = self->block;
    b->live--;
    if (b->all.arrived && b->all.arrived == b->live) b->all.arrived = 0, b->all.gen++;
#ifdef ASAN
    __sanitizer_start_switch_fiber(nullptr, scheduler_stack, scheduler_size);
#endif
    go_on(scheduler);
}
/* Lets a fiber run until it yields. */
static void resume(Fiber *f) {
    running = f, self = &f->t;
#ifdef ASAN
    __sanitizer_start_switch_fiber(&scheduler_fake, f->stack, STACK);
#endif
    if (f->started)
        jump(scheduler, f->at);
    else
        f->started = true, start(scheduler, f);
#ifdef ASAN
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}
void yield() {
    Fiber *f = running;
#ifdef ASAN
    void *fake;
    __sanitizer_start_switch_fiber(&fake, scheduler_stack, scheduler_size);
#endif
    jump(f->at, scheduler);
#ifdef ASAN
    __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_size);
#endif
}
/* A thread that polls, and has seen nothing yet. */
static bool napped;
void nap() {
    napped = true;
    yield();
}
void wait_change(const int *p, int value, const char *where) {
    self->wait_on = p, self->wait_value = value, self->where = where;
    yield();
    self->wait_on = nullptr;
}
void barrier(Barrier &b, int count, const char *where) {
    const int gen = b.gen;
    if (++b.arrived >= count)
        b.arrived = 0, b.gen++;
    else
        wait_change(&b.gen, gen, where);
}
void sync_all() {
    barrier(self->block->all, self->block->live, "__syncthreads");
}
int sync_vote(int v) {
    Block *b = self->block;
    const int slot = b->all.gen & 1;
    b->votes[slot] += v;
    sync_all();
    const int r = b->votes[slot];
    sync_all();
    b->votes[slot] = 0;
    sync_all();
    return r;
}
void fail(const char *what, int number) {
    const uint3 b = self ? self->block->index : make_uint3(0, 0, 0);
    fprintf(stderr, "emulator: ");
    fprintf(stderr, what, number);
    fprintf(stderr, " (block %u %u %u, thread %d)\n", b.x, b.y, b.z, self ? self->linear : 0);
    exit(1);
}
void *shared_memory() {
    return self->block->shared;
}

/* Shared memory of a block of a cluster: at an address of 32 bits, as device code has it. */
static char *shared_of(int rank, size_t bytes) {
    static char *window; /* below 4 GB, aligned to 256 KB, one place a block of a cluster */
    if (!window) {
        char *p = (char *)mmap(NULL, (size_t)(MOST_BLOCKS + 1) << 18, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        if (p == MAP_FAILED) perror("emulator: mmap"), exit(5);
        window = (char *)(((uintptr_t)p + (1 << 18) - 1) & ~((uintptr_t)(1 << 18) - 1));
    }
    char *p = window + ((size_t)rank << 18);
#ifdef ASAN
    __asan_unpoison_memory_region(p, 1 << 18);
#endif
    memset(p, 0xff, bytes);
#ifdef ASAN
    __asan_poison_memory_region(p + ((bytes + 7) & ~(size_t)7),
                                (1 << 18) - ((bytes + 7) & ~(size_t)7));
#endif
    return p;
}

/* Nobody can run: says where a thread of each warp waits. */
static void stuck(const std::vector<Block> &blocks, int n) {
    fprintf(stderr, "emulator: deadlock in block (%u %u %u):", blocks[0].index.x, blocks[0].index.y,
            blocks[0].index.z);
    for (int i = 0; i < n; i++)
        if (!fibers[i]->t.done && i % 32 == 0)
            fprintf(stderr, " [%d.%d: %s]", (int)fibers[i]->t.block->index.x, fibers[i]->t.linear,
                    fibers[i]->t.where);
    fprintf(stderr, "\n");
    exit(1);
}

/* Makes the fibers of all blocks but the first `begun`. Returns how many there are now. */
static int begin_fibers(std::vector<Block> &blocks, int begun, int threads) {
    const int n = (int)blocks.size() * threads;
    while ((int)fibers.size() < n) {
        Fiber *f = new Fiber;
        f->stack =
            (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fibers.push_back(f);
    }
    for (int i = begun * threads; i < n; i++) {
        Fiber *f = fibers[i];
        f->t = Thread();
        f->t.block = &blocks[i / threads];
        f->t.linear = i % threads;
        f->t.lane = f->t.linear % 32;
        f->t.index = make_uint3(f->t.linear % block_dim.x, f->t.linear / block_dim.x % block_dim.y,
                                f->t.linear / block_dim.x / block_dim.y);
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = f->stack, f->context.uc_stack.ss_size = STACK;
        f->context.uc_link = nullptr; /* entry() does not return */
        makecontext(&f->context, entry, 0);
        f->started = false;
#ifdef ASAN
        __asan_unpoison_memory_region(f->stack, STACK); /* of the fiber that had it before */
#endif
    }
    return n;
}

/* Runs the blocks of a cluster to their end. If all that they do is to poll, `more` may add others
 * of the grid. */
static void run_blocks(std::vector<Block> &blocks, int threads, const std::function<bool()> &more) {
    int n = begin_fibers(blocks, 0, threads);
    cluster_live = n;
    int idle = 0; /* rounds in which all that ran has polled, and nothing was under way */
    for (int left = n; left;) {
        left = 0;
        bool ran = false, naps = false;
        for (int i = 0; i < n; i++) {
            Thread &t = fibers[i]->t;
            if (t.done) continue;
            left++;
            if (t.wait_on && *t.wait_on == t.wait_value) continue;
            napped = false;
            resume(fibers[i]);
            (napped ? naps : ran) = true;
        }
        if (ran) idle = 0;
        if (left && !ran) {
            const bool some = !pending.empty();
            happen();
            if (some || (naps && ++idle <= 100)) continue;
            const int begun = (int)blocks.size();
            if (!naps || !more()) stuck(blocks, n);
            n = begin_fibers(blocks, begun, threads), idle = 0;
        }
    }
    while (happen()) continue;
}

void launch(const Config &c, const std::function<void()> &kernel) {
    grid_dim = c.grid, block_dim = c.block;
    body = &kernel;
    const int threads = c.block.x * c.block.y * c.block.z, warps = (threads + 31) / 32,
              size = cluster_size, width = cluster_width ? cluster_width : size;
    cluster_size = 1, cluster_width = 0;
    if (threads > 1024 || c.shared > 227 * 1024 || c.grid.y > 65535 || c.grid.z > 65535 ||
        !threads || !c.grid.x || !c.grid.y || !c.grid.z)
        fprintf(stderr, "emulator: launch refused: grid %u %u %u, block %u %u %u, %zu bytes\n",
                c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z, c.shared),
            exit(1);
    const long long total = (long long)c.grid.x * c.grid.y * c.grid.z;
    for (long long next = 0; next < total;) {
        std::vector<Block> blocks;
        std::deque<std::vector<Warp>> w;
        blocks.reserve(size > MOST_BLOCKS ? size : MOST_BLOCKS); /* they stay where they are */
        const auto begin = [&] {
            const int r = (int)blocks.size();
            const long long i = next++;
            w.emplace_back(warps);
            Block &b = blocks.emplace_back();
            b.index = make_uint3(i % c.grid.x, i / c.grid.x % c.grid.y, i / c.grid.x / c.grid.y);
            b.rank = r % width, b.live = b.threads = threads, b.warps = w.back().data();
            b.shared = shared_of(r, c.shared), b.shared_bytes = c.shared;
        };
        while ((int)blocks.size() < size) begin();
        run_blocks(blocks, threads, [&] {
            if (size > 1 || next == total || blocks.size() == MOST_BLOCKS) return false;
            begin();
            return true;
        });
    }
}
} // namespace emulator

extern "C" {
cudaError_t cudaGetDevice(int *d) {
    *d = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int) {
    const char *said = getenv("PROCESSORS"); /* tests/emulate has looked at it */
    const int processors = said ? atoi(said) : emulator::MOST_BLOCKS;
    *v = a == cudaDevAttrMultiProcessorCount ? processors : 227 * 1024;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) {
    return cudaSuccess;
}
cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t) {
    memset(p, v, n);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *p, const void *q, size_t n, cudaMemcpyKind, cudaStream_t) {
    memcpy(p, q, n);
    return cudaSuccess;
}
}
