/* include_test.cuh: what the tests of optimized/include share: checks, buffers, random numbers.
 *
 * A test begins with begin(), which names it; ran() waits for what it launched. An error of CUDA is
 * a failed check and ends the program, as the context is lost. Prints a line for each failed check
 * and, last, "N passed, N failed". */
#pragma once
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>
#include <signal.h>

constexpr double U = 0x1p-24; /* the largest relative error of one rounding to fp32 */

static int passed, failed;
static char running[200]; /* the test, and its shape */

[[noreturn]] static inline void finish() {
    printf("%d passed, %d failed\n", passed, failed);
    fflush(stdout);
    _exit(failed > 0);
}

/* A kernel that never ends: say which, and end. */
static inline void on_alarm(int) {
    char text[300];
    const int n = snprintf(text, sizeof text,
                           "FAILED %s: not done after 60 s; the rest is left out\n"
                           "%d passed, %d failed\n",
                           running, passed, failed + 1);
    if (write(1, text, n) != n) _exit(2);
    _exit(1);
}

/* Names the test that follows; printf-style, as "kernel (shape)". */
__attribute__((format(printf, 1, 2))) static inline void begin(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(running, sizeof running, format, list);
    va_end(list);
    fflush(stdout);
    alarm(60);
}

/* One check: counts it, and prints the line if it failed. */
__attribute__((format(printf, 2, 3))) static inline void check(bool good, const char *format, ...) {
    if (good) {
        passed++;
        return;
    }
    failed++;
    va_list list;
    va_start(list, format);
    printf("FAILED %s: ", running);
    vprintf(format, list);
    printf("\n");
    va_end(list);
}

/* Every call of CUDA goes through here. */
static inline void cuda_ok(cudaError_t e, const char *what) {
    if (!e) return;
    check(false, "%s: %s; the rest is left out", what, cudaGetErrorString(e));
    finish();
}

/* Waits for what the test launched. */
static inline void ran() {
    cuda_ok(cudaGetLastError(), "launch");
    cuda_ok(cudaDeviceSynchronize(), "run");
}

/* Sets up; where the kernels need Hopper's own instructions and this GPU has none of them, says so
 * and ends. Returns the number of multiprocessors. */
static inline int start(bool hopper) {
    cudaDeviceProp gpu;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    signal(SIGALRM, on_alarm);
    begin("start");
    cuda_ok(cudaSetDevice(0), "cudaSetDevice");
    cuda_ok(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
    if (hopper && (gpu.major != 9 || gpu.minor != 0)) {
        printf("skipped: needs compute capability 9.0, and %s has %d.%d\n", gpu.name, gpu.major,
               gpu.minor);
        finish();
    }
    return gpu.multiProcessorCount;
}

/* ---- numbers ---- */

/* A small fixed generator (splitmix64). */
struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed * 0x632be59bd9b4e019) {}
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    /* One of [low, high): 24 bits, so that all 22 or 24 of a float's digits are in use. */
    float uniform(float low = -1, float high = 1) {
        return low + (high - low) * (float)((double)(next() >> 40) * 0x1p-24);
    }
};

static inline std::vector<float> uniform(size_t n, uint64_t seed, float low = -1, float high = 1) {
    Random random(seed);
    std::vector<float> v(n);
    for (float &x : v) x = random.uniform(low, high);
    return v;
}

static inline double number(float v) {
    return v;
}
static inline double number(double v) {
    return v;
}
static inline double number(int v) {
    return v;
}
static inline double number(long long v) {
    return (double)v;
}
static inline double number(__half v) {
    return __half2float(v);
}

/* What an element should be, and how far off it may be. NaN and infinities: exactly so. */
struct Want {
    double value, slack;
    bool accepts(double got) const {
        if (std::isnan(value)) return std::isnan(got);
        if (std::isinf(value)) return got == value;
        return std::fabs(got - value) <= slack; /* false for NaN */
    }
};

/* An element that nothing may write: buffers begin as all ones, which is NaN. */
constexpr Want UNTOUCHED = {NAN, 0};

/* ---- buffers ---- */

/* Device memory with a pattern before and behind it; filled with all ones, or with values. */
template <class T> struct Buffer {
    static constexpr size_t BEFORE = 256, BEHIND = 64;
    size_t count;
    unsigned char *base;
    T *data;

    explicit Buffer(size_t n) : count(n) {
        std::vector<unsigned char> bytes(BEFORE + n * sizeof(T) + BEHIND, 0xff);
        for (size_t i = 0; i < bytes.size(); i++)
            if (i < BEFORE || i >= BEFORE + n * sizeof(T)) bytes[i] = pattern(i);
        cuda_ok(cudaMalloc(&base, bytes.size()), "cudaMalloc");
        cuda_ok(cudaMemcpy(base, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
        data = (T *)(base + BEFORE);
    }
    explicit Buffer(const std::vector<T> &v) : Buffer(v.size()) {
        cuda_ok(cudaMemcpy(data, v.data(), count * sizeof(T), cudaMemcpyHostToDevice),
                "cudaMemcpy");
    }
    Buffer(const Buffer &) = delete;
    ~Buffer() { cuda_ok(cudaFree(base), "cudaFree"); }

    static unsigned char pattern(size_t i) { return (unsigned char)(i * 37 + 11); }

    std::vector<T> read() const {
        std::vector<T> v(count);
        cuda_ok(cudaMemcpy(v.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost),
                "cudaMemcpy");
        return v;
    }

    /* Checks that nothing was written around it. */
    void guarded(const char *what) const {
        unsigned char bytes[BEFORE + BEHIND];
        const size_t behind = BEFORE + count * sizeof(T);
        cuda_ok(cudaMemcpy(bytes, base, BEFORE, cudaMemcpyDeviceToHost), "cudaMemcpy");
        cuda_ok(cudaMemcpy(bytes + BEFORE, base + behind, BEHIND, cudaMemcpyDeviceToHost),
                "cudaMemcpy");
        for (size_t i = 0; i < BEFORE + BEHIND; i++) {
            const size_t at = i < BEFORE ? i : behind + i - BEFORE;
            if (bytes[i] == pattern(at)) continue;
            check(false, "%s: byte %lld of its %zu was written: 0x%02x in place of 0x%02x", what,
                  (long long)at - (long long)BEFORE, count * sizeof(T), bytes[i], pattern(at));
            return;
        }
        check(true, " ");
    }
};

/* Checks each element of `out`, and the pattern around it. */
template <class T>
static void compare(const Buffer<T> &out, const std::vector<Want> &want, const char *what = "out") {
    const std::vector<T> got = out.read();
    size_t bad = 0, first = 0;
    if (got.size() != want.size()) {
        check(false, "%s: %zu elements, %zu expected", what, got.size(), want.size());
        return;
    }
    for (size_t i = got.size(); i-- > 0;)
        if (!want[i].accepts(number(got[i]))) bad++, first = i;
    check(bad == 0, "%s[%zu] is %.9g, not %.9g within %.3g (%zu of %zu elements are wrong)", what,
          first, bad ? number(got[first]) : 0, bad ? want[first].value : 0,
          bad ? want[first].slack : 0, bad, got.size());
    out.guarded(what);
}

/* Checks that an operand is as it was. */
template <class T>
static void unchanged(const Buffer<T> &x, const std::vector<T> &v, const char *what) {
    const std::vector<T> now = x.read();
    check(memcmp(now.data(), v.data(), v.size() * sizeof(T)) == 0, "%s was written", what);
}
