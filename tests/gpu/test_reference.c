/* The CUDA reference against the meaning of ops (reference/define), on a GPU.
 *
 *     test_reference [-v] [DIR] [NAME]...
 *
 * The cases of DIR/ops.json (default tests/data) run on random contents: as the float64 oracle
 * (whole, in single rows, in slices with a shorter last one) and as each baseline, captured and
 * replayed.  Cases with values, there and in DIR/hand_values.json and DIR/torch_values.json, run in
 * float64.  NAME: only cases whose names begin so.  Prints each failure and, last, "N passed, N
 * failed"; exits 1 on any failure.  Cases run in a child, so that one that dies is one failure. */
#include "cuda/exec.h"
#include "cuda/index.h"
#include "define/define.h"
#include "gpu/device.h"
#include "base/error.h"
#include "numbers.h"
#include "op_case.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test_reference_XXXXXX";
static bool verbose;

static struct shared { /* between the parent and the child that runs the cases */
    int passed, failed, at;
} * count;

/* ---- a case: a task, values for its tensors, and what should come out ---- */

enum { MOST_TENSORS = 32, MOST_VALUES = 256 };

struct fixture {
    char name[128];
    struct kp_task *task;
    double *in[MOST_TENSORS], *want[KP_MAX_OUTPUTS];
    void *tensor[MOST_TENSORS]; /* on the device */
    bool exact;
};

static int64_t value_count(const struct kp_task *t, int v) {
    return kp_shape_count(&t->values[v].shape);
}

/* Write a task file and load it.  NULL, and a failure counted, if it is wrong. */
static struct kp_task *load(const char *suite, const char *name, const char *text) {
    char path[512], message[1024];
    snprintf(path, sizeof path, "%s/%s", folder, suite);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s.json", folder, suite, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) die(KP_IO, "%s cannot be written", path);
    struct kp_task *t = task_load_error(path, message, sizeof message);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    if (t) return t;
    printf("FAILED %s: %s\n", name, message);
    count->failed++;
    return NULL;
}

/* A value for element i of tensor `t`, in its type's precision. */
static double draw(const struct fixture *f, int t, int64_t i) {
    const struct kp_tensor *x = &f->task->tensors[t];
    switch (x->fill.kind) {
    case KP_FILL_UNIFORM: return x->fill.a + (x->fill.b - x->fill.a) * uniform();
    case KP_FILL_INTEGERS: return floor(x->fill.a + (x->fill.b - x->fill.a) * uniform());
    case KP_FILL_BERNOULLI: return uniform() < x->fill.a;
    case KP_FILL_TRANSPOSED:
        return f->in[x->fill.source][i % x->shape.dim[1] * x->shape.dim[0] + i / x->shape.dim[1]];
    default: return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
    }
}

/* Bring the tensors' values to their types' precision and to the device. */
static void upload(struct fixture *f) {
    for (int t = 0; t < f->task->ntensors; t++) {
        enum kp_dtype type = f->task->tensors[t].dtype;
        int64_t n = value_count(f->task, t);
        size_t bytes = (size_t)n * kp_dtype_size(type);
        void *host = malloc(bytes);
        for (int64_t i = 0; i < n; i++) {
            put(host, type, i, f->in[t][i]);
            f->in[t][i] = get(host, type, i);
        }
        device_check(cudaMalloc(&f->tensor[t], bytes), "cudaMalloc");
        device_check(cudaMemcpy(f->tensor[t], host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
        free(host);
    }
}

/* Fill in f->want by the definition.  False, and a failure counted, if it refuses. */
static bool define(struct fixture *f) {
    for (int o = 0; o < f->task->noutputs; o++)
        f->want[o] = calloc((size_t)value_count(f->task, f->task->outputs[o]), sizeof(double));
    const char *message = define_run(f->task, (const double *const *)f->in, f->want);
    if (!message) return true;
    printf("FAILED %s: define_run: %s\n", f->name, message);
    count->failed++;
    return false;
}

static void release(struct fixture *f) {
    for (int t = 0; t < f->task->ntensors; t++) {
        free(f->in[t]);
        if (f->tensor[t]) device_check(cudaFree(f->tensor[t]), "cudaFree");
    }
    for (int o = 0; o < f->task->noutputs; o++) free(f->want[o]);
    task_free(f->task);
}

/* Compare one output with what was wanted, by the norm of the difference over the norm of the
 * output, NaN and infinities element by element.  Integers and `exact` must agree in each. */
static void judge(const struct fixture *f, const char *what, int o, const double *got,
                  double bound) {
    const struct kp_value *v = &f->task->values[f->task->outputs[o]];
    int64_t n = kp_shape_count(&v->shape), wrong = -1;
    double difference = 0, norm = 0;
    if (f->exact || v->dtype >= KP_I64) bound = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = f->want[o][i], g = got[i];
        if (isfinite(w) && isfinite(g)) {
            difference += (g - w) * (g - w);
            norm += w * w;
            if (g != w && wrong < 0) wrong = i;
        } else if (!(isnan(w) ? isnan(g) : g == w)) {
            difference = INFINITY;
            wrong = i;
            break;
        }
    }
    double error = difference == 0 ? 0 : sqrt(difference / (norm > 0 ? norm : 1));
    bool good = error <= bound;
    *(good ? &count->passed : &count->failed) += 1;
    if (!good)
        printf("FAILED %s, %s, output %d (%s): error %.3g, bound %.3g; first difference at %lld of "
               "%lld: found %.9g, expected %.9g\n",
               f->name, what, o, v->name, error, bound, (long long)wrong, (long long)n,
               got[wrong < 0 ? 0 : wrong], f->want[o][wrong < 0 ? 0 : wrong]);
    else if (verbose)
        printf("ok %s, %s, output %d: error %.3g, bound %.3g\n", f->name, what, o, error, bound);
}

/* Fails if the executor wrote beyond the workspace that it asked for. */
enum { GUARD = 4096 };
static char *new_workspace(size_t bytes) {
    char *w;
    device_check(cudaMalloc((void **)&w, bytes + GUARD), "cudaMalloc of the workspace");
    device_check(cudaMemset(w, 0xff, bytes + GUARD), "cudaMemset");
    return w;
}
static void free_workspace(const struct fixture *f, const char *what, char *w, size_t bytes) {
    unsigned char guard[GUARD];
    device_check(cudaMemcpy(guard, w + bytes, GUARD, cudaMemcpyDeviceToHost), "cudaMemcpy");
    device_check(cudaFree(w), "cudaFree");
    for (int i = 0; i < GUARD; i++) {
        if (guard[i] == 0xff) continue;
        printf("FAILED %s, %s: wrote %d bytes beyond its workspace of %zu\n", f->name, what, i,
               bytes);
        count->failed++;
        return;
    }
}

/* ---- the oracle ---- */

struct sunk { /* what the sink has been given */
    const struct fixture *f;
    int draw;                    /* which of the results is kept; 0: the exact ones */
    double *out[KP_MAX_OUTPUTS]; /* on the device */
    int64_t taken[KP_MAX_OUTPUTS];
    bool *seen[KP_MAX_OUTPUTS]; /* by element */
    bool bad;
};

static void sink(void *context, int output, int64_t offset, int64_t n,
                 const struct kp_draws *values, cudaStream_t stream) {
    struct sunk *s = context;
    int64_t total = value_count(s->f->task, s->f->task->outputs[output]);
    if (offset < 0 || n < 1 || offset + n > total) {
        s->bad = true;
        return;
    }
    for (int64_t i = offset; i < offset + n; i++) {
        s->bad |= s->seen[output][i];
        s->seen[output][i] = true;
    }
    const double *from = s->draw ? values->rough[s->draw - 1] : values->exact;
    s->taken[output] += n;
    device_check(cudaMemcpyAsync(s->out[output] + offset, from, (size_t)n * sizeof(double),
                                 cudaMemcpyDeviceToDevice, stream),
                 "cudaMemcpyAsync");
}

/* Whether an op that rounds is on the way to a value. */
static bool is_rounded(const struct kp_task *t, int value) {
    bool rounded[MOST_VALUES] = {false};
    if (t->nvalues > MOST_VALUES) die(KP_BUG, "%s: too many values", t->name);
    for (const struct kp_op *op = t->ops; op < t->ops + t->nops; op++) {
        bool here = kp_impl_of(op->def->id) && kp_impl_of(op->def->id)->rough;
        for (int k = 0; k < op->nin; k++)
            here |= !op->in[k].is_scalar && op->in[k].value >= 0 && rounded[op->in[k].value];
        for (int k = 0; k < op->nout; k++) rounded[op->out[k]] = here;
    }
    return rounded[value];
}

/* A draw must stray where something rounds and results are no numbers of fp32, as those of a draw
 * of a product are, and no further than noise of fp32 explains. */
static void judge_draw(const struct fixture *f, const char *what, int o, const double *got) {
    bool strays = false, exact = true; /* numbers of fp32, all */
    bool product = !strcmp(f->task->ops[f->task->nops - 1].def->name, "matmul");
    for (int64_t i = 0; i < value_count(f->task, f->task->outputs[o]); i++) {
        strays |= got[i] != f->want[o][i];
        exact &= f->want[o][i] == (double)(float)f->want[o][i];
        if (!product || got[i] == (double)(float)got[i]) continue;
        printf("FAILED %s, %s, output %d: %.17g is no number of fp32\n", f->name, what, o, got[i]);
        count->failed++;
        return;
    }
    judge(f, what, o, got, 1e-4);
    if (strays ? is_rounded(f->task, f->task->outputs[o]) : exact) return;
    printf("FAILED %s, %s, output %d: %s noise\n", f->name, what, o, strays ? "unexpected" : "no");
    count->failed++;
}

/* One oracle run; returns the workspace that it needed.  draw: NO_NOISE, or which of the results of
 * a run with noise is judged. */
enum { NO_NOISE = -1 };
static size_t run_oracle(const struct fixture *f, const char *what, size_t limit, int draw) {
    const double unit = KP_AMPLIFIED * KP_UNIT_FP32;
    const struct kp_noise noise = {.operand = unit, .sum = unit, .seed = 7};
    struct kp_exec *e = kp_exec_create_oracle(f->task, limit);
    size_t bytes = kp_exec_workspace(e);
    char *workspace = new_workspace(bytes);
    struct sunk s = {.f = f, .draw = draw > 0 ? draw : 0};
    for (int o = 0; o < f->task->noutputs; o++) {
        size_t n = (size_t)value_count(f->task, f->task->outputs[o]);
        device_check(cudaMalloc((void **)&s.out[o], n * sizeof(double)), "cudaMalloc");
        s.seen[o] = calloc(n, sizeof *s.seen[o]);
    }
    cudaStream_t stream;
    device_check(cudaStreamCreate(&stream), "cudaStreamCreate");
    kp_exec_oracle(e, (const void *const *)f->tensor, workspace, draw == NO_NOISE ? NULL : &noise,
                   0, sink, &s, stream);
    device_check(cudaStreamSynchronize(stream), "the oracle");
    device_check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    for (int o = 0; o < f->task->noutputs; o++) {
        int64_t n = value_count(f->task, f->task->outputs[o]);
        double *got = malloc((size_t)n * sizeof *got);
        device_check(cudaMemcpy(got, s.out[o], (size_t)n * sizeof *got, cudaMemcpyDeviceToHost),
                     "cudaMemcpy");
        if (s.bad || s.taken[o] != n) {
            printf("FAILED %s, %s, output %d: the sink was not given each of %lld elements once\n",
                   f->name, what, o, (long long)n);
            count->failed++;
        } else if (draw > 0) {
            judge_draw(f, what, o, got);
        } else {
            judge(f, what, o, got, 1e-12);
        }
        free(got);
        free(s.seen[o]);
        device_check(cudaFree(s.out[o]), "cudaFree");
    }
    free_workspace(f, what, workspace, bytes);
    kp_exec_destroy(e);
    return bytes;
}

/* ---- the baselines ---- */

/* Capture one run into a graph, replay it twice, compare. */
static void run_baseline(const struct fixture *f, enum kp_math m, double bound) {
    const char *what = kp_math_name(f->task, m);
    struct kp_exec *e = kp_exec_create(f->task, m);
    size_t bytes = kp_exec_workspace(e);
    char *workspace = new_workspace(bytes);
    void *out[KP_MAX_OUTPUTS];
    size_t size[KP_MAX_OUTPUTS];
    for (int o = 0; o < f->task->noutputs; o++) {
        int v = f->task->outputs[o];
        size[o] = (size_t)value_count(f->task, v) * kp_dtype_size(f->task->values[v].dtype);
        device_check(cudaMalloc(&out[o], size[o]), "cudaMalloc");
        device_check(cudaMemset(out[o], 0xff, size[o]), "cudaMemset");
    }
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    device_check(cudaStreamCreate(&stream), "cudaStreamCreate");
    device_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    device_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
                 "cudaStreamBeginCapture");
    kp_exec_run(e, (const void *const *)f->tensor, out, workspace, stream);
    device_check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    device_check(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
    for (int i = 0; i < 2; i++) device_check(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
    device_check(cudaStreamSynchronize(stream), what);
    for (int o = 0; o < f->task->noutputs; o++) {
        int v = f->task->outputs[o];
        int64_t n = value_count(f->task, v);
        void *host = malloc(size[o]);
        double *got = malloc((size_t)n * sizeof *got);
        device_check(cudaMemcpy(host, out[o], size[o], cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (int64_t i = 0; i < n; i++) got[i] = get(host, f->task->values[v].dtype, i);
        judge(f, what, o, got, bound);
        free(host);
        free(got);
        device_check(cudaFree(out[o]), "cudaFree");
    }
    device_check(cudaGraphExecDestroy(replay), "cudaGraphExecDestroy");
    device_check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    device_check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    free_workspace(f, what, workspace, bytes);
    kp_exec_destroy(e);
}

/* ---- cases ---- */

/* Whether an op's draws share work: it computes all at once, or is made of products. */
static bool share(const struct kp_task *t) {
    for (int i = 0; i < t->nops; i++) {
        const struct kp_impl *impl = kp_impl_of(t->ops[i].def->id); /* a view has none */
        if (impl && (impl->together || t->ops[i].def->tensor_cores)) return true;
    }
    return false;
}

/* A case of ops.json in one of the task types, on random contents; in f32 the oracle, too. */
static void run_test(const cJSON *c, const char *dtype) {
    char text[4096];
    struct fixture f = {0};
    op_case_task(c, dtype, text, sizeof text);
    snprintf(f.name, sizeof f.name, "%s", op_case_text(c, "name"));
    if (!(f.task = load("ops", f.name, text))) return;
    for (int t = 0; t < f.task->ntensors; t++) {
        int64_t n = value_count(f.task, t);
        f.in[t] = malloc((size_t)n * sizeof(double));
        for (int64_t i = 0; i < n; i++) f.in[t][i] = draw(&f, t, i);
    }
    upload(&f);
    if (define(&f)) {
        size_t bytes = run_oracle(&f, "float64", SIZE_MAX, NO_NOISE);
        if (!strcmp(dtype, "f32")) {
            size_t least = run_oracle(&f, "float64 in single rows", 0, NO_NOISE);
            if (bytes) run_oracle(&f, "float64 in slices", bytes - 1, NO_NOISE);
            if (share(f.task)) {
                run_oracle(&f, "a draw of a group", least + least / 2, KP_DRAWS);
                run_oracle(&f, "float64 beside draws", SIZE_MAX, 0);
                run_oracle(&f, "the first draw", SIZE_MAX, 1);
                run_oracle(&f, "the last draw", SIZE_MAX, KP_DRAWS);
            }
            run_baseline(&f, KP_MATH_FP32, 1e-5);
            run_baseline(&f, KP_MATH_TF32, 5e-3);
        } else {
            run_baseline(&f, KP_MATH_HALF, !strcmp(dtype, "bf16") ? 5e-2 : 1e-2);
        }
    }
    release(&f);
}

/* A file's text, or NULL. */
static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = calloc((size_t)size + 1, 1);
    if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
        die(KP_IO, "%s cannot be read", path);
    fclose(f);
    return text;
}

/* The numbers of a JSON list; NaN and infinities stand as strings. */
static double *numbers(const cJSON *list, int64_t n) {
    double *x = calloc((size_t)n, sizeof *x);
    int64_t i = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, list) {
        if (i < n) x[i++] = cJSON_IsString(v) ? strtod(v->valuestring, NULL) : v->valuedouble;
    }
    return x;
}

/* A case with given contents, in float64 alone.  The contents are rounded to f32, so what is
 * compared with is the definition of the rounded numbers. */
static void run_values(const char *suite, const char *name, const char *text, const cJSON *in) {
    struct fixture f = {0};
    snprintf(f.name, sizeof f.name, "%s", name);
    if (!(f.task = load(suite, name, text))) return;
    for (int t = 0; t < f.task->ntensors; t++)
        f.in[t] = numbers(cJSON_GetArrayItem(in, t), value_count(f.task, t));
    upload(&f);
    if (define(&f)) {
        run_oracle(&f, "float64", SIZE_MAX, NO_NOISE);
        run_oracle(&f, "float64 in single rows", 0, NO_NOISE);
    }
    release(&f);
}

/* A case of ops.json, in all task types, and with its own contents if it has some. */
static void run_op_case(const cJSON *c) {
    static const char *const types[] = {"f32", "f16", "bf16"};
    const cJSON *in = cJSON_GetObjectItem(c, "in");
    char text[4096];
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) run_test(c, types[k]);
    op_case_task(c, "f32", text, sizeof text);
    if (in) run_values("ops", op_case_text(c, "name"), text, in);
}

/* A case of the other files: a whole task.  One with a message has no outputs to compare. */
static void run_task_case(const cJSON *c) {
    const cJSON *task = cJSON_GetObjectItem(c, "task");
    if (cJSON_GetObjectItem(c, "message")) return;
    char *text = cJSON_PrintUnformatted(task);
    run_values(op_case_text(task, "suite"), op_case_text(task, "task"), text,
               cJSON_GetObjectItem(c, "tensors"));
    free(text);
}

/* Does `name` begin with one of the names asked for, if any was? */
static bool chosen(const char *name, char **names, int n) {
    for (int i = 0; i < n; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return n == 0;
}

/* Run all cases from number `from` on; count->at is the number of the one that runs. */
static void run_cases(int from, const char *data, char **names, int n) {
    static const char *const files[] = {"ops.json", "hand_values.json", "torch_values.json"};
    int at = 0;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", data, files[k]);
        char *text = read_file(path);
        if (!text) {
            printf("%s is missing: its cases are left out\n", path);
            continue;
        }
        cJSON *root = cJSON_Parse(text);
        if (!root) die(KP_INPUT, "%s is not valid JSON", path);
        const cJSON *c;
        cJSON_ArrayForEach(c, cJSON_GetObjectItem(root, "cases")) {
            const cJSON *task = cJSON_GetObjectItem(c, "task");
            const char *name = task ? op_case_text(task, "task") : op_case_text(c, "name");
            if (at++ < from || !chosen(name, names, n)) continue;
            count->at = at - 1;
            if (task)
                run_task_case(c);
            else
                run_op_case(c);
        }
        cJSON_Delete(root);
        free(text);
    }
}

int main(int argc, char **argv) {
    kp_program("test_reference");
    int i = 1;
    if (i < argc && !strcmp(argv[i], "-v")) verbose = true, i++;
    const char *data = "tests/data";
    struct stat s;
    if (i < argc && !stat(argv[i], &s) && S_ISDIR(s.st_mode)) data = argv[i++];
    if (!mkdtemp(folder)) die(KP_IO, "no folder can be made under /tmp");
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED) die(KP_MACHINE, "no shared memory; free some and try again");
    int deaths = 0;
    for (int from = 0, status = 1; status && deaths < 20; from = count->at + 1) {
        fflush(stdout);
        count->at = from;
        pid_t child = fork();
        if (child < 0) die(KP_MACHINE, "no child process could be started");
        if (!child) {
            setvbuf(stdout, NULL, _IOLBF, 0);
            run_cases(from, data, argv + i, argc - i);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (!status) break;
        printf("FAILED case number %d: its process died (%s %d)\n", count->at,
               WIFSIGNALED(status) ? "signal" : "exit",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        count->failed++, deaths++;
    }
    if (deaths == 20) printf("too many deaths: the rest is left out\n");
    rmdir(folder);
    printf("%d passed, %d failed\n", count->passed, count->failed);
    return count->failed || !count->passed;
}
