/* referee.c: see referee.h. */
#define _GNU_SOURCE
#include "measure/referee.h"
#include "base/json.h"
#include "gpu/machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t random_seed(void) {
    uint64_t x;
    if (getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x) die(KP_MACHINE, "no random numbers");
    return x;
}

/* Cells with less memory than this are measured at several placements, all allocated at once. */
static const size_t small_bytes = (size_t)64 << 20;
enum {
    SMALL_PLACEMENTS = 8, /* the interval is drawn over placements, and five would be few */
    FLUSH_L2S = 2,        /* the flush reads twice the L2's size */
    OTHER_FILES = 64      /* descriptors beside those of buffers: pipes, the driver's devices */
};

/* One seed gives the canaries' word and the addresses; the mask keeps them apart. */
static const uint64_t canary_seed = 0xca;

static size_t tensor_bytes(const struct kp_task *t, int i) {
    return (size_t)kp_shape_count(&t->tensors[i].shape) * kp_dtype_size(t->tensors[i].dtype);
}

size_t output_bytes(const struct kp_task *t, int i) {
    const struct kp_value *v = &t->values[t->outputs[i]];
    return (size_t)kp_shape_count(&v->shape) * kp_dtype_size(v->dtype);
}

size_t task_bytes(const struct kp_task *t) {
    size_t bytes = 0;
    for (int i = 0; i < t->ntensors; i++) bytes += tensor_bytes(t, i);
    for (int k = 0; k < t->noutputs; k++) bytes += output_bytes(t, k);
    return bytes;
}

static size_t buffer_bytes(const struct kp_task *t, int buffer, size_t scratch) {
    if (buffer < t->ntensors) return tensor_bytes(t, buffer);
    buffer -= t->ntensors;
    return buffer < t->noutputs ? output_bytes(t, buffer) : scratch;
}

static void *device_memory(size_t bytes) {
    void *p;
    device_check(cudaMalloc(&p, bytes), "memory for the referee");
    return p;
}

size_t referee_flush_bytes(void) {
    return FLUSH_L2S * machine_l2_bytes();
}

int referee_placements(const struct kp_task *t, size_t scratch) {
    return task_bytes(t) + scratch < small_bytes ? SMALL_PLACEMENTS : 1;
}

/* Put canaries around everything that a kernel may write. */
static void set_canaries(struct referee *r) {
    int n = r->nbuffers * r->nplacements;
    struct kp_guarded *list = calloc((size_t)n, sizeof *list);
    if (!list) die(KP_MACHINE, "out of memory");
    r->nguarded = 0;
    for (int i = 0; i < n; i++) {
        const struct kp_span *s = &r->at[i];
        if (i % r->nbuffers < r->task->ntensors || !s->bytes) continue;
        r->guarded_buffer[r->nguarded] = i;
        list[r->nguarded++] = (struct kp_guarded){(unsigned char *)(uintptr_t)s->base, s->offset,
                                                  s->offset + s->bytes, s->mapped};
    }
    device_check(cudaMemcpyAsync(r->guarded, list, (size_t)n * sizeof *list, cudaMemcpyHostToDevice,
                                 r->stream),
                 "canaries");
    device_canaries(r->guarded, r->nguarded, r->canary, r->stream);
    referee_wait(r);
    free(list);
}

char *referee_short(size_t needed, size_t free_bytes) {
    return text_format("needs at least %.1f GB of GPU memory, %.1f GB are free",
                       (double)needed * 1e-9, (double)free_bytes * 1e-9);
}

/* Let this process, and those that it starts, have so many more file descriptors. */
static void allow_descriptors(int n) {
    struct rlimit l;
    rlim_t least = (rlim_t)n + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &l)) die(KP_MACHINE, "getrlimit: %s", strerror(errno));
    if (l.rlim_cur >= least) return;
    if (l.rlim_max < least)
        die(KP_MACHINE,
            "%d buffers need %llu file descriptors, the limit is %llu: raise it (ulimit -Hn)", n,
            (unsigned long long)least, (unsigned long long)l.rlim_max);
    l.rlim_cur = least;
    if (setrlimit(RLIMIT_NOFILE, &l)) die(KP_MACHINE, "setrlimit: %s", strerror(errno));
}

bool referee_open(struct referee *r, const struct kp_task *t, int nplacements, size_t scratch,
                  size_t flush, uint64_t seed, size_t *needed) {
    memset(r, 0, sizeof *r);
    r->task = t;
    _Static_assert(KP_MAX_TENSORS + KP_MAX_OUTPUTS < KP_MAX_BUFFERS, "room for every buffer");
    r->nbuffers = t->ntensors + t->noutputs + 1;
    r->nplacements = nplacements;
    r->canary = device_poison_word(seed ^ canary_seed);
    r->flush_bytes = flush;
    int n = r->nbuffers * nplacements;
    allow_descriptors(n + 1);
    r->at = calloc((size_t)n + 1, sizeof *r->at);
    r->shared = calloc((size_t)n + 1, sizeof *r->shared);
    if (!r->at || !r->shared) die(KP_MACHINE, "out of memory");
    device_check(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "stream");
    *needed = flush + 2 * buffer_granularity();
    for (int i = 0; i < n; i++)
        *needed += buffer_bytes(t, i % r->nbuffers, scratch) + 2 * buffer_granularity();
    struct kp_region *region = &r->region[0];
    region_reserve(region, *needed, n + 1, seed);
    for (int i = 0; i <= n; i++) r->shared[i].fd = -1;
    if (!buffer_create(region, flush, true, &r->at[n], &r->shared[n])) return false;
    if (flush)
        device_check(cudaMemset(span_data(&r->at[n]), 0, flush), "memory to empty the L2 with");
    for (int i = 0; i < n; i++) {
        bool input = i % r->nbuffers < t->ntensors;
        if (!buffer_create(region, buffer_bytes(t, i % r->nbuffers, scratch), input, &r->at[i],
                           &r->shared[i]))
            return false;
    }
    r->guarded = device_memory((size_t)n * sizeof *r->guarded);
    r->changed = device_memory((size_t)n * sizeof *r->changed);
    r->guarded_buffer = calloc((size_t)n, sizeof *r->guarded_buffer);
    if (!r->guarded_buffer) die(KP_MACHINE, "out of memory");
    r->found = device_memory(KP_MAX_OUTPUTS * sizeof *r->found);
    r->counter = device_memory(sizeof *r->counter);
    r->sum = device_memory(KP_MAX_OUTPUTS * sizeof *r->sum);
    set_canaries(r);
    return true;
}

/* Give one buffer back. */
static void drop(struct referee *r, int i) {
    buffer_free(&r->at[i]);
    if (r->shared[i].fd >= 0) close(r->shared[i].fd);
    r->shared[i].fd = -1;
}

void referee_close(struct referee *r) {
    void *const memory[] = {r->guarded, r->changed, r->found, r->counter, r->sum};
    if (!r->shared) return;
    device_check(cudaDeviceSynchronize(), "closing the referee");
    for (int i = 0; i <= r->nbuffers * r->nplacements; i++) drop(r, i);
    for (int i = 0; i < 2; i++) region_free(&r->region[i]);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        device_check(cudaFree(memory[i]), "closing the referee");
    device_check(cudaStreamDestroy(r->stream), "closing the referee");
    free(r->guarded_buffer);
    free(r->shared);
    free(r->at);
    memset(r, 0, sizeof *r);
}

void referee_keep(struct referee *r, int n) {
    int last = r->nbuffers * r->nplacements; /* the clean memory follows the last buffer */
    if (n < r->nplacements) {
        for (int i = r->nbuffers * n; i < last; i++) drop(r, i);
        r->at[r->nbuffers * n] = r->at[last];
        r->shared[r->nbuffers * n] = r->shared[last];
        r->nplacements = n;
    }
    set_canaries(r);
}

bool referee_add_scratch(struct referee *r, size_t scratch, uint64_t seed) {
    size_t g = buffer_granularity();
    region_reserve(&r->region[1], (scratch + 2 * g) * (size_t)r->nplacements, r->nplacements, seed);
    for (int p = 0; p < r->nplacements; p++) {
        int i = p * r->nbuffers + r->nbuffers - 1;
        if (!buffer_create(&r->region[1], scratch, false, &r->at[i], &r->shared[i])) return false;
    }
    set_canaries(r);
    return true;
}

void referee_pointers(const struct referee *r, int placement, const void **tensors,
                      void **outputs) {
    const struct kp_span *at = r->at + (size_t)placement * r->nbuffers;
    for (int i = 0; i < r->task->ntensors; i++) tensors[i] = span_data(&at[i]);
    for (int i = 0; i < r->task->noutputs; i++) outputs[i] = span_data(&at[r->task->ntensors + i]);
}

struct runner_setup referee_setup(const struct referee *r, uint64_t seed) {
    return (struct runner_setup){
        RUNNER_MAGIC, (uint32_t)r->nplacements, (uint32_t)r->nbuffers, 0, r->flush_bytes, seed};
}

void referee_fill(struct referee *r, int placement, enum kp_distribution d, uint64_t seed) {
    const struct kp_span *at = r->at + (size_t)placement * r->nbuffers;
    for (int i = 0; i < r->task->ntensors; i++)
        device_fill(r->task, i, span_data(&at[i]), d, seed, r->stream);
}

void referee_poison(struct referee *r, int placement, uint64_t seed) {
    const struct kp_span *at = r->at + (size_t)placement * r->nbuffers;
    r->poison = device_poison_word(seed);
    for (int i = r->task->ntensors; i < r->nbuffers; i++)
        device_poison(span_data(&at[i]), at[i].bytes, r->poison, r->stream);
}

static unsigned long long count_of(struct referee *r) {
    unsigned long long n;
    device_check(cudaMemcpyAsync(&n, r->counter, sizeof n, cudaMemcpyDeviceToHost, r->stream),
                 "counting");
    referee_wait(r);
    return n;
}

static void count_reset(struct referee *r) {
    device_check(cudaMemsetAsync(r->counter, 0, sizeof *r->counter, r->stream), "counting");
}

static const char *buffer_name(const struct referee *r, int buffer) {
    const struct kp_task *t = r->task;
    if (buffer < t->ntensors) return t->tensors[buffer].name;
    if (buffer == r->nbuffers - 1) return "scratch";
    return t->noutputs == 1 ? "out" : t->values[t->outputs[buffer - t->ntensors]].name;
}

const char *referee_canaries(struct referee *r, unsigned long long *bytes) {
    unsigned long long changed[KP_MAX_BUFFERS];
    size_t size = (size_t)r->nguarded * sizeof *changed;
    device_check(cudaMemsetAsync(r->changed, 0, size, r->stream), "canaries");
    device_canaries_check(r->guarded, r->nguarded, r->canary, r->changed, r->stream);
    device_check(cudaMemcpyAsync(changed, r->changed, size, cudaMemcpyDeviceToHost, r->stream),
                 "canaries");
    referee_wait(r);
    for (int i = 0; i < r->nguarded; i++)
        if ((*bytes = changed[i])) return buffer_name(r, r->guarded_buffer[i] % r->nbuffers);
    return NULL;
}

bool referee_untouched(struct referee *r, int placement) {
    const struct kp_span *at = r->at + (size_t)placement * r->nbuffers;
    count_reset(r);
    for (int i = r->task->ntensors; i < r->nbuffers - 1; i++)
        device_poison_check(span_data(&at[i]), at[i].bytes, r->poison, r->counter, r->stream);
    return count_of(r) == 0;
}

unsigned long long referee_checksum(struct referee *r, int placement, bool inputs) {
    const struct kp_span *at = r->at + (size_t)placement * r->nbuffers;
    int first = inputs ? 0 : r->task->ntensors, last = inputs ? r->task->ntensors : r->nbuffers - 1;
    count_reset(r);
    for (int i = first; i < last; i++)
        device_checksum(span_data(&at[i]), at[i].bytes, r->counter, r->stream);
    return count_of(r);
}

struct kp_error referee_error(const struct kp_task *t, const struct kp_compare *f) {
    struct kp_error worst = {0, 0};
    for (int k = 0; k < t->noutputs; k++) {
        enum kp_dtype type = t->values[t->outputs[k]].dtype;
        double b2 = output_square(f[k].sum_b2, f[k].count, type);
        double norm = f[k].sum_d2 > 0 ? sqrt(f[k].sum_d2 / b2) : f[k].sum_d2;
        worst = error_worst(worst, (struct kp_error){norm, f[k].largest});
    }
    return worst;
}

void referee_keep_outputs(struct referee *r, void *const *from, void *const *to) {
    for (int k = 0; k < r->task->noutputs; k++)
        device_check(cudaMemcpyAsync(to[k], from[k], output_bytes(r->task, k),
                                     cudaMemcpyDeviceToDevice, r->stream),
                     "keeping an output");
}

void referee_compare(struct referee *r, void *const *y, void *const *b, const double *rms,
                     double tolerance, bool lost, struct kp_compare *found) {
    const struct kp_task *t = r->task;
    for (int k = 0; k < t->noutputs; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        const struct kp_stray_rule rule = {tolerance, lost, rms[k], r->poison};
        device_compare(y[k], b[k], v->dtype, kp_shape_count(&v->shape), &rule, &r->found[k],
                       r->stream);
    }
    device_check(cudaMemcpyAsync(found, r->found, (size_t)t->noutputs * sizeof *found,
                                 cudaMemcpyDeviceToHost, r->stream),
                 "comparing");
    referee_wait(r);
}

void referee_rms(struct referee *r, void *const *outputs, double *rms) {
    const struct kp_task *t = r->task;
    device_check(cudaMemsetAsync(r->sum, 0, KP_MAX_OUTPUTS * sizeof *r->sum, r->stream), "rms");
    for (int k = 0; k < t->noutputs; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        device_sum_squares(outputs[k], v->dtype, kp_shape_count(&v->shape), &r->sum[k], r->stream);
    }
    device_check(cudaMemcpyAsync(rms, r->sum, (size_t)t->noutputs * sizeof *rms,
                                 cudaMemcpyDeviceToHost, r->stream),
                 "rms");
    referee_wait(r);
    for (int k = 0; k < t->noutputs; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        int64_t n = kp_shape_count(&v->shape);
        rms[k] = sqrt(output_square(rms[k], (unsigned long long)n, v->dtype) / (double)n);
    }
}

void referee_wait(struct referee *r) {
    device_check(cudaStreamSynchronize(r->stream), "the referee's own work");
}
