/* halves.h: products of f16 that are less accurate than sums in fp32
 * (harness/inspect/calibrate_main.c). */
#ifndef KP_HALVES_H
#define KP_HALVES_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out = a b, dense matrices of f16 by rows, [m,k] and [k,n]: so many terms are added in fp32, and
 * these sums in f16, one after another.  With 1 each term is: tensor cores that add in f16 are no
 * worse. */
void halves_product(const void *a, const void *b, void *out, int64_t m, int64_t n, int64_t k,
                    int terms, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
