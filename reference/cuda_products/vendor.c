/* vendor.c: see vendor.h. */
#include "cuda_products/vendor.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda_base/check.h"
#include "cuda_base/copy.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const kp_vendor_name[KP_VENDOR_CALLS] = {"cublas_nn", "cublas_tn",   "lt_nn",
                                                     "lt_tn",     "lt_tuned_nn", "lt_tuned_tn"};

/* Of the search.  Each call is tried once; the fastest, and those that have a name, compete. */
enum {
    OFFERS = 100,    /* of cuBLASLt for a layout, at most */
    LEAST_OFFERS = 8 /* that are tried however long they take */
};
enum { FINALISTS = 6, ROUNDS = 3, FINAL_ROUNDS = 15 };
static const double SECONDS = 0.15; /* for the offers of a layout */
static const double LONG_US = 500;  /* a longer call needs a third of these rounds */

/* ---- What was chosen ------------------------------------------------------------------------- */

static char chosen[KP_CHOICES];
static struct kp_vendor found;

void kp_vendor_choose(const char *choices) {
    if (choices && strlen(choices) >= sizeof chosen)
        die(KP_BUG, "too many choices of library calls");
    snprintf(chosen, sizeof chosen, "%s", choices ? choices : "");
    memset(&found, 0, sizeof found);
}

const struct kp_vendor *kp_vendor_found(void) {
    return &found;
}

/* What a product's line begins with: its type, its shape, and how its operands lie. */
static void name_of(const struct kp_product *p, bool bias, char name[KP_CHOICE]) {
    const struct kp_gemm *g = &p->gemm;
    snprintf(name, KP_CHOICE, "%s%s:%lldx%lldx%lld%c%c%s ", kp_dtype_name(g->dtype),
             g->math == KP_MATH_TF32 ? "-tf32" : "", (long long)g->m, (long long)g->n,
             (long long)g->k, g->ta ? 't' : 'n', g->tb ? 't' : 'n', bias ? "+bias" : "");
}

/* What follows a name that begins a line of a text; NULL if none does. */
static const char *line_of(const char *text, const char *name) {
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (!strncmp(text, name, strlen(name))) return text + strlen(name);
    return NULL;
}

/* Note a choice, once; where there is no room for another, later ones are searched for again. */
static void note(const char *name, enum kp_vendor_call call, const char *text) {
    size_t used = strlen(found.choices), room = sizeof found.choices - used;
    if (line_of(found.choices, name)) return;
    int n = snprintf(found.choices + used, room, "%s%s %s\n", name, kp_vendor_name[call], text);
    if (n < 0 || (size_t)n >= room) found.choices[used] = 0;
}

/* ---- The search ---- */

struct contender {
    enum kp_vendor_call call;
    struct kp_product product;
    size_t workspace; /* in which cuBLASLt offered it first */
    double us;
};

struct search {
    struct contender all[2 * (OFFERS + 1)];
    int n; /* contenders */
    char *in[2], *second, *scratch;
    struct kp_array bias, out; /* bias.data is NULL if there is none */
    float *flush;              /* clean memory */
    size_t flush_bytes;
    cudaEvent_t start, stop;
    cudaStream_t stream;
};

/* Bytes that an array spans. */
static size_t span_of(const struct kp_array *x) {
    int64_t span = 1;
    for (int i = 0; i < x->n; i++) span += (x->dim[i] - 1) * x->stride[i];
    return (size_t)span * kp_dtype_size(x->dtype);
}

/* Device memory with an array of floats of either sign between 0.5 and 1: constants would switch
 * fewer transistors, and clock higher. */
static char *filled(const struct kp_array *x) {
    enum { CHUNK = 1 << 15 };
    static uint32_t noise[CHUNK];
    uint32_t keep = x->dtype == KP_F32 ? 0x807fffff : x->dtype == KP_BF16 ? 0x807f807f : 0x83ff83ff;
    uint32_t half = x->dtype == KP_F32 ? 0x3f000000 : x->dtype == KP_BF16 ? 0x3f003f00 : 0x38003800;
    uint64_t seed = 1;
    for (int i = 0; i < CHUNK; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        noise[i] = ((uint32_t)(seed >> 32) & keep) | half;
    }
    size_t bytes = kp_align(span_of(x));
    char *data;
    KP_CUDA(cudaMalloc((void **)&data, bytes));
    for (size_t at = 0; at < bytes; at += sizeof noise) {
        size_t n = bytes - at < sizeof noise ? bytes - at : sizeof noise;
        KP_CUDA(cudaMemcpy(data + at, noise, n, cudaMemcpyHostToDevice));
    }
    return data;
}

/* A graph of a launch of a contender between two events, as a sample is timed. */
static cudaGraphExec_t recorded(const struct search *s, const struct contender *c) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct kp_array a = c->product.a, b = c->product.b;
    a.data = s->in[0], b.data = c->product.second ? s->second : s->in[1];
    KP_CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
    KP_CUDA(cudaEventRecordWithFlags(s->start, s->stream, cudaEventRecordExternal));
    bool spread = s->bias.data && !c->product.lt;
    if (spread) kp_copy(&s->bias, &s->out, s->stream);
    kp_product_run(&c->product, 1, spread, a, b, s->bias.data, s->out.data, s->scratch, s->stream);
    KP_CUDA(cudaEventRecordWithFlags(s->stop, s->stream, cudaEventRecordExternal));
    KP_CUDA(cudaStreamEndCapture(s->stream, &graph));
    KP_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    KP_CUDA(cudaGraphDestroy(graph));
    return exec;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Empty the L2 as time does, by reading: lines that were written would have to leave it while a
 * call is measured, and calls that read much would look slow. */
static void flush(const struct search *s) {
    float sum;
    KP_CUBLAS(cublasSetStream(kp_cublas(), s->stream));
    KP_CUBLAS(cublasSasum(kp_cublas(), (int)(s->flush_bytes / sizeof sum), s->flush, 1, &sum));
}

/* Microseconds of a launch of a contender: the median of so many rounds, after one that warms up.
 * Before each the L2 is emptied; launches one behind the other would rank short calls otherwise. */
static double measured(const struct search *s, const struct contender *c, int rounds) {
    float ms[1 + FINAL_ROUNDS];
    cudaGraphExec_t exec = recorded(s, c);
    for (int r = 0; r <= rounds; r++) {
        flush(s);
        KP_CUDA(cudaGraphLaunch(exec, s->stream));
        KP_CUDA(cudaStreamSynchronize(s->stream));
        KP_CUDA(cudaEventElapsedTime(&ms[r], s->start, s->stop));
        if (r == 1 && ms[r] * 1e3 > LONG_US) rounds = rounds / 3;
    }
    KP_CUDA(cudaGraphExecDestroy(exec));
    qsort(ms + 1, (size_t)rounds, sizeof *ms, by_size);
    return ms[1 + rounds / 2] * 1e3;
}

/* Let a call take part: by cuBLASLt, or by cuBLAS if lt is NULL. */
static void enter(struct search *s, const struct kp_product *layout, enum kp_vendor_call call,
                  struct kp_lt *lt, size_t workspace) {
    struct contender *c = &s->all[s->n++];
    *c = (struct contender){.call = call, .product = *layout, .workspace = workspace};
    c->product.lt = lt;
    c->us = measured(s, c, ROUNDS);
}

/* Try all calls for one layout of the second operand. */
static void try_layout(struct search *s, const struct kp_product *layout) {
    struct kp_lt *offer[OFFERS];
    int tn = layout->second;
    int n = kp_lt_find(&layout->gemm, false, KP_GEMM_WORKSPACE, offer, OFFERS);
    double start = seconds_now();
    for (int i = -1; i < n; i++) {
        if (i >= LEAST_OFFERS && seconds_now() - start > SECONDS) {
            kp_lt_free(offer[i]);
            continue;
        }
        int call = i < 0 ? KP_CUBLAS_NN : i ? KP_LT_TUNED_NN : KP_LT_NN;
        enter(s, layout, (enum kp_vendor_call)(call + tn), i < 0 ? NULL : offer[i],
              KP_GEMM_WORKSPACE);
    }
}

/* Try cuBLAS, and what cuBLASLt offers first in each of these bytes of workspace. */
static void try_linear(struct search *s, const struct kp_product *p) {
    static const size_t workspace[] = {KP_GEMM_WORKSPACE, 4 << 20, 0};
    enter(s, p, KP_CUBLAS_NN, NULL, 0);
    for (size_t i = 0; i < sizeof workspace / sizeof *workspace; i++) {
        struct kp_lt *lt;
        if (kp_lt_find(&p->gemm, true, workspace[i], &lt, 1))
            enter(s, p, KP_LT_NN, lt, workspace[i]);
    }
}

static int by_time(const void *a, const void *b) {
    const struct contender *x = a, *y = b;
    return (x->us > y->us) - (x->us < y->us);
}

/* Let the fastest, and those with a name, compete.  The first is then the best. */
static void finals(struct search *s) {
    qsort(s->all, (size_t)s->n, sizeof *s->all, by_time);
    int kept = 0;
    for (int i = 0; i < s->n; i++) {
        struct contender *c = &s->all[i];
        if (i >= FINALISTS && c->call >= KP_LT_TUNED_NN) {
            kp_lt_free(c->product.lt);
            continue;
        }
        c->us = measured(s, c, FINAL_ROUNDS);
        s->all[kept++] = *c;
    }
    s->n = kept;
    qsort(s->all, (size_t)s->n, sizeof *s->all, by_time);
}

/* Keep the times of the first product's calls. */
static void keep_times(const struct search *s) {
    for (int i = s->n - 1; i >= 0 && !*found.choices; i--) {
        enum kp_vendor_call c = s->all[i].call;
        found.us[c] = s->all[i].us; /* the first offer may be the fastest, too */
        if (c == KP_LT_NN || c == KP_LT_TN) {
            double *tuned = &found.us[c + KP_LT_TUNED_NN - KP_LT_NN];
            if (!(*tuned > 0) || s->all[i].us < *tuned) *tuned = s->all[i].us;
        }
    }
}

/* A search, with its memory, events and stream. */
static struct search *open_search(const struct kp_product *p, const struct kp_array in[2],
                                  const struct kp_array *second, const struct kp_array *bias,
                                  const struct kp_array *out) {
    struct search *s = calloc(1, sizeof *s);
    if (!s) die(KP_MACHINE, "out of memory; free some and try again");
    int device, l2;
    kp_cublas(); /* made here if it is not yet: nothing can be while a call is recorded */
    KP_CUDA(cudaGetDevice(&device));
    KP_CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
    s->flush_bytes = 2 * (size_t)l2;
    KP_CUDA(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    KP_CUDA(cudaEventCreate(&s->start));
    KP_CUDA(cudaEventCreate(&s->stop));
    for (int i = 0; i < 2; i++) s->in[i] = filled(&in[i]);
    s->second = second ? filled(second) : NULL;
    s->out = *out;
    s->out.data = filled(out);
    if (bias) s->bias = *bias, s->bias.data = filled(bias);
    KP_CUDA(cudaMalloc((void **)&s->scratch, p->bytes));
    KP_CUDA(cudaMalloc((void **)&s->flush, s->flush_bytes));
    KP_CUDA(cudaMemset(s->flush, 0, s->flush_bytes));
    KP_CUDA(cudaDeviceSynchronize());
    return s;
}

/* End a search: the first contender becomes p, and is noted. */
static void close_search(struct search *s, const char *name, struct kp_product *p) {
    const struct contender *best = &s->all[0];
    char text[KP_LT_TEXT] = "";
    *p = best->product;
    if (p->lt && s->bias.data)
        snprintf(text, sizeof text, "%zu", best->workspace);
    else if (p->lt)
        kp_lt_text(p->lt, text);
    note(name, best->call, text);
    void *const memory[] = {s->in[0],     s->in[1],   s->second, s->out.data,
                            s->bias.data, s->scratch, s->flush};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) KP_CUDA(cudaFree(memory[i]));
    KP_CUDA(cudaEventDestroy(s->start));
    KP_CUDA(cudaEventDestroy(s->stop));
    KP_CUDA(cudaStreamDestroy(s->stream));
    for (int i = 1; i < s->n; i++) kp_lt_free(s->all[i].product.lt);
    free(s);
}

/* Plan for the given transpose of the second operand. */
static struct kp_product transposed(const struct kp_product *p, const struct kp_array in[2],
                                    const struct kp_array *second, const struct kp_array *out) {
    struct kp_product q;
    struct kp_array b = kp_array_swap(*second, 0, 1);
    kp_product_plan(&q, p->gemm.math, &in[0], &b, out);
    q.second = true;
    return q;
}

/* Take what was chosen for a product of this name; false if nothing was.  A way of cuBLASLt is a
 * text, or with a bias the workspace in which it is offered first. */
static bool take(struct kp_product *p, const char *name, const struct kp_array in[2],
                 const struct kp_array *second, bool bias, const struct kp_array *out) {
    const char *line = line_of(chosen, name);
    char word[KP_CHOICE], text[KP_CHOICE] = "";
    int call = 0;
    if (!line) line = line_of(found.choices, name);
    if (!line) line = line_of(chosen, "any ");
    if (!line || sscanf(line, "%159s%*1[ ]%159[^\n]", word, text) < 1) return false;
    while (call < KP_VENDOR_CALLS && strcmp(word, kp_vendor_name[call])) call++;
    bool tn = call == KP_CUBLAS_TN || call == KP_LT_TN || call == KP_LT_TUNED_TN,
         ok = !tn || second;
    if (call == KP_VENDOR_CALLS) ok = false;
    if (ok && tn) *p = transposed(p, in, second, out);
    if (ok && call >= KP_LT_NN) {
        if (bias)
            kp_lt_find(&p->gemm, true, strtoul(text, NULL, 10), &p->lt, 1);
        else
            p->lt = kp_lt_of(&p->gemm, text);
        ok = p->lt;
    }
    if (!ok)
        die(KP_MACHINE, "the library has no call '%s': another version chose it; verify again",
            word);
    note(name, (enum kp_vendor_call)call, text);
    return true;
}

void kp_vendor_plan(struct kp_product *p, const struct kp_array in[2],
                    const struct kp_array *second, const struct kp_array *out) {
    char name[KP_CHOICE];
    name_of(p, false, name);
    if (take(p, name, in, second, false, out)) return;
    struct search *s = open_search(p, in, second, NULL, out);
    try_layout(s, p);
    if (second) {
        struct kp_product q = transposed(p, in, second, out);
        try_layout(s, &q);
    }
    finals(s);
    keep_times(s);
    close_search(s, name, p);
}

void kp_vendor_plan_linear(struct kp_product *p, const struct kp_array in[2],
                           const struct kp_array *bias, const struct kp_array *out) {
    static const size_t most = 256 << 20;
    char name[KP_CHOICE];
    name_of(p, true, name);
    if (span_of(&in[0]) + span_of(&in[1]) + span_of(out) >= most) {
        kp_lt_find(&p->gemm, true, KP_GEMM_WORKSPACE, &p->lt, 1);
        return;
    }
    if (take(p, name, in, NULL, true, out)) return;
    struct search *s = open_search(p, in, NULL, bias, out);
    try_linear(s, p);
    finals(s);
    close_search(s, name, p);
}
