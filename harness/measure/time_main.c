/* time_main.c: `time TASK.json PREFIX`: measure one verified kernel against its baselines.
 *
 * Reads PREFIX.build.json, .verify.json, .tape, .cubin and the folder's peaks.json;
 * writes PREFIX.time.json, the complete result of the cell (results/SCHEMA.md).  A
 * kernel that did not verify gets its row without a time.
 *
 * `time --aa TASK.json PREFIX` measures the candidate against itself and writes
 * PREFIX.aa.json: what the harness's own noise and bias are. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "gpu/machine.h"
#include "measure/rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cell {
    struct timing t;
    cJSON *build, *verify, *peaks, *json, *flags;
    const char *file; /* suffix of what is written */
    double floor_bytes_us, floor_flops_us, hard_us, started;
    struct kp_cost cost;
};

static void flag(struct cell *c, const char *text) {
    cJSON_AddItemToArray(c->flags, cJSON_CreateString(text));
}

/* What the audit found and the task's own flags do not say already. */
static void flag_audit(struct cell *c) {
    const cJSON *x;
    cJSON_ArrayForEach(x, cJSON_GetObjectItemCaseSensitive(c->verify, "audit")) {
        const struct kp_task *t = c->t.task;
        bool known = !cJSON_IsString(x);
        for (int i = 0; i < t->nflags && !known; i++) {
            /* of a constant output nothing else is worth saying */
            bool constant = !strncmp(t->flags[i], "degenerate", 10);
            known = constant || !strcmp(t->flags[i], x->valuestring);
        }
        if (!known) flag(c, x->valuestring);
    }
}

/* Move a member of one object to another; null if it is not there. */
static void carry(cJSON *to, cJSON *from, const char *key) {
    cJSON *x = from ? cJSON_DetachItemFromObjectCaseSensitive(from, key) : NULL;
    cJSON_AddItemToObject(to, key, x ? x : cJSON_CreateNull());
}

static void begin(struct cell *c) {
    const struct kp_task *t = c->t.task;
    char gpu[128];
    snprintf(gpu, sizeof gpu, "%s", c->t.prefix);
    char *slash = strrchr(gpu, '/');
    if (!slash) die(KP_USAGE, "%s: the prefix must be build/GPU/TASK", c->t.prefix);
    *slash = 0;
    c->json = cJSON_CreateObject();
    cJSON_AddNumberToObject(c->json, "schema", 1);
    cJSON_AddStringToObject(c->json, "task", t->name);
    cJSON_AddStringToObject(c->json, "suite", t->suite);
    cJSON_AddStringToObject(c->json, "title", t->title);
    cJSON_AddStringToObject(c->json, "gpu", strrchr(gpu, '/') ? strrchr(gpu, '/') + 1 : gpu);
    c->flags = cJSON_CreateArray();
    for (int i = 0; i < t->nflags; i++) flag(c, t->flags[i]);
}

/* Write the result and end. */
KP_NORETURN static void finish(struct cell *c, const char *verdict, const char *reason) {
    char *path = text_format("%s.%s", c->t.prefix, c->file), date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    rounds_stop(&c->t);
    cJSON_AddStringToObject(c->json, "verdict", verdict);
    cJSON_AddItemToObject(c->json, "reason",
                          reason ? cJSON_CreateString(reason) : cJSON_CreateNull());
    carry(c->json, c->build, "kernel");
    static const char *const keys[] = {"class",         "error",   "evidence", "deterministic",
                                       "scratch_bytes", "sandbox", "launches"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) carry(c->json, c->verify, keys[i]);
    if (cJSON_IsFalse(cJSON_GetObjectItem(c->json, "deterministic"))) flag(c, "nondeterministic");
    flag_audit(c);
    cJSON_AddItemToObject(c->json, "flags", c->flags);
    cJSON *h = cJSON_AddObjectToObject(c->json, "harness");
    char *seed = text_format("%016llx", (unsigned long long)c->t.master);
    const char *commit = getenv("KP_COMMIT"); /* set by make */
    cJSON_AddStringToObject(h, "commit", commit && *commit ? commit : "unknown");
    cJSON_AddStringToObject(h, "date", date);
    cJSON_AddStringToObject(h, "master_seed", seed);
    cJSON_AddNumberToObject(h, "rounds", c->t.rounds);
    cJSON_AddNumberToObject(h, "decoys", c->t.decoys);
    cJSON_AddNumberToObject(h, "oracle_checks", c->t.oracle_checks);
    cJSON_AddNumberToObject(h, "wall_seconds", round((seconds_now() - c->started) * 10) / 10);
    json_write(path, c->json);
    exit(KP_OK);
}

/* ---- Before measuring -------------------------------------------------------------- */

static double member(const cJSON *o, const char *a, const char *b, const char *k) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(o, a), b);
    return json_number(x, k, INFINITY);
}

static struct kp_error read_error(const cJSON *error, const char *who, int d) {
    const char *name = kp_distribution_name[d];
    return (struct kp_error){member(error, who, name, "norm"), member(error, who, name, "element"),
                             member(error, who, name, "mean")};
}

/* The bias is for verify to judge: it differs from sample to sample too much for two
 * seeds to bound it, and is never larger than the norm. */
static struct kp_error twice_sum(struct kp_error a, struct kp_error b) {
    double norm = 2 * (a.norm + b.norm);
    return (struct kp_error){norm, 2 * (a.element + b.element), norm};
}

/* What a runner's timed output may differ by from the most accurate baseline's: both errors,
 * and as much again, because the worst of many new samples is worse than the worst of few. */
static void read_tolerances(struct cell *c) {
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(c->verify, "error");
    const struct kp_error none = {0, 0, 0};
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        struct kp_error best = read_error(error, kp_math_name(c->t.task, c->t.j.math[0]), d);
        struct kp_error allowed = read_error(error, "tolerance", d);
        c->t.tolerance[0][d] = twice_sum(allowed, best);
        c->t.oracle_tolerance[d] = twice_sum(allowed, none);
        for (int b = 0; b < c->t.j.nbaselines; b++) {
            struct kp_error own = read_error(error, kp_math_name(c->t.task, c->t.j.math[b]), d);
            c->t.tolerance[1 + b][d] = twice_sum(accuracy_tolerance(c->t.task, &own), best);
        }
    }
}

/* What is timed must be what was verified. */
static void check_files(struct cell *c) {
    static const char *const file[] = {"tape", "cubin"};
    for (int i = 0; i < 2; i++) {
        char *path = text_format("%s.%s", c->t.prefix, file[i]), sha[65];
        char *key = text_format("%s_sha256", file[i]);
        file_sha256(path, sha);
        if (strcmp(sha, json_text(c->verify, key, "")))
            finish(c, "tape",
                   text_format("the %s is not the one that was verified: it was edited or replaced",
                               file[i]));
        free(path);
        free(key);
    }
}

/* Small cells feel where their buffers lie: several placements, held at once. */
static int placements(const struct kp_task *t, size_t scratch) {
    return task_bytes(t) + scratch < (size_t)64 << 20 ? 8 : 1;
}

static void allocate(struct cell *c) {
    size_t free_bytes = 0, total = 0, need = 0, most = (size_t)8 << 30;
    size_t scratch = (size_t)json_number(c->verify, "scratch_bytes", 0);
    int n = placements(c->t.task, scratch);
    if (!referee_open(&c->t.r, c->t.task, n, scratch, 2 * machine_l2_bytes(), random_seed(), &need))
        finish(c, "skipped",
               text_format("timing needs %.1f GB of GPU memory", (double)need * 1e-9));
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    size_t limit = free_bytes / 4;
    if (!accuracy_open(&c->t.j, &c->t.r, limit < most ? limit : most))
        finish(c, "skipped", "too little GPU memory is left for judging the timed runs");
}

/* ---- Floors --------------------------------------------------------------------------- */

/* The rate of products for a class of accuracy.  fp32: by the multipliers of that type, or
 * by three products of 16-bit halves on tensor cores, which keep fp32's error, too. */
static double product_rate(const struct cell *c, const char *class) {
    double half = json_number(c->peaks, "f16_tflops", 0);
    if (!strcmp(class, "fp32")) return fmax(json_number(c->peaks, "fp32_tflops", 0), half / 3);
    return !strcmp(class, "tf32") ? json_number(c->peaks, "tf32_tflops", 0) : half;
}

/* Time that hardly a kernel of this class beats on this machine, by what was measured here. */
static void floors(struct cell *c) {
    double read = json_number(c->peaks, "read_gbs", 0), copy = json_number(c->peaks, "copy_gbs", 0);
    double rate = product_rate(c, json_text(c->verify, "class", "fp32"));
    double fastest = json_number(c->peaks, "f16_tflops", 0);
    double bytes = c->cost.bytes_in + c->cost.bytes_out,
           gbs = c->cost.bytes_out < 0.05 * bytes ? read : copy;
    c->floor_bytes_us = gbs > 0 ? bytes / gbs * 1e-3 : 0;
    c->floor_flops_us = rate > 0 ? c->cost.mm_flops / rate * 1e-6 : 0;
    double dram = machine_dram_bytes_per_us(), l2 = (double)machine_l2_bytes();
    double hard_bytes = dram > 0 && bytes > l2 ? (bytes - l2) / dram : 0;
    double hard_flops = fastest > 0 ? c->cost.mm_flops / (2.25 * fastest) * 1e-6 : 0;
    c->hard_us = fmax(hard_bytes, hard_flops);
}

/* ---- After measuring -------------------------------------------------------------------- */

static void add_times(struct cell *c) {
    struct timing *t = &c->t;
    cJSON *all = cJSON_AddObjectToObject(c->json, "time_us");
    for (int a = 0; a < t->nrunners; a++) {
        struct runner_samples *s = &t->samples[a];
        struct kp_interval m =
            stat_single(s->event_us, t->placement, t->rounds, t->tick_us, t->master, 1000);
        cJSON *x = cJSON_AddObjectToObject(all, t->runner_name[a]);
        json_add_number(x, "median", stat_median(s->event_us, t->rounds));
        json_add_number(x, "midmean", m.value);
        json_add_number(x, "low", m.low);
        json_add_number(x, "high", m.high);
        json_add_number(x, "host_median", stat_median(s->host_us, t->rounds));
        cJSON *list = cJSON_AddArrayToObject(x, "samples");
        int step = (t->rounds + KP_MOST_KEPT - 1) / KP_MOST_KEPT;
        for (int i = 0; i < t->rounds; i += step)
            cJSON_AddItemToArray(list, cJSON_CreateNumber(round(s->event_us[i] * 1e3) / 1e3));
    }
}

/* The second witness: the host sees the device idle a microsecond or three after the last
 * event, or something ran on beyond it. */
static void check_witness(struct cell *c) {
    const struct timing *t = &c->t;
    double event = stat_median(t->samples[0].event_us, t->rounds);
    double host = stat_median(t->samples[0].host_us, t->rounds);
    if (host > event + 20 + 0.02 * event) flag(c, "clocks-disagree: the host waited longer");
}

/* Against the fastest baseline that is at least as accurate as the candidate. */
static void add_speedup(struct cell *c) {
    struct timing *t = &c->t;
    const char *class = json_text(c->verify, "class", "");
    double best = INFINITY;
    t->against = 1;
    for (int a = 1; a < t->nrunners; a++) {
        double m = stat_interquartile_mean(t->samples[a].event_us, t->rounds);
        if (m < best) best = m, t->against = a;
        if (!strcmp(t->runner_name[a], class)) break; /* those after it are less accurate */
    }
    struct kp_interval r = rounds_ratio(t, t->against);
    cJSON *s = cJSON_AddObjectToObject(c->json, "speedup");
    cJSON_AddStringToObject(s, "against", t->runner_name[t->against]);
    json_add_number(s, "ratio", r.value);
    json_add_number(s, "low", r.low);
    json_add_number(s, "high", r.high);
    cJSON_AddNumberToObject(s, "rounds", t->rounds);
    cJSON_AddNumberToObject(s, "placements", t->r.nplacements);
    cJSON_AddNumberToObject(s, "processes", t->epoch > 0 ? t->epoch : 1);
    if ((r.high - r.low) / 2 > 0.05 * r.value) flag(c, "noisy");
    if (t->decoys < 3) {
        cJSON_AddNullToObject(s, "decoy_ratio");
        return;
    }
    struct kp_interval d = stat_ratio(t->samples[t->against].decoy_us, t->samples[0].decoy_us, NULL,
                                      t->decoys, t->tick_us, t->master, 1000);
    json_add_number(s, "decoy_ratio", d.value);
    if ((d.low > r.high || d.high < r.low) && fabs(d.value / r.value - 1) > 0.05)
        flag(c, "decoy-ratio");
}

static void add_bounds(struct cell *c) {
    json_add_number(c->json, "floor_us", fmax(c->floor_bytes_us, c->floor_flops_us));
    json_add_number(c->json, "floor_bytes_us", c->floor_bytes_us);
    json_add_number(c->json, "floor_flops_us", c->floor_flops_us);
    json_add_number(c->json, "hard_bound_us", c->hard_us);
    json_add_number(c->json, "empty_graph_us", c->t.empty_us);
    if (stat_median(c->t.samples[0].event_us, c->t.rounds) < 5 * c->t.empty_us)
        flag(c, "latency-bound");
}

/* Below the floor is possible (dirty lines may stay in L2) but improbable: believed only if
 * fresh processes measure it again. */
static bool confirm(struct cell *c) {
    struct timing *t = &c->t;
    /* 2 %: peaks, too, are measured */
    double floor = 0.98 * fmax(c->floor_bytes_us, c->floor_flops_us);
    double before = stat_interquartile_mean(t->samples[0].event_us, t->rounds);
    if (before >= floor) return true;
    rounds_stop(t);
    if (!rounds_start(t, false)) return false;
    machine_quiet(3);
    if (!rounds_run(t, false)) return false;
    if (stat_interquartile_mean(t->samples[0].event_us, t->rounds) < floor) flag(c, "below-floor");
    return true;
}

static void measure(struct cell *c) {
    struct timing *t = &c->t;
    if (!rounds_start(t, false)) finish(c, t->verdict, t->reason);
    if (!machine_quiet(3)) flag(c, "noisy: the machine was not quiet when measuring began");
    if (!rounds_run(t, false) || !confirm(c)) finish(c, t->verdict, t->reason);
    add_times(c);
    check_witness(c);
    add_speedup(c);
    add_bounds(c);
    cJSON *m = machine_describe();
    machine_watch_add(m);
    cJSON_AddItemToObject(m, "peaks", cJSON_Duplicate(c->peaks, 1));
    cJSON_AddItemToObject(c->json, "machine", m);
    if (stat_interquartile_mean(t->samples[0].event_us, t->rounds) < c->hard_us)
        finish(c, "impossible", "faster than the bytes can move or the multipliers can multiply");
    finish(c, "ok", NULL);
}

/* The candidate against itself: five batches, as five cells would be measured. */
static void measure_aa(struct cell *c) {
    struct timing *t = &c->t;
    cJSON *list = cJSON_AddArrayToObject(c->json, "ratios");
    double low = INFINITY, high = 0, us = 0;
    memcpy(t->tolerance[1], t->tolerance[0], sizeof t->tolerance[1]);
    if (!rounds_start(t, true)) die(KP_MACHINE, "A/A: %s: %s", t->verdict, t->reason);
    machine_quiet(3);
    for (int batch = 0; batch < 5; batch++) {
        if (!rounds_run(t, true)) die(KP_MACHINE, "A/A: %s: %s", t->verdict, t->reason);
        struct kp_interval r = rounds_ratio(t, 1);
        us = stat_interquartile_mean(t->samples[0].event_us, t->rounds);
        low = fmin(low, r.value), high = fmax(high, r.value);
        cJSON *x = cJSON_CreateObject();
        json_add_number(x, "ratio", r.value);
        json_add_number(x, "low", r.low);
        json_add_number(x, "high", r.high);
        cJSON_AddNumberToObject(x, "rounds", t->rounds);
        cJSON_AddItemToArray(list, x);
    }
    json_add_number(c->json, "candidate_us", us);
    rounds_stop(t);
    json_write(text_format("%s.aa.json", t->prefix), c->json);
    printf("A/A %s: %.2f us, ratios of five batches %.4f..%.4f\n", t->task->name, us, low, high);
}

int main(int argc, char **argv) {
    kp_program("time");
    bool aa = argc == 4 && !strcmp(argv[1], "--aa");
    if (argc != 3 && !aa) die(KP_USAGE, "usage: time [--aa] tasks/SUITE/TASK.json build/GPU/TASK");
    static struct cell c; /* zeroed */
    const char *cap = getenv("KP_CELL_SECONDS");
    c.started = seconds_now();
    c.t.task = task_load(argv[aa + 1]);
    c.t.prefix = argv[aa + 2];
    c.file = aa ? "aa.json" : "time.json";
    c.t.deadline = process_deadline();
    c.t.cap_seconds = cap && atof(cap) > 0 ? atof(cap) : 10;
    c.cost = task_cost(c.t.task);
    begin(&c);
    c.build = json_read(text_format("%s.build.json", c.t.prefix));
    c.verify = json_read(text_format("%s.verify.json", c.t.prefix));
    const char *verified = json_text(c.verify, "verdict", "");
    if (strcmp(verified, "ok")) finish(&c, verified, json_text(c.verify, "reason", NULL));
    char *folder = strdup(c.t.prefix);
    *strrchr(folder, '/') = 0;
    c.peaks = json_read(text_format("%s/peaks.json", folder));
    c.t.master = random_seed();
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    check_files(&c);
    allocate(&c);
    read_tolerances(&c);
    if (kp_exec_weak(c.t.task)) flag(&c, "weak-baseline: a convolution without cuDNN");
    floors(&c);
    if (aa)
        measure_aa(&c);
    else
        measure(&c);
    return KP_OK;
}
