/* noise.h: what honest arithmetic of a class may do to a value, as random noise.
 *
 * The float64 oracle runs several times with this noise (Monte Carlo arithmetic).  How far an
 * element strays is the yardstick of its error: honest arithmetic strays as far, whatever the
 * scale of rows, columns, channels or inner index, and whatever the graph.
 *
 * The noise is as large as the class's roundings.  An operand of a product, or a result, is off by
 * up to its unit roundoff.  A sum of K terms t, of which k are added one after another, has from
 * C = sum t and Q = sum t^2 the variance
 *     u^2/3 ((C^2 k^2 / 3K + (Q - C^2/K) k/2) / 4 + C^2).
 * The first part is the running sums' roundings where terms have one sign, the second where they
 * have both, the last the result's own.
 *
 * Flushing to zero is allowed: a number below KP_NOISE_FLOOR is as uncertain as one of that size
 * is, so that its error may be as large as the least normal number. */
#ifndef KP_NOISE_H
#define KP_NOISE_H

#include "cuda_base/arithmetic.h"
#include "cuda_base/array.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Unit roundoffs: half a unit in the last place of a number near 1. */
#define KP_UNIT_FP32 0x1p-24
#define KP_UNIT_TF32 0x1p-11
#define KP_UNIT_F16  0x1p-11
#define KP_UNIT_BF16 0x1p-8

/* What two halves of 11 bits leave of an operand, against the largest. */
#define KP_UNIT_NORMWISE 0x1p-22

#define KP_NOISE_FLOOR   0x1p-102 /* the least normal number of fp32 over fp32's unit roundoff */

/* The longest chain: terms that an honest sum adds one after another.  cuBLAS cuts a product into
 * parts beyond that; a reduction or a scan of more terms has many threads. */
enum { KP_PRODUCT_CHAIN = 16384, KP_SUM_CHAIN = 4096 };

/* All of it amplified (arithmetic.h). */
struct kp_noise {
    double operand; /* unit roundoff of an operand of a product */
    double largest; /* the same, relative to the largest element of the operand; 0: none */
    double sum;     /* of running sums, and of the result of an op */
    uint64_t seed;  /* other noise with each */
};

/* A seed for one of several uses. */
uint64_t kp_noise_seed(uint64_t seed, int64_t use);

/* y[i] += noise of a sum of K terms whose squares add up to q[i]: count elements. */
void kp_noise_sum(double *y, const double *q, int64_t count, double terms, int chain,
                  const struct kp_noise *noise, cudaStream_t stream);

/* The same for a product of two operands: their roundings, too.  q: the product of squares. */
void kp_noise_product(double *y, const double *q, int64_t count, double terms,
                      const struct kp_noise *noise, cudaStream_t stream);

/* All draws of such a product: draw d is x + d * apart, with noise of its own seed.  Where operands
 * have no noise, apart is 0: each is the exact result. */
struct kp_noisy {
    double *y[KP_DRAWS];
    uint64_t seed[KP_DRAWS];
};
void kp_noise_products(const struct kp_noisy *draws, const double *x, int64_t apart,
                       const double *q, int64_t count, double terms, const struct kp_noise *noise,
                       cudaStream_t stream);

/* y[i] rounded to a unit roundoff. */
void kp_noise_round(double *y, int64_t count, double unit, uint64_t seed, cudaStream_t stream);

/* to[i] = x[i]^2 and the floor's; to may be x. */
void kp_noise_square(const double *x, double *to, int64_t count, cudaStream_t stream);

/* x[i] += noise of `largest` times the largest finite |x|; all of it unknown if one is infinite.
 * scratch: one double. */
void kp_noise_largest(double *x, int64_t count, const struct kp_noise *noise, double *scratch,
                      cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
