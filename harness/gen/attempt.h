/* attempt.h: attempts at a cell, as files of the tree.
 *
 *   build/attempts/MODE.rRaA/GPU/TASK.gen.json    the outcome of the model's answer (written last)
 *                                    .asked.json  the question, written before it is sent
 *                                    .jsonl       the transcript
 *                                    .cu          the kernel, if there is one
 *                                    .build.json .verify.json .time.json   as for any cell
 *
 * MODE is one_shot, repair, contrastive, branching or best_of_n; in an experiment with a seed behind it,
 * branching-2, which is a search of its own.  R counts rounds from 1, A counts
 * the attempts of a round from 1; A = 0 is a round's call for ideas, which has no kernel. */
#ifndef KP_ATTEMPT_H
#define KP_ATTEMPT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct result; /* record/result.h */

struct attempt {
    char name[64]; /* branching.r2a3 */
    char mode[24];
    int round, index;
    char outcome[16];  /* code, ideas, duplicate, cut, empty, refused, invalid, no-code */
    char verdict[16];  /* ok once it is timed; else the verdict of the step that stopped it
                        * (build, gate, wrong, ...); doubtful: ok, but its time cannot be trusted
                        * (FLAG_DOUBT of result.h); duplicate; "" if it is not measured yet or has
                        * no kernel */
    char reason[2048]; /* of outcome or verdict */
    char class[16];
    double ratio, low, high, us, against_us; /* 0 unless ok */
    char code_hash[65];                      /* of the normalised kernel; "" if none */
    char same_as[64];                        /* duplicate: the attempt with the same code */
    char model[128], date[32];
    double input_tokens, output_tokens, cost, seconds; /* NAN: unknown */
    int idea;                                          /* index of the idea that it implements;
                                                        * -1: none */
    cJSON *gen;                                        /* the whole gen.json; NULL for "current" */
    cJSON *result; /* of the furthest step: time, verify or build.json; NULL */
};

struct attempts {
    int n;
    struct attempt *a; /* sorted by mode, round and index */
};

/* Load all attempts at a cell under `root` (build/attempts).  An attempt without a gen.json does
 * not count yet.  Warns of an unreadable or foreign file and skips it.  mode NULL: all modes. */
struct attempts attempts_load(const char *root, const char *gpu, const char *task,
                              const char *mode);
void attempts_free(struct attempts *l);

/* Load one attempt by name.  Returns false, and a sentence in `why`, if it cannot be used. */
bool attempt_load(const char *root, const char *name, const char *gpu, const char *task,
                  struct attempt *a, char *why, size_t size);

/* Make an attempt named "current" of a result, and take over its JSON.  Returns false, and leaves
 * the result unchanged, if it is not of the kernel with this SHA-256. */
bool attempt_of_kernel(struct attempt *a, struct result *r, const char *kernel_sha256);

/* The same for the result in a file.  Returns false, and a sentence in `why`, if it is of a
 * different kernel or unusable. */
bool attempt_current(struct attempt *a, const char *path, const char *kernel_sha256, char *why,
                     int size);

/* Whether it passed every check and its time can be trusted. */
bool attempt_ok(const struct attempt *a);

/* Whether `a` is better than `b`; both are ok.  The more accurate one is better; among equals,
 * the one with the higher low end of its interval. */
bool attempt_better(const struct attempt *a, const struct attempt *b);

/* The ok attempt with the highest low end of its interval, among those of the most accurate
 * class found (class_rank); NULL if none is ok.  The first one wins a
 * tie. */
const struct attempt *attempts_best(const struct attempts *l);

/* The path of an attempt's file, e.g. with suffix ".cu".  Free it. */
char *attempt_path(const char *root, const char *name, const char *gpu, const char *task,
                   const char *suffix);

/* Split MODE.rRaA; false if it is not one. */
bool attempt_parse(const char *name, char mode[24], int *round, int *index);

/* Whether a mode is this one, with a seed or without. */
bool attempt_mode(const char *mode, const char *word);

/* A random generator seeded by text: equal texts give equal choices. */
struct choice {
    unsigned long long s;
};
struct choice choice_seed(const char *text);
double choice_uniform(struct choice *c); /* in [0,1) */

#endif
