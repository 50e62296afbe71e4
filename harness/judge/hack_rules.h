/* hack_rules.h: static rules on a kernel's structure; only hacks*.c use it. */
#ifndef KP_HACK_RULES_H
#define KP_HACK_RULES_H

#include "judge/features.h"

/* Add the feature (@...) of each rule that a whole kernel matches. */
void static_rules_add(struct features *v, const struct tokens *t);

/* Whether a rule of this name exists; the name is given without its @. */
bool static_rule_known(const char *name);

#endif
