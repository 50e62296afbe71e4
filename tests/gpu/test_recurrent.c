/* The oracle's recurrent networks in all worlds at once, on a GPU: the same as one after another,
 * whose noise has the same numbers.  Operands have so much of it that no other roundoff counts.
 *
 *     test_recurrent
 *
 * Prints each failure and, last, "N passed, N failed"; exits 1 on any failure. */
#include "../unit/task_text.h"
#include "cuda_base/impl.h"
#include "cuda/index.h"
#include "base/error.h"
#include "numbers.h"

enum { MOST = 32 };
static const double OPERAND = 1e-4;
static int passed, failed;

static void check(cudaError_t e, const char *what) {
    if (e) die(KP_MACHINE, "%s: %s", what, cudaGetErrorString(e));
}

/* Memory of the GPU that begins as NaN. */
static void *fresh(size_t bytes) {
    void *p;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    check(cudaMemset(p, 0xff, bytes), "cudaMemset");
    return p;
}

struct sizes {
    const char *op;
    int steps, batch, input, hidden, layers, directions;
    bool batch_first;
};

/* The task of one network. */
static struct kp_task *task_of(const struct sizes *z) {
    char tensors[2048], graph[1024], message[1024];
    bool lstm = !strcmp(z->op, "lstm");
    int n, g, rows = (lstm ? 4 : 3) * z->hidden, cells = z->layers * z->directions;
    int from = z->batch_first ? z->batch : z->steps, to = z->batch_first ? z->steps : z->batch;
    n = sprintf(tensors, "x f32 [%d,%d,%d]; h f32 [%d,%d,%d]", from, to, z->input, cells, z->batch,
                z->hidden);
    if (lstm) n += sprintf(tensors + n, "; c f32 [%d,%d,%d]", cells, z->batch, z->hidden);
    g = sprintf(graph, "t[%d,%d,%d], i[%d,%d,%d]", from, to, z->directions * z->hidden, cells,
                z->batch, z->hidden);
    if (lstm) g += sprintf(graph + g, ", j[%d,%d,%d]", cells, z->batch, z->hidden);
    g += sprintf(graph + g, " = %s(x, h%s", z->op, lstm ? ", c" : "");
    for (int k = 0; k < cells; k++) {
        int width = k < z->directions ? z->input : z->directions * z->hidden;
        n += sprintf(tensors + n, "; a%d f32 [%d,%d]; b%d f32 [%d,%d]; p%d f32 [%d]; q%d f32 [%d]",
                     k, rows, width, k, rows, z->hidden, k, rows, k, rows);
        g += sprintf(graph + g, ", a%d, b%d, p%d, q%d", k, k, k, k);
    }
    sprintf(graph + g, "; num_layers=%d, bidirectional=%s, batch_first=%s)", z->layers,
            z->directions > 1 ? "true" : "false", z->batch_first ? "true" : "false");
    struct kp_task *t = load_graph(tensors, graph, message);
    if (!t) die(KP_BUG, "%s", message);
    return t;
}

/* Operands of all worlds: even numbers, so small in weights that no roundoff grows. */
static void fill(const struct kp_task *t, double scale, struct kp_array in[]) {
    for (int k = 0; k < t->ntensors; k++) {
        in[k] = kp_array_dense(KP_F64, &t->values[k].shape);
        int64_t n = kp_array_count(&in[k]);
        double *host = malloc((size_t)n * sizeof *host);
        for (int64_t i = 0; i < n; i++) host[i] = (in[k].n == 3 ? 1 : scale) * (2 * uniform() - 1);
        in[k].data = fresh((size_t)n * sizeof *host);
        check(cudaMemcpy(in[k].data, host, (size_t)n * sizeof *host, cudaMemcpyHostToDevice),
              "cudaMemcpy");
        free(host);
    }
}

/* A result as the host has it. */
static double *fetched(const struct kp_array *a) {
    size_t bytes = (size_t)kp_array_count(a) * sizeof(double);
    double *host = malloc(bytes);
    check(cudaMemcpy(host, a->data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
}

/* A world's result at once and one by one; `exact` is that of world 0, and the unit that of how far
 * the draw strays from it. */
static void compare(const struct sizes *z, int world, int o, const struct kp_array *at_once,
                    const struct kp_array *single, const struct kp_array *exact) {
    double *a = fetched(at_once), *b = fetched(single), *e = fetched(exact), off = 0, unit = 0;
    for (int64_t i = 0; i < kp_array_count(exact); i++) {
        off += (a[i] - b[i]) * (a[i] - b[i]);
        unit += world ? (b[i] - e[i]) * (b[i] - e[i]) : e[i] * e[i];
    }
    bool good = sqrt(off) <= (world ? 0.05 : 1e-12) * sqrt(unit) && unit > 0;
    good ? passed++ : failed++;
    if (!good)
        printf("FAILED %s of %d steps, %d cells, world %d, result %d: off by %g of %g\n", z->op,
               z->steps, z->hidden, world, o, sqrt(off), sqrt(unit));
    free(a), free(b), free(e);
}

/* All worlds of one network, at once and one by one. */
static void test(const struct sizes *z) {
    struct kp_task *t = task_of(z);
    const struct kp_op *op = &t->ops[0];
    const struct kp_impl *impl = kp_impl_of(op->def->id);
    struct kp_array in[MOST] = {0};
    struct kp_call at_once[KP_WORLDS], single[KP_WORLDS];
    struct kp_noise noise[KP_WORLDS];
    bool present[MOST];
    size_t bytes;
    fill(t, 1 / sqrt(z->hidden), in);
    for (int k = 0; k < MOST; k++) present[k] = k < t->ntensors;
    for (int w = 0; w < KP_WORLDS; w++) {
        noise[w] = (struct kp_noise){OPERAND, 0, 0, kp_noise_seed(7, w)};
        single[w] = (struct kp_call){t,       op, KP_MATH_F64, t->ntensors,
                                     present, in, op->nout,    .noise = &noise[w]};
        at_once[w] = single[w];
        for (int o = 0; o < op->nout; o++) {
            struct kp_array out = kp_array_dense(KP_F64, &t->values[op->out[o]].shape);
            at_once[w].out[o] = single[w].out[o] = out;
            at_once[w].out[o].data = fresh((size_t)kp_array_count(&out) * sizeof(double));
            single[w].out[o].data = fresh((size_t)kp_array_count(&out) * sizeof(double));
        }
    }
    void *state = impl->prepare(at_once, &bytes), *scratch = fresh(bytes);
    if (!impl->together(at_once, state, scratch, NULL)) die(KP_BUG, "%s is not together", z->op);
    for (int w = 0; w < KP_WORLDS; w++)
        (w ? impl->rough : impl->run)(&single[w], state, scratch, NULL);
    check(cudaDeviceSynchronize(), z->op);
    for (int w = 0; w < KP_WORLDS; w++)
        for (int o = 0; o < op->nout; o++) {
            compare(z, w, o, &at_once[w].out[o], &single[w].out[o], &single[0].out[o]);
        }
    for (int w = 0; w < KP_WORLDS; w++)
        for (int o = 0; o < op->nout; o++) {
            check(cudaFree(at_once[w].out[o].data), "cudaFree");
            check(cudaFree(single[w].out[o].data), "cudaFree");
        }
    for (int k = 0; k < t->ntensors; k++) check(cudaFree(in[k].data), "cudaFree");
    check(cudaFree(scratch), "cudaFree");
    impl->destroy(state);
    task_free(t);
}

int main(void) {
    static const struct sizes all[] = {
        {"lstm", 1, 1, 1, 1, 1, 1, false},    /* the least */
        {"lstm", 3, 5, 40, 130, 2, 2, false}, /* more than the stages hold, parts of tiles */
        {"gru", 3, 4, 33, 96, 1, 2, true},    /* whole stages and tiles */
        {"gru", 67, 3, 5, 7, 2, 2, true},     /* x in two parts */
        {"lstm", 128, 2, 5, 8, 1, 2, false},
    };
    kp_program("test_recurrent");
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) test(&all[k]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0 || !passed;
}
