/* export.h: attempts as data for training.
 *
 *   sft.jsonl      supervised pairs: the prompt, and the verified kernel in a fence
 *   correct.jsonl  the self-supervised filter: the prompt, and the whole answer, of every
 *                  attempt whose kernel was verified, repeated kernels among them
 *     {"prompt": [{"role", "content"}...], "completion": [{"role": "assistant", "content"}],
 *      "task", "gpu", "attempt", "speedup": number or null (not timed), "class", "split"}
 *     These are the columns of TRL's conversational prompt-completion type, and five more.
 *
 *   rl.jsonl       every answer that was judged
 *     {"data_source": "kernelproof", "prompt": [...], "ability": "cuda",
 *      "reward_model": {"style": "rule", "ground_truth": "GPU/TASK"},
 *      "extra_info": {"split", "index", "task", "gpu", "attempt", "mode", "round", "model",
 *                     "class", "score", "bucket_variance"},
 *      "answer", "verdict", "ratio", "reward"}
 *     The first five are verl's columns; its rule is asked of harness/reward.  Each key is on
 *     every line, null where unknown.
 *
 * Cells whose results are flagged degenerate or no-influence are in no file: there, a kernel
 * that does not do the work is right.  An answer whose result is flagged decoy-ratio or
 * clocks-disagree has the verdict "doubtful": a time that cannot be trusted earns nothing, as that
 * of a wrong kernel, and it is in no file of pairs.
 *
 * split is "test" for the tasks whose name's SHA-256, its first eight digits read as a
 * number over 2^32, is less than the test's share (0.2), else "train": a task never changes
 * sides as others come and go.  Tasks that are one and the same under two names are on one side
 * with this share (tests/e2e/export.sh watches that); with another, look.
 *
 * The reward of an answer.  ratio is the speedup (baseline over kernel, mid-means), 0 unless
 * the verdict is ok.  score is what is rewarded: the kernel's samples are paired with its
 * baseline's of the same round, in order of time; their ratios are cut into 7 buckets of equal
 * size, as near as can be; of the 7 means the median is taken and rounded to two decimals
 * towards 1 (1.118 is 1.11, 0.992 is 1.00).  Where fewer than 7 pairs were kept, score is the
 * ratio, so rounded.  Without ok it is 0.  reward = (score - mean) / deviation, mean and standard
 * deviation (of the population) being those of all exported answers to the same task on the
 * same GPU, failures included, clipped to -1.5..1.5; 0 where all scores are equal.
 * bucket_variance is the variance of the 7 means: an unsteady measurement has a large one. */
#ifndef KP_EXPORT_H
#define KP_EXPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum { EXPORT_BUCKETS = 7 };
#define EXPORT_CLIP 1.5

/* The score of an ok time.json; *variance is NAN where there were too few pairs (may be NULL). */
double export_score(const cJSON *time, double *variance);

/* What a result is worth by itself: the ratio, or `shaped` the score, of an ok kernel whose time
 * can be trusted; 0 of any other; NAN where it says nothing of the kernel: it could not be tried,
 * or the task cannot tell work from none. */
double export_worth(const cJSON *result, bool shaped);

/* Two decimals, towards 1. */
double export_round(double ratio);

/* The rewards of a group's n scores; may be stored over them. */
void export_rewards(const double *score, double *reward, int n);

/* "train" or "test". */
const char *export_split(const char *task, double test_share);

/* The messages of a request in any of the three wire formats, as [{"role", "content"}...] with
 * the instructions first, as `system`.  NULL if there are none.  Delete it. */
cJSON *export_messages(const cJSON *request);

/* The kernel as an answer would show it: in a fence that does not occur in it.  Free it. */
char *export_fenced(const char *kernel);

/* ---- the checker (export_check.c) ---- */

enum export_kind { EXPORT_NONE, EXPORT_PAIR, EXPORT_RL };

/* Whether one line, without its end, is a row: all columns and no others, of their types, roles
 * that alternate, UTF-8, rewards within their bounds.  Stores its kind, and its task and split
 * (64 and 8 bytes); false, and one sentence in `why`, if it is not. */
bool export_check_line(const char *line, size_t size, enum export_kind *kind, char *task,
                       char *split, char *why, size_t why_size);

/* Check every line of every file, and that no task is on both sides, whichever files it is in.
 * Ends the program with KP_INPUT and FILE:LINE at the first that is bad. */
void export_check(char **paths);

#endif
