/* elementwise.h: elementwise ops, an expression each; functions.h has the others.
 *
 *     ELEMENTWISE(NAME, OPERANDS, NUMBERS, EXPRESSION)
 *
 * x, y, z are the op's arguments: an element of each of its OPERANDS, then its NUMBERS, the number
 * attributes in the order of its row in task/op_table.h.  C(2) is the constant 2 in the type that
 * is computed in.  A comparison must be false for NaN where NaN has to come out.
 *
 * Both halves of the reference include this: define/elementwise.c compiles it in double, and
 * cuda_ops in float, in double, and in numbers that round at random (cuda_base/noise.cuh).  What
 * an expression says is checked against values found elsewhere (tests/data), not against the other
 * half.
 *
 * FORM is an expression that is no op by itself: gelu and pow choose among several. */
/* clang-format off */

ELEMENTWISE(relu, 1, 0, x < C(0) ? C(0) : x)
ELEMENTWISE(sigmoid, 1, 0, C(1) / (C(1) + exp(-x)))
ELEMENTWISE(tanh, 1, 0, tanh(x))
ELEMENTWISE(softplus, 1, 0, x > C(20) ? x : log1p(exp(x)))   /* PyTorch's threshold */
ELEMENTWISE(leaky_relu, 1, 1, x > C(0) ? x : x * y)
ELEMENTWISE(hardtanh, 1, 2, x < y ? y : x > z ? z : x)
ELEMENTWISE(sqrt, 1, 0, sqrt(x))
ELEMENTWISE(rsqrt, 1, 0, C(1) / sqrt(x))
ELEMENTWISE(add, 2, 0, x + y)
ELEMENTWISE(sub, 2, 0, x - y)
ELEMENTWISE(mul, 2, 0, x * y)
ELEMENTWISE(div, 2, 0, x / y)

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
