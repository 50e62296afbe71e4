/* machine.h: what machine a number was measured on, and in what state it was. */
#ifndef KP_MACHINE_H
#define KP_MACHINE_H

#include <cjson/cJSON.h>
#include <stddef.h>

/* The `machine` object of a result (results/SCHEMA.md): what stays the same while we measure.
 * What the platform does not say is null. */
cJSON *machine_describe(void);

/* What changes: clocks, power, temperature, throttle reasons.  machine_watch() samples them between
 * rounds, from machine_watch_start() on; machine_watch_add() adds medians, and the union of
 * reasons, to a machine object. */
void machine_watch_start(void);
void machine_watch(void);
void machine_watch_add(cJSON *machine);

/* Device facts that rules depend on.  A device that does not say its L2's size counts as having
 * 64 MiB. */
size_t machine_l2_bytes(void);
double machine_dram_bytes_per_us(void); /* theoretical; 0 if unknown */

/* Copy memory again and again until the times are steady, at most `seconds`.  The driver scrubs
 * memory that others have freed in the background, which slows everything meanwhile.  Returns
 * whether the times became steady. */
int machine_quiet(double seconds);

#endif
