/* peaks_main.c: `peaks OUT.json` measures once what this GPU does at best: bandwidth of the memory
 * and of the L2, and the rates of matrix products by type, by cuBLAS on random data.  Floors are
 * computed from these, not from a data sheet. */
#include "gpu/device.h"
#include "gpu/driver.h"
#include "base/error.h"
#include "base/json.h"
#include "gpu/machine.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SAMPLES = 15,     /* of which the best counts */
    WARM_UP = 3,      /* the first few do not */
    LARGE = 8192,     /* rows and columns of a product: large enough for the full rate; half as */
    LARGE_F64 = 4096, /* many where the rate is a fraction, or where power limits the clock */
    DEEP = 2,         /* x as deep: a tile's start and end count for less */
    EASE = 4 /* reads before each product: many products in a row lower the clock by their power,
              * and doing nothing lowers it, too */
};
static const size_t most_bytes = (size_t)2 << 30; /* copied; twice as many are read */
enum { L2_PART = 4, L2_TIMES = 64 }; /* a quarter of the L2 or less stays in it, read so often */
static const double quiet_seconds = 5;

static cudaEvent_t start, stop;

static void check_blas(cublasStatus_t s, const char *what) {
    if (s != CUBLAS_STATUS_SUCCESS)
        die(KP_MACHINE, "cuBLAS %s: %s", what, cublasGetStatusString(s));
}

struct memory {
    void *a, *b;  /* b follows a */
    size_t bytes; /* of each */
};

static void read_all(void *p) {
    struct memory *m = p;
    device_read(m->a, 2 * m->bytes, 1, m->b, 0);
}

/* The best of a few times: a peak is what the machine can do, not what it does on average.  Each
 * follows reads of `before`, unless that is NULL. */
static double best_ms(void (*work)(void *), void *context, struct memory *before) {
    double best = 1e30;
    for (int i = 0; i < SAMPLES; i++) {
        float ms;
        for (int k = 0; before && k < EASE; k++) read_all(before);
        device_check(cudaEventRecord(start, 0), "peaks");
        work(context);
        device_check(cudaEventRecord(stop, 0), "peaks");
        device_check(cudaEventSynchronize(stop), "peaks");
        device_check(cudaEventElapsedTime(&ms, start, stop), "peaks");
        if (i >= WARM_UP && ms < best) best = ms;
    }
    return best;
}

static void read_again(void *p) {
    struct memory *m = p;
    device_read(m->a, m->bytes, L2_TIMES, m->b, 0);
}

/* Bytes per second and 1e9 of reading what lies in the L2. */
static double l2_gbs(const struct memory *all) {
    struct memory m = *all;
    for (m.bytes = 1; m.bytes * 2 <= machine_l2_bytes() / L2_PART;) m.bytes *= 2;
    return L2_TIMES * (double)m.bytes / best_ms(read_again, &m, NULL) * 1e-6;
}

static void copy_all(void *p) {
    struct memory *m = p;
    device_copy(m->a, m->b, m->bytes, 0);
}

struct product {
    cublasHandle_t h;
    cudaDataType_t type;
    cublasComputeType_t compute;
    int n, k;
    void *a, *b, *c;
};

static void multiply(void *p) {
    struct product *q = p;
    const double one = 1, zero = 0;
    const float one32 = 1, zero32 = 0;
    bool wide = q->type == CUDA_R_64F;
    check_blas(cublasGemmEx(q->h, CUBLAS_OP_T, CUBLAS_OP_N, q->n, q->n, q->k,
                            wide ? (const void *)&one : &one32, q->a, q->type, q->k, q->b, q->type,
                            q->k, wide ? (const void *)&zero : &zero32, q->c, q->type, q->n,
                            q->compute, CUBLAS_GEMM_DEFAULT),
               "product");
}

static void fill(void *data, enum kp_dtype type, int n, int k, uint64_t seed) {
    struct kp_tensor x = {.name = "x", .dtype = type, .shape = {2, {n, k}}};
    x.fill.kind = KP_FILL_NORMAL, x.fill.b = 1;
    struct kp_task t = {.ntensors = 1, .tensors = &x};
    device_fill(&t, 0, data, KP_DIST_DECLARED, seed, 0);
}

/* The rate of products of n x n results or half as many each way, whichever is more. */
static double tflops(cublasHandle_t h, enum kp_dtype dtype, cudaDataType_t type,
                     cublasComputeType_t compute, int n, struct memory *m) {
    double best = 0;
    for (int half = 0; half < 2; half++, n /= 2) {
        const int k = DEEP * n;
        size_t bytes = (size_t)n * k * kp_dtype_size(dtype);
        if (2 * bytes > m->bytes) continue; /* a small GPU: half as many do */
        struct product q = {h, type, compute, n, k, m->a, (char *)m->a + bytes, m->b};
        fill(q.a, dtype, n, k, 1);
        fill(q.b, dtype, n, k, 2);
        double rate = 2.0 * n * n * k / best_ms(multiply, &q, m) * 1e-9;
        if (rate > best) best = rate;
    }
    return best;
}

int main(int argc, char **argv) {
    kp_program("peaks");
    if (argc != 2) die(KP_USAGE, "usage: peaks OUT.json");
    driver_open();
    size_t free_bytes, total;
    struct memory m;
    cublasHandle_t h;
    device_check(cudaMemGetInfo(&free_bytes, &total), "memory");
    m.bytes = free_bytes / 4 < most_bytes ? free_bytes / 4 / 4096 * 4096 : most_bytes;
    device_check(cudaMalloc(&m.a, 2 * m.bytes), "memory");
    m.b = (char *)m.a + m.bytes;
    device_check(cudaMemset(m.a, 1, 2 * m.bytes), "memory");
    device_check(cudaEventCreate(&start), "event");
    device_check(cudaEventCreate(&stop), "event");
    check_blas(cublasCreate(&h), "handle");
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", 1);
    if (!machine_quiet(quiet_seconds)) warn("the machine is not quiet: peaks may be low");
    json_add_number(json, "read_gbs", 2.0 * (double)m.bytes / best_ms(read_all, &m, NULL) * 1e-6);
    json_add_number(json, "copy_gbs", 2.0 * (double)m.bytes / best_ms(copy_all, &m, NULL) * 1e-6);
    json_add_number(json, "l2_read_gbs", l2_gbs(&m));
    json_add_number(json, "f16_tflops",
                    tflops(h, KP_F16, CUDA_R_16F, CUBLAS_COMPUTE_32F, LARGE, &m));
    json_add_number(json, "tf32_tflops",
                    tflops(h, KP_F32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, LARGE, &m));
    json_add_number(json, "fp32_tflops",
                    tflops(h, KP_F32, CUDA_R_32F, CUBLAS_COMPUTE_32F, LARGE, &m));
    json_add_number(json, "f64_tflops",
                    tflops(h, KP_F64, CUDA_R_64F, CUBLAS_COMPUTE_64F, LARGE_F64, &m));
    json_write(argv[1], json);
    return KP_OK;
}
