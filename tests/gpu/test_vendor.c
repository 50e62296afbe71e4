/* A linear layer's call is searched for once: what was found has a line a shape, by which another
 * process takes the same call, and computes the same bits.
 *
 *     test_vendor
 *
 * Prints each failure and, last, "N passed, N failed"; exits 1 on any failure. */
#include "../unit/task_text.h"
#include "base/error.h"
#include "cuda/exec.h"
#include "cuda_base/vendor_choice.h"
#include "gpu/device.h"

#include <cuda_runtime_api.h>

enum { ROWS = 8, COLUMNS = 128 };
static int passed, failed;

static void expect(const char *what, bool ok) {
    ok ? passed++ : failed++;
    if (!ok) printf("FAILED %s\n", what);
}

static void *filled(const struct kp_task *t, int i) {
    void *x;
    size_t n = (size_t)kp_shape_count(&t->tensors[i].shape);
    device_check(cudaMalloc(&x, n * sizeof(float)), "memory");
    device_fill(t, i, x, KP_DIST_DECLARED, 5, 0);
    return x;
}

/* Two layers of one shape, and their outputs by fp32 baselines that take these choices. */
static void compute(const struct kp_task *t, const char *choices, float got[ROWS * COLUMNS]) {
    const void *tensors[3];
    void *out, *workspace = NULL;
    kp_vendor_choose(choices);
    struct kp_exec *e = kp_exec_create(t, KP_MATH_FP32);
    for (int i = 0; i < 3; i++) tensors[i] = filled(t, i);
    device_check(cudaMalloc(&out, sizeof(float[ROWS * COLUMNS])), "memory");
    device_check(cudaMalloc(&workspace, kp_exec_workspace(e) + 1), "memory");
    kp_exec_run(e, tensors, &out, workspace, 0);
    device_check(cudaMemcpy(got, out, sizeof(float[ROWS * COLUMNS]), cudaMemcpyDeviceToHost),
                 "copy");
    for (int i = 0; i < 3; i++) device_check(cudaFree((void *)tensors[i]), "memory");
    device_check(cudaFree(out), "memory");
    device_check(cudaFree(workspace), "memory");
    kp_exec_destroy(e);
}

int main(void) {
    static float searched[ROWS * COLUMNS], taken[ROWS * COLUMNS];
    char message[1024], first[KP_CHOICES];
    struct kp_task *t = load_graph(
        "x f32 [8,256];w f32 [128,256];b f32 [128]",
        "y[8,128] = linear(x, weight=w, bias=b)\nz[8,128] = linear(x, weight=w, bias=b)\n"
        "s[8,128] = add(y, z)",
        message);
    kp_program("test_vendor");
    if (!t) die(KP_BUG, "%s", message);
    compute(t, NULL, searched);
    snprintf(first, sizeof first, "%s", kp_vendor_found()->choices);
    static const char name[] = "f32:8x128x256nt+bias ";
    expect("a shape has one line",
           !strncmp(first, name, strlen(name)) && strchr(first, '\n') == first + strlen(first) - 1);
    compute(t, first, taken);
    expect("what was found is taken", !strcmp(kp_vendor_found()->choices, first));
    expect("and computes the same", !memcmp(searched, taken, sizeof taken));
    compute(t, "any cublas_nn\n", taken);
    expect("any call can be asked for", strstr(kp_vendor_found()->choices, "cublas_nn"));
    compute(t, "f32:8x128x256nt+bias lt_nn 0\n", taken);
    expect("cuBLASLt without workspace, too", strstr(kp_vendor_found()->choices, "lt_nn 0\n"));
    task_free(t);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
