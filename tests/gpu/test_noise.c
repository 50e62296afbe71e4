/* What the oracle's noise does to a normalised row, on a GPU: little where the row keeps its
 * meaning; and where noise swamps it, as much as a few steps of fp32 make of it.
 *
 *     test_noise
 *
 * Prints each failure and, last, "N passed, N failed"; exits 1 on any failure. */
#include "../unit/task_text.h"
#include "cuda/exec.h"
#include "gpu/device.h"
#include "base/error.h"
#include "numbers.h"

enum { MOST = 1 << 19 };
static int passed, failed;
static int rows, columns; /* of x */

static void expect(bool good, const char *what, double found) {
    good ? passed++ : failed++;
    if (!good) printf("FAILED %s: found %g\n", what, found);
}

/* layer_norm(x + by), with a weight and a bias. */
static struct kp_task *task_of(const char *by) {
    char tensors[128], graph[256], message[1024];
    snprintf(tensors, sizeof tensors, "x f32 [%d,%d]; w f32 [%d]; b f32 [%d]", rows, columns,
             columns, columns);
    snprintf(graph, sizeof graph,
             "s[%d,%d] = add(x, %s)\n"
             "y[%d,%d] = layer_norm(s, weight=w, bias=b; shape=[%d], eps=1e-05)",
             rows, columns, by, rows, columns, columns);
    struct kp_task *t = load_graph(tensors, graph, message);
    if (!t) die(KP_BUG, "%s", message);
    return t;
}

static double exact[MOST], rough[KP_DRAWS][MOST];

static void keep(void *context, int output, int64_t offset, int64_t n,
                 const struct kp_draws *values, cudaStream_t stream) {
    (void)context, (void)output;
    size_t bytes = (size_t)n * sizeof *exact;
    device_check(
        cudaMemcpyAsync(exact + offset, values->exact, bytes, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
    for (int d = 0; d < KP_DRAWS; d++)
        device_check(cudaMemcpyAsync(rough[d] + offset, values->rough[d], bytes,
                                     cudaMemcpyDeviceToHost, stream),
                     "cudaMemcpyAsync");
}

/* Run the oracle with noise on random numbers.  Returns the weights, for the caller to free: none
 * is small, as what noise does to the bias is seen divided by it. */
static float *run(const char *by) {
    const int count[] = {rows * columns, columns, columns};
    struct kp_task *t = task_of(by);
    void *tensor[3], *workspace;
    float *weights = NULL;
    for (int k = 0; k < 3; k++) {
        float *host = malloc((size_t)count[k] * sizeof *host);
        for (int i = 0; i < count[k]; i++) host[i] = (float)(2 * uniform() - 1 + 2 * (k == 1));
        device_check(cudaMalloc(&tensor[k], (size_t)count[k] * sizeof *host), "cudaMalloc");
        device_check(
            cudaMemcpy(tensor[k], host, (size_t)count[k] * sizeof *host, cudaMemcpyHostToDevice),
            "cudaMemcpy");
        if (k == 1)
            weights = host;
        else
            free(host);
    }
    const double unit = KP_AMPLIFIED * KP_UNIT_FP32;
    const struct kp_noise noise = {.operand = unit, .sum = unit, .seed = 7};
    struct kp_exec *e = kp_exec_create_oracle(t, SIZE_MAX);
    device_check(cudaMalloc(&workspace, kp_exec_workspace(e) + 1), "cudaMalloc");
    kp_exec_oracle(e, (const void *const *)tensor, workspace, &noise, 0, keep, NULL, NULL);
    device_check(cudaDeviceSynchronize(), "the oracle");
    for (int k = 0; k < 3; k++) device_check(cudaFree(tensor[k]), "cudaFree");
    device_check(cudaFree(workspace), "cudaFree");
    kp_exec_destroy(e);
    task_free(t);
    return weights;
}

/* The largest that noise did to a normalised element, before its weight; by the mean over all
 * elements and draws in *mean. */
static double done(const float *weights, double *mean) {
    double most = 0, sum = 0;
    for (int d = 0; d < KP_DRAWS; d++)
        for (int i = 0; i < rows * columns; i++) {
            double by = fabs(rough[d][i] - exact[i]) / fabs((double)weights[i % columns]);
            most = fmax(most, by), sum += by / (1.0 * KP_DRAWS * rows * columns);
        }
    *mean = sum;
    return most;
}

/* Of so many rows of x, of so many elements. */
static void test(int of_rows, int of_columns) {
    double mean, most;
    rows = of_rows, columns = of_columns;
    float *w = run("0");
    most = done(w, &mean);
    expect(most < 1e-3 && mean > 0, "a row that keeps its meaning", most);
    free(w);
    w = run("2048"); /* noise takes a tenth of it */
    most = done(w, &mean);
    expect(most > 1e-3 && most < 2, "a row that keeps most of it", most);
    free(w);
    w = run("4194304"); /* 2^22: fp32 has steps of a half there, elements are below 1 */
    most = done(w, &mean);
    expect(most > 7 && most < 11, "the largest of a row that noise swamps", most);
    expect(mean > 1 && mean < 4, "the mean of such a row", mean);
    free(w);
}

int main(void) {
    test(64, 64);
    test(2, 1 << 16);    /* each by many blocks */
    test(MOST / 64, 64); /* each by few threads */
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
