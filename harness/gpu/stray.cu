/* stray.cu: device_stray and device_compare: see device.h and stray.h. */
#include "gpu/device.h"
#include "gpu/stray.h"
#include "gpu/widen.cuh"
#include "base/error.h"

/* A block has some elements for each thread, as it adds two dozen sums to memory at its end. */
enum { LEAST_EACH = 2048 };
enum { THREADS = 256, MOST_BLOCKS = 132 * 16, OWN_COUNT = 2 + 2 * KP_DRAWS + 2, SUMS };

/* What a block adds up: t^2, bias; t^2 and bias of each draw; spread^2, o^2, of how many. */
struct Sums {
    double v[SUMS];
};

__device__ static void atomic_max(double *to, double x) { /* x >= 0: bits in order of size */
    atomicMax((unsigned long long *)to, (unsigned long long)__double_as_longlong(x));
}

/* The block's sums of N numbers, in thread 0.  N is known here so that they stay in registers. */
template <int N> __device__ static void add_up(double *v) {
    __shared__ double part[THREADS / 32];
#pragma unroll
    for (int k = 0; k < N; k++) {
        double x = v[k];
        for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d);
        if (!(threadIdx.x & 31)) part[threadIdx.x >> 5] = x;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < THREADS / 32; w++) x += part[w];
            v[k] = x;
        }
        __syncthreads();
    }
}

/* Whether element i is poison, bit for bit. */
template <class Y> __device__ static bool is_poison(Y y, uint64_t i, uint32_t word) {
    uint64_t bits = 0, twice = (uint64_t)word << 32 | word;
    memcpy(&bits, &y, sizeof y);
    return bits == (twice >> 8 * (i * sizeof y & 3) & ~0ull >> (64 - 8 * sizeof y));
}

/* What a thread finds wrong that more draws do not help.  Where an arithmetic is less accurate than
 * the class, that is every element: atomics on one address for each took most of the time. */
struct Bad {
    unsigned bad = 0, lost = 0, infinite = 0, unwritten = 0;
    unsigned long long first = ~0ull;
    bool room; /* for one more suspect, as far as the thread has seen */
};

/* What a thread finds of the spreads. */
struct Own {
    double widest = 0;
    bool varied = false;
};

/* Count an element. */
__device__ static void count_bad(const kp_strayed &e, double y, uint64_t at, bool poison,
                                 const kp_stray_rule &rule, Bad &found) {
    bool off = e.counted ? !(e.t <= rule.limit) : e.lost && rule.lost;
    found.lost += e.lost;
    found.infinite += e.counted && !isfinite(y);
    if (!off) return;
    found.bad++;
    found.first = min(found.first, (unsigned long long)at);
    found.unwritten += poison;
}

/* Note a suspect.  Returns whether there was room. */
__device__ static bool suspect(kp_suspects *suspects, const kp_suspect &x, Bad &found) {
    if (!found.room) return false;
    unsigned long long k = atomicAdd(&suspects->count, 1ull);
    found.room = k < KP_MOST_SUSPECTS;
    if (found.room) suspects->item[k] = x;
    return found.room;
}

/* Add to what a block adds up what the draws do to an element. */
__device__ static void add_draws(Sums &sum, double o, const double *rough, double spread) {
    double over = 1 / (KP_AMPLIFIED * spread);
#pragma unroll
    for (int d = 0; d < KP_DRAWS; d++) {
        double t = (rough[d] - o) * over;
        sum.v[2 + d] += t * t;
        sum.v[2 + KP_DRAWS + d] += o < 0 ? -t : t;
    }
    sum.v[2 + 2 * KP_DRAWS] += spread * spread;
    sum.v[3 + 2 * KP_DRAWS] += o * o;
}

/* Add element i of the slice to what its block adds up.  Returns t, negative if it does not
 * count, or not yet. */
template <class Y>
__device__ static double add_element(Sums &sum, const Y *y, const kp_draws &oracle, uint64_t i,
                                     uint64_t offset, kp_type_limits type,
                                     const kp_stray_rule &rule, Bad &found, kp_suspects *suspects,
                                     bool own, Own &mine) {
    double a = widen(y[i]), o = oracle.exact[i], rough[KP_DRAWS];
#pragma unroll
    for (int d = 0; d < KP_DRAWS; d++) rough[d] = oracle.rough[d][i];
    const double s2 = kp_sum_of_draws(o, rough);
    const double spread = kp_spread_of(o, s2, KP_DRAWS, rule.rms, type);
    const kp_strayed e = kp_stray_of(a, o, spread, type);
    if (own && e.counted && type.unit > 0) {
        mine.widest = fmax(mine.widest, spread / (fabs(o) + rule.rms));
        mine.varied |= !(fabs(o - oracle.exact[0]) <= spread);
        add_draws(sum, o, rough, spread);
        sum.v[OWN_COUNT]++;
    }
    if (e.lost || !(e.t <= rule.limit)) {
        bool poison = is_poison(y[i], i, rule.poison);
        if (kp_is_suspect(&e, type, rule.limit) &&
            suspect(suspects, kp_suspect_of(offset + i, a, o, rough, poison), found))
            return -1;
        count_bad(e, a, offset + i, poison, rule, found);
    }
    if (!e.counted) return -1;
    sum.v[0] += e.t * e.t;
    sum.v[1] += fabs(a) < fabs(o) ? -e.t : e.t;
    return e.t;
}

/* Add a block's sums to the part that they are of. */
__device__ static void add_part(const Sums &sum, unsigned long long counted, int part, kp_stray *s,
                                kp_spread *own) {
    if (counted) {
        atomicAdd(&s->part_count[part], counted);
        atomicAdd(&s->part_t2[part], sum.v[0]);
        atomicAdd(&s->bias, sum.v[1]);
    }
    if (!own) return;
    atomicAdd(&own->count, (unsigned long long)sum.v[OWN_COUNT]);
#pragma unroll
    for (int d = 0; d < KP_DRAWS; d++) {
        atomicAdd(&own->t2[d], sum.v[2 + d]);
        atomicAdd(&own->bias[d], sum.v[2 + KP_DRAWS + d]);
    }
    atomicAdd(&own->sum_s2, sum.v[2 + 2 * KP_DRAWS]);
    atomicAdd(&own->sum_o2, sum.v[3 + 2 * KP_DRAWS]);
}

/* Add what a block's threads found wrong. */
__device__ static void add_bad(const Bad &found, kp_stray *s) {
    double n[4] = {(double)found.bad, (double)found.lost, (double)found.infinite,
                   (double)found.unwritten};
    unsigned long long *const to[4] = {&s->bad, &s->lost, &s->infinite, &s->unwritten};
    unsigned long long first = found.first;
    if (!__syncthreads_or(found.bad | found.lost | found.infinite)) return;
    add_up<4>(n);
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (threadIdx.x == 0 && n[k] > 0) atomicAdd(to[k], (unsigned long long)n[k]);
    for (int d = 16; d; d >>= 1) first = min(first, __shfl_down_sync(~0u, first, d));
    if (!(threadIdx.x & 31) && first != ~0ull) atomicMin(&s->first_bad, first);
}

/* Each block takes `each` neighbouring elements, part by part. */
template <class Y>
__global__ void __launch_bounds__(THREADS)
    stray_kernel(const Y *y, kp_draws oracle, uint64_t offset, uint64_t count, uint64_t each,
                 uint64_t total, kp_type_limits type, kp_stray_rule rule, kp_stray *s,
                 kp_suspects *suspects, kp_spread *own) {
    uint64_t at = blockIdx.x * each, end = min(at + each, count), size = kp_part_size(total);
    double largest = 0;
    Own mine;
    Bad found;
    found.room = suspects->count <= KP_MOST_SUSPECTS;
    while (at < end) {
        int part = kp_part_of(offset + at, total);
        uint64_t until = min(end, (part + 1) * size - offset);
        Sums sum = {};
        double counted[1] = {0};
        for (uint64_t i = at + threadIdx.x; i < until; i += THREADS) {
            double t = add_element(sum, y, oracle, i, offset, type, rule, found, suspects,
                                   own != NULL, mine);
            if (t >= 0) counted[0]++, largest = fmax(largest, t);
        }
        if (own)
            add_up<SUMS>(sum.v);
        else
            add_up<2>(sum.v);
        add_up<1>(counted);
        if (threadIdx.x == 0) add_part(sum, (unsigned long long)counted[0], part, s, own);
        at = until;
    }
    add_bad(found, s);
    if (largest > 0) atomic_max(&s->largest, largest);
    if (own && mine.widest > 0) atomic_max(&own->largest, mine.widest);
    if (own && mine.varied) own->varied = true;
}

/* Store the two values at the first bad index, if it lies in this slice. */
template <class Y>
__global__ void stray_first(const Y *y, const double *o, uint64_t offset, uint64_t count,
                            kp_stray *s) {
    if (s->first_bad < offset || s->first_bad >= offset + count) return;
    s->first_found = widen(y[s->first_bad - offset]);
    s->first_expected = o[s->first_bad - offset];
}

__global__ void redraw_kernel(kp_draws oracle, uint64_t offset, uint64_t count,
                              kp_suspects *suspects) {
    uint64_t i = blockIdx.x * (uint64_t)THREADS + threadIdx.x;
    if (i >= suspects->count || i >= KP_MOST_SUSPECTS) return;
    kp_suspect *x = &suspects->item[i];
    if (x->at < offset || x->at >= offset + count) return;
    double rough[KP_DRAWS];
    for (int d = 0; d < KP_DRAWS; d++) rough[d] = oracle.rough[d][x->at - offset];
    kp_redraw(x, rough);
}

void device_redraw(const struct kp_draws *oracle, int64_t offset, int64_t count,
                   struct kp_suspects *suspects, cudaStream_t stream) {
    redraw_kernel<<<KP_MOST_SUSPECTS / THREADS, THREADS, 0, stream>>>(*oracle, (uint64_t)offset,
                                                                      (uint64_t)count, suspects);
    device_check(cudaGetLastError(), "comparing");
}

__global__ void stray_reset(kp_stray *s, kp_suspects *suspects) {
    *s = kp_stray{};
    s->first_bad = ~0ull;
    suspects->count = 0;
}
__global__ void spread_reset(kp_spread *s) {
    *s = kp_spread{};
}

void device_stray_reset(struct kp_stray *s, struct kp_suspects *suspects, cudaStream_t stream) {
    stray_reset<<<1, 1, 0, stream>>>(s, suspects);
    device_check(cudaGetLastError(), "comparing");
}
void device_spread_reset(struct kp_spread *s, cudaStream_t stream) {
    spread_reset<<<1, 1, 0, stream>>>(s);
    device_check(cudaGetLastError(), "comparing");
}

template <class Y>
static void stray(const void *y, enum kp_dtype type, const kp_draws *oracle, int64_t offset,
                  int64_t count, int64_t total, const kp_stray_rule *rule, kp_stray *s,
                  kp_suspects *suspects, kp_spread *own, cudaStream_t stream) {
    int64_t each = (count + MOST_BLOCKS - 1) / MOST_BLOCKS;
    if (each < LEAST_EACH) each = LEAST_EACH;
    stray_kernel<<<(unsigned)((count + each - 1) / each), THREADS, 0, stream>>>(
        (const Y *)y, *oracle, (uint64_t)offset, (uint64_t)count, (uint64_t)each, (uint64_t)total,
        kp_limits_of(type), *rule, s, suspects, own);
    stray_first<<<1, 1, 0, stream>>>((const Y *)y, oracle->exact, (uint64_t)offset, (uint64_t)count,
                                     s);
    device_check(cudaGetLastError(), "comparing");
}

void device_stray(const void *y, enum kp_dtype type, const struct kp_draws *oracle, int64_t offset,
                  int64_t count, int64_t total, const struct kp_stray_rule *rule,
                  struct kp_stray *s, struct kp_suspects *suspects, struct kp_spread *own,
                  cudaStream_t stream) {
#define BY(T) stray<T>(y, type, oracle, offset, count, total, rule, s, suspects, own, stream)
    switch (type) {
    case KP_F64: BY(double); break;
    case KP_F32: BY(float); break;
    case KP_F16: BY(__half); break;
    case KP_BF16: BY(__nv_bfloat16); break;
    case KP_I64: BY(long long); break;
    case KP_I32: BY(int); break;
    case KP_BOOL: BY(unsigned char); break;
    }
#undef BY
}

__global__ void compare_reset(kp_compare *c) {
    *c = kp_compare{};
    c->first_bad = ~0ull;
}

/* What one thread finds. */
struct Apart {
    double sum[2] = {0, 0}, largest = 0; /* of d^2 and b^2 */
    unsigned long long bad = 0, first = ~0ull, unwritten = 0;

    /* Element i.  A division costs more than all else, and few elements need one: those that are
     * further off than any before, and those that are bad. */
    template <class T>
    __device__ void add(T y, T b, uint64_t i, kp_type_limits type, const kp_stray_rule &rule) {
        const double found = widen(y), expected = widen(b), off = found - expected;
        if (isfinite(expected)) sum[1] += expected * expected;
        if (found == expected) return;
        double t = 0, d = off;
        if (type.unit == 0 || !isfinite(off) ||
            !(fabs(off) <= fmin(largest, rule.limit) * (fabs(expected) + rule.rms))) {
            t = kp_apart(found, expected, &rule, type);
            if (t == 0) return;
            if (!isfinite(t)) d = t;
        }
        sum[0] += d * d;
        unwritten += is_poison(y, i, rule.poison);
        largest = fmax(largest, t);
        if (t <= rule.limit) return;
        bad++;
        if (i < first) first = i;
    }
};

/* Each thread loads a few elements before it looks at one: memory is far. */
enum { AHEAD = 4 };
template <class T>
__global__ void __launch_bounds__(THREADS)
    compare_kernel(const T *y, const T *b, uint64_t count, kp_type_limits type, kp_stray_rule rule,
                   kp_compare *c) {
    Apart f;
    const uint64_t step = gridDim.x * (uint64_t)THREADS;
    for (uint64_t i = blockIdx.x * (uint64_t)THREADS + threadIdx.x; i < count; i += AHEAD * step) {
        T found[AHEAD], expected[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (i + k * step < count) found[k] = y[i + k * step], expected[k] = b[i + k * step];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (i + k * step < count) f.add(found[k], expected[k], i + k * step, type, rule);
    }
    add_up<2>(f.sum);
    if (threadIdx.x == 0) {
        atomicAdd(&c->sum_d2, f.sum[0]);
        atomicAdd(&c->sum_b2, f.sum[1]);
        if (blockIdx.x == 0) c->count = count;
    }
    double largest = f.largest;
    for (int k = 16; k; k >>= 1) largest = fmax(largest, __shfl_down_sync(~0u, largest, k));
    if (!(threadIdx.x & 31)) atomic_max(&c->largest, largest);
    if (f.bad) atomicAdd(&c->bad, f.bad);
    if (f.unwritten) atomicAdd(&c->unwritten, f.unwritten);
    if (f.bad) atomicMin(&c->first_bad, f.first);
}

/* Store the two values at the first bad index. */
template <class T> __global__ void compare_first(const T *y, const T *b, kp_compare *c) {
    if (c->first_bad == ~0ull) return;
    c->first_found = widen(y[c->first_bad]);
    c->first_expected = widen(b[c->first_bad]);
}

template <class T>
static void compare(const void *y, const void *b, enum kp_dtype type, int64_t count,
                    const kp_stray_rule *rule, kp_compare *c, cudaStream_t stream) {
    int64_t blocks = (count + THREADS - 1) / THREADS;
    compare_reset<<<1, 1, 0, stream>>>(c);
    compare_kernel<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0, stream>>>(
        (const T *)y, (const T *)b, (uint64_t)count, kp_limits_of(type), *rule, c);
    compare_first<<<1, 1, 0, stream>>>((const T *)y, (const T *)b, c);
    device_check(cudaGetLastError(), "comparing");
}

void device_compare(const void *y, const void *b, enum kp_dtype type, int64_t count,
                    const struct kp_stray_rule *rule, struct kp_compare *c, cudaStream_t stream) {
    switch (type) {
    case KP_F64: compare<double>(y, b, type, count, rule, c, stream); break;
    case KP_F32: compare<float>(y, b, type, count, rule, c, stream); break;
    case KP_F16: compare<__half>(y, b, type, count, rule, c, stream); break;
    case KP_BF16: compare<__nv_bfloat16>(y, b, type, count, rule, c, stream); break;
    case KP_I64: compare<long long>(y, b, type, count, rule, c, stream); break;
    case KP_I32: compare<int>(y, b, type, count, rule, c, stream); break;
    case KP_BOOL: compare<unsigned char>(y, b, type, count, rule, c, stream); break;
    }
}

/* To nearest, in the last place that is kept. */
__global__ void cut_kernel(float *x, int64_t n, uint32_t half, uint32_t keep) {
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * THREADS) {
        uint32_t bits = __float_as_uint(x[i]);
        if (isfinite(x[i])) x[i] = __uint_as_float((bits + half) & keep);
    }
}

/* A carry into the exponent is right. */
__global__ void cut_halves_kernel(unsigned short *x, int64_t n, unsigned half, unsigned keep) {
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * THREADS)
        if ((x[i] & 0x7c00) != 0x7c00) x[i] = (unsigned short)((x[i] + half) & keep);
}

void device_cut(void *data, enum kp_dtype type, int64_t count, int bits, cudaStream_t stream) {
    int all = type == KP_F32 ? 24 : type == KP_F16 ? 11 : 0;
    if (bits >= all) return;
    uint32_t unit = 1u << (all - bits);
    int64_t n = (count + THREADS - 1) / THREADS;
    unsigned blocks = (unsigned)(n < MOST_BLOCKS ? n : MOST_BLOCKS);
    if (type == KP_F32)
        cut_kernel<<<blocks, THREADS, 0, stream>>>((float *)data, count, unit / 2, ~(unit - 1));
    else
        cut_halves_kernel<<<blocks, THREADS, 0, stream>>>((unsigned short *)data, count, unit / 2,
                                                          ~(unit - 1));
    device_check(cudaGetLastError(), "rounding a tensor");
}

__global__ void cut_blocks_kernel(float *x, int64_t n, int block, int bits) {
    int64_t first = (blockIdx.x * (int64_t)THREADS + threadIdx.x) * block;
    for (; first < n; first += gridDim.x * (int64_t)THREADS * block) {
        int64_t end = min(first + block, n);
        float most = 0;
        for (int64_t i = first; i < end; i++)
            if (isfinite(x[i])) most = fmaxf(most, fabsf(x[i]));
        if (most == 0) continue;
        int e;
        frexpf(most, &e);
        for (int64_t i = first; i < end; i++)
            if (isfinite(x[i])) x[i] = (float)ldexp(rint(ldexp((double)x[i], bits - e)), e - bits);
    }
}

void device_cut_blocks(void *data, enum kp_dtype type, int64_t count, int block, int bits,
                       cudaStream_t stream) {
    if (type != KP_F32) return;
    int64_t blocks = (count / block + THREADS) / THREADS;
    cut_blocks_kernel<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0,
                        stream>>>((float *)data, count, block, bits);
    device_check(cudaGetLastError(), "rounding a tensor");
}
