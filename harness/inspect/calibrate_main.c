/* calibrate_main.c: `calibrate TASK.json` tells what the judge makes of several arithmetics.
 * `make calibrate` runs it.
 *
 * Each is the task's most accurate baseline on operands, or with results, that keep less than its
 * type does, or a baseline as it is; of a product of f16 also one whose sums are kept in f16.  For
 * each distribution and arithmetic it prints a line
 *     TASK,TERMS,ARITHMETIC,DISTRIBUTION,RMS,ELEMENT,BIAS,OF_LIMIT
 * in spreads of the task's class, fp32 or f16; TERMS: of the first product's sums, 0 if there is
 * none.  Of a task that does not fit into memory it prints `# TASK: WHY`, and of one of bf16
 * nothing: nothing is known of these.  harness/inspect/calibration makes a table of them. */
#include "measure/accuracy.h"
#include "base/error.h"
#include "gpu/driver.h"
#include "inspect/halves.h"
#include "task/op.h"

#include <stdio.h>
#include <string.h>

enum treatment { AS_IT_IS, CUT_OPERANDS, BLOCKS, DROP, SUMS, CUT_RESULTS };
enum { BLOCK = 16 }; /* neighbours with one scale */
enum { MOST_ARITHMETICS = 11 };
/* What libraries may still allocate. */
static const size_t spare_bytes = (size_t)1 << 30;

struct arithmetic {
    const char *name;
    enum treatment treatment;
    int bits, baseline; /* SUMS: terms instead of bits */
};

static const struct arithmetic of_f32[] = {
    {"fp32", AS_IT_IS, 0, 0},
    {"tf32", AS_IT_IS, 0, 1},
    {"20 bits", CUT_OPERANDS, 20, 0},
    {"18 bits", CUT_OPERANDS, 18, 0},
    {"16 bits", CUT_OPERANDS, 16, 0}, /* three products of bf16 */
    {"15 bits", CUT_OPERANDS, 15, 0}, /* TF32 and a correction in FP8 */
    {"11 bits", CUT_OPERANDS, 11, 0}, /* TF32, or f16 */
    {"8 bits", CUT_OPERANDS, 8, 0},   /* bf16 */
    {"two halves a block", BLOCKS, 22, 0},
    {"a term dropped", DROP, 0, 0},
    {"results in f16", CUT_RESULTS, 11, 0},
};

static const struct arithmetic of_f16[] = {
    {"f16", AS_IT_IS, 0, 0},
    {"10 bits", CUT_OPERANDS, 10, 0},
    {"8 bits", CUT_OPERANDS, 8, 0}, /* bf16 */
    {"a term dropped", DROP, 0, 0},
    {"f16 sums", SUMS, 1, 0},
    {"f16 sums of 16", SUMS, 16, 0}, /* an instruction's */
    {"f16 sums of 128", SUMS, 128, 0},
    {"f16 sums of 1024", SUMS, 1024, 0},
    {"results in bf16", CUT_RESULTS, 8, 0},
};

/* Those that are tried on the tasks of a type.  The last one can always be computed. */
#define ALL(of) sizeof(of) / sizeof *(of), of
static const struct set {
    enum kp_dtype type;
    enum kp_class class;
    int n;
    const struct arithmetic *of;
} sets[] = {{KP_F32, KP_CLASS_FP32, ALL(of_f32)}, {KP_F16, KP_CLASS_HALF, ALL(of_f16)}};
#undef ALL

/* Terms of the sums of the first product. */
static double terms_of(const struct kp_task *t) {
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        if (op->def->mm_flops)
            return op->def->mm_flops(t, op) / 2 /
                   (double)kp_shape_count(&t->values[op->out[0]].shape);
    }
    return 0;
}

/* Leave the first term out of every sum of the first product.  False if its operand is no tensor:
 * a view of one, or what another op made. */
static bool drop(struct accuracy *acc) {
    const struct kp_task *t = acc->r.task;
    const struct kp_op *op = t->ops;
    while (op < t->ops + t->nops && !op->def->has_inner) op++;
    if (op == t->ops + t->nops) return false;
    bool weight = op->def->in_name[1] != NULL; /* [results, terms...], else [..., terms] */
    int i = op->in[weight].value;
    if (i < 0 || i >= t->ntensors) return false;
    const struct kp_shape *s = &t->tensors[i].shape;
    size_t size = kp_dtype_size(t->tensors[i].dtype);
    size_t terms = (size_t)(weight ? kp_shape_count(s) / s->dim[0] : s->dim[s->n - 1]);
    size_t rows = (size_t)kp_shape_count(s) / terms;
    device_check(
        cudaMemset2DAsync(span_data(&acc->r.at[i]), terms * size, 0, size, rows, acc->r.stream),
        "dropping a term");
    return true;
}

/* Compute a task that is one product of two matrices, with sums of so many terms.  False if it is
 * something else. */
static bool multiply(struct accuracy *acc, int terms, const void *const *tensors,
                     void *const *outputs) {
    const struct kp_op *op = acc->r.task->ops;
    if (acc->r.task->nops != 1 || strcmp(op->def->name, "matmul")) return false;
    const struct kp_shape *a = &acc->r.task->values[op->in[0].value].shape,
                          *b = &acc->r.task->values[op->in[1].value].shape;
    if (a->n != 2 || b->n != 2) return false;
    halves_product(tensors[op->in[0].value], tensors[op->in[1].value], outputs[0], a->dim[0],
                   b->dim[1], a->dim[1], terms, acc->r.stream);
    return true;
}

/* Make of the tensors what this arithmetic sees of them.  False if there is no such thing. */
static bool treat(struct accuracy *acc, const struct arithmetic *a) {
    const struct kp_task *t = acc->r.task;
    cudaStream_t s = acc->r.stream;
    for (int i = 0; i < t->ntensors; i++) {
        void *data = span_data(&acc->r.at[i]);
        int64_t n = kp_shape_count(&t->tensors[i].shape);
        if (a->treatment == CUT_OPERANDS) device_cut(data, t->tensors[i].dtype, n, a->bits, s);
        if (a->treatment == BLOCKS)
            device_cut_blocks(data, t->tensors[i].dtype, n, BLOCK, a->bits, s);
    }
    return a->treatment != DROP || drop(acc);
}

/* Compute the outputs of one arithmetic.  False if it is a baseline, or if there is no such thing.
 */
static bool compute(struct accuracy *acc, const struct arithmetic *a, enum kp_distribution d,
                    uint64_t seed, void *const *outputs) {
    const struct kp_task *t = acc->r.task;
    const void *tensors[KP_MAX_BUFFERS];
    void *own[KP_MAX_OUTPUTS];
    if (a->treatment == AS_IT_IS) return false;
    referee_pointers(&acc->r, 0, tensors, own);
    referee_fill(&acc->r, 0, d, seed);
    if (!treat(acc, a)) return false;
    if (a->treatment == SUMS) return multiply(acc, a->bits, tensors, outputs);
    kp_exec_run(acc->exec[0], tensors, outputs, acc->workspace, acc->r.stream);
    for (int k = 0; k < t->noutputs && a->treatment == CUT_RESULTS; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        device_cut(outputs[k], v->dtype, kp_shape_count(&v->shape), a->bits, acc->r.stream);
    }
    return true;
}

/* Print what was found of those arithmetics that were judged. */
static void print(const struct kp_task *t, const struct set *s, enum kp_distribution d,
                  const bool *judged, const struct kp_judgment *j) {
    for (int i = 0; i < s->n; i++)
        if (judged[i])
            printf("%s,%.0f,%s,%s,%.3g,%.3g,%.3g,%.3g\n", t->name, terms_of(t), s->of[i].name,
                   kp_distribution_name[d], j[i].rms, j[i].element, j[i].bias, j[i].of_limit);
}

/* Judge every arithmetic on one distribution, by the same contents and noise: 1 + `others` at a
 * time, as the oracle takes most of the time. */
static void try_all(struct accuracy *acc, const struct set *s, enum kp_distribution d, int others) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    struct sample_errors found;
    struct kp_judgment judgment[MOST_ARITHMETICS];
    bool judged[MOST_ARITHMETICS] = {false};
    uint64_t seed = random_seed(), noise = random_seed();
    referee_pointers(&acc->r, 0, tensors, outputs);
    for (int next = 0; next < s->n;) {
        int who[1 + KP_MAX_OTHERS], n = 0;
        for (; next < s->n && n <= others; next++)
            if (compute(acc, &s->of[next], d, seed, n ? acc->other[n - 1] : outputs))
                who[n++] = next;
        acc->others = n - 1; /* the last arithmetic can always be computed: n is not 0 */
        referee_fill(&acc->r, 0, d, seed);
        accuracy_sample(acc, 0, s->class, KP_SLICES, noise, &found);
        if (sample_outside(&found, d)) return;
        for (int i = 0; i < n; i++) {
            judgment[who[i]] = i ? found.other[i - 1] : found.candidate;
            judged[who[i]] = true;
        }
    }
    for (int i = 0; i < s->n; i++)
        if (s->of[i].treatment == AS_IT_IS && s->of[i].baseline < acc->nbaselines) {
            judgment[i] = found.baseline[s->of[i].baseline];
            judged[i] = true;
        }
    print(acc->r.task, s, d, judged, judgment);
}

/* Take all memory.  NULL, or why it is not enough; *others: how many arithmetics fit beside one. */
static char *take_memory(struct accuracy *acc, const struct kp_task *t, int *others) {
    size_t free_bytes, left, total, needed, more = 0;
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    bool fits = referee_open(&acc->r, t, 1, 0, 0, random_seed(), &needed);
    KP_CU(cu.cuMemGetInfo(&left, &total));
    if (!fits || !accuracy_open(acc, left / 2, &more))
        return referee_short(needed + more, free_bytes);
    accuracy_others(acc, KP_MAX_OTHERS, spare_bytes);
    *others = acc->others;
    return NULL;
}

int main(int argc, char **argv) {
    kp_program("calibrate");
    if (argc != 2) die(KP_USAGE, "usage: calibrate TASK.json");
    struct accuracy acc = {0};
    int others = 0;
    const struct kp_task *t = task_load(argv[1]);
    const struct set *s = sets, *end = sets + sizeof sets / sizeof *sets;
    while (s < end && s->type != task_float_type(t)) s++;
    if (s == end) return KP_OK;
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    char *why = take_memory(&acc, t, &others);
    if (why) {
        printf("# %s: %s\n", t->name, why);
        warn("%s %s", t->name, why);
        return KP_OK;
    }
    for (int d = 0; d < KP_DIST_INFINITE; d++)
        if (kp_distribution_applies(t, (enum kp_distribution)d))
            try_all(&acc, s, (enum kp_distribution)d, others);
    return KP_OK;
}
