/* terms.h: more elementwise ops: see elementwise.h. */
/* clang-format off */

ELEMENTWISE(abs, 1, 0, fabs(x))
ELEMENTWISE(neg, 1, 0, -x)
ELEMENTWISE(exp, 1, 0, exp(x))
ELEMENTWISE(log, 1, 0, log(x))
ELEMENTWISE(minimum, 2, 0, isnan(x) || x < y ? x : y)
ELEMENTWISE(maximum, 2, 0, isnan(x) || x > y ? x : y)

/* The terms of losses; a sum or a mean of them is an op of its own.  kl_div: 0 log 0 is 0. */
ELEMENTWISE(smooth_l1_loss, 2, 1, ({ __typeof__(x) d = fabs(x - y); d < z ? C(0.5) * d * d / z : d - C(0.5) * z; }))
ELEMENTWISE(kl_div, 2, 0, (isnan(y) || y < C(0) || y > C(0) ? y * log(y) : C(0)) - y * x)

/* clang-format on */
#undef ELEMENTWISE
