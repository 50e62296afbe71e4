/* judge.c: draws a task's inputs, runs a kernel on them twice and compares what it computes with
 * the definition (tests/emulate): kernel TASK.json DISTRIBUTION|all.
 *
 * Right is a root mean square error below 1e-5 of that of the values in fp32 (honest kernels: 1e-7
 * to 7e-7; one pass in TF32: 2e-4), below 2e-2 in 16 bits, equal integers, and infinities and NaN
 * in the same places.  Exits with 1 if it is wrong. */
#include "base/error.h"
#include "base/tape.h"
#include "define/define.h"
#include "gpu/values.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = KP_MAX_BUFFERS, SEED = 12345 };

size_t scratch_bytes(void) __attribute__((weak));
void launch(const void *in, const void *out, void *scratch, void *stream);

/* Memory that begins as NaN. */
static void *fresh(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 256, bytes + !bytes)) die(KP_MACHINE, "out of memory");
    return memset(p, 0xff, bytes);
}

/* A number of 16 bits: 10 or 7 of them behind the point. */
static double narrow_to_double(uint16_t bits, bool bf16) {
    const int point = bf16 ? 7 : 10, most = bf16 ? 255 : 31, bias = bf16 ? 127 : 15;
    const int e = bits >> point & most, m = bits & ((1 << point) - 1);
    double v = ldexp(m + (e ? 1 << point : 0), (e ? e : 1) - bias - point);
    if (e == most) v = m ? NAN : INFINITY;
    return bits >> 15 ? -v : v;
}

/* The nearest one, ties to even: the candidates are those at and above x cut off. */
static uint16_t double_to_narrow(double x, bool bf16) {
    const uint16_t infinity = bf16 ? 0x7f80 : 0x7c00, sign = signbit(x) ? 0x8000 : 0;
    uint16_t low = 0, high = infinity;
    x = fabs(x);
    if (isnan(x)) return infinity + 1;
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        *(narrow_to_double(middle, bf16) <= x ? &low : &high) = middle;
    }
    if (x >= narrow_to_double(infinity, bf16)) return sign | infinity;
    const double down = x - narrow_to_double(low, bf16);
    const double up =
        (high == infinity ? ldexp(1, bf16 ? 128 : 16) : narrow_to_double(high, bf16)) - x;
    return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

static void put(enum kp_dtype type, void *p, int64_t i, double v) {
    switch (type) {
    case KP_F64: ((double *)p)[i] = v; break;
    case KP_F32: ((float *)p)[i] = (float)v; break;
    case KP_F16:
    case KP_BF16: ((uint16_t *)p)[i] = double_to_narrow(v, type == KP_BF16); break;
    case KP_I64: ((int64_t *)p)[i] = (int64_t)v; break;
    case KP_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case KP_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    }
}

static double get(enum kp_dtype type, const void *p, int64_t i) {
    switch (type) {
    case KP_F64: return ((const double *)p)[i];
    case KP_F32: return ((const float *)p)[i];
    case KP_F16:
    case KP_BF16: return narrow_to_double(((const uint16_t *)p)[i], type == KP_BF16);
    case KP_I64: return (double)((const int64_t *)p)[i];
    case KP_I32: return ((const int32_t *)p)[i];
    case KP_BOOL: return ((const uint8_t *)p)[i];
    }
    return NAN;
}

/* The largest error that is right, of the values' root mean square. */
static double limit(enum kp_dtype type) {
    return type == KP_F32 ? 1e-5 : type == KP_F16 || type == KP_BF16 ? 2e-2 : 0;
}

/* Prints how an output compares with what it should be, and returns whether it is right. */
static bool compare(const char *distribution, const struct kp_value *value, const void *out,
                    const double *want) {
    const int64_t count = kp_shape_count(&value->shape);
    int64_t differ = 0, worst = 0;
    double error = 0, size = 0, most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double g = get(value->dtype, out, i);
        const double w = value->dtype == KP_F32 ? (double)(float)want[i] : want[i];
        if (!isfinite(g) || !isfinite(w)) {
            if (g == w || (isnan(g) && isnan(w))) continue;
            if (!differ++) worst = i;
            continue;
        }
        const double e = fabs(g - want[i]);
        error += e * e, size += want[i] * want[i];
        if (e > most) most = e, worst = differ ? worst : i;
    }
    error = sqrt(error / (size > 0 ? size : 1));
    const bool right = !differ && error <= limit(value->dtype);
    printf("%s: %s: error %.2g, largest %.2g; at %lld: %.9g, expected %.9g", distribution,
           right ? "right" : "wrong", error, most, (long long)worst, get(value->dtype, out, worst),
           want[worst]);
    if (differ) printf("; %lld of %lld not finite alike", (long long)differ, (long long)count);
    printf("\n");
    return right;
}

/* Runs the kernel on contents of one distribution. */
static bool judge(const struct kp_task *t, enum kp_distribution d) {
    void *in[MOST], *out[KP_MAX_OUTPUTS];
    double *exact[MOST], *want[KP_MAX_OUTPUTS];
    for (int i = 0; i < t->ntensors; i++) {
        const struct kp_tensor *x = &t->tensors[i];
        const int64_t count = kp_shape_count(&x->shape);
        const struct kp_values v = kp_values_of(t, i, d, SEED);
        in[i] = fresh((size_t)count * kp_dtype_size(x->dtype));
        exact[i] = fresh((size_t)count * sizeof(double));
        for (int64_t k = 0; k < count; k++) {
            put(x->dtype, in[i], k, kp_value_at(&v, (uint64_t)k));
            exact[i][k] = get(x->dtype, in[i], k);
        }
    }
    for (int i = 0; i < t->noutputs; i++) {
        const struct kp_value *v = &t->values[t->outputs[i]];
        const int64_t count = kp_shape_count(&v->shape);
        out[i] = fresh((size_t)count * kp_dtype_size(v->dtype));
        want[i] = fresh((size_t)count * sizeof(double));
    }
    const char *message = define_run(t, (const double *const *)exact, want);
    if (message) die(KP_BUG, "%s", message);
    void *scratch = fresh(scratch_bytes ? scratch_bytes() : 0);
    for (int i = 0; i < 2; i++)
        launch(in, out, scratch, NULL); /* nothing may remain of the first */
    bool right = true;
    for (int i = 0; i < t->noutputs; i++)
        right &= compare(kp_distribution_name[d], &t->values[t->outputs[i]], out[i], want[i]);
    for (int i = 0; i < t->ntensors; i++) free(in[i]), free(exact[i]);
    for (int i = 0; i < t->noutputs; i++) free(out[i]), free(want[i]);
    free(scratch);
    return right;
}

int main(int argc, char **argv) {
    if (argc != 3) die(KP_USAGE, "usage: kernel TASK.json DISTRIBUTION|all");
    struct kp_task *t = task_load(argv[1]);
    bool right = true, any = false, known = false;
    if (t->ntensors > MOST) die(KP_INPUT, "%s: more than %d tensors", t->name, MOST);
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        if (strcmp(argv[2], "all") != 0 && strcmp(argv[2], kp_distribution_name[d]) != 0) continue;
        known = true;
        if (!kp_distribution_applies(t, (enum kp_distribution)d)) continue;
        right &= judge(t, (enum kp_distribution)d);
        any = true;
    }
    if (!known) die(KP_USAGE, "%s is no distribution: see METHOD.md", argv[2]);
    if (!any) right = judge(t, KP_DIST_DECLARED); /* which always applies */
    return !right;
}
