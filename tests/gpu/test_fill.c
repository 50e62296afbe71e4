/* What device_fill writes on a GPU is what values.h says, whichever kernel writes it: every law of
 * every type, under every distribution.
 *
 *     test_fill
 *
 * Prints each failure and, last, "N passed, N failed"; exits 1 on any failure. */
#include "../unit/task_text.h"
#include "gpu/device.h"
#include "base/error.h"
#include "numbers.h"

#include <cuda_runtime_api.h>

enum { ROWS = 96, COLUMNS = 100, COUNT = ROWS * COLUMNS };
static int passed, failed;

/* A task that reads x, filled like that, and its product with w. */
static struct kp_task *task_of(const char *type, const char *fill) {
    char text[1024], message[1024];
    snprintf(text, sizeof text,
             "{\"schema\":1,\"task\":\"t\",\"suite\":\"unit\",\"inputs\":["
             "{\"name\":\"x\",\"shape\":[%d,%d],\"dtype\":\"%s\",\"fill\":\"%s\"},"
             "{\"name\":\"w\",\"shape\":[%d,8],\"dtype\":\"%s\",\"fill\":\"normal(0,1)\"}],"
             "\"graph\":[\"y[%d,8] = matmul(x, w)\"],\"outputs\":[\"y\"]}",
             ROWS, COLUMNS, type, fill, COLUMNS, type, ROWS);
    struct kp_task *t = load_text(text, message);
    if (!t) die(KP_BUG, "%s", message);
    return t;
}

/* Whether two numbers are equal but for how a library's functions and the type round. */
static bool near(double a, double b, double unit) {
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= unit * (fabs(b) + 1e-3);
}

static void test(const char *type, const char *fill) {
    struct kp_task *t = task_of(type, fill);
    static float host[COUNT];
    bool half = !strcmp(type, "f16");
    void *x;
    device_check(cudaMalloc(&x, sizeof host), "memory");
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        struct kp_values w = kp_values_of(t, 0, (enum kp_distribution)d, 5);
        device_fill(t, 0, x, (enum kp_distribution)d, 5, 0);
        device_check(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost), "copy");
        int bad = 0;
        for (int i = 0; i < COUNT; i++) {
            double got = get(host, t->tensors[0].dtype, i);
            double want = kp_value_at(&w, (uint64_t)i);
            if (half && fabs(want) >= 65520) want = copysign(INFINITY, want);
            bad += !near(got, want, half ? 1e-3 : 1e-5);
        }
        bad ? failed++ : passed++;
        if (bad)
            printf("FAILED %s of %s, %s: %d of %d differ\n", fill, type, kp_distribution_name[d],
                   bad, COUNT);
    }
    device_check(cudaFree(x), "memory");
    task_free(t);
}

int main(void) {
    static const char *const fills[] = {"normal(0,1)", "uniform(-1,3)", "fan_in(64)", "signs()"};
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        for (int half = 0; half < 2; half++) test(half ? "f16" : "f32", fills[i]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
