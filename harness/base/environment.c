/* environment.c: see environment.h. */
#include "base/environment.h"
#include "base/json.h"

#include <stdlib.h>

char **cuda_environment(void) {
    static const char *const keep[] = {"PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
                                       "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"};
    static char *env[KP_MOST_VARIABLES + 1];
    int n = 0;
    for (int i = 0; env[i]; i++) free(env[i]);
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
        if (getenv(keep[i])) env[n++] = text_format("%s=%s", keep[i], getenv(keep[i]));
    env[n++] = text_format("CUDA_CACHE_DISABLE=1");
    env[n] = NULL;
    return env;
}
