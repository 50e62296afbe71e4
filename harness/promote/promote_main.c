/* promote_main.c: decide whether an attempt becomes the kernel of its cell.
 *
 *   promote GPU TASK.json ATTEMPT CONFIRM.time.json [CURRENT.time.json]
 *
 * CONFIRM is a new measurement of the attempt, in fresh processes with new seeds.  The
 * measurement that selected it does not count, because the best of many is partly lucky.
 * CURRENT is the current kernel, measured in the same session.  The attempt is promoted if it is
 * ok and the current kernel is not, or if it is at least as accurate and significantly faster.
 * Then its transcript is copied to results/transcripts/ and its kernel, byte for byte, to
 * optimized/GPU/TASK.cu.  Otherwise one line says why not, and the exit status is 0.
 *
 * The replaced kernel is first copied to build/attempts/ATTEMPT/GPU/TASK.replaced.cu.  A kernel
 * that no model wrote, or that was edited since, is replaced only with FORCE=1. */
#define _GNU_SOURCE
#include "gen/attempt.h"
#include "gen/code.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "record/result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char root[] = "build/attempts";

struct promotion {
    const char *gpu, *name; /* name: of the attempt */
    char task[64];
    struct attempt a;
    struct result confirm, current; /* current.json is NULL if there is no kernel yet */
    char *kernel, *target;          /* paths: of the attempt and of the cell */
    char *transcript, *kept;        /* paths: of the attempt's, and of its copy in results/ */
};

/* ---- Inputs --------------------------------------------------------------------- */

/* Whether a file has this SHA-256. */
static bool is_hash_of(const char *path, const char *sha) {
    char now[65];
    file_sha256(path, now);
    return !strcmp(now, sha);
}

/* Load the result of this cell at `path`. */
static void load(const struct promotion *p, const char *path, struct result *r) {
    char why[300];
    if (!result_load(path, r, why, sizeof why)) die(KP_INPUT, "%s %s: measure it again", path, why);
    if (strcmp(r->gpu, p->gpu) || strcmp(r->task, p->task))
        die(KP_INPUT, "%s is of %s/%s, not of %s/%s", path, r->gpu, r->task, p->gpu, p->task);
    if (result_ok(r) && !(r->ratio > 0))
        die(KP_INPUT, "%s has no times: give the file of the step time", path);
}

static void load_attempt(struct promotion *p) {
    char why[300], *gen = attempt_path(root, p->name, p->gpu, p->task, ".gen.json");
    if (!attempt_load(root, p->name, p->gpu, p->task, &p->a, why, sizeof why))
        die(KP_INPUT, "%s %s", gen, why);
    if (strcmp(p->a.outcome, "code"))
        die(KP_INPUT, "%s: this attempt gave no kernel of its own (%s)", gen, p->a.outcome);
    free(gen);
    p->kernel = attempt_path(root, p->name, p->gpu, p->task, ".cu");
    p->transcript = attempt_path(root, p->name, p->gpu, p->task, ".jsonl");
    p->kept = attempt_path("results/transcripts", p->name, p->gpu, p->task, ".jsonl");
    char *source = file_read(p->kernel, NULL);
    if (code_untouched(source) != 1)
        die(KP_INPUT,
            "%s was edited since the model wrote it: what is promoted is what a transcript holds; "
            "make your own kernel optimized/%s/%s.cu by hand",
            p->kernel, p->gpu, p->task);
    free(source);
    if (access(p->transcript, R_OK))
        die(KP_INPUT, "%s: no transcript (%s): without one no kernel is promoted", p->transcript,
            strerror(errno));
}

/* The seed of a measurement's contents; NULL if it is not recorded. */
static const char *seed_of(const cJSON *result) {
    return json_text(cJSON_GetObjectItemCaseSensitive(result, "harness"), "master_seed", NULL);
}

static void load_confirm(struct promotion *p, const char *path) {
    load(p, path, &p->confirm);
    if (!is_hash_of(p->kernel, p->confirm.sha256))
        die(KP_INPUT, "%s is of another kernel than %s: measure it again", path, p->kernel);
    const char *first = seed_of(p->a.result), *second = seed_of(p->confirm.json);
    if (first && second && !strcmp(first, second))
        die(KP_INPUT,
            "%s is the measurement by which %s was chosen: measure it again, with new seeds", path,
            p->name);
}

/* Load the current kernel's result, which must belong to the current file. */
static void load_current(struct promotion *p, const char *path) {
    load(p, path, &p->current);
    const char *at =
        access(p->target, F_OK) == 0
            ? p->target
            : json_text(cJSON_GetObjectItemCaseSensitive(p->current.json, "kernel"), "path", NULL);
    if (at && access(at, R_OK) == 0 && !is_hash_of(at, p->current.sha256))
        die(KP_INPUT, "%s is of another kernel than %s: measure it again", path, at);
}

/* ---- The decision ----------------------------------------------------------------- */

/* An end of the interval of a kernel's time; NAN if it is not recorded. */
static double time_end(const struct result *r, const char *end) {
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(r->json, "time_us");
    return json_number(cJSON_GetObjectItemCaseSensitive(times, "candidate"), end, NAN);
}

/* The reason not to promote the attempt, as a new string; NULL if there is none. */
static char *objection(const struct promotion *p) {
    const struct result *new = &p->confirm, *old = &p->current;
    const char *doubt = result_flag(new->json, FLAG_DOUBT);
    if (!result_ok(new))
        return text_format("%s, measured again, has the verdict %s%s%s", p->name, new->verdict,
                           *new->reason ? ": " : "", new->reason);
    if (doubt) /* a search tends to find such kernels */
        return text_format("%s, measured again, is flagged %s: look at it, and if it is honest "
                           "copy it by hand",
                           p->name, doubt);
    if (!old->json) return NULL;
    if (!strcmp(new->sha256, old->sha256)) return text_format("it is %s already", p->name);
    if (!strcmp(old->verdict, "skipped"))
        return text_format("the present kernel could not be tried here (%s)", old->reason);
    if (!result_ok(old)) return NULL;
    if (class_rank(new->class) > class_rank(old->class))
        return text_format("%s is %s, less accurate than the present kernel, which is %s", p->name,
                           new->class, old->class);
    if (!strcmp(new->against, old->against)) {
        if (new->low > old->ratio) return NULL;
        return text_format(
            "%s is not surely faster: %.3fx (%.3f to %.3f), the present kernel %.3fx", p->name,
            new->ratio, new->low, new->high, old->ratio);
    }
    double most = time_end(new, "high"), least = time_end(old, "low");
    if (most < least) return NULL;
    return text_format(
        "%s is not surely faster: it takes up to %.4g us, the present kernel at least "
        "%.4g us",
        p->name, most, least);
}

/* Exit 2 without FORCE=1 if the current kernel was written or edited by hand. */
static void protect(const struct promotion *p) {
    const char *force = getenv("FORCE");
    if (access(p->target, F_OK) || (force && !strcmp(force, "1"))) return;
    char *source = file_read(p->target, NULL);
    int state = code_untouched(source);
    free(source);
    if (state != 1)
        die(KP_USAGE, "%s was %s: %s does not replace it unless FORCE=1", p->target,
            state == 0 ? "edited by hand since a model wrote it" : "not written by a model",
            p->name);
}

/* ---- Outputs ----------------------------------------------------------------- */

/* Create the folders of `path`. */
static void folders_of(const char *path) {
    char *folder = text_format("%s", path);
    for (char *p = folder; (p = strchr(p + 1, '/'));) {
        *p = 0;
        if (mkdir(folder, 0777) && errno != EEXIST)
            die(KP_IO, "%s: cannot be made: %s; nothing was replaced", folder, strerror(errno));
        *p = '/';
    }
    free(folder);
}

/* Copy byte for byte, to a temporary file that is then renamed. */
static void copy(const char *from, const char *to) {
    long size;
    char *bytes = file_read(from, &size), *beside = text_format("%s.%ld+", to, (long)getpid());
    folders_of(to);
    FILE *f = fopen(beside, "wb");
    bool bad =
        !f || fwrite(bytes, 1, (size_t)size, f) != (size_t)size || fflush(f) || fsync(fileno(f));
    int why = errno;
    if (f && fclose(f) && !bad) bad = true, why = errno;
    if (!bad && rename(beside, to)) bad = true, why = errno;
    if (bad) {
        unlink(beside);
        die(KP_IO, "%s: cannot write: %s; what was there before is unchanged", to, strerror(why));
    }
    free(bytes);
    free(beside);
}

static bool same_bytes(const char *x, const char *y) {
    long nx, ny;
    char *a = file_read(x, &nx), *b = file_read(y, &ny);
    bool same = nx == ny && !memcmp(a, b, (size_t)nx);
    free(a);
    free(b);
    return same;
}

/* Copy the file that is about to be replaced to TASK.replaced.EXT beside the attempt, or to
 * TASK.replaced.2.EXT and so on if another file has that name. */
static void keep_replaced(const struct promotion *p, const char *path, const char *ext) {
    if (access(path, F_OK)) return;
    for (int k = 1;; k++) {
        char *suffix =
            k == 1 ? text_format(".replaced%s", ext) : text_format(".replaced.%d%s", k, ext);
        char *to = attempt_path(root, p->name, p->gpu, p->task, suffix);
        bool taken = access(to, F_OK) == 0, done = taken && same_bytes(to, path);
        if (!taken) copy(path, to);
        free(suffix);
        free(to);
        if (!taken || done) return;
    }
}

/* Copy the transcript first, so that a kernel never lacks one. */
static void promote(const struct promotion *p) {
    keep_replaced(p, p->target, ".cu");
    if (access(p->kept, F_OK) == 0 && !same_bytes(p->kept, p->transcript))
        keep_replaced(p, p->kept, ".jsonl");
    folders_of(p->target);
    copy(p->transcript, p->kept);
    copy(p->kernel, p->target);
}

/* Print one line about the promotion. */
static void announce(struct promotion *p) {
    const struct result *new = &p->confirm, *old = &p->current;
    for (char *c = p->a.model; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    printf("promote: %s/%s %.2fx", p->gpu, p->task, new->ratio);
    if (isfinite(new->high)) printf(" +-%.1f%%", 50 * (new->high - new->low) / new->ratio);
    printf(" by %s, %s (was ", *p->a.model ? p->a.model : "an unnamed model", p->name);
    if (!old->json)
        printf("missing)\n");
    else if (!result_ok(old))
        printf("%s)\n", old->verdict);
    else if (strcmp(old->against, new->against))
        printf("%.2fx over another baseline, %s)\n", old->ratio, old->against);
    else
        printf("%.2fx)\n", old->ratio);
}

/* The name of the task whose file is given. */
static void name_task(struct promotion *p, const char *path) {
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strcspn(base, ".");
    if (access(path, R_OK)) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
    snprintf(p->task, sizeof p->task, "%.*s", (int)n, base);
    if (n >= sizeof p->task || !is_name(p->task) || strcmp(base + n, ".json"))
        die(KP_USAGE, "%s is no task file", path);
}

int main(int argc, char **argv) {
    static struct promotion p; /* zeroed */
    char mode[24];
    int round, index;
    kp_program("promote");
    if ((argc != 5 && argc != 6) || !is_name(argv[1]))
        die(KP_USAGE, "usage: promote GPU TASK.json ATTEMPT CONFIRM.time.json [CURRENT.time.json]");
    if (!attempt_parse(argv[3], mode, &round, &index))
        die(KP_USAGE, "%s is no attempt: those are called MODE.rROUNDaINDEX", argv[3]);
    p.gpu = argv[1];
    p.name = argv[3];
    name_task(&p, argv[2]);
    p.target = text_format("optimized/%s/%s.cu", p.gpu, p.task);
    load_attempt(&p);
    load_confirm(&p, argv[4]);
    if (argc == 6 && *argv[5])
        load_current(&p, argv[5]);
    else if (access(p.target, F_OK) == 0)
        die(KP_USAGE, "%s is there: give its measurement, too", p.target);
    char *why = objection(&p);
    if (why) {
        printf("promote: %s/%s stays as it is: %s\n", p.gpu, p.task, why);
        free(why);
    } else {
        protect(&p);
        promote(&p);
        announce(&p);
    }
    if (fflush(stdout)) die(KP_IO, "cannot write to standard output: %s", strerror(errno));
    return KP_OK;
}
