/* attempt.h: attempts at a cell, as files of the tree and as JSON.
 *
 *   build/attempts/MODE.rRaA/GPU/TASK.gen.json    the outcome of the model's answer (written last)
 *                                    .asked.json  the question, written before it is sent
 *                                    .jsonl       the transcript
 *                                    .cu          the kernel, if there is one
 *                                    .build.json .verify.json .time.json   as for any cell
 *
 * MODE is one_shot, repair, contrastive, branching or best_of_n; in an experiment with a seed
 * behind it, branching-2, which is a search of its own.  R counts rounds from 1, A counts the
 * attempts of a round from 1; A = 0 is a round's call for ideas, which has no kernel.
 *
 * As JSON an attempt is its .gen.json (gen_main.c writes it: outcome is code, ideas, duplicate,
 * cut, empty, refused, invalid or no-code), with mode, round and index of its name, and with what
 * the furthest step found:
 *
 *   verdict   ok once it is timed; else the verdict of the step that stopped it; doubtful: ok, but
 *             its time cannot be trusted (FLAG_DOUBT of record/result.h); duplicate; null: not
 *             measured yet, or no kernel
 *   reason    of the outcome or the verdict
 *   class, rank                        and its place, the most accurate first; CLASS_UNKNOWN
 *   ratio, low, high, us, against_us   null unless ok
 *   result    all of that step's file; null */
#ifndef KP_ATTEMPT_H
#define KP_ATTEMPT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* The attempts at a cell under `root` (build/attempts), as an array in order of mode, round and
 * index.  One without a gen.json does not count yet.  Warns of an unusable file and skips it.  mode
 * NULL: all modes.  Delete it. */
cJSON *attempts_load(const char *root, const char *gpu, const char *task, const char *mode);

/* The cell's kernel as an attempt "current": its code_sha256, and its result if there is one of
 * this very file, measured here or else recorded.  Delete it. */
cJSON *attempt_current(const char *gpu, const char *task, const char *kernel);

/* The path of an attempt's file, e.g. with suffix ".cu".  Free it. */
char *attempt_path(const char *root, const char *name, const char *gpu, const char *task,
                   const char *suffix);

/* Split MODE.rRaA; false if it is not one. */
bool attempt_parse(const char *name, char mode[24], int *round, int *index);

/* The hash of a kernel's normal form (base/code_normal.h), by which kernels are the same. */
void attempt_code_hash(const char *kernel, char hash[65]);

#endif
