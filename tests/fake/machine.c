/* machine.c: harness/gpu/machine.h for the pretend GPU.  KP_FAKE_DRAM is its theoretical memory
 * bandwidth in bytes per microsecond, for tests of the verdict `impossible`, KP_FAKE_L2 the size
 * of its cache; KP_FAKE_RESTLESS is set where the machine is never quiet,
 * KP_FAKE_THROTTLE why its clock is held back. */
#include "gpu/machine.h"

#include <stdlib.h>

cJSON *machine_describe(void) {
    cJSON *m = cJSON_CreateObject();
    cJSON_AddStringToObject(m, "gpu_name", "pretend");
    cJSON_AddStringToObject(m, "uuid_hash", "0");
    cJSON_AddNumberToObject(m, "memory_bytes", 8e9);
    cJSON_AddStringToObject(m, "compute_capability", "9.0");
    return m;
}

void machine_watch_start(void) {}

void machine_watch(void) {}

void machine_watch_add(cJSON *m) {
    const char *why = getenv("KP_FAKE_THROTTLE");
    cJSON_AddNullToObject(m, "clocks");
    cJSON *reasons = cJSON_AddArrayToObject(m, "throttle_reasons");
    if (why) cJSON_AddItemToArray(reasons, cJSON_CreateString(why));
}

size_t machine_l2_bytes(void) {
    const char *text = getenv("KP_FAKE_L2");
    return text ? strtoull(text, NULL, 10) : 64;
}

double machine_dram_bytes_per_us(void) {
    const char *text = getenv("KP_FAKE_DRAM");
    return text ? atof(text) : 0;
}

int machine_quiet(double seconds) {
    (void)seconds;
    return !getenv("KP_FAKE_RESTLESS");
}
