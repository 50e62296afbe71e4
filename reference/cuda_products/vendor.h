/* vendor.h: which call of cuBLAS or cuBLASLt computes a product.
 *
 * The opponent of a product of 16-bit matrices is the fastest call that the libraries have; of a
 * linear layer, the fastest that their heuristics take.  It is searched for once a cell: what is
 * found has a text, by which other processes take the same call, and the times of the calls that
 * people use are kept beside it. */
#ifndef KP_VENDOR_H
#define KP_VENDOR_H

#include "cuda_base/vendor_choice.h"
#include "cuda_products/product.h"

/* Plan p, for which kp_product_plan() was called, as a choice says, or as a search finds.
 * in: both operands.  second: the transpose of the second, or NULL.  A search takes device memory,
 * and frees it. */
void kp_vendor_plan(struct kp_product *p, const struct kp_array in[2],
                    const struct kp_array *second, const struct kp_array *out);

/* The same for a product to which a dense bias is added, row by row.  p->lt becomes NULL where
 * cuBLAS is faster, though the bias is spread over the result first.  What cuBLASLt offers first
 * depends on the workspace: with PyTorch's 32 MB it cuts a product of 8 x 128 x 256 into 264 parts,
 * for 52 us; with none it takes 2.7.  Operands of 256 MB and more are not searched for: their first
 * offer is taken. */
void kp_vendor_plan_linear(struct kp_product *p, const struct kp_array in[2],
                           const struct kp_array *bias, const struct kp_array *out);

#endif
