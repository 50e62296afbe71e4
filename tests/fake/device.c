/* device.c: harness/gpu/device.h in plain C, for the pretend GPU.  The same meaning, element for
 * element, as far as the tests' tasks need it; everything is done when it is asked for. */
#include "gpu/device.h"
#include "gpu/stray.h"
#include "inspect/halves.h"
#include "base/error.h"
#include "fake.h"

#include <math.h>
#include <string.h>

void device_check(cudaError_t e, const char *step) {
    if (e != cudaSuccess) die(KP_MACHINE, "%s: %s", step, cudaGetErrorString(e));
}

/* ---- Values ------------------------------------------------------------------------- */

void device_fill(const struct kp_task *t, int index, void *data, enum kp_distribution d,
                 uint64_t seed, cudaStream_t stream) {
    const struct kp_tensor *x = &t->tensors[index];
    int64_t n = kp_shape_count(&x->shape);
    struct kp_values w = kp_values_of(t, index, d, seed);
    (void)stream;
    fake_log("fill %s %s %016llx", x->name, kp_distribution_name[d], (unsigned long long)seed);
    if (x->dtype != KP_F32 && x->dtype != KP_I64)
        die(KP_BUG, "the pretend GPU cannot fill %s", x->name);
    for (int64_t i = 0; i < n; i++) {
        double v = kp_value_at(&w, (uint64_t)i);
        if (x->dtype == KP_F32)
            ((float *)data)[i] = (float)v;
        else
            ((int64_t *)data)[i] = (int64_t)v;
    }
}

/* ---- Poison --------------------------------------------------------------------------- */

uint32_t device_poison_word(uint64_t seed) {
    return 0x7b007b00u | ((uint32_t)kp_mix(seed, 77) & 0x00ff00ffu);
}

static unsigned char poison_byte(uint32_t word, size_t i) {
    return (unsigned char)(word >> 8 * (i & 3));
}

/* Poison bytes `from` to `to` of p.  (What is there is copied, as most of a test's time goes here.)
 */
static void poison(unsigned char *p, size_t from, size_t to, uint32_t word) {
    for (size_t i = from; i < to && i < from + 4; i++) p[i] = poison_byte(word, i);
    for (size_t n = 4; n < to - from; n *= 2)
        memcpy(p + from + n, p + from, n < to - from - n ? n : to - from - n);
}

/* How many of these bytes are not poison: none, if the first four are and each other is the same as
 * the fourth before it. */
static size_t unpoisoned(const unsigned char *p, size_t from, size_t to, uint32_t word) {
    size_t n = 0, first = to - from < 4 ? to : from + 4;
    for (size_t i = from; i < first; i++) n += p[i] != poison_byte(word, i);
    if (n == 0 && memcmp(p + from, p + first, to - first) == 0) return 0;
    for (size_t i = first; i < to; i++) n += p[i] != poison_byte(word, i);
    return n;
}

void device_poison(void *data, size_t bytes, uint32_t word, cudaStream_t stream) {
    (void)stream;
    poison(data, 0, bytes, word);
}

void device_poison_check(const void *data, size_t bytes, uint32_t word,
                         unsigned long long *mismatches, cudaStream_t stream) {
    const unsigned char *p = data;
    size_t words = bytes / 4;
    (void)stream;
    for (size_t i = 0; i < words; i++) *mismatches += memcmp(p + 4 * i, &word, 4) != 0;
    for (size_t i = 4 * words; i < bytes; i++) *mismatches += p[i] != poison_byte(word, i);
}

void device_canaries(const struct kp_guarded *list, int n, uint32_t word, cudaStream_t stream) {
    (void)stream;
    for (const struct kp_guarded *g = list; g < list + n; g++) {
        poison(g->base, 0, g->from, word);
        poison(g->base, g->to, g->mapped, word);
    }
}

void device_canaries_check(const struct kp_guarded *list, int n, uint32_t word,
                           unsigned long long *changed, cudaStream_t stream) {
    (void)stream;
    for (int k = 0; k < n; k++)
        changed[k] += unpoisoned(list[k].base, 0, list[k].from, word) +
                      unpoisoned(list[k].base, list[k].to, list[k].mapped, word);
}

/* ---- Comparison ------------------------------------------------------------------------ */

static double load(const void *p, enum kp_dtype type, int64_t i) {
    if (type == KP_F64) return ((const double *)p)[i];
    if (type == KP_F32) return ((const float *)p)[i];
    if (type == KP_I64) return (double)((const int64_t *)p)[i];
    die(KP_BUG, "the pretend GPU has no %s", kp_dtype_name(type));
}

static bool is_poison(const void *p, int64_t i, size_t size, uint32_t word) {
    const unsigned char *b = p;
    for (size_t k = (size_t)i * size; k < ((size_t)i + 1) * size; k++)
        if (b[k] != poison_byte(word, k)) return false;
    return true;
}

void device_compare(const void *y, const void *b, enum kp_dtype type, int64_t count,
                    const struct kp_stray_rule *rule, struct kp_compare *c, cudaStream_t stream) {
    (void)stream;
    fake_log("compare");
    *c = (struct kp_compare){.count = (unsigned long long)count, .first_bad = ~0ull};
    for (int64_t i = 0; i < count; i++) {
        double found = load(y, type, i), expected = load(b, type, i);
        double t = kp_apart(found, expected, rule, kp_limits_of(type));
        double d = t > 0 && isfinite(t) ? found - expected : t;
        c->sum_d2 += d * d, c->sum_b2 += isfinite(expected) ? expected * expected : 0;
        c->largest = fmax(c->largest, t);
        c->unwritten += t > 0 && is_poison(y, i, kp_dtype_size(type), rule->poison);
        if (t <= rule->limit || c->bad++) continue;
        c->first_bad = (unsigned long long)i;
        c->first_found = found, c->first_expected = expected;
    }
}

void device_stray_reset(struct kp_stray *s, struct kp_suspects *suspects, cudaStream_t stream) {
    (void)stream;
    memset(s, 0, sizeof *s);
    s->first_bad = ~0ull;
    suspects->count = 0;
}

void device_spread_reset(struct kp_spread *s, cudaStream_t stream) {
    (void)stream;
    memset(s, 0, sizeof *s);
}

/* The draws of an element. */
static const double *rough_at(const struct kp_draws *oracle, int64_t i, double *rough) {
    for (int d = 0; d < KP_DRAWS; d++) rough[d] = oracle->rough[d][i];
    return rough;
}

/* What the oracle's draws do at one element. */
static void add_own(struct kp_spread *own, double o, double first, const double *rough,
                    double spread, double rms) {
    own->count++;
    own->varied |= !(fabs(o - first) <= spread);
    own->largest = fmax(own->largest, spread / (fabs(o) + rms));
    own->sum_s2 += spread * spread, own->sum_o2 += o * o;
    for (int d = 0; d < KP_DRAWS; d++) {
        double t = (rough[d] - o) / (KP_AMPLIFIED * spread);
        own->t2[d] += t * t, own->bias[d] += o < 0 ? -t : t;
    }
}

/* Count an element whose error is known. */
static void add_stray(struct kp_stray *s, const struct kp_suspect *x, const struct kp_strayed *e,
                      int64_t total, const struct kp_stray_rule *rule) {
    s->lost += e->lost;
    s->infinite += e->counted && !isfinite(x->y);
    if (e->counted ? !(e->t <= rule->limit) : e->lost && rule->lost) {
        s->bad++;
        s->unwritten += x->poison;
        if (s->first_bad == ~0ull) {
            s->first_bad = x->at;
            s->first_found = x->y, s->first_expected = x->o;
        }
    }
    if (!e->counted) return;
    int part = kp_part_of(x->at, (uint64_t)total);
    s->part_count[part]++;
    s->part_t2[part] += e->t * e->t;
    s->bias += fabs(x->y) < fabs(x->o) ? -e->t : e->t;
    s->largest = fmax(s->largest, e->t);
}

void device_stray(const void *y, enum kp_dtype type, const struct kp_draws *oracle, int64_t offset,
                  int64_t count, int64_t total, const struct kp_stray_rule *rule,
                  struct kp_stray *s, struct kp_suspects *suspects, struct kp_spread *own,
                  cudaStream_t stream) {
    struct kp_type_limits limits = kp_limits_of(type);
    (void)stream;
    for (int64_t i = 0; i < count; i++) {
        double rough[KP_DRAWS], o = oracle->exact[i];
        const struct kp_suspect x =
            kp_suspect_of((uint64_t)(offset + i), load(y, type, i), o, rough_at(oracle, i, rough),
                          is_poison(y, i, kp_dtype_size(type), rule->poison));
        const double spread = kp_spread_of(o, x.s2, KP_DRAWS, rule->rms, limits);
        const struct kp_strayed e = kp_stray_of(x.y, o, spread, limits);
        if (own && e.counted && limits.unit > 0)
            add_own(own, o, oracle->exact[0], rough, spread, rule->rms);
        if (!kp_is_suspect(&e, limits, rule->limit) || suspects->count++ >= KP_MOST_SUSPECTS)
            add_stray(s, &x, &e, total, rule);
        else
            suspects->item[suspects->count - 1] = x;
    }
}

void device_redraw(const struct kp_draws *oracle, int64_t offset, int64_t count,
                   struct kp_suspects *suspects, cudaStream_t stream) {
    (void)stream;
    for (size_t k = 0; k < suspects->count && k < KP_MOST_SUSPECTS; k++) {
        struct kp_suspect *x = &suspects->item[k];
        int64_t i = (int64_t)x->at - offset;
        double rough[KP_DRAWS];
        if (i >= 0 && i < count) kp_redraw(x, rough_at(oracle, i, rough));
    }
}

void device_cut(void *data, enum kp_dtype type, int64_t count, int bits, cudaStream_t stream) {
    (void)stream;
    for (int64_t i = 0; type == KP_F32 && i < count; i++) {
        int e;
        float *x = (float *)data + i, m = frexpf(*x, &e);
        if (isfinite(*x)) *x = ldexpf(roundf(ldexpf(m, bits)), e - bits);
    }
}

/* The pretend GPU has no task of f16. */
void halves_product(const void *a, const void *b, void *out, int64_t m, int64_t n, int64_t k,
                    int terms, cudaStream_t stream) {
    (void)a, (void)b, (void)out, (void)m, (void)n, (void)k, (void)terms, (void)stream;
    die(KP_BUG, "f16 on the pretend GPU");
}

void device_cut_blocks(void *data, enum kp_dtype type, int64_t count, int block, int bits,
                       cudaStream_t stream) {
    (void)stream;
    for (int64_t at = 0; type == KP_F32 && at < count; at += block) {
        float *x = (float *)data + at, most = 0;
        int64_t n = count - at < block ? count - at : block;
        int e;
        for (int64_t i = 0; i < n; i++) most = isfinite(x[i]) ? fmaxf(most, fabsf(x[i])) : most;
        frexpf(most, &e);
        for (int64_t i = 0; most > 0 && i < n; i++)
            if (isfinite(x[i])) x[i] = (float)ldexp(rint(ldexp(x[i], bits - e)), e - bits);
    }
}

void device_sum_squares(const void *x, enum kp_dtype type, int64_t count, double *sum,
                        cudaStream_t stream) {
    (void)stream;
    for (int64_t i = 0; i < count; i++) {
        double v = load(x, type, i);
        *sum += isfinite(v) ? v * v : 0;
    }
}

void device_checksum(const void *data, size_t bytes, unsigned long long *sum, cudaStream_t stream) {
    const uint32_t *word = data;
    (void)stream;
    for (size_t i = 0; i < bytes / 4; i++) *sum += kp_mix(word[i], i);
}

/* There is nothing to scrub, and no cache to empty. */
void device_scrub(const void *clean, size_t local_bytes, cudaStream_t stream) {
    (void)clean, (void)stream;
    fake_log("scrub %zu", local_bytes);
}

void device_flush(const void *clean, size_t bytes, cudaStream_t stream) {
    (void)clean, (void)stream;
    fake_log("flush %zu", bytes);
}
