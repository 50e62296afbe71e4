/* compare.h: whether a new result agrees with a recorded one. */
#ifndef KP_COMPARE_H
#define KP_COMPARE_H

#include "record/boards.h"
#include "record/result.h"

enum judgment {
    REPRODUCED,     /* the ratios differ by no more than boards_reach() predicts */
    FASTER,         /* the new speedup is higher, beyond that */
    SLOWER,         /* the new speedup is lower, beyond that */
    VERDICT,        /* the same kernel got another verdict */
    NOT_COMPARABLE, /* the machine, the kernel, its headers or its class differ */
    JUDGMENTS
};
extern const char *const judgment_name[JUDGMENTS];

/* Judge `fresh` against `recorded`, two results of one cell, by how far runs are known to scatter.
 * Writes one sentence to `why`: the two figures and what was predicted, or what differs.  Kernels
 * with the same code_sha256 are the same kernel, even if their sources differ. */
enum judgment compare_results(const struct result *fresh, const struct result *recorded,
                              const struct boards *known, char *why, size_t size);

#endif
