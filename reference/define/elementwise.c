/* elementwise.c: one result element from one element of each operand. */
#include "define/parts.h"

#include <math.h>
#include <string.h>

/* gelu: x P(X <= x), X standard normal = x/2 (1 + erf(x/sqrt 2)), written with
 * erfc, which keeps its digits where 1 + erf cancels.
 * tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
static double gelu(double x, bool by_tanh) {
    if (by_tanh) return 0.5 * x * (1 + tanh(sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

/* softplus: log(1 + exp(x)), and x itself above 20, as PyTorch has it */
static double softplus(double x) {
    return x > 20 ? x : log1p(exp(x));
}

static double unary(const struct kp_op *op, double x) {
    switch (op->def->id) {
    case KP_OP_RELU: return x < 0 ? 0 : x; /* max(x, 0); NaN stays NaN */
    case KP_OP_GELU: return gelu(x, !strcmp(op_word(op, "approximate", "none"), "tanh"));
    case KP_OP_SIGMOID: return 1 / (1 + exp(-x));
    case KP_OP_TANH: return tanh(x);
    case KP_OP_SOFTPLUS: return softplus(x);
    case KP_OP_LEAKY_RELU: return x > 0 ? x : x * op_float(op, "negative_slope", 0.01);
    default: return sqrt(x); /* SQRT */
    }
}

/* out = f(x) */
void define_unary(const struct call *c) {
    int64_t count = kp_shape_count(shape_out(c, 0));
    for (int64_t i = 0; i < count; i++) c->out[0][i] = unary(c->op, c->in[0][i]);
}

/* x^y.  PyTorch takes roots where y is 0.5 or -0.5; that differs from pow() for
 * negative zero and negative infinity. */
static double power(double x, double y) {
    if (y == 0.5) return sqrt(x);
    if (y == -0.5) return 1 / sqrt(x);
    return pow(x, y);
}

static double binary(const struct kp_op *op, double x, double y) {
    switch (op->def->id) {
    case KP_OP_ADD: return x + y;
    case KP_OP_SUB: return x - y;
    case KP_OP_MUL: return x * y;
    case KP_OP_DIV: return x / y;
    default: return power(x, y); /* POW */
    }
}

/* out = f(x, y): each operand a number or an array broadcast to the result */
void define_binary(const struct call *c) {
    const struct kp_shape *to = shape_out(c, 0);
    struct walk w[2];
    for (int k = 0; k < 2; k++)
        if (c->in[k]) w[k] = walk_broadcast(shape_in(c, k), to);
    int64_t count = kp_shape_count(to);
    for (int64_t i = 0; i < count; i++) {
        double v[2];
        for (int k = 0; k < 2; k++)
            v[k] = c->in[k] ? c->in[k][walk_at(&w[k], i)] : c->op->in[k].scalar;
        c->out[0][i] = binary(c->op, v[0], v[1]);
    }
}
