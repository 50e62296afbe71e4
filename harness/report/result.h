/* result.h: one result file (results/SCHEMA.md), as far as report and compare need it.
 *
 * Whatever a file claims is checked here once: a truncated, foreign or
 * inconsistent file is refused with a sentence that says why, and no later
 * code has to look again. */
#ifndef KP_RESULT_H
#define KP_RESULT_H

#include <stdbool.h>
#include <stddef.h>

enum { RESULT_FLAGS = 12 };

struct cJSON;

struct result {
    char task[64];
    char suite[24]; /* "" if the file does not say */
    char gpu[32];
    char verdict[16]; /* one of the words of results/SCHEMA.md */
    char reason[400]; /* "" if null */
    char sha256[80];  /* of the kernel; "" if there was none */
    char headers[80]; /* headers_sha256: of those that it includes; "" if there are none */
    char class[16];   /* "" unless verified */
    char against[16]; /* baseline that the speedup is quoted against */
    double ratio, low,
        high;            /* speedup and its 95 % interval (unknown: 0 to infinity); 0 unless ok */
    double candidate_us; /* mid-mean; 0 unless ok */
    double against_us;   /* mid-mean of that baseline; 0 if not recorded */
    double floor_us;     /* 0 if not recorded */
    int nflags;
    char flags[RESULT_FLAGS][120];
    struct cJSON *json; /* the whole file */
};

/* Read a JSON object from a file, as json_read() of json.h, but where that ends
 * the program this returns NULL and says why in `why`. */
struct cJSON *json_load(const char *path, char *why, size_t size);

/* Whether s is a name as used for tasks, suites and GPUs: [a-z0-9_]+. */
bool is_name(const char *s);

/* Load PATH, which is .../GPU/TASK.json or .../GPU/TASK.STEP.json.  Returns
 * true, or false with one sentence in `why`: unreadable, not JSON, another
 * schema, not the cell that its path says, or `ok` without usable numbers. */
bool result_load(const char *path, struct result *r, char *why, size_t size);
void result_free(struct result *r);

bool result_ok(const struct result *r);

/* What a flag takes from a result. */
enum flag_kind {
    FLAG_REMARK, /* nothing */
    FLAG_VOID,   /* degenerate, no-influence: the task does not tell a kernel that computes it
                    from one that does not */
    FLAG_WEAK,   /* weak-baseline: the speedup is over less than what users have */
    FLAG_DOUBT   /* decoy-ratio, clocks-disagree: on other contents the kernel takes another
                    time, or by the host's clock it took longer: its time is not to be trusted */
};
enum flag_kind flag_kind(const char *flag);

/* The first flag of this kind in a result; NULL if there is none. */
const char *result_flag(const struct cJSON *json, enum flag_kind kind);

#endif
