/* device.cu: see device.h; what empties and scrubs the GPU is in flush.cu.  Plain grid-stride
 * kernels, each obviously right, and all at or near the speed of memory. */
#include "gpu/device.h"
#include "base/error.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

static const int kThreads = 256;
static const size_t kMostBlocks = 132 * 32; /* 32 for each multiprocessor of an H200 */
static const unsigned kCanaryBlocks = 64;   /* a mapping's canaries are 2 MiB at most */

/* The distribution SCALED: a normal number times 2^e, e uniform in [low, low + spread].  Real:
 * wider than what 16-bit floats hold, so that halves inside an f32 task overflow.  Half: what f16
 * holds. Moderate: values that go into exp. */
struct Exponents {
    float low, spread;
};
static const Exponents kReal = {-18, 36}, kHalf = {-6, 8}, kModerate = {-2, 4};
static const float kUnitPower = 4; /* SCALED in [0,1]: a uniform number to this power, often tiny */
#define LEAST_POSITIVE 1e-6f       /* x the rms: positive values stay above this */

const char *const kp_distribution_name[KP_DIST_COUNT] = {"declared", "normal", "scaled"};

void device_check(cudaError_t e, const char *step) {
    if (e != cudaSuccess) die(KP_MACHINE, "%s: %s", step, cudaGetErrorString(e));
}

/* Blocks for n items at `each` items a thread. */
static unsigned grid_for(size_t n, size_t each) {
    size_t blocks = (n + kThreads * each - 1) / (kThreads * each);
    return (unsigned)(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

#define FOR_EACH(i, n)                                                              \
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)(n); \
         i += (size_t)gridDim.x * blockDim.x)

/* ---- Values ------------------------------------------------------------------ */

__host__ __device__ static inline uint64_t mix64(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

uint64_t kp_mix(uint64_t seed, uint64_t index) {
    return mix64(seed, index);
}

struct Law { /* how device_fill draws one element */
    int kind, wrap;
    float a, b;          /* parameters of the fill */
    Exponents exponents; /* SCALED */
    int64_t rows, cols;  /* last two axes */
    uint64_t seed;
    bool transposed;
    float factor; /* scaled(FILL): one number for the whole tensor */
};

enum {
    LAW_POSITIVE = 100,
    LAW_UNIT,
    LAW_SCALED_REAL,
    LAW_SCALED_POSITIVE
}; /* beside kp_fill_kind */

__device__ static float uniform24(uint64_t h) {
    return (float)(h >> 40) * 0x1p-24f; /* [0,1) */
}

__device__ static float normal_of(uint64_t h) {
    float u = (float)((uint32_t)(h >> 32) >> 8) * 0x1p-24f + 0x1p-25f,
          v = (float)((uint32_t)h >> 8) * 0x1p-24f;
    return sqrtf(-2.0f * __logf(u)) * __cosf(6.283185307f * v);
}

/* Element i by the plain law, without regard to symmetry and triangles. */
__device__ static double draw(const Law &w, uint64_t i) {
    uint64_t h = mix64(w.seed, i);
    switch (w.kind) {
    case KP_FILL_UNIFORM: return w.a + (w.b - w.a) * uniform24(h);
    case KP_FILL_FAN_IN: return (2.0f * uniform24(h) - 1.0f) * w.a;
    case KP_FILL_NORMAL: return w.a + w.b * normal_of(h);
    case KP_FILL_CONSTANT: return w.a;
    case KP_FILL_INTEGERS: return w.a + (double)(h % (uint64_t)(w.b - w.a));
    case KP_FILL_BERNOULLI: return uniform24(h) < w.a ? 1.0 : 0.0;
    case KP_FILL_SIGNS: return h & 1 ? 1.0 : -1.0;
    case LAW_POSITIVE: return fabsf(w.b * normal_of(h)) + LEAST_POSITIVE * w.b;
    case LAW_UNIT: return powf(uniform24(h), w.b);
    case LAW_SCALED_REAL:
    case LAW_SCALED_POSITIVE: {
        float e = w.exponents.low + w.exponents.spread * uniform24(mix64(h, 1)),
              x = w.b * normal_of(h) * exp2f(e);
        return w.kind == LAW_SCALED_REAL ? x : fabsf(x) + LEAST_POSITIVE * w.b;
    }
    }
    return 0;
}

__device__ static double element(const Law &w, uint64_t i) {
    if (!w.wrap && !w.transposed) return draw(w, i) * w.factor;
    uint64_t area = (uint64_t)w.rows * w.cols, m = i / area, r = i % area / w.cols, c = i % w.cols;
    uint64_t mirror = m * area + c * w.rows + r; /* the same element with its axes exchanged */
    if (w.transposed) return draw(w, mirror) * w.factor;
    if (w.wrap & KP_WRAP_UPPER && c < r) return 0;
    if (w.wrap & KP_WRAP_LOWER && c > r) return 0;
    double x = draw(w, i);
    if (w.wrap & KP_WRAP_SYMMETRIC) x = 0.5 * (x + draw(w, mirror));
    return x * w.factor;
}

template <class T> __device__ static T narrow(double x) {
    return (T)x;
}
template <> __device__ __half narrow<__half>(double x) {
    return __float2half_rn((float)x);
}
template <> __device__ __nv_bfloat16 narrow<__nv_bfloat16>(double x) {
    return __float2bfloat16_rn((float)x);
}

template <class T> __global__ void fill_kernel(T *data, size_t n, Law w) {
    FOR_EACH(i, n) data[i] = narrow<T>(element(w, i));
}

/* Softmax of each row in place, one block for each row: for fills that are probabilities. */
__global__ void softmax_rows(float *data, int64_t cols) {
    __shared__ float part[kThreads];
    float *row = data + blockIdx.x * cols, s = 0;
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) s += __expf(row[c]);
    part[threadIdx.x] = s;
    __syncthreads();
    for (int k = kThreads / 2; k; k /= 2) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) row[c] = __expf(row[c]) / part[0];
}

/* Root mean square of a declared fill, which other distributions keep; 1 if it is 0. */
static double declared_rms(const struct kp_fill *f) {
    double r = 1;
    if (f->kind == KP_FILL_UNIFORM) r = sqrt((f->a * f->a + f->a * f->b + f->b * f->b) / 3);
    if (f->kind == KP_FILL_FAN_IN) r = 1 / sqrt(3 * f->a);
    if (f->kind == KP_FILL_NORMAL) r = sqrt(f->a * f->a + f->b * f->b);
    if (f->kind == KP_FILL_CONSTANT) r = fabs(f->a);
    return r > 0 ? r : 1;
}

/* The law of a tensor under a distribution, inside its domain. */
static Law law_of(const struct kp_tensor *x, enum kp_distribution d) {
    Law w = {};
    w.kind = x->fill.kind;
    w.wrap = x->fill.wrap & (KP_WRAP_SYMMETRIC | KP_WRAP_UPPER | KP_WRAP_LOWER);
    w.a = (float)(x->fill.kind == KP_FILL_FAN_IN ? 1 / sqrt(x->fill.a) : x->fill.a);
    w.b = (float)x->fill.b;
    w.factor = 1;
    if (d == KP_DIST_DECLARED || x->domain == KP_DOMAIN_DECLARED) return w;
    w.b = (float)declared_rms(&x->fill);
    w.a = 0;
    if (x->domain == KP_DOMAIN_UNIT) {
        w.kind = LAW_UNIT;
        w.b = d == KP_DIST_SCALED ? kUnitPower : 1;
        return w;
    }
    bool positive = x->domain == KP_DOMAIN_POSITIVE;
    if (d == KP_DIST_NORMAL) {
        w.kind = positive ? (int)LAW_POSITIVE : (int)KP_FILL_NORMAL;
        return w;
    }
    w.kind = positive ? LAW_SCALED_POSITIVE : LAW_SCALED_REAL;
    w.exponents = x->domain == KP_DOMAIN_MODERATE ? kModerate : x->dtype == KP_F16 ? kHalf : kReal;
    return w;
}

void device_fill(const struct kp_task *t, int index, void *data, enum kp_distribution d,
                 uint64_t seed, cudaStream_t stream) {
    const struct kp_tensor *x = &t->tensors[index];
    bool transposed = x->fill.kind == KP_FILL_TRANSPOSED;
    const struct kp_tensor *from = transposed ? &t->tensors[x->fill.source] : x;
    Law w = law_of(from, d);
    w.seed = mix64(seed, (uint64_t)(from - t->tensors));
    w.transposed = transposed;
    int n = x->shape.n;
    w.cols = n >= 1 ? x->shape.dim[n - 1] : 1;
    w.rows = n >= 2 ? x->shape.dim[n - 2] : 1;
    if (from->fill.wrap & KP_WRAP_SCALED)
        w.factor = (float)((mix64(w.seed, ~0ull) >> 40) * 0x1p-24);
    size_t count = (size_t)kp_shape_count(&x->shape);
    unsigned grid = grid_for(count, 4);
    switch (x->dtype) {
    case KP_F64: fill_kernel<<<grid, kThreads, 0, stream>>>((double *)data, count, w); break;
    case KP_F32: fill_kernel<<<grid, kThreads, 0, stream>>>((float *)data, count, w); break;
    case KP_F16: fill_kernel<<<grid, kThreads, 0, stream>>>((__half *)data, count, w); break;
    case KP_BF16:
        fill_kernel<<<grid, kThreads, 0, stream>>>((__nv_bfloat16 *)data, count, w);
        break;
    case KP_I64: fill_kernel<<<grid, kThreads, 0, stream>>>((long long *)data, count, w); break;
    case KP_I32: fill_kernel<<<grid, kThreads, 0, stream>>>((int *)data, count, w); break;
    case KP_BOOL:
        fill_kernel<<<grid, kThreads, 0, stream>>>((unsigned char *)data, count, w);
        break;
    }
    device_check(cudaGetLastError(), "filling a tensor");
    if (from->fill.wrap & KP_WRAP_SOFTMAX && x->dtype == KP_F32)
        softmax_rows<<<(unsigned)(count / w.cols), kThreads, 0, stream>>>((float *)data, w.cols);
    device_check(cudaGetLastError(), "filling a tensor");
}

/* ---- Poison ------------------------------------------------------------------ */

uint32_t device_poison_word(uint64_t seed) {
    uint32_t r = (uint32_t)mix64(seed, 77);
    return 0x7b007b00u | (r & 0x00ff00ffu); /* f32 and bf16: 6e35, f16: 6e4, i64: 8e18 */
}

__global__ void poison_kernel(uint32_t *data, size_t words, uint32_t word) {
    FOR_EACH(i, words) data[i] = word;
}

__global__ void poison_tail(unsigned char *data, size_t bytes, uint32_t word) {
    for (size_t i = bytes & ~(size_t)3; i < bytes; i++)
        data[i] = (unsigned char)(word >> 8 * (i & 3));
}

void device_poison(void *data, size_t bytes, uint32_t word, cudaStream_t stream) {
    if (!bytes) return;
    poison_kernel<<<grid_for(bytes / 4, 4), kThreads, 0, stream>>>((uint32_t *)data, bytes / 4,
                                                                   word);
    if (bytes & 3) poison_tail<<<1, 1, 0, stream>>>((unsigned char *)data, bytes, word);
    device_check(cudaGetLastError(), "poisoning memory");
}

__global__ void poison_check_kernel(const unsigned char *data, size_t bytes, uint32_t word,
                                    unsigned long long *mismatches) {
    unsigned long long bad = 0;
    size_t words = bytes / 4;
    FOR_EACH(i, words) bad += ((const uint32_t *)data)[i] != word;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (size_t i = words * 4; i < bytes; i++)
            bad += data[i] != (unsigned char)(word >> 8 * (i & 3));
    if (bad) atomicAdd(mismatches, bad);
}

void device_poison_check(const void *data, size_t bytes, uint32_t word,
                         unsigned long long *mismatches, cudaStream_t stream) {
    if (!bytes) return;
    poison_check_kernel<<<grid_for(bytes / 4, 4), kThreads, 0, stream>>>(
        (const unsigned char *)data, bytes, word, mismatches);
    device_check(cudaGetLastError(), "checking the pattern");
}

/* Write the canaries of mapping blockIdx.y, or, if `changed` is given, count what differs. */
__global__ void canaries_kernel(const kp_guarded *list, uint32_t word,
                                unsigned long long *changed) {
    const kp_guarded g = list[blockIdx.y];
    unsigned long long bad = 0;
    FOR_EACH(i, g.from / 4) {
        uint32_t *p = (uint32_t *)g.base + i;
        if (!changed) *p = word;
        bad += __popc(__vcmpne4(*p, word)) / 8;
    }
    FOR_EACH(i, g.mapped - g.to) {
        size_t at = g.to + i;
        unsigned char byte = (unsigned char)(word >> 8 * (at & 3));
        if (!changed) g.base[at] = byte;
        bad += g.base[at] != byte;
    }
    if (bad) atomicAdd(&changed[blockIdx.y], bad);
}

static void canaries(const struct kp_guarded *list, int n, uint32_t word,
                     unsigned long long *changed, cudaStream_t stream) {
    if (n)
        canaries_kernel<<<dim3(kCanaryBlocks, (unsigned)n), kThreads, 0, stream>>>(list, word,
                                                                                   changed);
    device_check(cudaGetLastError(), "canaries");
}

void device_canaries(const struct kp_guarded *list, int n, uint32_t word, cudaStream_t stream) {
    canaries(list, n, word, NULL, stream);
}

void device_canaries_check(const struct kp_guarded *list, int n, uint32_t word,
                           unsigned long long *changed, cudaStream_t stream) {
    canaries(list, n, word, changed, stream);
}

/* ---- Comparison -------------------------------------------------------------- */

template <class T> __device__ static double widen(T x) {
    return (double)x;
}
template <> __device__ double widen<__half>(__half x) {
    return (double)__half2float(x);
}
template <> __device__ double widen<__nv_bfloat16>(__nv_bfloat16 x) {
    return (double)__bfloat162float(x);
}

__global__ void compare_reset_kernel(kp_compare *c) {
    *c = kp_compare{};
    c->first_bad = ~0ull;
}

void device_compare_reset(struct kp_compare *c, cudaStream_t stream) {
    compare_reset_kernel<<<1, 1, 0, stream>>>(c);
    device_check(cudaGetLastError(), "comparing");
}

__device__ static void atomic_max(double *to,
                                  double x) { /* x >= 0: its bits are in the order of integers */
    atomicMax((unsigned long long *)to, (unsigned long long)__double_as_longlong(x));
}

__device__ static bool is_poison(const unsigned char *p, size_t i, int size, uint32_t word) {
    for (int k = 0; k < size; k++)
        if (p[i * size + k] != (unsigned char)(word >> 8 * ((i * size + k) & 3))) return false;
    return true;
}

template <class Y, class O>
__global__ void compare_kernel(const Y *y, const O *o, int64_t offset, int64_t count, double rms,
                               double tolerance, uint32_t poison, bool exact, kp_compare *c) {
    double d2 = 0, o2 = 0, d1 = 0, worst = 0;
    unsigned long long bad = 0, first = ~0ull, unwritten = 0;
    FOR_EACH(i, count) {
        double a = widen(y[i]), b = widen(o[i]), d = a - b, e = fabs(d) / (fabs(b) + rms);
        if (a == b || (isnan(a) && isnan(b))) d = e = 0;
        if (exact && d != 0) d = e = INFINITY;
        if (!isfinite(d)) d = INFINITY, e = INFINITY; /* also of NaN, which must not look small */
        d2 += d * d;
        o2 += isfinite(b) ? b * b : 0;
        d1 += d;
        worst = fmax(worst, e);
        if (!(e <= tolerance)) {
            bad++;
            if ((unsigned long long)i < first) first = i;
        }
        if (d != 0 && is_poison((const unsigned char *)y, i, sizeof(Y), poison)) unwritten++;
    }
    __shared__ double s[3][32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int k = 16; k; k >>= 1) {
        d2 += __shfl_down_sync(~0u, d2, k);
        o2 += __shfl_down_sync(~0u, o2, k);
        d1 += __shfl_down_sync(~0u, d1, k);
        worst = fmax(worst, __shfl_down_sync(~0u, worst, k));
    }
    if (!lane) s[0][warp] = d2, s[1][warp] = o2, s[2][warp] = d1;
    if (!lane) atomic_max(&c->max_rel, worst);
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < kThreads / 32; k++) d2 += s[0][k], o2 += s[1][k], d1 += s[2][k];
        atomicAdd(&c->sum_d2, d2);
        atomicAdd(&c->sum_o2, o2);
        atomicAdd(&c->sum_d, d1);
        if (blockIdx.x == 0) atomicAdd(&c->count, (unsigned long long)count);
    }
    if (bad) atomicAdd(&c->bad, bad);
    if (unwritten) atomicAdd(&c->unwritten, unwritten);
    if (first != ~0ull) atomicMin(&c->first_bad, (unsigned long long)offset + first);
}

/* Store the two values at the first bad index, if it lies in this slice. */
template <class Y, class O>
__global__ void compare_first(const Y *y, const O *o, int64_t offset, int64_t count,
                              kp_compare *c) {
    unsigned long long f = c->first_bad;
    if (f == ~0ull || f < (unsigned long long)offset || f >= (unsigned long long)(offset + count))
        return;
    c->first_found = widen(y[f - offset]);
    c->first_expected = widen(o[f - offset]);
}

template <class Y, class O>
static void compare_launch(const void *y, const void *o, int64_t offset, int64_t count, double rms,
                           double tolerance, uint32_t poison, bool exact, kp_compare *c,
                           cudaStream_t s) {
    compare_kernel<<<grid_for((size_t)count, 4), kThreads, 0, s>>>(
        (const Y *)y, (const O *)o, offset, count, rms, tolerance, poison, exact, c);
    compare_first<<<1, 1, 0, s>>>((const Y *)y, (const O *)o, offset, count, c);
}

template <class Y>
static void compare_with(const void *y, const void *o, enum kp_dtype to, int64_t offset,
                         int64_t count, double rms, double tolerance, uint32_t poison, bool exact,
                         kp_compare *c, cudaStream_t s) {
    if (to == KP_F64)
        compare_launch<Y, double>(y, o, offset, count, rms, tolerance, poison, exact, c, s);
    else
        compare_launch<Y, Y>(y, o, offset, count, rms, tolerance, poison, exact, c, s);
}

void device_compare(const void *y, enum kp_dtype ty, const void *o, enum kp_dtype to,
                    int64_t offset, int64_t count, double rms, double tolerance, uint32_t poison,
                    struct kp_compare *c, cudaStream_t s) {
    if (to != KP_F64 && to != ty)
        die(KP_BUG, "comparing %s with %s", kp_dtype_name(ty), kp_dtype_name(to));
    switch (ty) {
    case KP_F64:
        compare_with<double>(y, o, to, offset, count, rms, tolerance, poison, false, c, s);
        break;
    case KP_F32:
        compare_with<float>(y, o, to, offset, count, rms, tolerance, poison, false, c, s);
        break;
    case KP_F16:
        compare_with<__half>(y, o, to, offset, count, rms, tolerance, poison, false, c, s);
        break;
    case KP_BF16:
        compare_with<__nv_bfloat16>(y, o, to, offset, count, rms, tolerance, poison, false, c, s);
        break;
    case KP_I64:
        compare_with<long long>(y, o, to, offset, count, rms, tolerance, poison, true, c, s);
        break;
    case KP_I32:
        compare_with<int>(y, o, to, offset, count, rms, tolerance, poison, true, c, s);
        break;
    case KP_BOOL:
        compare_with<unsigned char>(y, o, to, offset, count, rms, tolerance, poison, true, c, s);
        break;
    }
    device_check(cudaGetLastError(), "comparing");
}

template <class T> __global__ void squares_kernel(const T *x, int64_t n, double *sum) {
    double s = 0;
    FOR_EACH(i, n) {
        double v = widen(x[i]);
        s += isfinite(v) ? v * v : 0;
    }
    for (int k = 16; k; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    if (!(threadIdx.x & 31)) atomicAdd(sum, s);
}

void device_sum_squares(const void *x, enum kp_dtype type, int64_t n, double *sum, cudaStream_t s) {
    unsigned grid = grid_for((size_t)n, 8);
    switch (type) {
    case KP_F64: squares_kernel<<<grid, kThreads, 0, s>>>((const double *)x, n, sum); break;
    case KP_F32: squares_kernel<<<grid, kThreads, 0, s>>>((const float *)x, n, sum); break;
    case KP_F16: squares_kernel<<<grid, kThreads, 0, s>>>((const __half *)x, n, sum); break;
    case KP_BF16: squares_kernel<<<grid, kThreads, 0, s>>>((const __nv_bfloat16 *)x, n, sum); break;
    case KP_I64: squares_kernel<<<grid, kThreads, 0, s>>>((const long long *)x, n, sum); break;
    case KP_I32: squares_kernel<<<grid, kThreads, 0, s>>>((const int *)x, n, sum); break;
    case KP_BOOL: squares_kernel<<<grid, kThreads, 0, s>>>((const unsigned char *)x, n, sum); break;
    }
    device_check(cudaGetLastError(), "measuring an output");
}

__global__ void checksum_kernel(const uint32_t *data, size_t words, unsigned long long *sum) {
    unsigned long long s = 0;
    FOR_EACH(i, words) s += mix64(data[i], i);
    for (int k = 16; k; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    if (!(threadIdx.x & 31)) atomicAdd(sum, s);
}

void device_checksum(const void *data, size_t bytes, unsigned long long *sum, cudaStream_t stream) {
    checksum_kernel<<<grid_for(bytes / 4, 8), kThreads, 0, stream>>>((const uint32_t *)data,
                                                                     bytes / 4, sum);
    device_check(cudaGetLastError(), "adding up an input");
}
