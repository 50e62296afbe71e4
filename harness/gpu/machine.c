/* machine.c: see machine.h.  NVML is opened at run time and declared here: a machine may have the
 * driver without the library's header, or neither. */
#define _GNU_SOURCE
#include "gpu/machine.h"
#include "base/clock.h"
#include "gpu/device.h"
#include "gpu/driver.h"
#include "base/json.h"
#include "base/stats.h"

#include <cublas_v2.h>
#ifndef KP_NO_CUDNN
#include <cudnn.h>
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An L2 larger than most: a flush of twice this empties every known one. */
static const size_t unknown_l2_bytes = (size_t)64 << 20;

/* The sentinel: a copy is steady when its last STEADY times lie within 1.5 %, after LEAST_COPIES.
 */
enum { STEADY = 8, LEAST_COPIES = 20 };
static const float steady_within = 1.015f;
/* It takes long enough for the clock's noise not to matter, and little of the memory. */
static const size_t sentinel_bytes = (size_t)512 << 20;
enum { SENTINEL_PART = 32 };

struct nvml {
    void *device;
    int (*clock)(void *, int, unsigned *);
    int (*power)(void *, unsigned *);
    int (*power_limit)(void *, unsigned *);
    int (*temperature)(void *, int, unsigned *);
    int (*reasons)(void *, unsigned long long *);
    int (*ecc)(void *, int *, int *);
    int (*mig)(void *, unsigned *, unsigned *);
    int (*driver)(char *, unsigned);
};

/* NVML's handle of CUDA's device 0, by PCI address.  A function that NVML lacks is NULL. */
static struct nvml *nvml(void) {
    static struct nvml n;
    static int tried;
    if (tried) return &n;
    tried = 1;
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    char bus[32];
    if (!lib || cudaDeviceGetPCIBusId(bus, sizeof bus, 0)) return &n;
    int (*init)(void), (*find)(const char *, void **);
    *(void **)&init = dlsym(lib, "nvmlInit_v2");
    *(void **)&find = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
    if (!init || !find || init() || find(bus, &n.device)) return &n;
    *(void **)&n.clock = dlsym(lib, "nvmlDeviceGetClockInfo");
    *(void **)&n.power = dlsym(lib, "nvmlDeviceGetPowerUsage");
    *(void **)&n.power_limit = dlsym(lib, "nvmlDeviceGetEnforcedPowerLimit");
    *(void **)&n.temperature = dlsym(lib, "nvmlDeviceGetTemperature");
    *(void **)&n.reasons = dlsym(lib, "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&n.ecc = dlsym(lib, "nvmlDeviceGetEccMode");
    *(void **)&n.mig = dlsym(lib, "nvmlDeviceGetMigMode");
    *(void **)&n.driver = dlsym(lib, "nvmlSystemGetDriverVersion");
    return &n;
}

static int attribute(CUdevice_attribute a) {
    int x = 0;
    CUdevice d;
    KP_CU(cu.cuDeviceGet(&d, 0));
    return cu.cuDeviceGetAttribute(&x, a, d) ? 0 : x;
}

size_t machine_l2_bytes(void) {
    int x = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    return x > 0 ? (size_t)x : unknown_l2_bytes;
}

double machine_dram_bytes_per_us(void) {
    double khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    double bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    return khz * 1e3 * 2 * bits / 8 * 1e-6; /* two transfers a clock */
}

/* The UUID tells machines apart, but is private: only its hash is kept. */
static void add_uuid(cJSON *m, const struct cudaDeviceProp *p) {
    uint64_t h[4] = {1, 2, 3, 4};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 16; i++) h[k] = kp_mix(h[k], (unsigned char)p->uuid.bytes[i]);
    char *hex = text_format("%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
    cJSON_AddStringToObject(m, "uuid_hash", hex);
    free(hex);
}

static void add_version(cJSON *m, const char *key, int major, int minor, int patch) {
    char *text = patch < 0 ? text_format("%d.%d", major, minor)
                           : text_format("%d.%d.%d", major, minor, patch);
    cJSON_AddStringToObject(m, key, text);
    free(text);
}

static void add_libraries(cJSON *m) {
    int v = 0, a = 0, b = 0, c = 0;
    device_check(cudaRuntimeGetVersion(&v), "runtime version");
    add_version(m, "cuda", v / 1000, v % 1000 / 10, -1);
    cublasGetProperty(MAJOR_VERSION, &a);
    cublasGetProperty(MINOR_VERSION, &b);
    cublasGetProperty(PATCH_LEVEL, &c);
    add_version(m, "cublas", a, b, c);
#ifndef KP_NO_CUDNN
    int d = (int)cudnnGetVersion();
    add_version(m, "cudnn", d / 10000, d / 100 % 100, d % 100);
#else
    cJSON_AddNullToObject(m, "cudnn");
#endif
}

cJSON *machine_describe(void) {
    struct cudaDeviceProp p;
    struct nvml *n = nvml();
    char text[96] = "";
    unsigned x = 0, y = 0;
    int on = 0, pending = 0;
    device_check(cudaGetDeviceProperties(&p, 0), "device properties");
    cJSON *m = cJSON_CreateObject();
    cJSON_AddStringToObject(m, "gpu_name", p.name);
    add_uuid(m, &p);
    cJSON_AddNumberToObject(m, "memory_bytes", (double)p.totalGlobalMem);
    if (n->driver && !n->driver(text, sizeof text))
        cJSON_AddStringToObject(m, "driver", text);
    else
        cJSON_AddNullToObject(m, "driver");
    add_libraries(m);
    if (n->ecc && !n->ecc(n->device, &on, &pending))
        cJSON_AddBoolToObject(m, "ecc", on);
    else
        cJSON_AddBoolToObject(m, "ecc", p.ECCEnabled);
    if (n->mig && !n->mig(n->device, &x, &y))
        cJSON_AddBoolToObject(m, "mig", x != 0);
    else
        cJSON_AddNullToObject(m, "mig");
    if (n->power_limit && !n->power_limit(n->device, &x))
        cJSON_AddNumberToObject(m, "power_limit_w", x * 1e-3);
    else
        cJSON_AddNullToObject(m, "power_limit_w");
    cJSON_AddNumberToObject(m, "sm_count", p.multiProcessorCount);
    cJSON_AddNumberToObject(m, "l2_bytes", p.l2CacheSize);
    snprintf(text, sizeof text, "%d.%d", p.major, p.minor);
    cJSON_AddStringToObject(m, "compute_capability", text);
    return m;
}

/* ---- Watching -------------------------------------------------------------------- */

enum { MOST = 512, SM, MEMORY, POWER, TEMPERATURE, KINDS };

static struct {
    int n;
    double value[KINDS][MOST];
    unsigned long long reasons;
    int has_reasons;
} watch;

void machine_watch_start(void) {
    watch.n = watch.has_reasons = 0;
    watch.reasons = 0;
}

void machine_watch(void) {
    struct nvml *n = nvml();
    unsigned x;
    unsigned long long r;
    if (watch.n == MOST) return;
    const double unknown = -1;
    watch.value[SM][watch.n] = n->clock && !n->clock(n->device, 1, &x) ? x : unknown;
    watch.value[MEMORY][watch.n] = n->clock && !n->clock(n->device, 2, &x) ? x : unknown;
    watch.value[POWER][watch.n] = n->power && !n->power(n->device, &x) ? x * 1e-3 : unknown;
    watch.value[TEMPERATURE][watch.n] =
        n->temperature && !n->temperature(n->device, 0, &x) ? x : unknown;
    if (n->reasons && !n->reasons(n->device, &r)) watch.reasons |= r, watch.has_reasons = 1;
    watch.n++;
}

static void add_median(cJSON *to, const char *key, int kind) {
    double m = watch.n ? stat_median(watch.value[kind], watch.n) : -1;
    if (m >= 0)
        cJSON_AddNumberToObject(to, key, m);
    else
        cJSON_AddNullToObject(to, key);
}

/* NVML's clock event reasons that mean that the clock was held back. */
static void add_reasons(cJSON *m) {
    static const struct {
        unsigned long long bit;
        const char *name;
    } names[] = {{0x4, "power cap"},         {0x8, "hardware slowdown"}, {0x10, "sync boost"},
                 {0x20, "thermal"},          {0x40, "hardware thermal"}, {0x80, "power brake"},
                 {0x2, "application clocks"}};
    if (!watch.has_reasons) {
        cJSON_AddNullToObject(m, "throttle_reasons");
        return;
    }
    cJSON *list = cJSON_AddArrayToObject(m, "throttle_reasons");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (watch.reasons & names[i].bit)
            cJSON_AddItemToArray(list, cJSON_CreateString(names[i].name));
}

void machine_watch_add(cJSON *m) {
    cJSON *clocks = cJSON_AddObjectToObject(m, "clocks");
    add_median(clocks, "sm_mhz", SM);
    add_median(clocks, "memory_mhz", MEMORY);
    add_median(m, "power_w", POWER);
    add_median(m, "temperature_c", TEMPERATURE);
    add_reasons(m);
}

/* ---- Quiet ------------------------------------------------------------------------- */

int machine_quiet(double seconds) {
    static void *from, *to;
    static size_t bytes;
    size_t free_bytes, total;
    device_check(cudaMemGetInfo(&free_bytes, &total), "sentinel");
    if (!bytes)
        bytes = total / SENTINEL_PART < sentinel_bytes ? total / SENTINEL_PART : sentinel_bytes;
    cudaEvent_t a, b;
    float ms, last[STEADY];
    int n = 0, steady = 0;
    if (!from) device_check(cudaMalloc(&from, bytes), "sentinel");
    if (!to) device_check(cudaMalloc(&to, bytes), "sentinel");
    device_check(cudaMemset(from, 1, bytes), "sentinel");
    device_check(cudaEventCreate(&a), "sentinel");
    device_check(cudaEventCreate(&b), "sentinel");
    for (double until = seconds_now() + seconds; !steady && seconds_now() < until; n++) {
        device_check(cudaEventRecord(a, 0), "sentinel");
        device_copy(from, to, bytes, 0);
        device_check(cudaEventRecord(b, 0), "sentinel");
        device_check(cudaEventSynchronize(b), "sentinel");
        device_check(cudaEventElapsedTime(&ms, a, b), "sentinel");
        last[n % STEADY] = ms;
        float low = ms, high = ms;
        for (int i = 0; i < STEADY && i <= n; i++) {
            if (last[i] < low) low = last[i];
            if (last[i] > high) high = last[i];
        }
        steady = n >= LEAST_COPIES && high <= steady_within * low;
    }
    cudaEventDestroy(a);
    cudaEventDestroy(b);
    return steady;
}
