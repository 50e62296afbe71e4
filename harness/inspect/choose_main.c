/* choose_main.c: `choose < LIST` times the choices of kernels that know several, beside each other.
 *
 * A line of LIST is `TASK.json PREFIX N`: PREFIX.so has N choices (contestant_main.c).  For each
 * that is right it prints `PREFIX<tab>CODE<tab>CHOICE<tab>MICROSECONDS<tab>BOARD`, where CODE is
 * what PREFIX.code holds, and BOARD the first six digits of the GPU's hash.  harness/inspect/tune
 * writes LIST and reads what is printed.
 *
 * The clock is the judge's (replay/timed_sample.c): a cold L2, events inside a graph.  A round is a
 * sample of each choice that may still be the fastest, in random order.  Nothing is judged here: a
 * choice is left out where its outputs are nowhere near the baseline's, and what is chosen is
 * verified when its cell is. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/json.h"
#include "base/stats.h"
#include "gpu/machine.h"
#include "measure/accuracy.h"
#include "measure/phases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CHOICES = RUNNER_MAX_PLACEMENTS,
    ROUNDS = 256,
    LEAST = 4,       /* rounds that every choice takes part in */
    ENOUGH = 16,     /* rounds, if they take as long as power takes to limit the clock */
    MOST_SERVED = 32 /* cells of a contestant: the sandbox limits what processor time it has */
};
static const double behind = 1.08; /* x the fastest: a choice that far behind is out */
static const double near = 0.01;   /* of the outputs' norm: f16 roundings are far below */
static const double enough_seconds = 0.3, most_seconds = 2; /* for the rounds of a cell */

struct contest {
    struct accuracy acc;
    struct kp_process contestant;
    const char *prefix;
    int n, served;
    int taken[MOST_CHOICES];
    bool out[MOST_CHOICES]; /* wrong, or too slow */
    double us[MOST_CHOICES][ROUNDS], rms[KP_MAX_OUTPUTS];
};

/* The setup of a process to which each choice is a placement, and its buffers: all the same. */
static struct kp_shared *same_for_all(const struct contest *c) {
    int each = c->acc.r.nbuffers;
    struct kp_shared *all = calloc((size_t)(each * c->n) + 1, sizeof *all);
    if (!all) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < each * c->n; i++) all[i] = c->acc.r.shared[i % each];
    all[each * c->n] = c->acc.r.shared[each]; /* the clean memory */
    return all;
}

/* Hand the library to a contestant, a new one where that has served enough.  False if it says no.
 */
static bool hand_over(struct contest *c) {
    struct runner_recording told = {.ntensors = (uint32_t)c->acc.r.task->ntensors,
                                    .noutputs = (uint32_t)c->acc.r.task->noutputs};
    struct runner_setup setup = referee_setup(&c->acc.r, random_seed());
    struct runner_reply reply;
    char *argv[] = {"contestant", NULL}, *library = text_format("%s.so", c->prefix);
    if (!realpath(library, told.library)) die(KP_INPUT, "%s: cannot be read", library);
    free(library);
    if (c->served++ % MOST_SERVED == 0) process_end(&c->contestant, 1);
    if (!c->contestant.pid) process_spawn(&c->contestant, "contestant", argv);
    setup.nplacements = (uint32_t)c->n;
    struct kp_shared *all = same_for_all(c);
    process_tell(&c->contestant, &told, sizeof told);
    process_setup(&c->contestant, &setup, all);
    free(all);
    if (process_wait(&c->contestant, process_deadline(), &reply, NULL) == RUNNER_OK) return true;
    fprintf(stderr, "choose: %s: %s\n", c->prefix, reply.message);
    process_end(&c->contestant, 1);
    return false;
}

/* Ask the contestant.  False if it fails, which ends it. */
static bool ask(struct contest *c, enum runner_what what, int choice, double *us) {
    const struct runner_request q = {.what = (uint32_t)what, .placement = (uint32_t)choice};
    struct runner_reply reply;
    double forever = INFINITY;
    bool ok = process_ask(&c->contestant, &q, process_deadline(), &forever, &reply) == RUNNER_OK;
    *us = reply.event_us;
    if (ok) return true;
    fprintf(stderr, "choose: %s: choice %d: %s\n", c->prefix, choice, reply.message);
    process_end(&c->contestant, 1);
    return false;
}

/* Whether what a choice wrote is near the baseline's outputs. */
static bool is_near(struct contest *c) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    struct kp_compare found[KP_MAX_OUTPUTS];
    referee_pointers(&c->acc.r, 0, tensors, outputs);
    referee_compare(&c->acc.r, outputs, c->acc.out[0], c->rms, INFINITY, true, found);
    return referee_error(c->acc.r.task, found).norm < near;
}

/* A sample of each choice that is not out, in random order.  The first round, number -1, warms up
 * and looks at the outputs. */
static bool take_round(struct contest *c, int number) {
    int order[MOST_CHOICES];
    double us;
    for (int i = 0; i < c->n; i++) {
        int k = (int)(random_seed() % (uint64_t)(i + 1));
        order[i] = order[k], order[k] = i;
    }
    for (int k = 0; k < c->n; k++) {
        int i = order[k];
        if (c->out[i]) continue;
        referee_poison(&c->acc.r, 0, random_seed());
        referee_wait(&c->acc.r);
        if (!ask(c, RUNNER_SAMPLE, i, &us)) return false;
        if (number >= 0)
            c->us[i][c->taken[i]++] = us;
        else if (!is_near(c)) {
            fprintf(stderr, "choose: %s: choice %d is wrong\n", c->prefix, i);
            c->out[i] = true;
        }
    }
    return true;
}

static double time_of(const struct contest *c, int i) {
    return c->taken[i] ? stat_interquartile_mean(c->us[i], c->taken[i]) : INFINITY;
}

/* Leave out who cannot win any more. */
static void thin(struct contest *c) {
    double best = INFINITY;
    for (int i = 0; i < c->n; i++) best = fmin(best, time_of(c, i));
    for (int i = 0; i < c->n; i++) c->out[i] |= time_of(c, i) > behind * best;
}

static bool take_rounds(struct contest *c) {
    double start = seconds_now();
    if (!take_round(c, -1)) return false;
    for (int i = 0; i < ROUNDS; i++) {
        double taken = seconds_now() - start;
        if (i >= LEAST && (taken > most_seconds || (i >= ENOUGH && taken > enough_seconds))) break;
        if (!take_round(c, i)) return false;
        if (i + 1 >= LEAST) thin(c);
    }
    return true;
}

/* Print the times, and for who waits what is the fastest. */
static void say(const struct contest *c, const char *board) {
    char *path = text_format("%s.code", c->prefix), *code = file_read(path, NULL);
    code[strcspn(code, "\n")] = 0;
    int best = 0;
    for (int i = 1; i < c->n; i++)
        if (time_of(c, i) < time_of(c, best)) best = i;
    if (c->taken[best])
        fprintf(stderr, "choose: %s: choice %d of %d, %.2f us\n", c->prefix, best, c->n,
                time_of(c, best));
    for (int i = 0; i < c->n; i++)
        if (c->taken[i]) printf("%s\t%s\t%d\t%.3f\t%s\n", c->prefix, code, i, time_of(c, i), board);
    fflush(stdout);
    free(path);
    free(code);
}

/* Time the choices of a cell. */
static void contest(struct contest *c, const struct kp_task *task, const char *board) {
    /* To see whether outputs are right any call will do: without one a search would begin. */
    static const char any_call[] = "any cublas_nn\n";
    size_t need, accuracy = 0, free_bytes, left, total;
    double us;
    phase("memory");
    kp_vendor_choose(any_call);
    memset(c->taken, 0, sizeof c->taken);
    memset(c->out, 0, sizeof c->out);
    KP_CU(cu.cuMemGetInfo(&free_bytes, &total));
    bool fits = referee_open(&c->acc.r, task, 1, 0, referee_flush_bytes(), random_seed(), &need);
    KP_CU(cu.cuMemGetInfo(&left, &total));
    fits = fits && accuracy_open(&c->acc, left / 4, &accuracy);
    if (!fits)
        fprintf(stderr, "choose: %s: %s\n", c->prefix, referee_short(need + accuracy, free_bytes));
    phase("contestant");
    if (fits && hand_over(c)) {
        phase("referee");
        referee_fill(&c->acc.r, 0, KP_DIST_DECLARED, random_seed());
        accuracy_baseline(&c->acc, 0, 0);
        referee_rms(&c->acc.r, c->acc.out[0], c->rms);
        if (take_rounds(c)) say(c, board);
        phase("contestant");
        if (c->contestant.pid) ask(c, RUNNER_NEXT, 0, &us);
    }
    phase("memory");
    accuracy_close(&c->acc);
}

int main(int argc, char **argv) {
    static struct contest c;
    static char path[PATH_MAX], prefix[PATH_MAX];
    int kernels = 0;
    (void)argv;
    kp_program("choose");
    if (argc != 1) die(KP_USAGE, "usage: choose < LIST (harness/inspect/tune runs it)");
    phases_begin("start");
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    char board[7];
    snprintf(board, sizeof board, "%s", json_text(machine_describe(), "uuid_hash", "?"));
    while (scanf("%4095s %4095s %d", path, prefix, &c.n) == 3) {
        if (c.n < 1 || c.n > MOST_CHOICES) die(KP_INPUT, "%s: %d choices", prefix, c.n);
        struct kp_task *task = task_load(path);
        c.prefix = prefix;
        contest(&c, task, board);
        kernels++;
        task_free(task);
    }
    process_end(&c.contestant, 1);
    fprintf(stderr, "choose: %d kernels; seconds: %s\n", kernels,
            cJSON_PrintUnformatted(phases_seconds()));
    return KP_OK;
}
