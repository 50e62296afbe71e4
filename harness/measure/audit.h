/* audit.h: is the task itself able to tell right from wrong?
 *
 * Some tasks are not: their output is constant, or does not depend on all that they
 * are given.  This is found out by trying, not by reading: on the declared contents,
 * with the tolerance that candidates are held to. */
#ifndef KP_AUDIT_H
#define KP_AUDIT_H

#include <cjson/cJSON.h>
#include "measure/accuracy.h"

/* Append to `flags` what was found: "degenerate: zeros pass", "degenerate: the output of
 * other contents passes", "no-influence: NAME" for each tensor that changes nothing.
 * Overwrites contents and outputs of placement 0. */
void audit_task(struct judge *j, const struct kp_error *tolerance, uint64_t seed, cJSON *flags);

#endif
