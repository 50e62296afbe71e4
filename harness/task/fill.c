/* fill.c: the parser of fills ("scaled(uniform(0,1))") and domains ("moderate").  taskfile.h has
 * the grammar. */
#include "task/parse.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum kp_fill_kind kind;
    int arguments;
} kinds[] = {{"uniform", KP_FILL_UNIFORM, 2},   {"normal", KP_FILL_NORMAL, 2},
             {"constant", KP_FILL_CONSTANT, 1}, {"integers", KP_FILL_INTEGERS, 2},
             {"fan_in", KP_FILL_FAN_IN, 1},     {"bernoulli", KP_FILL_BERNOULLI, 1},
             {"signs", KP_FILL_SIGNS, 0}};

static const struct {
    const char *name;
    int bit;
} wraps[] = {{"symmetric", KP_WRAP_SYMMETRIC},
             {"upper", KP_WRAP_UPPER},
             {"lower", KP_WRAP_LOWER},
             {"scaled", KP_WRAP_SCALED},
             {"softmax", KP_WRAP_SOFTMAX}};

/* The bit of the wrap called `word`, or 0. */
static int wrap_find(const char *word) {
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++)
        if (!strcmp(word, wraps[i].name)) return wraps[i].bit;
    return 0;
}

/* Add a wrap.  Returns NULL, or what is wrong.  Bits keep no order, so only one order is allowed:
 * softmax is outermost, and there is at most one of the three triangular wraps. */
static const char *wrap_add(struct kp_fill *f, int bit) {
    const int triangular = KP_WRAP_SYMMETRIC | KP_WRAP_UPPER | KP_WRAP_LOWER;
    if (f->wrap & bit) return "the same wrap twice; expected once";
    if ((f->wrap & triangular) && (bit & triangular))
        return "two of symmetric, upper and lower; expected one at most";
    if (bit == KP_WRAP_SOFTMAX && f->wrap) return "softmax inside another wrap; expected outermost";
    f->wrap |= bit;
    return NULL;
}

/* "(2,3)" into a and b, or the name in "transposed(NAME)". */
static bool arguments(const char **p, double *a, double *b, int count) {
    bool integer;
    if (!lex_char(p, '(')) return false;
    if (count > 0 && !lex_number(p, a, &integer)) return false;
    if (count > 1 && (!lex_char(p, ',') || !lex_number(p, b, &integer))) return false;
    return lex_char(p, ')');
}

/* NULL, or what is wrong with the numbers of a fill. */
static const char *numbers_wrong(const struct kp_fill *f) {
    bool whole = f->a == floor(f->a) && f->b == floor(f->b);
    switch (f->kind) {
    case KP_FILL_UNIFORM: return f->a < f->b ? NULL : "expected lo < hi";
    case KP_FILL_INTEGERS: return whole && f->a < f->b ? NULL : "expected integers lo < hi";
    case KP_FILL_NORMAL: return f->b > 0 ? NULL : "expected a standard deviation above 0";
    case KP_FILL_FAN_IN: return whole && f->a >= 1 ? NULL : "expected an integer of 1 or more";
    case KP_FILL_BERNOULLI:
        return f->a >= 0 && f->a <= 1 ? NULL : "expected a probability in [0,1]";
    case KP_FILL_CONSTANT:
    case KP_FILL_SIGNS:
    case KP_FILL_VALUES:
    case KP_FILL_TRANSPOSED: return NULL;
    }
    return "unknown kind";
}

/* Whether a fill's numbers, the last of which may be one above them, are of a type.  Beyond
 * the bounds of a floating one a number, or the difference of two, is rounded to infinity. */
static bool in_type(const struct kp_fill *f, enum kp_dtype type) {
    double most = type == KP_I32 ? 0x1p31 : 0x1p63;
    if (f->kind == KP_FILL_FAN_IN) return true; /* it is divided by */
    if (type < KP_I64) return fmax(fabs(f->a), fabs(f->b)) < (type == KP_F16 ? 65520 : 0x1p126);
    return f->a >= -most && fmax(f->a + (f->kind == KP_FILL_CONSTANT), f->b) <= most;
}

/* NULL, or why this fill does not fit the tensor's shape and type. */
static const char *tensor_wrong(const struct kp_task *t, const struct kp_tensor *x) {
    const struct kp_fill *f = &x->fill;
    const struct kp_shape *s = &x->shape;
    bool whole = f->kind == KP_FILL_INTEGERS || f->kind == KP_FILL_VALUES ||
                 f->kind == KP_FILL_BERNOULLI || f->kind == KP_FILL_TRANSPOSED ||
                 (f->kind == KP_FILL_CONSTANT && f->a == floor(f->a));
    if (x->dtype >= KP_I64 && (!whole || f->wrap))
        return "an integer tensor; expected integers, bernoulli or constant";
    if (!in_type(f, x->dtype)) return "numbers that the type lacks; expected smaller ones";
    if (x->dtype == KP_BOOL && f->kind != KP_FILL_TRANSPOSED &&
        (f->a < 0 || f->a > 1 ||
         ((f->kind == KP_FILL_INTEGERS || f->kind == KP_FILL_VALUES) && f->b > 2)))
        return "a bool tensor; expected values 0 and 1";
    if ((f->wrap & (KP_WRAP_SYMMETRIC | KP_WRAP_UPPER | KP_WRAP_LOWER)) && s->n < 2)
        return "less than two axes; expected a matrix in the last two";
    if ((f->wrap & KP_WRAP_SYMMETRIC) && s->dim[s->n - 1] != s->dim[s->n - 2])
        return "the last two axes differ; expected a square matrix";
    if ((f->wrap & KP_WRAP_SOFTMAX) && s->n < 1) return "a scalar; expected an axis for softmax";
    if (f->kind != KP_FILL_TRANSPOSED) return NULL;
    const struct kp_tensor *from = &t->tensors[f->source];
    if (f->wrap) return "a wrap around transposed(); expected none";
    if (from->fill.kind == KP_FILL_TRANSPOSED)
        return "the source is itself transposed(); expected one that is not";
    if (from->dtype != x->dtype) return "the source has another dtype; expected the same";
    if (s->n < 2 || from->shape.n != s->n)
        return "shapes are not each other's transpose; expected the last two axes swapped";
    for (int i = 0; i < s->n; i++) {
        int j = i < s->n - 2 ? i : 2 * s->n - 3 - i;
        if (from->shape.dim[j] != s->dim[i])
            return "shapes are not each other's transpose; expected the last two axes swapped";
    }
    return NULL;
}

/* "(1,0*49,2)" into f->values, one for each element of x.  NULL, or what is wrong. */
static const char *value_list(const char **p, struct kp_tensor *x) {
    struct kp_fill *f = &x->fill;
    int64_t count = kp_shape_count(&x->shape), n = 0;
    double value, times;
    bool integer;
    f->kind = KP_FILL_VALUES;
    if (count > KP_MOST_VALUES) return "too many elements for a list; expected fewer";
    f->values = calloc((size_t)count, sizeof *f->values);
    if (!f->values) die(KP_MACHINE, "out of memory for a list of values; free some and try again");
    if (!lex_char(p, '(')) return "expected values(NUMBER, ...)";
    do {
        times = 1;
        if (!lex_number(p, &value, &integer) || (x->dtype >= KP_I64 && !integer))
            return x->dtype >= KP_I64 ? "expected integers" : "expected numbers";
        if (lex_char(p, '*') && (!lex_number(p, &times, &integer) || !integer || times < 1))
            return "expected a count of 1 or more after *";
        if (times > (double)(count - n)) return "more values than elements; expected as many";
        f->a = n ? fmin(f->a, value) : value;
        f->b = n ? fmax(f->b, floor(value) + 1) : floor(value) + 1;
        for (int64_t end = n + (int64_t)times; n < end; n++) f->values[n] = value;
    } while (lex_char(p, ','));
    if (n != count) return "fewer values than elements; expected as many";
    return lex_char(p, ')') ? NULL : "expected )";
}

/* The innermost part: a kind with its numbers, values(...) or transposed(NAME). */
static const char *innermost(const char **p, struct kp_task *t, int i, const char *word) {
    struct kp_fill *f = &t->tensors[i].fill;
    if (!strcmp(word, "transposed")) {
        char name[KP_NAME];
        if (!lex_char(p, '(') || !lex_name(p, name, sizeof name) || !lex_char(p, ')'))
            return "expected transposed(NAME)";
        f->kind = KP_FILL_TRANSPOSED;
        for (f->source = 0; f->source < i; f->source++)
            if (!strcmp(t->tensors[f->source].name, name)) return NULL;
        return "no earlier tensor of that name; expected one";
    }
    if (!strcmp(word, "values")) return value_list(p, &t->tensors[i]);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(word, kinds[k].name)) {
            f->kind = kinds[k].kind;
            if (!arguments(p, &f->a, &f->b, kinds[k].arguments))
                return kinds[k].arguments == 2   ? "expected two numbers in parentheses"
                       : kinds[k].arguments == 1 ? "expected one number in parentheses"
                                                 : "expected ()";
            return numbers_wrong(f);
        }
    return "expected uniform, normal, constant, integers, fan_in, bernoulli, signs, values, "
           "transposed, symmetric, upper, lower, scaled or softmax";
}

/* See parse.h. */
bool fill_parse(struct kp_source *s, int line, struct kp_task *t, int i, const char *text) {
    struct kp_tensor *x = &t->tensors[i];
    const char *p = text, *wrong = NULL;
    char word[16];
    int depth = 0;
    x->fill = (struct kp_fill){.source = -1};
    for (;;) {
        if (!lex_name(&p, word, sizeof word))
            return parse_fail(s, line, "%s: fill `%.60s`; expected NAME(...)", x->name, text);
        int bit = wrap_find(word);
        if (!bit) break;
        wrong = wrap_add(&x->fill, bit);
        if (!wrong && !lex_char(&p, '(')) wrong = "expected ( after a wrap";
        if (wrong) return parse_fail(s, line, "%s: fill `%.60s`: %s", x->name, text, wrong);
        depth++;
    }
    wrong = innermost(&p, t, i, word);
    while (!wrong && depth-- > 0)
        if (!lex_char(&p, ')')) wrong = "expected )";
    if (!wrong && !lex_end(&p)) wrong = "expected nothing after it";
    if (!wrong) wrong = tensor_wrong(t, x);
    if (wrong) return parse_fail(s, line, "%s: fill `%.60s`: %s", x->name, text, wrong);
    return true;
}

/* See parse.h. */
bool domain_parse(struct kp_source *s, int line, struct kp_tensor *x, const char *text) {
    static const char *const names[] = {[KP_DOMAIN_REAL] = "real",
                                        [KP_DOMAIN_MODERATE] = "moderate",
                                        [KP_DOMAIN_POSITIVE] = "positive",
                                        [KP_DOMAIN_UNIT] = "unit",
                                        [KP_DOMAIN_DECLARED] = "declared"};
    bool fixed = x->fill.kind == KP_FILL_VALUES, integer = x->dtype >= KP_I64 || fixed;
    x->domain = integer ? KP_DOMAIN_DECLARED : KP_DOMAIN_REAL;
    if (!text) return true;
    for (int i = 0; i <= KP_DOMAIN_DECLARED; i++)
        if (!strcmp(text, names[i])) {
            x->domain = (enum kp_domain)i;
            if (integer && i != KP_DOMAIN_DECLARED)
                return parse_fail(s, line, "%s: domain `%s` of %s; expected declared", x->name,
                                  text, fixed ? "given values" : "an integer tensor");
            return true;
        }
    return parse_fail(s, line,
                      "%s: domain `%s`; expected real, moderate, positive, unit or declared",
                      x->name, text);
}
