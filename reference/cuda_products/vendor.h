/* vendor.h: which call of cuBLAS or cuBLASLt computes a product of 16-bit matrices.
 *
 * The opponent of such a product is the fastest call that the libraries have.  It is searched for
 * once a cell: what is found has a text, by which other processes take the same call, and the times
 * of the calls that people use are kept beside it. */
#ifndef KP_VENDOR_H
#define KP_VENDOR_H

#include "cuda_base/vendor_choice.h"
#include "cuda_products/product.h"

/* Plan p, for which kp_product_plan() was called, as the next choice says, or as a search finds.
 * in: both operands.  second: the transpose of the second, or NULL.  A search takes device memory,
 * and frees it. */
void kp_vendor_plan(struct kp_product *p, const struct kp_array in[2],
                    const struct kp_array *second, const struct kp_array *out);

#endif
