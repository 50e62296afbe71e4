/* vendor.c: see vendor.h. */
#include "cuda_products/vendor.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda_base/check.h"

#include <math.h>
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
static const char *next = chosen;
static struct kp_vendor found;

void kp_vendor_choose(const char *choices) {
    if (choices && strlen(choices) >= sizeof chosen)
        die(KP_BUG, "too many choices of library calls");
    snprintf(chosen, sizeof chosen, "%s", choices ? choices : "");
    next = chosen;
    memset(&found, 0, sizeof found);
}

const struct kp_vendor *kp_vendor_found(void) {
    return &found;
}

/* Note a choice; where there is no room for another, later ones are searched for again. */
static void note(enum kp_vendor_call call, const struct kp_lt *lt) {
    size_t used = strlen(found.choices);
    char text[KP_LT_TEXT] = "";
    if (sizeof found.choices - used < KP_CHOICE) return;
    if (lt) kp_lt_text(lt, text);
    snprintf(found.choices + used, sizeof found.choices - used, "%s %s\n", kp_vendor_name[call],
             text);
}

/* ---- The search --------------------------------------------------------------------------------
 */

struct contender {
    enum kp_vendor_call call;
    struct kp_product product;
    double us;
};

struct search {
    struct contender all[2 * (OFFERS + 1)];
    int n; /* contenders */
    char *in[2], *second, *out, *scratch;
    void *flush;
    size_t flush_bytes;
    cudaEvent_t start, stop;
    cudaStream_t stream;
};

/* Device memory with an array of 16-bit floats of either sign between 0.5 and 1: constants would
 * switch fewer transistors, and clock higher. */
static char *filled(const struct kp_array *x) {
    enum { CHUNK = 1 << 16 };
    static uint16_t noise[CHUNK];
    uint16_t keep = x->dtype == KP_BF16 ? 0x807f : 0x83ff;
    uint16_t half = x->dtype == KP_BF16 ? 0x3f00 : 0x3800;
    uint32_t seed = 1;
    for (int i = 0; i < CHUNK; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (uint16_t)((seed >> 16 & keep) | half);
    }
    int64_t span = 1;
    for (int i = 0; i < x->n; i++) span += (x->dim[i] - 1) * x->stride[i];
    size_t bytes = kp_align((size_t)span * sizeof *noise);
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
    kp_product_run(&c->product, 1, 0, a, b, NULL, s->out, s->scratch, s->stream);
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

/* Microseconds of a launch of a contender: the median of so many rounds, after one that warms up.
 * Before each the L2 is emptied; launches one behind the other would rank short calls otherwise. */
static double measured(const struct search *s, const struct contender *c, int rounds) {
    float ms[1 + FINAL_ROUNDS];
    cudaGraphExec_t exec = recorded(s, c);
    for (int r = 0; r <= rounds; r++) {
        KP_CUDA(cudaMemsetAsync(s->flush, r, s->flush_bytes, s->stream));
        KP_CUDA(cudaGraphLaunch(exec, s->stream));
        KP_CUDA(cudaStreamSynchronize(s->stream));
        KP_CUDA(cudaEventElapsedTime(&ms[r], s->start, s->stop));
        if (r == 1 && ms[r] * 1e3 > LONG_US) rounds = rounds / 3;
    }
    KP_CUDA(cudaGraphExecDestroy(exec));
    qsort(ms + 1, (size_t)rounds, sizeof *ms, by_size);
    return ms[1 + rounds / 2] * 1e3;
}

/* Try all calls for one layout of the second operand. */
static void try_layout(struct search *s, const struct kp_product *layout) {
    struct kp_lt *offer[OFFERS];
    int n = kp_lt_find(&layout->gemm, false, offer, OFFERS), tn = layout->second;
    double start = seconds_now();
    for (int i = -1; i < n; i++) {
        if (i >= LEAST_OFFERS && seconds_now() - start > SECONDS) {
            kp_lt_free(offer[i]);
            continue;
        }
        struct contender *c = &s->all[s->n++];
        *c = (struct contender){.product = *layout};
        c->call = (enum kp_vendor_call)((i < 0 ? KP_CUBLAS_NN
                                         : i   ? KP_LT_TUNED_NN
                                               : KP_LT_NN) +
                                        tn);
        c->product.lt = i < 0 ? NULL : offer[i];
        c->us = measured(s, c, ROUNDS);
    }
}

static int by_time(const void *a, const void *b) {
    const struct contender *x = a, *y = b;
    return (x->us > y->us) - (x->us < y->us);
}

/* Let the fastest, and those with a name, compete; keep the times.  The first is then the best. */
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
    for (int i = s->n - 1; i >= 0 && !*found.choices; i--) {
        enum kp_vendor_call c = s->all[i].call;
        found.us[c] = s->all[i].us; /* the first offer may be the fastest, too */
        if (c == KP_LT_NN || c == KP_LT_TN) {
            double *tuned = &found.us[c + KP_LT_TUNED_NN - KP_LT_NN];
            if (!(*tuned > 0) || s->all[i].us < *tuned) *tuned = s->all[i].us;
        }
    }
}

/* Memory, events and the stream of a search. */
static void open_search(struct search *s, const struct kp_product *p, const struct kp_array in[2],
                        const struct kp_array *second, const struct kp_array *out) {
    int device, l2;
    KP_CUDA(cudaGetDevice(&device));
    KP_CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
    s->flush_bytes = 2 * (size_t)l2;
    KP_CUDA(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    KP_CUDA(cudaEventCreate(&s->start));
    KP_CUDA(cudaEventCreate(&s->stop));
    for (int i = 0; i < 2; i++) s->in[i] = filled(&in[i]);
    s->second = second ? filled(second) : NULL;
    s->out = filled(out);
    KP_CUDA(cudaMalloc((void **)&s->scratch, p->bytes));
    KP_CUDA(cudaMalloc(&s->flush, s->flush_bytes));
    KP_CUDA(cudaDeviceSynchronize());
}

static void close_search(struct search *s) {
    void *const memory[] = {s->in[0], s->in[1], s->second, s->out, s->scratch, s->flush};
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

/* Take the choice that is next in line; false if there is none. */
static bool take(struct kp_product *p, const struct kp_array in[2], const struct kp_array *second,
                 const struct kp_array *out) {
    char name[KP_CHOICE], text[KP_CHOICE] = "";
    int length = 0, call = 0;
    if (sscanf(next, "%159s%n", name, &length) < 1) return false;
    next += length;
    while (call < KP_VENDOR_CALLS && strcmp(name, kp_vendor_name[call])) call++;
    if (call >= KP_LT_NN && sscanf(next, "%159s%n", text, &length) == 1) next += length;
    bool tn = call == KP_CUBLAS_TN || call == KP_LT_TN || call == KP_LT_TUNED_TN;
    if (call < KP_VENDOR_CALLS && !(tn && !second)) {
        if (tn) *p = transposed(p, in, second, out);
        if (call >= KP_LT_NN) p->lt = kp_lt_of(&p->gemm, text);
        if (call < KP_LT_NN || p->lt) return note((enum kp_vendor_call)call, p->lt), true;
    }
    die(KP_MACHINE, "the library has no call '%s': another version chose it; verify again", name);
}

void kp_vendor_plan(struct kp_product *p, const struct kp_array in[2],
                    const struct kp_array *second, const struct kp_array *out) {
    if (take(p, in, second, out)) return;
    struct search *s = calloc(1, sizeof *s);
    if (!s) die(KP_MACHINE, "out of memory; free some and try again");
    open_search(s, p, in, second, out);
    try_layout(s, p);
    if (second) {
        struct kp_product q = transposed(p, in, second, out);
        try_layout(s, &q);
    }
    finals(s);
    *p = s->all[0].product;
    note(s->all[0].call, p->lt);
    close_search(s);
}
