/* elementwise.h: elementwise ops, an expression each; forms.h, functions.h and terms.h have the others: a
 * table takes the compiler half as long as two.
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
 * half. */
/* clang-format off */

ELEMENTWISE(relu, 1, 0, x < C(0) ? C(0) : x)
ELEMENTWISE(sigmoid, 1, 0, C(1) / (C(1) + exp(-x)))
ELEMENTWISE(tanh, 1, 0, tanh(x))
ELEMENTWISE(softplus, 1, 0, x > C(20) ? x : log1p(exp(x)))   /* PyTorch's threshold */
ELEMENTWISE(leaky_relu, 1, 1, x > C(0) ? x : x * y)
ELEMENTWISE(hardtanh, 1, 2, x < y ? y : x > z ? z : x)
ELEMENTWISE(add, 2, 0, x + y)
ELEMENTWISE(sub, 2, 0, x - y)
ELEMENTWISE(mul, 2, 0, x * y)
ELEMENTWISE(div, 2, 0, x / y)

/* clang-format on */
#undef ELEMENTWISE
