/* attempt.h: attempts at a cell, as they lie in the tree.
 *
 *   build/attempts/MODE.rRaA/GPU/TASK.gen.json    what the model's answer came to (written last)
 *                                    .asked.json  what is asked, written before it is sent
 *                                    .jsonl       the transcript
 *                                    .cu          the kernel, if there is one
 *                                    .build.json .verify.json .time.json   as for any cell
 *
 * MODE is one_shot, repair, contrastive, branching or best_of_n; R counts rounds from 1, A attempts
 * of a round from 1; A = 0 is a round's call for ideas, which has no kernel. */
#ifndef KP_ATTEMPT_H
#define KP_ATTEMPT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct result; /* report/result.h */

struct attempt {
    char name[64]; /* branching.r2a3 */
    char mode[24];
    int round, index;
    char outcome[16]; /* code, ideas, duplicate, cut, empty, refused, invalid, no-code */
    char verdict[16]; /* ok once it was timed; else what stopped it (build, gate, wrong, ...);
                         doubtful: ok, but its time is not to be trusted (FLAG_DOUBT of result.h);
                         duplicate; "" if not measured yet, or there is nothing to measure */
    char reason[400]; /* of outcome or verdict */
    char class[16];
    double ratio, low, high, us, against_us; /* 0 unless ok */
    char code_hash[65];                      /* of the normalised kernel; "" if none */
    char same_as[64];                        /* duplicate: the attempt that it repeats */
    char model[128], date[32];
    double input_tokens, output_tokens, cost, seconds; /* NAN: unknown */
    int idea;                                          /* index of the idea it realises, -1: none */
    cJSON *gen;                                        /* the whole gen.json; NULL for "current" */
    cJSON *result; /* the furthest of time, verify, build.json; NULL */
};

struct attempts {
    int n;
    struct attempt *a; /* sorted by mode, round, index */
};

/* Load all attempts at a cell under `root` (build/attempts).  One whose gen.json is not there yet
 * is none.  An unreadable or foreign file is warned of and left out.  mode NULL: of every mode. */
struct attempts attempts_load(const char *root, const char *gpu, const char *task,
                              const char *mode);
void attempts_free(struct attempts *l);

/* Load one by its name.  Returns false, and a sentence in `why`, where it cannot be used. */
bool attempt_load(const char *root, const char *name, const char *gpu, const char *task,
                  struct attempt *a, char *why, size_t size);

/* Make an attempt named "current" of a result, whose JSON it takes.  Returns false, and leaves the
 * result as it is, if that is not of the kernel with this SHA-256. */
bool attempt_of_kernel(struct attempt *a, struct result *r, const char *kernel_sha256);

/* The same of the result in a file.  Returns false, and a sentence in `why`, if it is of another
 * kernel or cannot be used. */
bool attempt_current(struct attempt *a, const char *path, const char *kernel_sha256, char *why,
                     int size);

/* Whether it passed everything and has a time that can be trusted. */
bool attempt_ok(const struct attempt *a);

/* How accurate a class is: 0 for exact and fp32, 1 for tf32, 2 for f16 and bf16, 3 for any other.
 */
int class_rank(const char *class);

/* Whether `a` is better than `b`, both ok: more accurate, or as accurate and the low end of its
 * interval is higher. */
bool attempt_better(const struct attempt *a, const struct attempt *b);

/* The best of the ok ones by the low end of the interval among those of the most accurate class
 * found (fp32 before tf32 before f16 and bf16); NULL if none is ok.  Of equals the first. */
const struct attempt *attempts_best(const struct attempts *l);

/* PATH of an attempt's file, e.g. ".cu".  Free it. */
char *attempt_path(const char *root, const char *name, const char *gpu, const char *task,
                   const char *suffix);

/* Split MODE.rRaA; false if it is none. */
bool attempt_parse(const char *name, char mode[24], int *round, int *index);

/* Generator for choices, seeded by text: the same text, the same choices. */
struct choice {
    unsigned long long s;
};
struct choice choice_seed(const char *text);
double choice_uniform(struct choice *c); /* in [0,1) */

#endif
