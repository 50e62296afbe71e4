/* hacks_features.h: what of a source tells it from others; see hacks.h. */
#ifndef KP_HACKS_FEATURES_H
#define KP_HACKS_FEATURES_H

#include "judge/features.h"

/* The features of a source that has no comments any more; each weighs 1 + log(how often).  `whole`:
 * it is a kernel, not a sample of some lines, so that its structure says something. */
struct features features_of(const char *source, bool whole);

#endif
