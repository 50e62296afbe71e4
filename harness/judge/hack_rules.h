/* hack_rules.h: the marks of a kernel's structure; used by hacks alone. */
#ifndef KP_HACK_RULES_H
#define KP_HACK_RULES_H

#include "judge/features.h"

/* Add the marks (@...) that a whole kernel shows. */
void marks_add(struct features *v, const struct tokens *t);

/* Whether marks_add knows a mark, given without its @. */
bool mark_known(const char *name);

#endif
