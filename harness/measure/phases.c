/* phases.c: see phases.h. */
#include "measure/phases.h"
#include "base/clock.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { MOST_PHASES = 16 };
static struct {
    const char *name;
    double seconds;
} all[MOST_PHASES];
static int count, now;
static double since;

/* The number of a phase, which may be a new one. */
static int number_of(const char *name) {
    int i = 0;
    while (i < count && strcmp(all[i].name, name)) i++;
    if (i == MOST_PHASES) die(KP_BUG, "more phases than %d: %s", MOST_PHASES, name);
    if (i == count) all[count++].name = name, all[i].seconds = 0;
    return i;
}

void phases_begin(const char *name) {
    count = 0;
    now = number_of(name);
    since = seconds_now();
}

const char *phase(const char *name) {
    if (!count) return name;
    const char *before = all[now].name;
    double at = seconds_now();
    all[now].seconds += at - since;
    since = at;
    now = number_of(name);
    return before;
}

cJSON *phases_seconds(void) {
    cJSON *to = cJSON_CreateObject();
    if (count) phase(all[now].name);
    for (int i = 0; i < count; i++)
        cJSON_AddNumberToObject(to, all[i].name, round(all[i].seconds * 1e3) / 1e3);
    return to;
}
