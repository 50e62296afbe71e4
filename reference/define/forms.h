/* forms.h: more elementwise ops (elementwise.h), and FORM: an expression that is no op by itself.
 * gelu and pow choose among several. */
/* clang-format off */

ELEMENTWISE(sqrt, 1, 0, sqrt(x))
ELEMENTWISE(rsqrt, 1, 0, C(1) / sqrt(x))

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
