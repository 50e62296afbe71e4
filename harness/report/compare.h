/* compare.h: whether a new result agrees with a recorded one. */
#ifndef KP_COMPARE_H
#define KP_COMPARE_H

#include "report/result.h"

enum judgment {
    REPRODUCED,     /* both intervals share a point, or the ratios differ by at most 2 % */
    FASTER,         /* the new speedup is higher than that */
    SLOWER,         /* lower */
    VERDICT,        /* the same kernel got another verdict */
    NOT_COMPARABLE, /* another machine, kernel, headers or class: no question to answer */
    JUDGMENTS
};
extern const char *const judgment_name[JUDGMENTS];

/* Judge `fresh` against `recorded`, two results of one cell.  One sentence that
 * says why goes to `why`: the two figures, or what differs. */
enum judgment compare_results(const struct result *fresh, const struct result *recorded, char *why,
                              size_t size);

#endif
