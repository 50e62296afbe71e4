/* time_main.c: `time TASK.json PREFIX` measures one verified kernel against its baselines.
 *
 * It reads PREFIX.build.json, .verify.json, .tape, .cubin and the folder's peaks.json.  It writes
 * PREFIX.time.json, the whole result of the cell (results/SCHEMA.md).  A kernel that did not verify
 * gets its row without a time.
 *
 * `time --aa TASK.json PREFIX` measures the candidate against itself and writes PREFIX.aa.json:
 * the harness's own noise and bias.
 *
 * `time --modes TASK.json PREFIX` measures a verified kernel back to back and after gaps, beside
 * its baselines, and writes PREFIX.modes.json: see modes.h.
 *
 * Rounds and samples are in rounds.c; the clock is read in replay/timed_sample.c. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "gpu/machine.h"
#include "measure/modes.h"
#include "measure/phases.h"
#include "measure/rounds.h"
#include "measure/stay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- The numbers of the rules ---------------------------------------------------------- */

enum {
    ORACLE_PART = 2, /* the oracle may take half of what the runners leave */
    CAP_SECONDS = 5, /* for the rounds of a cell, unless KP_CELL_SECONDS says otherwise */
    MOST_KEPT = 100, /* samples of a runner that the result keeps */
    AA_BATCHES = 5   /* of --aa: each is measured as a cell is */
};
/* What CUDA and its libraries take in the process of each runner. */
static const size_t process_bytes = (size_t)1 << 29;
/* The longest wait for a quiet machine: scrubbing freed memory takes 2.5 ms a GB. */
static const double quiet_seconds = 3;

/* No kernel multiplies faster than the fastest dense rate times this: structured sparsity at most
 * doubles the rate, the rest is room for errors of measuring. */
static const double hard_rate = 2.25;
/* A time below this share of the floor is measured again.  2 %: peaks are measured, too. */
static const double floor_margin = 0.98;

/* Flags; see doubts.h, too. */
static const double noisy_share = 0.05; /* half of the interval over the ratio */
enum { LATENCY_BOUND = 5 };             /* x an empty graph: a shorter kernel is mostly latency */

struct cell {
    struct rounds t;
    cJSON *build, *verify, *peaks, *json, *flags;
    const char *file; /* suffix of the file that is written */
    bool modes;
    struct kp_floor floor;
    double hard_us, started;
    struct kp_cost cost;
};

static void flag(struct cell *c, const char *text) {
    cJSON_AddItemToArray(c->flags, cJSON_CreateString(text));
}

/* Flag what the audit found, unless the task's own flags say it already. */
static void flag_audit(struct cell *c) {
    const cJSON *x;
    cJSON_ArrayForEach(x, cJSON_GetObjectItemCaseSensitive(c->verify, "audit")) {
        const struct kp_task *t = c->t.task;
        bool known = !cJSON_IsString(x);
        for (int i = 0; i < t->nflags && !known; i++) {
            /* if the output is constant, nothing else is worth a flag */
            bool constant = !strncmp(t->flags[i], "degenerate", 10);
            known = constant || !strcmp(t->flags[i], x->valuestring);
        }
        if (!known) flag(c, x->valuestring);
    }
}

/* Move a member from one object to another; null if it is absent. */
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

/* Give back what the cell took.  Nothing is timed any more: the next runner may open the driver. */
static void give_back(struct cell *c, bool right) {
    if (stays()) {
        rounds_leave(&c->t, right);
        process_runner_ahead();
    }
    accuracy_close(&c->t.acc);
    rounds_stop(&c->t);
}

/* Write the result and end. */
KP_NORETURN static void finish(struct cell *c, const char *verdict, const char *reason) {
    char *path = text_format("%s.%s", c->t.prefix, c->file), date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    phase("end");
    give_back(c, !strcmp(verdict, "ok"));
    cJSON_AddStringToObject(c->json, "verdict", verdict);
    cJSON_AddItemToObject(c->json, "reason",
                          reason ? cJSON_CreateString(reason) : cJSON_CreateNull());
    carry(c->json, c->build, "kernel");
    static const char *const keys[] = {
        "class",    "baseline_class", "missed",        "excused", "error",    "telling",
        "evidence", "deterministic",  "scratch_bytes", "sandbox", "launches", "vendor_us"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) carry(c->json, c->verify, keys[i]);
    if (c->t.evidence) cJSON_ReplaceItemInObject(c->json, "evidence", c->t.evidence);
    if (cJSON_IsFalse(cJSON_GetObjectItem(c->json, "deterministic"))) flag(c, "nondeterministic");
    flag_audit(c);
    cJSON_AddItemToObject(c->json, "flags", c->flags);
    const char *inputs = getenv("KP_INPUTS"); /* set by make: what build/inputs says */
    cJSON *sources = inputs ? cJSON_Parse(inputs) : NULL;
    cJSON_AddItemToObject(c->json, "inputs", sources ? sources : cJSON_CreateNull());
    cJSON *h = cJSON_AddObjectToObject(c->json, "harness");
    char *seed = text_format("%016llx", (unsigned long long)c->t.master);
    const char *commit = getenv("KP_COMMIT"); /* set by make */
    cJSON_AddStringToObject(h, "commit", commit && *commit ? commit : "unknown");
    cJSON_AddStringToObject(h, "date", date);
    cJSON_AddStringToObject(h, "master_seed", seed);
    cJSON_AddNumberToObject(h, "rounds", c->t.rounds);
    int controls = 0;
    for (int d = 0; d < KP_DIST_COUNT; d++) controls += c->t.controls[d];
    cJSON_AddNumberToObject(h, "controls", controls);
    cJSON_AddNumberToObject(h, "oracle_checks", c->t.oracle_checks);
    cJSON_AddNumberToObject(h, "wall_seconds", round((seconds_now() - c->started) * 10) / 10);
    cJSON_AddItemToObject(h, "seconds", phases_seconds());
    json_write(path, c->json);
    stay_end(KP_OK);
}

/* ---- Before measuring -------------------------------------------------------------- */

static double member(const cJSON *o, const char *a, const char *b, const char *k) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(o, a), b);
    return json_number(x, k, INFINITY);
}

/* How far timed outputs may be off on declared inputs, from the spreads that verify found there.
 * Control inputs are of those distributions that verify tried; without a kernel there are none. */
static void read_tolerances(struct cell *c) {
    struct rounds *t = &c->t;
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(c->verify, "error");
    const cJSON *own = c->verify; /* without a kernel the most accurate baseline stands in for it */
    const char *key = "class";
    if (t->missing) {
        own = cJSON_GetObjectItemCaseSensitive(c->verify, "baseline_class");
        key = kp_math_name(t->task, t->acc.math[0]);
    }
    t->class = class_find(t->task, json_text(own, key, ""));
    rounds_allow(t, (struct kp_error){member(error, "spread", "declared", "norm"),
                                      member(error, "spread", "declared", "element")});
    for (int d = KP_DIST_DECLARED + 1; d < KP_DIST_COUNT && !t->missing; d++)
        if (isfinite(member(error, "spread", kp_distribution_name[d], "norm")))
            t->control[t->ncontrols++] = (enum kp_distribution)d;
}

/* Only the files that were verified are timed. */
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

/* Bytes that the processes of the baselines take for themselves: what lies between their ops. */
static size_t baseline_bytes(const struct accuracy *acc) {
    size_t bytes = 0;
    for (int b = 0; b < acc->nbaselines; b++) bytes += kp_exec_workspace(acc->exec[b]);
    return bytes + (size_t)(acc->nbaselines + 1) * process_bytes;
}

/* Allocate everything at once, and see that the runners have room beside it. */
static void allocate(struct cell *c) {
    size_t free_bytes = 0, left = 0, total = 0, need = 0, accuracy = 0;
    size_t scratch = (size_t)json_number(c->verify, "scratch_bytes", 0);
    int n = c->modes ? modes_placements(c->t.task) : referee_placements(c->t.task, scratch);
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    if (!referee_open(&c->t.acc.r, c->t.task, n, scratch, referee_flush_bytes(), random_seed(),
                      &need))
        finish(c, "skipped", referee_short(need, free_bytes));
    KP_CU(cu.cuMemGetInfo(&left, &total));
    accuracy_plan(&c->t.acc);
    size_t runners = baseline_bytes(&c->t.acc), taken = runners + accuracy_bytes(c->t.task);
    size_t limit = left > taken ? (left - taken) / ORACLE_PART : 0;
    bool fits = accuracy_open(&c->t.acc, limit, &accuracy);
    KP_CU(cu.cuMemGetInfo(&left, &total));
    if (!fits || runners > left)
        finish(c, "skipped", referee_short(need + accuracy + runners, free_bytes));
    size_t sets = left / runners;
    c->t.sets_at_once = sets < KP_MOST_SETS ? (int)sets : KP_MOST_SETS;
}

/* ---- Floors --------------------------------------------------------------------------- */

/* The floor is what hardly any kernel of this class beats, the hard bound what none can beat. */
static void floors(struct cell *c) {
    c->floor = task_floor(&c->cost, c->peaks, class_name(c->t.task, c->t.class));
    double fastest = json_number(c->peaks, "f16_tflops", 0);
    double bytes = c->cost.bytes_in + c->cost.bytes_out;
    double dram = machine_dram_bytes_per_us(), l2 = (double)machine_l2_bytes();
    double hard_bytes = dram > 0 && bytes > l2 ? (bytes - l2) / dram : 0;
    double hard_flops = fastest > 0 ? c->cost.mm_flops / (hard_rate * fastest) * 1e-6 : 0;
    c->hard_us = fmax(hard_bytes, hard_flops);
}

/* ---- After measuring -------------------------------------------------------------------- */

/* What each runner took. */
static void add_times(struct rounds *t, cJSON *to) {
    cJSON *all = cJSON_AddObjectToObject(to, "time_us");
    for (int i = 0; i < t->nrunners; i++) {
        struct runner_samples *s = &t->samples[i];
        struct kp_interval m =
            stat_single(s->event_us, t->placement, t->rounds, t->tick_us, t->master, KP_RESAMPLES);
        cJSON *x = cJSON_AddObjectToObject(all, t->runner_name[i]);
        json_add_number(x, "median", stat_median(s->event_us, t->rounds));
        json_add_number(x, "midmean", m.value);
        json_add_number(x, "low", m.low);
        json_add_number(x, "high", m.high);
        json_add_number(x, "host_median", stat_median(s->host_us, t->rounds));
        cJSON *list = cJSON_AddArrayToObject(x, "samples");
        int step = (t->rounds + MOST_KEPT - 1) / MOST_KEPT;
        for (int k = 0; k < t->rounds; k += step)
            cJSON_AddItemToArray(list, cJSON_CreateNumber(round(s->event_us[k] * 1e3) / 1e3));
    }
}

/* The candidate's speed on each control distribution, and whether some have too few rounds. */
static void add_controls(struct cell *c, cJSON *speedup, struct kp_interval declared) {
    struct rounds *t = &c->t;
    const struct runner_samples *s = t->samples;
    cJSON *all = cJSON_AddObjectToObject(speedup, "controls");
    bool few = false;
    double declared_us = stat_interquartile_mean(s[0].event_us, t->rounds);
    for (int i = 0; i < t->ncontrols; i++) {
        enum kp_distribution d = t->control[i];
        const char *name = kp_distribution_name[d];
        const double *own = s[0].control_us[d], *other = s[t->against].control_us[d];
        double ratio, us = t->controls[d] ? stat_interquartile_mean(own, t->controls[d]) : NAN;
        few |= rounds_lack_controls(t, d);
        json_add_number(all, name, declared_us / us);
        int from = t->alone[d], n = t->controls[d] - from;
        if (from && doubt_control(other + from, own + from, n, t->tick_us, t->master, declared,
                                  declared_us, &ratio))
            flag(c, text_format("control-ratio: %.2fx on %s inputs", ratio, name));
    }
    if (few) flag(c, "few-controls");
}

/* What makes the time doubtful by itself. */
static void add_doubts(struct cell *c, cJSON *speedup) {
    const struct rounds *t = &c->t;
    const struct runner_samples *own = &t->samples[0];
    double share;
    if (doubt_slow_quarter(own->event_us, t->samples[t->against].event_us, t->rounds, &share))
        flag(c, "slow-quarter");
    json_add_number(speedup, "slow_quarter", share);
    if (doubt_clocks(own->event_us, own->host_us, t->rounds))
        flag(c, "clocks-disagree: the host waited longer");
}

static void add_interval(cJSON *to, struct kp_interval r, int rounds) {
    json_add_number(to, "ratio", r.value);
    json_add_number(to, "low", r.low);
    json_add_number(to, "high", r.high);
    cJSON_AddNumberToObject(to, "rounds", rounds);
}

/* The ratio against the fastest baseline that is at least as accurate as the candidate. */
static struct kp_interval add_ratio(struct rounds *t, cJSON *s) {
    double best = INFINITY;
    t->against = 1;
    for (int i = 1; i < t->nrunners; i++) {
        if (!rounds_quotable(t, i)) break; /* the next are less accurate */
        double m = stat_interquartile_mean(t->samples[i].event_us, t->rounds);
        if (m < best) best = m, t->against = i;
    }
    struct kp_interval r = rounds_ratio(t, t->against);
    cJSON_AddStringToObject(s, "against", t->runner_name[t->against]);
    add_interval(s, r, t->rounds);
    return r;
}

/* The headline, with what makes it doubtful. */
static void add_speedup(struct cell *c) {
    cJSON *s = cJSON_AddObjectToObject(c->json, "speedup");
    struct kp_interval r = add_ratio(&c->t, s);
    cJSON_AddNumberToObject(s, "placements", c->t.acc.r.nplacements);
    cJSON_AddNumberToObject(s, "processes", c->t.epoch > 0 ? c->t.epoch : 1);
    if ((r.high - r.low) / 2 > noisy_share * r.value) flag(c, "noisy");
    add_controls(c, s, r);
    add_doubts(c, s);
}

static void add_bounds(struct cell *c) {
    json_add_number(c->json, "floor_us", fmax(c->floor.bytes_us, c->floor.flops_us));
    json_add_number(c->json, "floor_bytes_us", c->floor.bytes_us);
    json_add_number(c->json, "floor_flops_us", c->floor.flops_us);
    json_add_number(c->json, "hard_bound_us", c->hard_us);
    json_add_number(c->json, "empty_graph_us", c->t.empty_us);
    if (!c->t.missing &&
        stat_median(c->t.samples[0].event_us, c->t.rounds) < LATENCY_BOUND * c->t.empty_us)
        flag(c, "latency-bound");
}

/* A time below the floor, as dirty lines may stay in the L2, counts if fresh processes agree. */
static bool confirm(struct cell *c) {
    struct rounds *t = &c->t;
    double floor = floor_margin * fmax(c->floor.bytes_us, c->floor.flops_us);
    double before = stat_interquartile_mean(t->samples[0].event_us, t->rounds);
    if (before >= floor) return true;
    rounds_stop(t);
    if (!rounds_start(t, false)) return false;
    machine_quiet(quiet_seconds);
    if (!rounds_run(t, false)) return false;
    if (stat_interquartile_mean(t->samples[0].event_us, t->rounds) < floor) flag(c, "below-floor");
    return true;
}

/* Start the runners, and wait until the machine is quiet. */
static void get_ready(struct cell *c) {
    struct rounds *t = &c->t;
    machine_watch_start();
    if (!rounds_start(t, false)) finish(c, t->verdict, t->reason);
    phase("quiet");
    if (!machine_quiet(quiet_seconds))
        flag(c, "noisy: the machine was not quiet when measuring began");
    phase("referee");
}

/* What it was measured on, what that can do, and whether it could. */
static void add_machine(struct cell *c) {
    cJSON *m = machine_describe();
    machine_watch_add(m);
    const char *why = doubt_throttle(cJSON_GetObjectItem(m, "throttle_reasons"));
    if (why) flag(c, text_format("throttled: %s", why));
    cJSON_AddItemToObject(m, "peaks", cJSON_Duplicate(c->peaks, 1));
    cJSON_AddItemToObject(c->json, "machine", m);
}

static void measure(struct cell *c) {
    struct rounds *t = &c->t;
    get_ready(c);
    if (!rounds_run(t, false) || (!t->missing && !confirm(c))) finish(c, t->verdict, t->reason);
    add_times(t, c->json);
    if (!t->missing) add_speedup(c);
    add_bounds(c);
    add_machine(c);
    if (t->missing) finish(c, "missing", json_text(c->verify, "reason", NULL));
    if (stat_interquartile_mean(t->samples[0].event_us, t->rounds) < c->hard_us)
        finish(c, "impossible", "faster than the bytes can move or the multipliers can multiply");
    finish(c, "ok", NULL);
}

/* Measure the candidate against itself, in batches that are measured as cells are. */
static void measure_aa(struct cell *c) {
    struct rounds *t = &c->t;
    cJSON *list = cJSON_AddArrayToObject(c->json, "ratios");
    double low = INFINITY, high = 0, us = 0;
    if (!rounds_start(t, true)) die(KP_MACHINE, "A/A: %s: %s", t->verdict, t->reason);
    machine_quiet(quiet_seconds);
    for (int batch = 0; batch < AA_BATCHES; batch++) {
        if (!rounds_run(t, true)) die(KP_MACHINE, "A/A: %s: %s", t->verdict, t->reason);
        struct kp_interval r = rounds_ratio(t, 1);
        us = stat_interquartile_mean(t->samples[0].event_us, t->rounds);
        low = fmin(low, r.value), high = fmax(high, r.value);
        cJSON *x = cJSON_CreateObject();
        add_interval(x, r, t->rounds);
        cJSON_AddItemToArray(list, x);
    }
    json_add_number(c->json, "candidate_us", us);
    give_back(c, true);
    json_write(text_format("%s.aa.json", t->prefix), c->json);
    printf("A/A %s: %.2f us, ratios of %d batches %.4f..%.4f\n", t->task->name, us, AA_BATCHES, low,
           high);
}

/* What a mode found: its times are those in c->t. */
static void add_mode(struct cell *c, const struct modes *m, enum kp_mode mode, cJSON *to) {
    struct rounds *t = &c->t;
    size_t bytes = modes_bytes(t->task, m->placements[mode]);
    cJSON_AddNumberToObject(to, "placements", m->placements[mode]);
    cJSON_AddNumberToObject(to, "bytes", (double)bytes);
    cJSON_AddBoolToObject(to, "beyond_l2", bytes > referee_flush_bytes());
    if (mode == KP_MODE_OFFLINE)
        cJSON_AddNumberToObject(to, "replays", (double)m->placements[mode] * m->turns);
    else
        cJSON_AddNumberToObject(to, "gap_us", m->gap_us);
    add_times(t, to);
    cJSON *s = cJSON_AddObjectToObject(to, "speedup");
    add_ratio(t, s);
    cJSON_AddNumberToObject(s, "processes", m->sets);
    cJSON *all = cJSON_AddObjectToObject(s, "all");
    for (int i = 1; i < t->nrunners; i++)
        json_add_number(all, t->runner_name[i], rounds_ratio(t, i).value);
}

/* Measure in each mode of modes.h. */
static void measure_modes(struct cell *c) {
    static struct modes m;
    struct rounds *t = &c->t;
    int rounds = 0;
    get_ready(c);
    if (!modes_run(&m, t)) finish(c, t->verdict, t->reason);
    cJSON *all = cJSON_AddObjectToObject(c->json, "modes");
    for (int mode = 0; mode < KP_MODES; mode++) {
        modes_take(&m, (enum kp_mode)mode, t);
        add_mode(c, &m, (enum kp_mode)mode, cJSON_AddObjectToObject(all, kp_mode_name[mode]));
        rounds += t->rounds;
    }
    t->rounds = rounds; /* of both */
    add_machine(c);
    finish(c, "ok", NULL);
}

static void time_cell(int argc, char **argv) {
    bool aa = argc == 4 && !strcmp(argv[1], "--aa"),
         modes = argc == 4 && !strcmp(argv[1], "--modes");
    if (argc != 3 && !aa && !modes)
        die(KP_USAGE, "usage: time [--aa|--modes] tasks/SUITE/TASK.json build/GPU/TASK");
    static struct cell c;
    memset(&c, 0, sizeof c);
    c.modes = modes;
    argv += argc == 4;
    const char *cap = getenv("KP_CELL_SECONDS");
    c.started = seconds_now();
    phases_begin("start");
    c.t.task = task_load(argv[1]);
    c.t.prefix = argv[2];
    c.file = aa ? "aa.json" : modes ? "modes.json" : "time.json";
    c.t.deadline = process_deadline();
    c.t.left = aa ? INFINITY : process_cell_seconds();
    c.t.cap_seconds = cap && atof(cap) > 0 ? atof(cap) : CAP_SECONDS;
    c.cost = task_cost(c.t.task);
    begin(&c);
    c.build = json_read(text_format("%s.build.json", c.t.prefix));
    c.t.family = stay_family(c.t.task, c.build);
    process_begin(c.t.family);
    c.verify = json_read(text_format("%s.verify.json", c.t.prefix));
    const char *verified = json_text(c.verify, "verdict", "");
    /* Where there is no kernel, verify has judged the baselines, and they are measured alone. */
    c.t.missing =
        !aa && !modes && !strcmp(verified, "missing") && cJSON_HasObjectItem(c.verify, "error");
    if (strcmp(verified, "ok") && !c.t.missing)
        finish(&c, verified, json_text(c.verify, "reason", NULL));
    char *folder = strdup(c.t.prefix);
    *strrchr(folder, '/') = 0;
    c.peaks = json_read(text_format("%s/peaks.json", folder));
    c.t.master = random_seed();
    c.t.left -= json_number(c.verify, "waited_seconds", 0);
    if (!c.t.missing && !aa) rounds_spawn(&c.t);
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    if (!c.t.missing) check_files(&c);
    c.t.choices = json_text(c.verify, "choices", NULL);
    kp_vendor_choose(c.t.choices);
    phase("memory");
    allocate(&c);
    phase("referee");
    read_tolerances(&c);
    if (kp_exec_weak(c.t.task)) flag(&c, "weak-baseline: a convolution without cuDNN");
    floors(&c);
    (aa ? measure_aa : modes ? measure_modes : measure)(&c);
}

int main(int argc, char **argv) {
    kp_program("time");
    return stay(argc, argv, time_cell);
}
