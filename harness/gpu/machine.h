/* machine.h: what machine a number was measured on, and how it was doing then. */
#ifndef KP_MACHINE_H
#define KP_MACHINE_H

#include <cjson/cJSON.h>
#include <stddef.h>

/* The `machine` object of a result (results/SCHEMA.md): what does not change while we
 * measure.  What the platform does not say is null. */
cJSON *machine_describe(void);

/* What changes: clocks, power, temperature, throttle reasons.  Sampled between rounds;
 * machine_watch_add() adds medians (and the union of reasons) to a machine object. */
void machine_watch(void);
void machine_watch_add(cJSON *machine);

/* Device facts that rules depend on. */
size_t machine_l2_bytes(void);
double machine_dram_bytes_per_us(void); /* theoretical; 0 if unknown */

/* Wait until a sentinel copy has been steady, at most `seconds`: memory freed by
 * others is scrubbed in the background and slows everything meanwhile.  Returns
 * whether it became steady. */
int machine_quiet(double seconds);

#endif
