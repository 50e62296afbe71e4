/* audit.h: can the task itself tell right from wrong?
 *
 * Some tasks cannot: their output is constant, or does not depend on all that they are given.
 * The audit finds out by trying: on declared inputs, with the tolerance that candidates get. */
#ifndef KP_AUDIT_H
#define KP_AUDIT_H

#include <cjson/cJSON.h>
#include "measure/accuracy.h"

/* Add to the verdict:
 *   "audit": what was found: "degenerate: zeros pass", "degenerate: the output of other contents
 *   passes", "no-influence: NAME" for each tensor that changes nothing, if a kernel that leaves it
 *   out saves 1 % of the work or more; "cannot-tell: ...";
 *   "telling": how far beyond the limits of its class the most accurate baseline is if operands
 *   keep only 16 bits, the cheapest that arithmetic can do to a product of class fp32 (null where
 *   that cannot be tried).
 * `tolerance`: of the declared contents.  Overwrites inputs and outputs of placement 0. */
void audit_task(struct accuracy *acc, const struct kp_error *tolerance, uint64_t seed,
                cJSON *verdict);

#endif
