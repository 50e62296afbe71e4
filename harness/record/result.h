/* result.h: one result (results/SCHEMA.md), as far as report and compare need it.
 *
 * Whatever a result claims is checked here once.  A truncated, foreign or inconsistent one is
 * refused with a sentence that says why, and no later code has to look again. */
#ifndef KP_RESULT_H
#define KP_RESULT_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

struct result {
    char task[64];
    char suite[24]; /* "" if the file does not say */
    char gpu[32];
    char verdict[16];  /* one of the words of results/SCHEMA.md */
    char reason[2048]; /* "" if null */
    char sha256[80];   /* of the kernel; "" if there was none */
    char headers[80];  /* headers_sha256: of those that it includes; "" if there are none */
    char code[80];     /* code_sha256: of what was compiled; "" if the result does not say */
    char sources[80];  /* inputs.kernel: of its sources without comments; the same */
    char class[16];    /* "" unless verified */
    char against[16];  /* baseline that the speedup is quoted against */
    double ratio, low,
        high;            /* speedup and its 95 % interval (unknown: 0 to infinity); 0 unless ok */
    double candidate_us; /* interquartile mean; 0 unless ok */
    double against_us;   /* the same of that baseline; 0 if not recorded */
    double floor_us;     /* 0 if not recorded */
    int nflags;
    const char **flags; /* all of them, as `json` has them */
    struct cJSON *json; /* the whole result */
};

/* Read a JSON object from a file.  Returns NULL, and says why in `why`, if it cannot be read or is
 * no JSON object. */
struct cJSON *json_load(const char *path, char *why, size_t size);

/* A time in microseconds or a ratio, if it can be one: if it is from 1e-12 to 1e12.  Else 0: sums
 * and quotients of such numbers are finite, and those of others need not be. */
double usable_number(double x);

/* The usable number at `key` of a result's object, or 0 when there is none. */
double result_number(const struct cJSON *object, const char *key);

/* Whether s is a name as used for tasks, suites and GPUs: [a-z0-9_]+. */
bool is_name(const char *s);

/* Load PATH, which is .../GPU/TASK.json or .../GPU/TASK.STEP.json.  Returns true, and *r must be
 * released.  Returns false, and one sentence in `why`, if it is unreadable, no JSON, of another
 * schema, not of the cell that its path says, or `ok` without usable numbers. */
bool result_load(const char *path, struct result *r, char *why, size_t size);

/* Make a result of JSON as if it had been read from `path`.  The JSON belongs to the result; it is
 * released here if this returns false, as result_load() does. */
bool result_take(struct cJSON *json, const char *path, struct result *r, char *why, size_t size);

/* Release what a result holds.  One that is all zero holds nothing. */
void result_free(struct result *r);

/* Whether the verdict is ok. */
bool result_ok(const struct result *r);

/* The hash of the board that it was measured on; "" if it does not say. */
const char *result_board(const struct result *r);

/* The place of a class, the most accurate first: exact and fp32 are 0.  CLASS_UNKNOWN for a word
 * that is none, such as "". */
enum { CLASS_UNKNOWN = 5 };
int class_rank(const char *class);

/* What a flag takes from a result. */
enum flag_kind {
    FLAG_REMARK, /* nothing */
    FLAG_VOID,   /* degenerate, no-influence: the task does not tell a kernel that computes it
                    from one that does not */
    FLAG_WEAK,   /* weak-baseline, cannot-tell, below-floor, slow-quarter: the speedup is over less
                    than what users have, or its class or its time is not sure enough for a mean */
    FLAG_DOUBT   /* control-ratio, clocks-disagree: the kernel takes another time on other contents,
                    or it took longer by the host's clock: do not trust its time */
};

/* The kind of a flag; what follows a colon does not matter. */
enum flag_kind flag_kind(const char *flag);

/* Whether a list of a result's flags has room for flags[i]: the first 12, and those after them
 * whose name, up to a colon, is new. */
bool flag_is_listed(const struct result *r, int i);

/* The first flag of this kind in a result; NULL if there is none. */
const char *result_flag(const struct cJSON *json, enum flag_kind kind);

#endif
