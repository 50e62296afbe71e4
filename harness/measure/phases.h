/* phases.h: where the seconds of a cell go: each moment belongs to the phase that was named last.
 */
#ifndef KP_PHASES_H
#define KP_PHASES_H

#include <cjson/cJSON.h>

/* A cell begins: all phases are empty, and what follows is of this one. */
void phases_begin(const char *name);

/* What follows is of this phase.  Returns the one before, to go back to.  Outside of a cell nothing
 * is counted. */
const char *phase(const char *name);

/* Seconds of each phase so far, in the order in which they were first named, to a millisecond. */
cJSON *phases_seconds(void);

#endif
