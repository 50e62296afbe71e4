/* Ops of the oracle in all worlds at once, on a GPU: the same as one after another, whose noise has
 * the same numbers.  There is so much of it that no other roundoff counts.
 *
 *     test_together
 *
 * Prints each failure and, last, "N passed, N failed"; exits 1 on any failure. */
#include "../unit/task_text.h"
#include "cuda_base/impl.h"
#include "cuda/index.h"
#include "gpu/device.h"
#include "base/error.h"
#include "numbers.h"

enum { MOST = 32 };
static const double NOISE = 1e-4;
static int passed, failed;

/* Memory of the GPU that begins as NaN. */
static void *fresh(size_t bytes) {
    void *p;
    device_check(cudaMalloc(&p, bytes), "cudaMalloc");
    device_check(cudaMemset(p, 0xff, bytes), "cudaMemset");
    return p;
}

struct sizes {
    const char *op;
    int steps, batch, input, hidden, layers, directions;
    bool batch_first;
};

static struct kp_task *loaded(const char *tensors, const char *graph) {
    char message[1024];
    struct kp_task *t = load_graph(tensors, graph, message);
    if (!t) die(KP_BUG, "%s", message);
    return t;
}

/* The task of one network. */
static struct kp_task *network(const struct sizes *z) {
    char tensors[2048], graph[1024];
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
    return loaded(tensors, graph);
}

/* Operands of all worlds: even numbers, so small in weights that no roundoff grows. */
static void fill(const struct kp_task *t, double scale, struct kp_array in[]) {
    for (int k = 0; k < t->ntensors; k++) {
        in[k] = kp_array_dense(KP_F64, &t->values[k].shape);
        int64_t n = kp_array_count(&in[k]);
        double *host = malloc((size_t)n * sizeof *host);
        for (int64_t i = 0; i < n; i++) host[i] = (in[k].n == 3 ? 1 : scale) * (2 * uniform() - 1);
        in[k].data = fresh((size_t)n * sizeof *host);
        device_check(cudaMemcpy(in[k].data, host, (size_t)n * sizeof *host, cudaMemcpyHostToDevice),
                     "cudaMemcpy");
        free(host);
    }
}

/* A result as the host has it. */
static double *fetched(const struct kp_array *a) {
    size_t bytes = (size_t)kp_array_count(a) * sizeof(double);
    double *host = malloc(bytes);
    device_check(cudaMemcpy(host, a->data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
}

/* A world's result at once and one by one; `exact` is that of world 0, and the unit that of how far
 * the draw strays from it. */
static void compare(const struct kp_op *op, int world, int o, const struct kp_array *at_once,
                    const struct kp_array *single, const struct kp_array *exact) {
    double *a = fetched(at_once), *b = fetched(single), *e = fetched(exact), off = 0, unit = 0;
    for (int64_t i = 0; i < kp_array_count(exact); i++) {
        off += (a[i] - b[i]) * (a[i] - b[i]);
        unit += world ? (b[i] - e[i]) * (b[i] - e[i]) : e[i] * e[i];
    }
    bool good = sqrt(off) <= (world ? 0.05 : 1e-12) * sqrt(unit) && unit > 0;
    good ? passed++ : failed++;
    if (!good)
        printf("FAILED %s of %lld elements, world %d, result %d: off by %g of %g\n", op->def->name,
               (long long)kp_array_count(exact), world, o, sqrt(off), sqrt(unit));
    free(a), free(b), free(e);
}

/* All worlds of a task's op, at once and one by one.  The operands are the same in all. */
static void test(struct kp_task *t, double scale, struct kp_noise most) {
    const struct kp_op *op = &t->ops[0];
    const struct kp_impl *impl = kp_impl_of(op->def->id);
    struct kp_array in[MOST] = {0};
    struct kp_call at_once[KP_WORLDS], single[KP_WORLDS];
    struct kp_noise noise[KP_WORLDS];
    bool present[MOST];
    size_t bytes = 0;
    fill(t, scale, in);
    for (int k = 0; k < MOST; k++) present[k] = k < t->ntensors;
    for (int w = 0; w < KP_WORLDS; w++) {
        noise[w] = most;
        noise[w].seed = kp_noise_seed(7, w);
        single[w] = (struct kp_call){.task = t, .op = op, .math = KP_MATH_F64};
        single[w].nin = t->ntensors, single[w].nout = op->nout;
        single[w].present = present, single[w].in = in;
        single[w].noise = &noise[w], single[w].exact_operands = true;
        at_once[w] = single[w];
        for (int o = 0; o < op->nout; o++) {
            struct kp_array out = kp_array_dense(KP_F64, &t->values[op->out[o]].shape);
            at_once[w].out[o] = single[w].out[o] = out;
            at_once[w].out[o].data = fresh((size_t)kp_array_count(&out) * sizeof(double));
            single[w].out[o].data = fresh((size_t)kp_array_count(&out) * sizeof(double));
        }
    }
    void *state = impl->prepare ? impl->prepare(at_once, &bytes) : NULL, *scratch = fresh(bytes);
    if (!impl->together || !impl->together(at_once, state, scratch, NULL))
        die(KP_BUG, "%s is not together", op->def->name);
    for (int w = 0; w < KP_WORLDS; w++)
        (w ? impl->rough : impl->run)(&single[w], state, scratch, NULL);
    device_check(cudaDeviceSynchronize(), op->def->name);
    for (int w = 0; w < KP_WORLDS; w++)
        for (int o = 0; o < op->nout; o++)
            compare(op, w, o, &at_once[w].out[o], &single[w].out[o], &single[0].out[o]);
    for (int w = 0; w < KP_WORLDS; w++)
        for (int o = 0; o < op->nout; o++) {
            device_check(cudaFree(at_once[w].out[o].data), "cudaFree");
            device_check(cudaFree(single[w].out[o].data), "cudaFree");
        }
    for (int k = 0; k < t->ntensors; k++) device_check(cudaFree(in[k].data), "cudaFree");
    device_check(cudaFree(scratch), "cudaFree");
    if (impl->destroy) impl->destroy(state);
    task_free(t);
}

int main(void) {
    static const struct sizes networks[] = {
        {"lstm", 1, 1, 1, 1, 1, 1, false},    /* the least */
        {"lstm", 3, 5, 40, 130, 2, 2, false}, /* more than the stages hold, parts of tiles */
        {"gru", 3, 4, 33, 96, 1, 2, true},    /* whole stages and tiles */
        {"gru", 67, 3, 5, 7, 2, 2, true},     /* x in two parts */
        {"lstm", 128, 2, 5, 8, 1, 2, false},
    };
    static const char *const rows[][2] = {
        {"x f32 [3,20000]", "y[3,20000] = softmax(x; dim=1)"}, /* rows of many blocks' length */
        {"x f32 [70,5,33]", "y[70,5,33] = log_softmax(x; dim=1)"},
        {"x f32 [3,20000]", "y[3] = sum(x; dim=1)"}, /* in parts */
        {"x f32 [3,900,70]", "y[3,1,70] = mean(x; dim=1, keepdim=true)"},
        {"x f32 [40000]", "y[] = norm(x; p=2)"},
        {"x f32 [9,300]", "y[9] = norm(x; dim=1, p=1)"},
    };
    kp_program("test_together");
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++)
        test(network(&networks[k]), 1 / sqrt(networks[k].hidden),
             (struct kp_noise){.operand = NOISE});
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        test(loaded(rows[k][0], rows[k][1]), 1, (struct kp_noise){.sum = NOISE});
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0 || !passed;
}
