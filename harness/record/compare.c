/* compare.c: see compare.h. */
#include "record/compare.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const judgment_name[JUDGMENTS] = {"reproduced", "faster", "slower", "verdict changed",
                                              "not comparable"};

/* What must be equal for two times to be comparable (results/SCHEMA.md). */
static const char *const machine_key[] = {
    "gpu_name", "memory_bytes", "power_limit_w", "ecc", "mig", "driver", "cuda", "cublas", "cudnn"};

/* A member of a machine; NULL if it is absent or null. */
static const cJSON *member(const cJSON *machine, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(machine, key);
    return cJSON_IsNull(item) ? NULL : item;
}

/* Name in `why` the machine keys that differ.  Returns how many do. */
static int machine_differs(const struct result *a, const struct result *b, char *why, size_t size) {
    const cJSON *ma = cJSON_GetObjectItemCaseSensitive(a->json, "machine");
    const cJSON *mb = cJSON_GetObjectItemCaseSensitive(b->json, "machine");
    int differ = 0;
    size_t used = (size_t)snprintf(why, size, "another machine: ");
    for (size_t i = 0; i < sizeof machine_key / sizeof *machine_key; i++) {
        const cJSON *x = member(ma, machine_key[i]), *y = member(mb, machine_key[i]);
        if ((!x && !y) || (x && y && cJSON_Compare(x, y, 1))) continue;
        if (used < size)
            used += (size_t)snprintf(why + used, size - used, "%s%s", differ ? ", " : "",
                                     machine_key[i]);
        differ++;
    }
    return differ;
}

/* Say in `why` how two kernels differ.  Returns false if they do not: if their sources are equal,
 * but for comments, or if what was compiled of them is. */
static bool kernel_differs(const struct result *a, const struct result *b, char *why, size_t size) {
    bool kernel = strcmp(a->sha256, b->sha256) != 0;
    bool headers = strcmp(a->headers, b->headers) != 0;
    if (*a->sources && !strcmp(a->sources, b->sources)) return false;
    if (*a->code && !strcmp(a->code, b->code)) return false;
    if (kernel && headers)
        snprintf(why, size, "the kernel and the headers that it includes differ");
    else if (kernel)
        snprintf(why, size, "the kernel differs");
    else if (headers)
        snprintf(why, size, "the headers that the kernel includes differ");
    return kernel || headers;
}

enum judgment compare_results(const struct result *fresh, const struct result *recorded,
                              const struct boards *known, char *why, size_t size) {
    if (kernel_differs(fresh, recorded, why, size)) return NOT_COMPARABLE;
    if (strcmp(fresh->verdict, recorded->verdict)) {
        snprintf(why, size, "%s, recorded %s%s%s", fresh->verdict, recorded->verdict,
                 *fresh->reason ? ": " : "", fresh->reason);
        return VERDICT;
    }
    if (!result_ok(fresh)) {
        snprintf(why, size, "%s again", fresh->verdict);
        return REPRODUCED;
    }
    if (machine_differs(fresh, recorded, why, size)) return NOT_COMPARABLE;
    if (strcmp(fresh->class, recorded->class) || strcmp(fresh->against, recorded->against)) {
        snprintf(why, size, "class %s against %s, recorded %s against %s", fresh->class,
                 fresh->against, recorded->class, recorded->against);
        return NOT_COMPARABLE;
    }
    int boards = 0;
    const char *of;
    double far = boards_reach(known, fresh, recorded, &boards, &of);
    double difference = log(fresh->ratio / recorded->ratio);
    int n = snprintf(why, size, "%.3fx, recorded %.3fx: %+.2f %%, predicted +-%.2f %%",
                     fresh->ratio, recorded->ratio, 100 * expm1(difference), 100 * expm1(far));
    if (boards == 1)
        snprintf(why + n, size - (size_t)n, " (one board: boards are not in it)");
    else if (strcmp(of, fresh->gpu))
        snprintf(why + n, size - (size_t)n, " (by boards of %s)", of);
    if (fabs(difference) <= far) return REPRODUCED;
    return difference > 0 ? FASTER : SLOWER;
}
