/* export.h: attempts as training data.
 *
 *   sft.jsonl      supervised pairs: the prompt, and what it asked for, which is the whole answer;
 *                  each verified kernel once
 *   correct.jsonl  the self-supervised filter (rejection sampling): the same of every attempt whose
 *                  kernel was verified, repeated kernels included
 *     {"prompt": [{"role", "content"}...], "completion": [{"role": "assistant", "content"}],
 *      "task", "gpu", "attempt", "speedup": number or null (not timed), "class", "split"}
 *     These are the columns of TRL's conversational prompt-completion type, and five more.
 *
 *   rl.jsonl       every answer that has a verdict
 *     {"data_source": "kernelproof", "prompt": [...], "ability": "cuda",
 *      "reward_model": {"style": "rule", "ground_truth": "GPU/TASK"},
 *      "extra_info": {"split", "index", "task", "gpu", "attempt", "mode", "round", "model",
 *                     "class", "score", "bucket_variance"},
 *      "answer", "verdict", "ratio", "reward"}
 *     The first five are verl's columns; harness/export/reward is its rule.  Every key is on every
 *     line, null if unknown.
 *
 * Cells whose results are flagged degenerate or no-influence are in no file, because there a
 * kernel that skips the work is correct.  An answer whose result is flagged control-ratio or
 * clocks-disagree has the verdict "doubtful": a time that cannot be trusted earns nothing, like
 * a wrong kernel, and is in no file of pairs.
 *
 * split is "test" for a task if the first eight hex digits of its name's SHA-256, divided by
 * 2^32, are below the test share (0.2); else "train".  So a task never changes sides when others
 * are added or removed.  With this share, identical tasks under two names are on the same side
 * (tests/e2e/export.sh checks that); check again if you change it.
 *
 * The reward of an answer:
 *
 *   ratio   the speedup (baseline over kernel, interquartile means); 0 unless the verdict is ok.
 *   score   the rewarded quantity.  The kernel's samples are paired with its baseline's of the
 *           same round, in order of time; the ratios are split into 7 buckets of nearly equal
 *           size; score is the median of the 7 means, rounded to two decimals towards 1 (1.118
 *           is 1.11, 0.992 is 1.00).  With fewer than 7 pairs it is the ratio, rounded in the
 *           same way.  It is 0 unless the verdict is ok.
 *   reward  (score - mean) / deviation, clipped to -1.5..1.5.  Mean and standard deviation (of
 *           the population) are those of all exported answers to the same task on the same GPU,
 *           failures included.  0 if all scores are equal.
 *
 * bucket_variance is the variance of the 7 means; it is large for a noisy measurement. */
#ifndef KP_EXPORT_H
#define KP_EXPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum { EXPORT_BUCKETS = 7 };
#define EXPORT_CLIP 1.5

/* The score of an ok time.json.  *variance is NAN if there are too few pairs; it may be NULL. */
double export_score(const cJSON *time, double *variance);

/* The worth of one result: the ratio (`shaped`: the score) of an ok kernel with a trusted time;
 * 0 for any other verdict; NAN if the result says nothing about the kernel, because it could not
 * be tried or the task cannot tell a working kernel from an idle one. */
double export_worth(const cJSON *result, bool shaped);

/* Round to two decimals, towards 1. */
double export_round(double ratio);

/* Compute the rewards of a group from its n scores; `reward` may be `score`. */
void export_rewards(const double *score, double *reward, int n);

/* "train" or "test". */
const char *export_split(const char *task, double test_share);

/* The messages of a request in any of the three wire formats, as [{"role", "content"}...] with
 * the instructions first, as `system`.  NULL if there are none.  Delete it. */
cJSON *export_messages(const cJSON *request);

#endif
