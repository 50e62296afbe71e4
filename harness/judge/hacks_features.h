/* hacks_features.h: the features that distinguish a source; see hacks.h. */
#ifndef KP_HACKS_FEATURES_H
#define KP_HACKS_FEATURES_H

#include "judge/features.h"

/* The features of a source without comments; each weighs 1 + log(count).  `whole`: it is a
 * kernel, not a sample of a few lines, so the static rules apply. */
struct features features_of(const char *source, bool whole);

#endif
