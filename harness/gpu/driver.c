/* driver.c: see driver.h. */
#include "gpu/driver.h"
#include "base/error.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct kp_driver cu;

#define TEXT2(x) #x
#define TEXT(x)  TEXT2(x)

const char *driver_error(CUresult e) {
    const char *words = "unknown error";
    if (cu.cuGetErrorString) cu.cuGetErrorString(e, &words);
    return words;
}

void driver_check(CUresult e, const char *call, const char *function) {
    if (e != CUDA_SUCCESS) die(KP_MACHINE, "%s: %s: %s", function, call, driver_error(e));
}

static void look_up(void) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) die(KP_MACHINE, "no NVIDIA driver here (libcuda.so.1 cannot be opened)");
#define X(name)                                                                                  \
    *(void **)&cu.name = dlsym(lib, TEXT(name));                                                 \
    if (!cu.name)                                                                                \
        die(KP_MACHINE, "the NVIDIA driver is too old: it lacks %s; install one for CUDA %d.%d", \
            TEXT(name), CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    KP_DRIVER_CALLS(X)
#undef X
}

/* KP_GPU names the kind of GPU that is expected, as harness/gpu/list-gpus names it (h200).  What
 * RUN is made of may have given us another. */
static void check_kind(CUdevice dev) {
    const char *kind = getenv("KP_GPU");
    char name[256] = "", plain[256];
    size_t n = 0;
    if (!kind || !*kind) return;
    KP_CU(cu.cuDeviceGetName(name, sizeof name, dev));
    for (const char *p = name; *p; p++)
        if (isalnum((unsigned char)*p)) plain[n++] = (char)tolower((unsigned char)*p);
    plain[n] = 0;
    if (!strstr(plain, kind))
        die(KP_MACHINE, "this GPU is %s, and %s is expected: have RUN.%s give one of that kind",
            name, kind, kind);
}

void driver_open(void) {
    static bool opened;
    if (opened) return;
    look_up();
    CUresult e = cu.cuInit(0);
    if (e != CUDA_SUCCESS) die(KP_MACHINE, "no usable GPU here: cuInit: %s", driver_error(e));
    int version = 0, major = 0, minor = 0, fd_ok = 0;
    KP_CU(cu.cuDriverGetVersion(&version));
    if (version / 1000 < CUDA_VERSION / 1000)
        die(KP_MACHINE, "the driver supports CUDA %d.%d, the toolkit is %d.%d: update the driver",
            version / 1000, version % 1000 / 10, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    CUdevice dev;
    CUcontext ctx;
    KP_CU(cu.cuDeviceGet(&dev, 0));
    check_kind(dev);
    KP_CU(cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev));
    KP_CU(cu.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev));
    if (major < 8)
        die(KP_MACHINE, "this GPU is sm_%d%d; Kernelproof needs sm_80 or later", major, minor);
    KP_CU(cu.cuDeviceGetAttribute(
        &fd_ok, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, dev));
    if (!fd_ok)
        die(KP_MACHINE,
            "this platform cannot share GPU memory between processes by file descriptor");
    KP_CU(cu.cuDevicePrimaryCtxRetain(&ctx, dev));
    KP_CU(cu.cuCtxSetCurrent(ctx));
    opened = true;
}
