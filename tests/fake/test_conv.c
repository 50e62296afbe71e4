/* test_conv.c: how a convolution is made of products (reference/cuda_products/conv.c,
 * conv_cublas.c), without a GPU: kernels and cuBLAS are loops here.  Every world of the oracle is
 * compared with the definition, and its noise with its own seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../gpu/numbers.h"
#include "base/error.h"
#include "cuda_products/conv_parts.h"
#include "define/define.h"
#include "task_text.h"

#include <cublas_v2.h>

enum { GAP = 3, CANARY = 64 };

KP_IMPL_OF(conv2d);

/* ---- what stands for device code and libraries ---- */

static int products; /* calls of cuBLAS */

/* What noise adds: a whole number, so that it shows. */
static double noise_of(uint64_t seed) {
    return (double)(seed % 97 + 1);
}

/* The element of a channel under tap t of output position o, or 0 beside the input. */
static double under(const struct kp_conv *g, enum kp_dtype type, const void *x, int64_t channel,
                    int64_t o, int64_t t) {
    int64_t at = 0, size = 1;
    for (int d = 2; d >= 0; d--) {
        int64_t i = o % g->out[d] * g->stride[d] - g->pad[d] + t % g->kernel[d] * g->dilation[d];
        o /= g->out[d], t /= g->kernel[d];
        if (i < 0 || i >= g->in[d]) return 0;
        at += i * size;
        size *= g->in[d];
    }
    return get(x, type, channel * kp_conv_in(g) + at);
}

void kp_conv_patches(const struct kp_conv *g, enum kp_dtype type, const void *x, int64_t images,
                     int64_t first, int64_t count, void *out, cudaStream_t stream) {
    int64_t taps = kp_conv_taps(g), rows = g->in_channels / g->groups * taps;
    (void)stream;
    for (int64_t i = 0; i < images * rows * count; i++) {
        int64_t n = i / count / rows, row = i / count % rows;
        put(out, type, i,
            under(g, type, x, n * g->in_channels + row / taps, first + i % count, row % taps));
    }
}

void kp_conv_patches_f64(const struct kp_conv *g, const double *x, int64_t apart, int64_t from,
                         int64_t images, int64_t first, int64_t count, double *out,
                         cudaStream_t stream) {
    int64_t image = g->in_channels * kp_conv_in(g);
    int64_t each = g->in_channels / g->groups * kp_conv_taps(g) * count;
    for (int64_t n = from; n < from + images; n++, out += each)
        kp_conv_patches(g, KP_F64, x + n / g->batch * apart + n % g->batch * image, 1, first, count,
                        out, stream);
}

/* Each tap of each place of the operand goes to its place of the result. */
void kp_conv_gather(const struct kp_conv *g, enum kp_dtype type, const void *columns,
                    int64_t images, int64_t channels, void *y, cudaStream_t stream) {
    int64_t in = kp_conv_in(g), out = kp_conv_out(g), taps = kp_conv_taps(g);
    (void)stream;
    for (int64_t i = 0; i < images * channels; i++)
        for (int64_t o = 0; o < out; o++)
            put(y, type, (i / channels * g->out_channels + i % channels) * out + o, 0);
    for (int64_t i = 0; i < images * channels * taps * in; i++) {
        int64_t plane = i / in / taps, t = i / in % taps, p = i % in, at = 0, size = 1;
        bool inside = true;
        for (int d = 2; d >= 0; d--) {
            int64_t o = p % g->in[d] * g->stride[d] - g->pad[d] + t % g->kernel[d] * g->dilation[d];
            p /= g->in[d], t /= g->kernel[d];
            inside = inside && o >= 0 && o < g->out[d];
            at += o * size;
            size *= g->out[d];
        }
        at += (plane / channels * g->out_channels + plane % channels) * out;
        if (inside) put(y, type, at, get(y, type, at) + get(columns, type, i));
    }
}

void kp_conv_bias(const struct kp_conv *g, enum kp_dtype type, const void *bias, void *y,
                  cudaStream_t stream) {
    (void)stream;
    for (int64_t i = 0; i < g->batch * g->out_channels * kp_conv_out(g); i++)
        put(y, type, i, get(y, type, i) + get(bias, type, i / kp_conv_out(g) % g->out_channels));
}

void kp_conv_depthwise(const struct kp_conv *g, enum kp_dtype type, const void *x, const void *w,
                       const void *bias, void *y, cudaStream_t stream) {
    (void)g, (void)type, (void)x, (void)w, (void)bias, (void)y, (void)stream;
    fail_msg("no case is depthwise");
}

void kp_conv_unknown(const struct kp_conv *g, const double *w, double *y, cudaStream_t stream) {
    (void)g, (void)w, (void)y, (void)stream;
}

struct kp_conv_plan *kp_conv_plan(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math,
                                  size_t *workspace) {
    (void)g, (void)dtype, (void)math, (void)workspace;
    return NULL;
}
void kp_conv_plan_run(struct kp_conv_plan *p, const void *x, const void *w, void *y,
                      void *workspace, cudaStream_t stream) {
    (void)p, (void)x, (void)w, (void)y, (void)workspace, (void)stream;
}
void kp_conv_plan_destroy(struct kp_conv_plan *p) {
    (void)p;
}

uint64_t kp_noise_seed(uint64_t seed, int64_t use) {
    return seed * 31 + (uint64_t)use;
}
void kp_noise_square(const double *x, double *to, int64_t count, cudaStream_t stream) {
    (void)stream;
    for (int64_t i = 0; i < count; i++) to[i] = x[i] * x[i];
}
void kp_noise_largest(double *x, int64_t count, const struct kp_noise *noise, double *scratch,
                      cudaStream_t stream) {
    (void)x, (void)count, (void)noise, (void)scratch, (void)stream;
}
void kp_noise_product(double *y, const double *q, int64_t count, double terms,
                      const struct kp_noise *noise, cudaStream_t stream) {
    (void)terms, (void)stream;
    for (int64_t i = 0; i < count; i++) y[i] += noise_of(noise->seed) + 0 * q[i];
}
void kp_noise_products(const struct kp_noisy *draws, const double *x, int64_t apart,
                       const double *q, int64_t count, double terms, const struct kp_noise *noise,
                       cudaStream_t stream) {
    (void)terms, (void)noise, (void)stream;
    for (int d = 0; d < KP_DRAWS; d++)
        for (int64_t i = 0; i < count; i++)
            draws->y[d][i] = x[d * apart + i] + noise_of(draws->seed[d]) + 0 * q[i];
}

void kp_check_cuda(cudaError_t e, const char *call, const char *function) {
    if (e) fail_msg("%s: %s", function, call);
}
void kp_check_cublas(int status, const char *call, const char *function) {
    if (status) fail_msg("%s: %s", function, call);
}
struct cublasContext *kp_cublas(void) {
    return NULL;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream) {
    (void)h, (void)stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes) {
    (void)h;
    memset(workspace, 0xff, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode) {
    (void)h, (void)mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t h, cublasPointerMode_t mode) {
    (void)h, (void)mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
    const void *alpha, const void *a, cudaDataType at, int64_t lda, long long sa, const void *b,
    cudaDataType bt, int64_t ldb, long long sb, const void *beta, void *c, cudaDataType ct,
    int64_t ldc, long long sc, int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    enum kp_dtype t = ct == CUDA_R_64F ? KP_F64 : KP_F32;
    (void)h, (void)alpha, (void)at, (void)bt, (void)beta, (void)compute, (void)algo;
    assert_int_equal(ta, CUBLAS_OP_N);
    products++;
    for (int64_t i = 0; i < batch * m * n; i++) {
        int64_t p = i / m / n, column = i / m % n, row = i % m;
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += get(a, t, p * sa + j * lda + row) *
                   get(b, t, p * sb + (tb == CUBLAS_OP_T ? j * ldb + column : column * ldb + j));
        put(c, t, p * sc + column * ldc + row, sum);
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- cases ---- */

/* A convolution in all worlds, x of each GAP elements behind the one before. */
struct fixture {
    struct kp_task *task;
    int64_t x, y; /* elements */
    double *in[3], *want, *out;
    struct kp_array array[KP_WORLDS][KP_SLOTS];
    bool present[KP_SLOTS];
    struct kp_noise noise[KP_WORLDS];
    struct kp_call call[KP_WORLDS];
    char *scratch;
    size_t bytes;
    void *state;
};

static double *numbers(int64_t n) {
    double *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = floor(16 * uniform()) - 8; /* sums are exact */
    return x;
}

static int64_t count_of(const struct kp_task *t, int v) {
    return kp_shape_count(&t->values[v].shape);
}

/* What the definition says of every world, and its noise. */
static void define_worlds(struct fixture *f, bool same) {
    for (int w = 0; w < KP_WORLDS; w++) {
        const double *in[KP_SLOTS] = {same ? f->in[0] : f->in[0] + w * (f->x + GAP), f->in[1],
                                      f->in[2]};
        double *y = f->want + w * f->y, *out[KP_MAX_RESULTS] = {y};
        assert_null(define_op(f->task, &f->task->ops[0], in, out));
        for (int64_t i = 0; i < f->y && w; i++) y[i] += noise_of(f->noise[w].seed);
    }
}

/* same: operands have no noise, and every world reads the same x. */
static void begin(struct fixture *f, const char *tensors, const char *graph, bool same) {
    char message[1024];
    *f = (struct fixture){.task = load_graph(tensors, graph, message)};
    if (!f->task) fail_msg("%s", message);
    const struct kp_op *op = &f->task->ops[0];
    f->x = count_of(f->task, 0), f->y = count_of(f->task, op->out[0]);
    f->in[0] = numbers(KP_WORLDS * (f->x + GAP));
    for (int k = 1; k < f->task->ntensors; k++) f->in[k] = numbers(count_of(f->task, k));
    f->want = numbers(KP_WORLDS * f->y), f->out = numbers(KP_WORLDS * f->y);
    for (int w = 0; w < KP_WORLDS; w++) {
        struct kp_call *c = &f->call[w];
        f->noise[w].seed = (uint64_t)(100 + w);
        *c = (struct kp_call){.task = f->task, .op = op, .math = KP_MATH_F64, .nin = op->nin};
        c->present = f->present, c->in = f->array[w], c->nout = 1, c->noise = &f->noise[w];
        c->exact_operands = same, c->first = w == 1;
        for (int k = 0; k < f->task->ntensors; k++) {
            f->present[k] = true;
            c->in[k] = kp_array_dense(KP_F64, &f->task->values[k].shape);
            c->in[k].data = k || same ? f->in[k] : f->in[0] + w * (f->x + GAP);
        }
        c->out[0] = kp_array_dense(KP_F64, &f->task->values[op->out[0]].shape);
        c->out[0].data = f->out + w * f->y;
        c->exact[0] = f->out;
    }
    f->state = kp_impl_conv2d.prepare(&f->call[0], &f->bytes);
    f->scratch = aligned_alloc(256, kp_align(f->bytes + CANARY));
    assert_non_null(f->scratch);
    memset(f->scratch + f->bytes, 0x5a, CANARY);
    define_worlds(f, same);
}

static void end(struct fixture *f) {
    for (int i = 0; i < CANARY; i++) assert_int_equal(f->scratch[f->bytes + (size_t)i], 0x5a);
    kp_impl_conv2d.destroy(f->state);
    for (int k = 0; k < 3; k++) free(f->in[k]);
    free(f->want);
    free(f->out);
    free(f->scratch);
    task_free(f->task);
}

static void compare(const struct fixture *f, const char *what, const char *graph) {
    for (int64_t i = 0; i < KP_WORLDS * f->y; i++)
        if (f->out[i] != f->want[i])
            fail_msg("%s, %s, world %d, element %lld: got %g, expected %g", graph, what,
                     (int)(i / f->y), (long long)(i % f->y), f->out[i], f->want[i]);
    for (int64_t i = 0; i < KP_WORLDS * f->y; i++) f->out[i] = NAN;
}

/* One draw after the other, as where draws do not fit into memory. */
static void run_apart(struct fixture *f) {
    kp_impl_conv2d.run(&f->call[0], f->state, f->scratch, 0);
    for (int w = 1; w < KP_WORLDS; w++) kp_impl_conv2d.rough(&f->call[w], f->state, f->scratch, 0);
}

static const struct {
    const char *tensors, *graph;
} cases[] = {
    {"x f32 [3,4,7,6]; w f32 [5,4,3,3]; b f32 [5]",
     "t[3,5,7,6] = conv2d(x, weight=w, bias=b; padding=1)"},
    {"x f32 [3,4,7,9]; w f32 [6,2,3,2]", "t[3,6,3,5] = conv2d(x, weight=w; stride=[2,2], "
                                         "padding=[1,1], dilation=[2,1], groups=2)"},
    {"x f32 [3,4,5,6]; w f32 [6,4,1,1]; b f32 [6]", "t[3,6,5,6] = conv2d(x, weight=w, bias=b)"},
    {"x f32 [3,4,5,6]; w f32 [6,2,1,1]", "t[3,6,5,6] = conv2d(x, weight=w; groups=2)"},
    {"x f32 [3,4,5,6]; w f32 [6,4,1,1]", "t[3,6,3,3] = conv2d(x, weight=w; stride=2)"},
    {"x f32 [3,4,5,6]; w f32 [6,4,1,1]", "t[3,6,7,8] = conv2d(x, weight=w; padding=1)"},
    {"x f32 [3,4,5,6]; w f32 [4,6,3,2]; b f32 [6]",
     "t[3,6,9,10] = conv_transpose2d(x, weight=w, bias=b; stride=2, padding=1)"},
    {"x f32 [3,4,5,6]; w f32 [4,3,3,3]",
     "t[3,6,9,10] = conv_transpose2d(x, weight=w; dilation=2, groups=2)"}};

/* Every world is its own convolution, with noise of its own, whichever way it is computed. */
static void test_worlds(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int same = 0; same < 2; same++) {
            struct fixture f;
            begin(&f, cases[i].tensors, cases[i].graph, same);
            assert_true(kp_impl_conv2d.together(f.call, f.state, f.scratch, 0));
            compare(&f, "together", cases[i].graph);
            run_apart(&f);
            compare(&f, "apart", cases[i].graph);
            end(&f);
        }
}

/* Patches of all images are more than are made at a time: some begin within a world. */
static void test_chunks(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, "x f32 [4,1,64,64]; w f32 [1,1,23,23]",
          "t[4,1,64,64] = conv2d(x, weight=w; padding=11)", false);
    products = 0;
    assert_true(kp_impl_conv2d.together(f.call, f.state, f.scratch, 0));
    assert_int_equal(products, 1 + 2); /* squares; 36 images, 31 at a time */
    compare(&f, "together", "in chunks");
    end(&f);
}

/* Worlds are one product where patches of all of them fit. */
static void test_joined(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, cases[0].tensors, cases[0].graph, false);
    products = 0;
    assert_true(kp_impl_conv2d.together(f.call, f.state, f.scratch, 0));
    assert_int_equal(products, 2);
    run_apart(&f);
    assert_int_equal(products, 2 + 2 + KP_DRAWS);
    end(&f);
}

/* Worlds are not joined where each has filters of its own, operands have noise of one scale, or
 * inputs lie unevenly. */
static void test_refused(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, cases[0].tensors, cases[0].graph, false);
    for (int k = 1; k <= 2; k++) {
        f.array[5][k].data = (char *)f.in[k] + sizeof(double);
        assert_false(kp_impl_conv2d.together(f.call, f.state, f.scratch, 0));
        f.array[5][k].data = f.in[k];
    }
    f.noise[1].largest = 1;
    assert_false(kp_impl_conv2d.together(f.call, f.state, f.scratch, 0));
    f.noise[1].largest = 0;
    f.array[5][0].data = (char *)f.array[5][0].data + sizeof(double);
    assert_false(kp_impl_conv2d.together(f.call, f.state, f.scratch, 0));
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds), cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_refused)};
    kp_program("test_conv");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
