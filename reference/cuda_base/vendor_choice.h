/* vendor_choice.h: what the search for the fastest library call found (cuda_products/vendor.h), for
 * who prepares a task's baselines. */
#ifndef KP_VENDOR_CHOICE_H
#define KP_VENDOR_CHOICE_H

#ifdef __cplusplus
extern "C" {
#endif

/* By the operands' layouts (NN: row by row; TN: the second given as its transpose): cuBLAS's own
 * choice, the first offer of cuBLASLt's heuristic, the fastest of its offers. */
enum kp_vendor_call {
    KP_CUBLAS_NN,
    KP_CUBLAS_TN,
    KP_LT_NN,
    KP_LT_TN,
    KP_LT_TUNED_NN,
    KP_LT_TUNED_TN,
    KP_VENDOR_CALLS
};
extern const char *const kp_vendor_name[KP_VENDOR_CALLS];

enum { KP_CHOICE = 160, KP_CHOICES = 1024 }; /* bytes of a product's, and of all, with their end */
struct kp_vendor {
    char choices[KP_CHOICES];   /* a line a product: its shape, a call, and what cuBLASLt needs */
    double us[KP_VENDOR_CALLS]; /* of the first matmul: a call by itself, on operands that are not
                                   in the L2; 0 where there is no such call */
};

/* What the products that are planned from now on take: lines of choices that were found by the same
 * library on the same kind of GPU.  Where a shape has none, a search begins, unless a line begins
 * with `any`; NULL is "".  What was found before is forgotten. */
void kp_vendor_choose(const char *choices);

/* What was taken and found since. */
const struct kp_vendor *kp_vendor_found(void);

#ifdef __cplusplus
}
#endif
#endif
