/* values.c: see values.h. */
#include "gpu/values.h"
#include "task/op.h"

#include <string.h>

const char *const kp_distribution_name[KP_DIST_COUNT] = {"declared", "normal",  "scaled",  "rows",
                                                         "columns",  "inner",   "outlier", "large",
                                                         "tiny",     "infinite"};

/* ---- The numbers of the distributions --------------------------------------------------- */

/* Powers of two by which elements, rows, columns and inner indices are scaled.  Real: wider than
 * what 16-bit floats hold, so that halves inside an f32 task overflow.  Half: what f16 holds.
 * Moderate: values that go into exp, weights of recurrent networks. */
struct powers {
    int low, spread;
};
static const struct powers real = {-18, 36}, half = {-6, 8}, moderate = {-2, 4};
static const float unit_power = 4; /* SCALED in [0,1]: an even number to this power, often tiny */

/* An outlier; the first tensor of LARGE and of TINY, whose normal numbers reach 5.7; the other
 * tensors of LARGE, which keep products and their sums finite. */
static const float outlier_real = 0x1p28f, outlier_half = 0x1p4f, outlier_moderate = 4;
static const float large = 0x1p124f, beside_large = 0x1p-20f;
static const float tiny = 0x1p-128f, tiny_half = 0x1p-16f;

/* Seeds that are kept apart. */
enum { TENSOR_SEED, PAIR_SEED = 1 << 20, SPECIAL_SEED = 1 << 21, STEP_SEED, OUTLIER_SEED };

/* ---- Tensors and operands ---------------------------------------------------------------- */

/* Root mean square of a declared fill; 1 if it is 0. */
static double declared_rms(const struct kp_fill *f) {
    double r = 1;
    if (f->kind == KP_FILL_UNIFORM) r = sqrt((f->a * f->a + f->a * f->b + f->b * f->b) / 3);
    if (f->kind == KP_FILL_FAN_IN) r = 1 / sqrt(3 * f->a);
    if (f->kind == KP_FILL_NORMAL) r = sqrt(f->a * f->a + f->b * f->b);
    if (f->kind == KP_FILL_CONSTANT) r = fabs(f->a);
    return r > 0 ? r : 1;
}

/* Whether the tensor has values of its own in some distribution but the declared. */
static bool varies(const struct kp_tensor *x) {
    return x->domain != KP_DOMAIN_DECLARED && x->fill.kind != KP_FILL_TRANSPOSED;
}

/* Whether any finite value may stand in it, in a type with fp32's range or f16. */
static bool is_real(const struct kp_tensor *x) {
    return varies(x) && x->domain == KP_DOMAIN_REAL;
}

/* The tensor whose elements value v shows, and in *axis which of its axes is `axis` of v; -1 if
 * it is computed, or if views mix the axis with others. */
static int tensor_of(const struct kp_task *t, int v, int *axis) {
    while (v >= t->ntensors) {
        const struct kp_op *op = NULL;
        for (int i = 0; i < t->nops; i++)
            if (t->ops[i].out[0] == v) op = &t->ops[i];
        if (!op || !op->def->view) return -1;
        *axis = op->def->slice(t, op, *axis, 0);
        if (*axis < 0) return -1;
        v = op->in[0].value;
    }
    return v;
}

struct inner { /* one operand's inner index */
    int tensor, axis, sign;
    int64_t period;
    int pair; /* number of the product: its operands have the same scales */
};

/* The operand of op `i` in `slot`, as far as it is a tensor. */
static bool inner_operand(const struct kp_task *t, int i, int slot, struct inner *out) {
    const struct kp_op *op = &t->ops[i];
    if (!op_has(op, slot)) return false;
    int v = op->in[slot].value, axes = t->values[v].shape.n, axis = op->def->inner[slot];
    if (axis < 0) axis += axes;
    *out = (struct inner){.axis = axis, .sign = slot ? -1 : 1, .pair = i};
    out->tensor = tensor_of(t, v, &out->axis);
    return out->tensor >= 0 && is_real(&t->tensors[out->tensor]);
}

/* The scales that tensor `index` has along an inner index: those of the first product of two
 * tensors of which it is one.  (In a second product they do not cancel.)  False if there is none.
 */
static bool inner_of(const struct kp_task *t, int index, struct inner *out) {
    for (int i = 0; i < t->nops; i++) {
        struct inner a, b;
        if (!t->ops[i].def->has_inner || !inner_operand(t, i, 0, &a) ||
            !inner_operand(t, i, 1, &b) || a.tensor == b.tensor)
            continue;
        int64_t n = t->tensors[a.tensor].shape.dim[a.axis];
        int64_t m = t->tensors[b.tensor].shape.dim[b.axis];
        a.period = b.period = n < m ? n : m; /* of a group's channels */
        if (a.tensor != index && b.tensor != index) continue;
        *out = a.tensor == index ? a : b;
        return true;
    }
    return false;
}

/* The first tensor in which any value may stand, or -1. */
static int first_real(const struct kp_task *t) {
    for (int i = 0; i < t->ntensors; i++)
        if (is_real(&t->tensors[i])) return i;
    return -1;
}

/* The tensor that has the infinite element, by lot; -1 if none may. */
static int infinite_tensor(const struct kp_task *t, uint64_t seed) {
    int n = 0, chosen = -1;
    for (int i = 0; i < t->ntensors; i++) n += is_real(&t->tensors[i]);
    if (!n) return -1;
    int k = (int)(kp_mix(seed, SPECIAL_SEED) % (uint64_t)n);
    for (int i = 0; i < t->ntensors; i++)
        if (is_real(&t->tensors[i]) && k-- == 0) chosen = i;
    return chosen;
}

/* Whether an element of a tensor may be far larger than the others. */
static bool may_stand_out(const struct kp_tensor *x) {
    return varies(x) && x->domain != KP_DOMAIN_UNIT;
}

/* Whether tensor `index`, which may, has an outlier: the first of them does, and one of the others,
 * by lot.  Outliers of three tensors multiply to what honest fp32 arithmetic cannot square: an
 * instance norm behind a convolution and a factor found an infinite variance in one sample of 50.
 */
static bool stands_out(const struct kp_task *t, int index, uint64_t seed) {
    int n = 0, before = 0;
    for (int i = 0; i < t->ntensors; i++) {
        before += may_stand_out(&t->tensors[i]) && i < index;
        n += may_stand_out(&t->tensors[i]);
    }
    return before == 0 || before == 1 + (int)(kp_mix(seed, OUTLIER_SEED) % (uint64_t)(n - 1));
}

bool kp_distribution_applies(const struct kp_task *t, enum kp_distribution d) {
    struct inner in;
    bool found = d == KP_DIST_DECLARED;
    for (int i = 0; i < t->ntensors && !found; i++) {
        const struct kp_tensor *x = &t->tensors[i];
        switch (d) {
        case KP_DIST_DECLARED: break;
        case KP_DIST_NORMAL:
        case KP_DIST_SCALED: found = varies(x); break;
        case KP_DIST_ROWS:
        case KP_DIST_COLUMNS:
            found = varies(x) && x->domain != KP_DOMAIN_UNIT && x->shape.n >= 2;
            break;
        case KP_DIST_INNER: found = inner_of(t, i, &in); break;
        case KP_DIST_OUTLIER: found = may_stand_out(x); break;
        case KP_DIST_LARGE: found = is_real(x) && x->dtype != KP_F16; break;
        case KP_DIST_TINY:
        case KP_DIST_INFINITE: found = is_real(x); break;
        case KP_DIST_COUNT: break;
        }
    }
    return found;
}

/* ---- The values of one tensor -------------------------------------------------------------- */

/* Scale along axis `axis` of a tensor by powers of two. */
static void scale_axis(struct kp_values *w, const struct kp_tensor *x, int axis, int64_t period,
                       struct powers by, uint64_t seed) {
    w->stride = 1;
    for (int i = axis + 1; i < x->shape.n; i++) w->stride *= x->shape.dim[i];
    w->size = x->shape.dim[axis];
    w->period = period;
    w->step_low = by.low;
    w->steps = by.spread + 1;
    w->step_sign = 1;
    w->step_seed = seed;
}

/* One element, by lot, is times a factor. */
static void single_out(struct kp_values *w, const struct kp_tensor *x, float factor) {
    w->special = (int64_t)(kp_mix(w->seed, SPECIAL_SEED) % (uint64_t)kp_shape_count(&x->shape));
    w->special_factor = factor;
}

/* What a distribution changes in normal values. */
static void change(struct kp_values *w, const struct kp_task *t, int index, enum kp_distribution d,
                   uint64_t seed) {
    const struct kp_tensor *x = &t->tensors[index];
    bool calm = x->domain == KP_DOMAIN_MODERATE, f16 = x->dtype == KP_F16;
    struct powers by = calm ? moderate : f16 ? half : real;
    struct inner in;
    switch (d) {
    case KP_DIST_SCALED: w->low = (float)by.low, w->spread = (float)by.spread; break;
    case KP_DIST_ROWS:
    case KP_DIST_COLUMNS:
        if (x->shape.n < 2) break;
        int axis = d == KP_DIST_ROWS ? 0 : x->shape.n - 1;
        scale_axis(w, x, axis, x->shape.dim[axis], by, kp_mix(w->seed, STEP_SEED));
        break;
    case KP_DIST_INNER:
        if (!inner_of(t, index, &in)) break;
        scale_axis(w, x, in.axis, in.period, by, kp_mix(seed, (uint64_t)(PAIR_SEED + in.pair)));
        w->step_sign = in.sign;
        break;
    case KP_DIST_OUTLIER:
        if (!stands_out(t, index, seed)) break;
        single_out(w, x, calm ? outlier_moderate : f16 ? outlier_half : outlier_real);
        break;
    case KP_DIST_LARGE:
        if (is_real(x) && !f16) w->factor *= index == first_real(t) ? large / w->b : beside_large;
        break;
    case KP_DIST_TINY:
        if (index == first_real(t)) w->factor *= (f16 ? tiny_half : tiny) / w->b;
        break;
    case KP_DIST_INFINITE:
        if (index == infinite_tensor(t, seed)) single_out(w, x, INFINITY);
        break;
    default: break;
    }
}

/* Values of another distribution than the declared, before scales. */
static void undeclared(struct kp_values *w, const struct kp_tensor *x, enum kp_distribution d) {
    double rms = declared_rms(&x->fill);
    bool normal_declared = x->fill.kind == KP_FILL_NORMAL && x->fill.a == 0;
    w->a = 0;
    w->b = (float)rms;
    if (x->domain == KP_DOMAIN_UNIT) {
        w->kind = KP_VALUES_UNIT;
        w->b = d == KP_DIST_SCALED ? unit_power : 1;
    } else if (x->domain == KP_DOMAIN_POSITIVE) {
        w->kind = KP_VALUES_POSITIVE;
    } else if (d == KP_DIST_NORMAL && normal_declared) {
        w->kind = KP_FILL_FAN_IN; /* even in +-a */
        w->a = (float)(sqrt(3) * rms);
    } else {
        w->kind = KP_FILL_NORMAL;
    }
}

struct kp_values kp_values_of(const struct kp_task *t, int index, enum kp_distribution d,
                              uint64_t seed) {
    const struct kp_tensor *x = &t->tensors[index];
    struct kp_values w = {.transposed = x->fill.kind == KP_FILL_TRANSPOSED, .special = -1};
    int from = w.transposed ? x->fill.source : index, n = x->shape.n;
    const struct kp_tensor *source = &t->tensors[from];
    const struct kp_fill *f = &source->fill;
    w.kind = f->kind;
    w.wrap = f->wrap & (KP_WRAP_SYMMETRIC | KP_WRAP_UPPER | KP_WRAP_LOWER);
    w.a = (float)(f->kind == KP_FILL_FAN_IN ? 1 / sqrt(f->a) : f->a);
    w.b = (float)f->b;
    w.values = f->values;
    w.seed = kp_mix(seed, (uint64_t)(TENSOR_SEED + from));
    w.factor = f->wrap & KP_WRAP_SCALED ? (float)(kp_mix(w.seed, ~0ull) >> 40) * 0x1p-24f : 1;
    w.cols = n >= 1 ? x->shape.dim[n - 1] : 1;
    w.rows = n >= 2 ? x->shape.dim[n - 2] : 1;
    w.period = 1;
    if (d == KP_DIST_DECLARED || source->domain == KP_DOMAIN_DECLARED) return w;
    undeclared(&w, source, d);
    if (source->domain != KP_DOMAIN_UNIT) change(&w, t, from, d, seed);
    return w;
}
