/* arithmetic.h: the arithmetics that the CUDA reference runs a task in, and what the oracle gives.
 */
#ifndef KP_ARITHMETIC_H
#define KP_ARITHMETIC_H

/* FP32: no tensor cores anywhere.  TF32: cuBLAS and cuDNN may use TF32; storage stays f32.  HALF:
 * the task's own 16-bit type, summed in fp32.  F64: everything in double, whatever the task's
 * types. */
enum kp_math { KP_MATH_FP32, KP_MATH_TF32, KP_MATH_HALF, KP_MATH_F64 };

/* The oracle's results: without noise, and KP_DRAWS times with it (noise.h).  The noise is so many
 * times larger than honest arithmetic's, and what it does is divided by as much: near a kink of a
 * function (relu at 0) the draws then look as far around as an error may reach. */
enum { KP_DRAWS = 8, KP_AMPLIFIED = 4, KP_WORLDS = 1 + KP_DRAWS };
struct kp_draws {
    const double *exact, *rough[KP_DRAWS];
};

#endif
