/* verify_main.c: `verify TASK.json PREFIX` proves one kernel right or wrong.
 *
 * It reads PREFIX.build.json, .so and .cubin.  It writes PREFIX.tape and, last, its stamp,
 * PREFIX.verify.json.  What a candidate does is a verdict (0), a machine that fails an error (4).
 *
 * verify() at the end is the whole procedure.  How errors are measured is in accuracy.c, how large
 * they may be in tolerance.c. */
#define _GNU_SOURCE
#include "measure/audit.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "measure/errors.h"
#include "measure/phases.h"
#include "measure/stay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2 }; /* samples of declared contents, and of infinities, which have two signs */

/* Memory that CUDA and the libraries take for themselves. */
static const size_t spare_bytes = (size_t)1 << 30;

/* Numbers that keep seeds derived from the master seed apart. */
enum { SCRATCH_SEED = 5, NOISE_SEED = 50, RECORDING_SEED = 100, AUDIT_SEED = 900 };

struct verify {
    struct kp_task *task;
    const char *prefix;
    uint64_t master;                     /* of the recordings; kept in the result */
    uint64_t seed[KP_DIST_COUNT][SEEDS]; /* of the samples: each is drawn, none tells another */
    cJSON *json;                         /* what PREFIX.verify.json will say */
    struct accuracy acc;
    struct kp_process recorder, runner;
    char *family;          /* stay_family() */
    const char *missing;   /* why there is no kernel: only the baselines are judged; or NULL */
    double deadline, left; /* seconds: of an answer; of all runs of the kernel that are to come */
    int at;                /* the placement of the next sample; they take turns, as in time */
    size_t scratch;
    struct errors errors;
};

static char *file_of(const struct verify *v, const char *suffix) {
    return text_format("%s.%s", v->prefix, suffix);
}

/* Write the verdict and end.  A verification that the machine lets finish ends here. */
KP_NORETURN static void verdict(struct verify *v, const char *word, const char *reason) {
    char *path = file_of(v, "verify.json");
    phase("end");
    process_kill(&v->recorder, 1);
    process_kill(&v->runner, 1);
    accuracy_close(&v->acc);
    process_end(&v->recorder, 1);
    process_end(&v->runner, 1);
    cJSON_AddStringToObject(v->json, "verdict", word);
    char *why = reason ? utf8_clean(reason, strlen(reason)) : NULL; /* it may be forged, or cut */
    cJSON_AddItemToObject(v->json, "reason", why ? cJSON_CreateString(why) : cJSON_CreateNull());
    cJSON_AddNumberToObject(v->json, "waited_seconds",
                            round((process_cell_seconds() - v->left) * 1e3) / 1e3);
    cJSON_AddItemToObject(v->json, "seconds", phases_seconds());
    json_write(path, v->json);
    stay_end(KP_OK);
}

/* Turn a contestant's status into a verdict.  Returns only if it is RUNNER_OK. */
static void settle(struct verify *v, const struct runner_reply *reply) {
    switch ((enum runner_status)reply->status) {
    case RUNNER_OK: return;
    case RUNNER_TAPE: verdict(v, "tape", reply->message);
    case RUNNER_CRASH: verdict(v, "crash", reply->message);
    case RUNNER_STATE: verdict(v, "wrong", reply->message);
    case RUNNER_TIMEOUT: verdict(v, "timeout", reply->message);
    case RUNNER_MACHINE: break;
    }
    die(KP_MACHINE, "%s", reply->message);
}

/* ---- Memory -------------------------------------------------------------------- */

/* End with the verdict `skipped` and both numbers. */
KP_NORETURN static void too_large(struct verify *v, size_t need, size_t free_bytes) {
    verdict(v, "skipped", referee_short(need, free_bytes));
}

/* Allocate everything at once. */
static void allocate(struct verify *v) {
    size_t free_bytes = 0, total = 0, held = 0, accuracy = accuracy_bytes(v->task);
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    int n = referee_placements(v->task, 0);
    size_t flush = referee_flush_bytes();
    size_t need = (size_t)n * task_bytes(v->task) + flush + accuracy + spare_bytes;
    if (need > free_bytes) too_large(v, need, free_bytes);
    size_t oracle_limit = (free_bytes - need) / 2; /* the rest is for the candidate's scratch */
    if (!referee_open(&v->acc.r, v->task, n, 0, flush, v->master, &held) ||
        !accuracy_open(&v->acc, oracle_limit, &accuracy))
        too_large(v, held + accuracy + spare_bytes, free_bytes);
}

/* Note the library calls that were found to be the fastest: those are judged, and time takes the
 * same. */
static void add_vendor(struct verify *v) {
    const struct kp_vendor *found = kp_vendor_found();
    if (!*found->choices) return;
    cJSON_AddStringToObject(v->json, "choices", found->choices);
    cJSON *calls = NULL; /* of a linear layer only what was taken is known */
    for (int c = 0; c < KP_VENDOR_CALLS; c++) {
        if (found->us[c] > 0 && !calls) calls = cJSON_AddObjectToObject(v->json, "vendor_us");
        if (found->us[c] > 0) json_add_number(calls, kp_vendor_name[c], found->us[c]);
    }
}

/* ---- Recording ------------------------------------------------------------------ */

/* Read the recorder's first line, which says where its buffers lay. */
static char *read_spans(struct verify *v, char *text, struct tape_span *at) {
    char *p = text;
    for (int i = 0; i < v->acc.r.nbuffers; i++) {
        at[i].address = strtoull(p, &p, 10);
        at[i].bytes = strtoull(p, &p, 10);
    }
    while (*p == ' ') p++;
    v->scratch = at[v->acc.r.nbuffers - 1].bytes;
    if (*p++ != '\n' || v->scratch > KP_MOST_SCRATCH) /* the recorder has refused more */
        verdict(v, "tape", "the recording is malformed: the kernel's host code tampered with it");
    return p;
}

/* Tell the recorder what to record; it waits for its setup then. */
static void start_recorder(struct verify *v) {
    struct runner_recording what = {.ntensors = (uint32_t)v->task->ntensors,
                                    .noutputs = (uint32_t)v->task->noutputs};
    char *library = file_of(v, "so");
    if (!realpath(library, what.library)) /* to open it says why */
        snprintf(what.library, sizeof what.library, "%s", library);
    free(library);
    process_start_recorder(&v->recorder, &what);
}

static uint64_t recording_seed(const struct verify *v, uint64_t number) {
    return (kp_mix(v->master, RECORDING_SEED + number) & ~1ull) | number;
}

/* Map a placement's buffers in the recorder, at two sets of addresses; wait for its sandbox. */
static void set_up_recorder(struct verify *v) {
    struct runner_reply reply;
    for (uint64_t number = 0; number < KP_RECORDINGS; number++) {
        struct runner_setup setup = referee_setup(&v->acc.r, recording_seed(v, number));
        setup.nplacements = 1, setup.flush_bytes = 0;
        process_setup(&v->recorder, &setup, v->acc.r.shared);
    }
    process_wait(&v->recorder, v->deadline, &reply, NULL);
    if (reply.status != RUNNER_OK) die(KP_MACHINE, "%s", reply.message); /* no candidate yet */
    cJSON *sandbox = cJSON_Parse(reply.message);
    cJSON_AddItemToObject(v->json, "sandbox", sandbox ? sandbox : cJSON_CreateString("unknown"));
}

/* Record once, at addresses and on inputs of its own.  The outputs must still be poison after it.
 * From here on the candidate's host code may answer in the recorder's place. */
static struct tape *record(struct verify *v, uint64_t number, struct tape_span *at) {
    const struct runner_request q = {.what = RUNNER_RECORD};
    char message[KP_TAPE_MESSAGE], *text = NULL;
    struct runner_reply reply;
    referee_fill(&v->acc.r, 0, KP_DIST_DECLARED, recording_seed(v, number));
    referee_poison(&v->acc.r, 0, recording_seed(v, number));
    referee_wait(&v->acc.r);
    process_send(&v->recorder, &q);
    process_wait(&v->recorder, v->deadline, &reply, &text);
    bool untouched = referee_untouched(&v->acc.r, 0);
    if (reply.status == RUNNER_MACHINE) reply.status = RUNNER_CRASH;
    settle(v, &reply);
    if (!untouched)
        verdict(v, "tape",
                "outputs were written while launch was being recorded: work ran outside the given "
                "stream");
    struct tape *t = tape_parse(read_spans(v, text ? text : "", at), message);
    if (!t) verdict(v, "tape", message);
    free(text);
    return t;
}

static void make_tape(struct verify *v) {
    struct tape_span at[KP_RECORDINGS][KP_MAX_BUFFERS];
    struct tape *raw[KP_RECORDINGS], *merged;
    char message[KP_TAPE_MESSAGE], *path = file_of(v, "tape"), *cubin = file_of(v, "cubin"),
                                   sha[65];
    process_start_runner(&v->runner, "candidate's", v->prefix); /* opens the driver meanwhile */
    set_up_recorder(v);
    for (int i = 0; i < KP_RECORDINGS; i++) raw[i] = record(v, (uint64_t)i, at[i]);
    process_kill(&v->recorder, 1); /* it ends meanwhile: that takes a tenth of a second */
    for (int b = 0; b < v->acc.r.nbuffers; b++) /* merging finds addresses by their difference */
        if (at[0][b].address == at[1][b].address && at[0][b].bytes)
            die(KP_MACHINE, "two recordings got the same address for a buffer: run make again");
    if (at[0][v->acc.r.nbuffers - 1].bytes != at[1][v->acc.r.nbuffers - 1].bytes)
        verdict(v, "tape", "scratch_bytes() gave two answers");
    merged = tape_merge(raw[0], at[0], raw[1], at[1], v->acc.r.nbuffers, message);
    if (!merged) verdict(v, "tape", message);
    char *text = tape_print(merged);
    file_replace(path, text);
    file_sha256(path, sha);
    cJSON_AddStringToObject(v->json, "tape_sha256", sha);
    file_sha256(cubin, sha);
    cJSON_AddStringToObject(v->json, "cubin_sha256", sha);
    cJSON_AddNumberToObject(v->json, "scratch_bytes", (double)v->scratch);
    cJSON_AddNumberToObject(v->json, "launches", merged->nnodes);
    referee_keep(&v->acc.r, referee_placements(v->task, v->scratch));
    if (v->scratch) process_end(&v->recorder, 1); /* it may need its room */
    if (!referee_add_scratch(&v->acc.r, v->scratch, kp_mix(v->master, SCRATCH_SEED)))
        verdict(v, "skipped", "the kernel's scratch does not fit into the GPU's memory");
    for (int i = 0; i < KP_RECORDINGS; i++) tape_free(raw[i]);
    tape_free(merged);
    free(text);
    free(path);
    free(cubin);
}

static void start_runner(struct verify *v) {
    struct runner_reply reply;
    struct runner_setup setup = referee_setup(&v->acc.r, random_seed());
    process_setup(&v->runner, &setup, v->acc.r.shared);
    process_wait(&v->runner, v->deadline, &reply, NULL);
    settle(v, &reply);
}

/* ---- Samples -------------------------------------------------------------------- */

/* Draw new inputs, at the next placement. */
static void draw(struct verify *v, int distribution, uint64_t seed) {
    v->at = (v->at + 1) % v->acc.r.nplacements;
    referee_fill(&v->acc.r, v->at, (enum kp_distribution)distribution, seed);
}

/* Replay on the inputs that are there, by the request that time makes: a kernel cannot tell the two
 * apart.  Check everything but the values of the outputs. */
static void replay(struct verify *v, uint64_t seed) {
    struct runner_reply reply;
    unsigned long long bytes, inputs = referee_checksum(&v->acc.r, v->at, true);
    referee_poison(&v->acc.r, v->at, seed);
    referee_wait(&v->acc.r);
    const struct runner_request q = {.what = RUNNER_SAMPLE, .placement = (uint32_t)v->at};
    process_ask(&v->runner, &q, v->deadline, &v->left, &reply);
    settle(v, &reply);
    const char *where = referee_canaries(&v->acc.r, &bytes);
    if (where)
        verdict(v, "wrong",
                text_format("%llu bytes outside the bounds of %s were written", bytes, where));
    if (referee_checksum(&v->acc.r, v->at, true) != inputs)
        verdict(v, "wrong", "an input was modified");
}

/* Whether two replays on the same inputs give the same bits. */
static void determinism(struct verify *v) {
    uint64_t seed = random_seed();
    unsigned long long sum[2];
    draw(v, KP_DIST_DECLARED, seed);
    for (int i = 0; i < 2; i++) {
        replay(v, kp_mix(seed, (uint64_t)i));
        sum[i] = referee_checksum(&v->acc.r, v->at, false);
    }
    cJSON_AddBoolToObject(v->json, "deterministic", sum[0] == sum[1]);
}

/* Samples of a distribution. */
static int seeds_of(int d) {
    return d == KP_DIST_DECLARED || d == KP_DIST_INFINITE ? SEEDS : 1;
}

/* One sample in the spreads of a class.  All elements are judged of the first; where slices are not
 * alike, those that are judged say nothing of the others. */
static void take_sample(struct verify *v, enum kp_class class, int d, int s,
                        struct sample_errors *found) {
    uint64_t seed = v->seed[d][s];
    draw(v, d, seed);
    if (!v->missing) replay(v, seed);
    enum how_much much = KP_SOME;
    if (d == KP_DIST_DECLARED && s == 0) much = KP_ALL;
    if (d == KP_DIST_ROWS || d == KP_DIST_INFINITE) much = KP_SLICES;
    accuracy_sample(&v->acc, v->at, class, much, kp_mix(seed, NOISE_SEED), found);
}

/* Judge the candidate and the baselines on all samples, in the spreads of a class.  Contents that
 * the most accurate baseline cannot compute without overflow are left out.  A lesser baseline that
 * is not of the class on declared contents is not judged on others: they cannot make it so. */
static void measure_errors(struct verify *v, enum kp_class class) {
    struct class_errors *e = &v->errors.of[class];
    bool *applies = v->errors.applies;
    v->acc.judged = v->acc.nbaselines;
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        e->judged[d] = v->acc.judged;
        for (int s = 0; s < seeds_of(d) && applies[d]; s++) {
            struct sample_errors found;
            take_sample(v, class, d, s, &found);
            applies[d] = !sample_outside(&found, (enum kp_distribution)d);
            e->candidate[d] = judgment_worst(e->candidate[d], found.candidate);
            e->spread[d] = error_worst(e->spread[d], found.spread);
            for (int b = 0; b < v->acc.judged; b++)
                e->baseline[b][d] = judgment_worst(e->baseline[b][d], found.baseline[b]);
        }
        if (d == KP_DIST_DECLARED && !judgment_passes(&e->baseline[v->acc.judged - 1][d]))
            v->acc.judged = 1;
    }
}

/* ---- The verdict ------------------------------------------------------------------ */

/* Repeat the samples of the distribution that fails, and show what is wrong with the first. */
KP_NORETURN static void wrong(struct verify *v, enum kp_class class, int d) {
    const struct kp_task *t = v->task;
    const char *name = class_name(t, class), *inputs = kp_distribution_name[d];
    struct kp_judgment j = v->errors.of[class].candidate[d];
    const char *again = "; but not when the same inputs are run again";
    for (int s = 0; s < seeds_of(d); s++) {
        struct sample_errors found;
        take_sample(v, class, d, s, &found);
        if (judgment_passes(&found.candidate)) continue;
        cJSON_AddItemToObject(v->json, "evidence", sample_evidence(t, &found, d, v->seed[d][s]));
        int k = sample_stray(t, &found);
        if (k >= 0) {
            const struct kp_stray *f = &found.found[k];
            verdict(v, "wrong",
                    text_format("%llu of %lld elements are off by more than %d x what %s "
                                "arithmetic does%s; first at %llu: expected %.9g, found %.9g "
                                "(%s inputs)",
                                f->bad, (long long)kp_shape_count(&t->values[t->outputs[k]].shape),
                                KP_ELEMENT_LIMIT, name, f->unwritten ? ", some never written" : "",
                                f->first_bad, f->first_expected, f->first_found, inputs));
        }
        j = found.candidate, again = "";
        break;
    }
    verdict(v, "wrong",
            text_format("the error is %.3g x the limit of class %s (%s inputs): over the output "
                        "%.3g, in a part %.3g, on average %.3g x what honest arithmetic does%s",
                        j.of_limit, name, inputs, j.rms, j.part, j.bias, again));
}

/* Find the first class whose limits the candidate keeps; all say what it is excused from.  Returns
 * the first distribution on which it misses the last, too, or -1. */
static int try_classes(struct verify *v, enum kp_class *found) {
    enum kp_class class[KP_CLASS_COUNT];
    int n = classes_of(v->task, class), d = 0;
    cJSON *verdict = v->json, *all = cJSON_AddObjectToObject(verdict, "missed");
    cJSON *classes = cJSON_AddObjectToObject(verdict, "baseline_class");
    measure_errors(v, class[0]);
    if (n > 1 && errors_missed(&v->errors, class[0]) >= 0) measure_errors(v, class[n - 1]);
    if (!v->missing) errors_leave_out(&v->errors, class[0], class[n - 1], verdict);
    for (int i = 0; i < n && d >= 0; i++) {
        if (i && i < n - 1) measure_errors(v, class[i]);
        *found = class[i];
        errors_add_baselines(&v->errors, class[i], classes);
        d = errors_missed(&v->errors, class[i]);
        if (d >= 0) errors_add_missed(&v->errors, class[i], all);
    }
    return d;
}

/* The candidate is of the first class whose limits it keeps.  Where there is no kernel, the most
 * accurate baseline stands in for it, and none has a class. */
KP_NORETURN static void conclude(struct verify *v) {
    enum kp_class class = KP_CLASS_FP32;
    int d = try_classes(v, &class);
    errors_add(&v->errors, class, v->json);
    if (d >= 0 && !v->missing) wrong(v, class, d);
    if (!v->missing) cJSON_AddStringToObject(v->json, "class", class_name(v->task, class));
    struct kp_error tolerance = tolerance_of(v->errors.of[class].spread[KP_DIST_DECLARED]);
    phase("audit");
    if (v->family && !v->missing)
        process_leave(&v->runner, v->deadline);
    else
        process_kill(&v->runner, 1); /* it is done, and ends meanwhile */
    v->acc.stand_in = false;         /* the audit has outputs of its own judged */
    audit_task(&v->acc, &tolerance, kp_mix(v->master, AUDIT_SEED), v->json);
    verdict(v, v->missing ? "missing" : "ok", v->missing);
}

static void verify(int argc, char **argv) {
    if (argc != 3) die(KP_USAGE, "usage: verify tasks/SUITE/TASK.json build/GPU/TASK");
    struct verify v;
    memset(&v, 0, sizeof v);
    phases_begin("start");
    v.task = task_load(argv[1]);
    v.prefix = argv[2];
    v.deadline = process_deadline();
    v.left = process_cell_seconds();
    v.json = cJSON_CreateObject();
    cJSON_AddNumberToObject(v.json, "schema", 1);
    cJSON_AddStringToObject(v.json, "task", v.task->name);
    cJSON *build = json_read(file_of(&v, "build.json"));
    const char *built = json_text(build, "verdict", "");
    if (cJSON_IsTrue(cJSON_GetObjectItem(build, "baselines_alone")))
        v.missing = json_text(build, "reason", "");
    else if (strcmp(built, "ok"))
        verdict(&v, built, json_text(build, "reason", NULL));
    v.master = random_seed();
    char *hex = text_format("%016llx", (unsigned long long)v.master);
    cJSON_AddStringToObject(v.json, "master_seed", hex);
    v.acc.stand_in = v.missing;
    v.errors.acc = &v.acc;
    v.family = stay_family(v.task, build);
    process_begin(v.family);
    if (!v.missing) start_recorder(&v);
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    phase("memory");
    kp_vendor_choose(NULL);
    allocate(&v);
    add_vendor(&v);
    phase("recording");
    if (!v.missing) make_tape(&v);
    for (int d = 0; d < KP_DIST_COUNT; d++) { /* drawn only now that the tape is closed */
        v.errors.applies[d] = kp_distribution_applies(v.task, (enum kp_distribution)d);
        for (int s = 0; s < SEEDS; s++) v.seed[d][s] = random_seed();
    }
    if (!v.missing) {
        phase("runners");
        start_runner(&v);
        process_end(&v.recorder, 1); /* what it may have left on the GPU ends with it */
        phase("referee");
        determinism(&v);
        if (stays()) {
            process_recorder_ahead();
            process_runner_ahead();
        }
    }
    phase("referee");
    conclude(&v);
}

int main(int argc, char **argv) {
    kp_program("verify");
    return stay(argc, argv, verify);
}
