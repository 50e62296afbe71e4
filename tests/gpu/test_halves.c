/* Products with sums in f16, and f16 numbers of fewer bits (harness/inspect/halves.h), against the
 * same on the CPU.
 *
 *     test_halves
 *
 * Prints each failure and, last, "N passed, N failed"; exits 1 on any failure. */
#include "gpu/device.h"
#include "inspect/halves.h"
#include "base/error.h"
#include "numbers.h"

#include <stdio.h>

enum { M = 17, N = 33, MOST = 200 };
static int passed, failed;

static void expect(const char *what, int i, double got, double wanted) {
    if (got == wanted) {
        passed++;
        return;
    }
    failed++;
    printf("FAILED %s, element %d: got %g, expected %g\n", what, i, got, wanted);
}

/* Numbers of f16 in (-1,1) on the device, and their bits in `host`. */
static uint16_t *numbers(uint16_t *host, int count) {
    uint16_t *x;
    for (int i = 0; i < count; i++) host[i] = to_half((float)(2 * uniform() - 1));
    device_check(cudaMalloc((void **)&x, (size_t)count * sizeof *x), "cudaMalloc");
    device_check(cudaMemcpy(x, host, (size_t)count * sizeof *x, cudaMemcpyHostToDevice),
                 "cudaMemcpy");
    return x;
}

static void test_product(int k, int terms) {
    static uint16_t a[M * MOST], b[MOST * N], out[M * N];
    uint16_t *da = numbers(a, M * k), *db = numbers(b, k * N), *d = numbers(out, M * N);
    char what[64];
    snprintf(what, sizeof what, "a product of %d terms, %d at a time", k, terms);
    halves_product(da, db, d, M, N, k, terms, NULL);
    device_check(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost), what);
    for (int i = 0; i < M * N; i++) {
        float sum = 0, part = 0;
        for (int t = 0; t < k; t++) { /* a product of two halves is exact in fp32 */
            part += (float)(from_half(a[i / N * k + t]) * from_half(b[t * N + i % N]));
            if ((t + 1) % terms && t + 1 < k) continue;
            sum = (float)from_half(to_half(sum + part));
            part = 0;
        }
        expect(what, i, from_half(out[i]), sum);
    }
    device_check(cudaFree(da), "cudaFree");
    device_check(cudaFree(db), "cudaFree");
    device_check(cudaFree(d), "cudaFree");
}

static void test_cut(int bits) {
    static uint16_t x[MOST], got[MOST];
    uint16_t *d = numbers(x, MOST);
    static const uint16_t special[] = {0x7c00, 0xfc00, 0x7e00, 0, 0x8000};
    device_check(cudaMemcpy(d, special, sizeof special, cudaMemcpyHostToDevice), "cudaMemcpy");
    device_cut(d, KP_F16, MOST, bits, NULL);
    device_check(cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost), "cutting");
    for (int i = 0; i < 5; i++) expect("a number that stays", i, got[i], special[i]);
    for (int i = 5; i < MOST; i++) {
        int e = 0;
        double v = from_half(x[i]), m = frexp(v, &e);
        double wanted = ldexp(round(ldexp(m, bits)), e - bits); /* away from zero in the middle */
        if (fabs(v) >= 0x1p-10) expect("fewer bits", i, from_half(got[i]), wanted);
    }
    device_check(cudaFree(d), "cudaFree");
}

int main(void) {
    kp_program("test_halves");
    test_product(64, 1);
    test_product(64, 16);
    test_product(100, 16); /* the last part is short */
    test_product(MOST, 1024);
    test_cut(10);
    test_cut(8);
    test_cut(1);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
