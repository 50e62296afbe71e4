/* functions.h: more elementwise ops: see elementwise.h. */
/* clang-format off */

ELEMENTWISE(clamp, 1, 2, ({ __typeof__(x) above = x < y ? y : x; above > z ? z : above; }))
ELEMENTWISE(elu, 1, 1, x > C(0) ? x : y * expm1(x))
ELEMENTWISE(selu, 1, 0, C(1.0507009873554805) * (x > C(0) ? x : C(1.6732632423543772) * expm1(x)))
ELEMENTWISE(silu, 1, 0, x / (C(1) + exp(-x)))
ELEMENTWISE(mish, 1, 0, x * tanh(log1p(exp(x))))
ELEMENTWISE(hardsigmoid, 1, 0, ({ __typeof__(x) a = x + C(3); (a < C(0) ? C(0) : a > C(6) ? C(6) : a) / C(6); }))
ELEMENTWISE(hardswish, 1, 0, ({ __typeof__(x) a = x + C(3); x * (a < C(0) ? C(0) : a > C(6) ? C(6) : a) / C(6); }))
ELEMENTWISE(sin, 1, 0, sin(x))
ELEMENTWISE(cos, 1, 0, cos(x))

/* clang-format on */
#undef ELEMENTWISE
