/* elementwise.h: the elementwise ops, an expression each.
 *
 *     ELEMENTWISE(NAME, OPERANDS, NUMBERS, EXPRESSION)
 *
 * x, y, z are the op's arguments: an element of each of its OPERANDS, then its NUMBERS, the number
 * attributes in the order of its row in task/op_table.h.  C(2) is the constant 2 in the type that
 * is computed in.  A comparison must be false for NaN where NaN has to come out.
 *
 * Both halves of the reference include this: define/elementwise.c compiles it in double, and
 * cuda_ops/elementwise.cu in float, in double, and in numbers that round at random
 * (cuda_base/noise.cuh).  What an expression says is checked against
 * values found elsewhere (tests/data), not against the other half.
 *
 * FORM is an expression that is no op by itself: gelu and pow choose among several. */
/* clang-format off */

ELEMENTWISE(relu, 1, 0, x < C(0) ? C(0) : x)
ELEMENTWISE(sigmoid, 1, 0, C(1) / (C(1) + exp(-x)))
ELEMENTWISE(tanh, 1, 0, tanh(x))
ELEMENTWISE(softplus, 1, 0, x > C(20) ? x : log1p(exp(x)))   /* PyTorch's threshold */
ELEMENTWISE(leaky_relu, 1, 1, x > C(0) ? x : x * y)
ELEMENTWISE(hardtanh, 1, 2, x < y ? y : x > z ? z : x)
ELEMENTWISE(clamp, 1, 2, ({ __typeof__(x) above = x < y ? y : x; above > z ? z : above; }))
ELEMENTWISE(elu, 1, 1, x > C(0) ? x : y * expm1(x))
ELEMENTWISE(selu, 1, 0, C(1.0507009873554805) * (x > C(0) ? x : C(1.6732632423543772) * expm1(x)))
ELEMENTWISE(silu, 1, 0, x / (C(1) + exp(-x)))
ELEMENTWISE(mish, 1, 0, x * tanh(log1p(exp(x))))
ELEMENTWISE(hardsigmoid, 1, 0, ({ __typeof__(x) a = x + C(3); (a < C(0) ? C(0) : a > C(6) ? C(6) : a) / C(6); }))
ELEMENTWISE(hardswish, 1, 0, ({ __typeof__(x) a = x + C(3); x * (a < C(0) ? C(0) : a > C(6) ? C(6) : a) / C(6); }))
ELEMENTWISE(sqrt, 1, 0, sqrt(x))
ELEMENTWISE(rsqrt, 1, 0, C(1) / sqrt(x))
ELEMENTWISE(abs, 1, 0, fabs(x))
ELEMENTWISE(neg, 1, 0, -x)
ELEMENTWISE(exp, 1, 0, exp(x))
ELEMENTWISE(log, 1, 0, log(x))
ELEMENTWISE(sin, 1, 0, sin(x))
ELEMENTWISE(cos, 1, 0, cos(x))
ELEMENTWISE(add, 2, 0, x + y)
ELEMENTWISE(sub, 2, 0, x - y)
ELEMENTWISE(mul, 2, 0, x * y)
ELEMENTWISE(div, 2, 0, x / y)
ELEMENTWISE(minimum, 2, 0, isnan(x) || x < y ? x : y)
ELEMENTWISE(maximum, 2, 0, isnan(x) || x > y ? x : y)

/* The terms of losses; a sum or a mean of them is an op of its own.  kl_div: 0 log 0 is 0. */
ELEMENTWISE(smooth_l1_loss, 2, 1, ({ __typeof__(x) d = fabs(x - y); d < z ? C(0.5) * d * d / z : d - C(0.5) * z; }))
ELEMENTWISE(kl_div, 2, 0, (isnan(y) || y < C(0) || y > C(0) ? y * log(y) : C(0)) - y * x)

/* x P(X <= x), X standard normal.  erfc keeps its digits where 1 + erf cancels; the float form is
 * PyTorch's. */
FORM(gelu_erf, 1, 0, sizeof x == sizeof(double) ? x * C(0.5) * erfc(x * C(-0.70710678118654752440))
                                                : x * C(0.5) * (C(1) + erf(x * C(0.70710678118654752440))))
/* The factor is sqrt(2 / pi). */
FORM(gelu_tanh, 1, 0, ({ __typeof__(x) inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
                         C(0.5) * x * (C(1) + tanh(inner)); }))

/* Powers: PyTorch takes roots for 0.5 and -0.5, which differ from pow() for -0 and -infinity. */
FORM(power, 2, 0, pow(x, y))
FORM(square, 1, 0, x * x)
FORM(cube, 1, 0, x * x * x)

/* clang-format on */
#undef ELEMENTWISE
#undef FORM
