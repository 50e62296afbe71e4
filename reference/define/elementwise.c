/* elementwise.c: a result element from one element of each operand. */
#include "define/parts.h"

#include <math.h>
#include <string.h>

typedef double function(double x, double y, double z);

/* out = f of the op's arguments; an operand is a number, or an array broadcast to the result. */
static void each_element(const struct call *c, function *f) {
    const struct kp_shape *to = shape_out(c, 0);
    double v[KP_MAX_ARGUMENTS];
    struct walk w[KP_MAX_ARGUMENTS];
    op_arguments(c->op, v);
    for (int k = 0; k < c->op->nin; k++)
        if (c->in[k]) w[k] = walk_broadcast(shape_in(c, k), to);
    int64_t count = kp_shape_count(to);
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < c->op->nin; k++)
            if (c->in[k]) v[k] = c->in[k][walk_at(&w[k], i)];
        c->out[0][i] = f(v[0], v[1], v[2]);
    }
}

/* A function for each expression, and the meaning of each op. */
#define C(number) ((double)(number))
#define FORM(name, operands, numbers, expression)                                     \
    static __attribute__((unused)) double form_##name(double x, double y, double z) { \
        (void)y, (void)z;                                                             \
        return expression;                                                            \
    }
#define MEANING(name, operands, numbers, expression) \
    FORM(name, operands, numbers, expression)        \
    void define_##name(const struct call *c) {       \
        each_element(c, form_##name);                \
    }
#define ELEMENTWISE MEANING
#include "define/elementwise.h"
#define ELEMENTWISE MEANING
#include "define/forms.h"
#define ELEMENTWISE MEANING
#include "define/functions.h"
#define ELEMENTWISE MEANING
#include "define/terms.h"

/* gelu: one of two forms, as the attribute says. */
void define_gelu(const struct call *c) {
    bool by_tanh = !strcmp(op_word(c->op, "approximate", "none"), "tanh");
    each_element(c, by_tanh ? form_gelu_tanh : form_gelu_erf);
}

/* pow: the exponent is a number. */
void define_pow(const struct call *c) {
    double exponent = c->op->in[1].scalar;
    each_element(c, exponent == 0.5 ? form_sqrt : exponent == -0.5 ? form_rsqrt : form_power);
}
