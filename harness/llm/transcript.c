/* transcript.c: see transcript.h. */
#define _GNU_SOURCE
#include "llm/transcript.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "llm/wire.h"
#include "llm/disk_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *base64_of(const char *s, size_t n) {
    const unsigned char *b = (const unsigned char *)s;
    char *out = malloc((n + 2) / 3 * 4 + 1), *o = out;
    if (!out) die(KP_MACHINE, "out of memory");
    for (size_t i = 0; i < n; i += 3) {
        unsigned x = (unsigned)b[i] << 16 | (i + 1 < n ? (unsigned)b[i + 1] << 8 : 0) |
                     (i + 2 < n ? b[i + 2] : 0);
        *o++ = base64[x >> 18];
        *o++ = base64[x >> 12 & 63];
        *o++ = i + 1 < n ? base64[x >> 6 & 63] : '=';
        *o++ = i + 2 < n ? base64[x & 63] : '=';
    }
    *o = 0;
    return out;
}

/* Decode base64, skipping all other characters.  Free the bytes. */
static char *base64_bytes(const char *s, size_t *n) {
    char *out = malloc(strlen(s) + 1);
    unsigned x = 0, bits = 0;
    if (!out) die(KP_MACHINE, "out of memory");
    *n = 0;
    for (; *s && *s != '='; s++) {
        const char *digit = strchr(base64, *s);
        if (!digit) continue;
        x = x << 6 | (unsigned)(digit - base64);
        bits += 6;
        if (bits >= 8) out[(*n)++] = (char)(x >> (bits -= 8));
    }
    out[*n] = 0;
    return out;
}

/* ---- Reading ---- */

struct kept {               /* the contents of a transcript */
    cJSON *answered;        /* the newest line with an answer; NULL if none */
    int line;               /* its line number */
    struct llm_usage usage; /* of its call, up to that line */
    double cost, seconds;   /* of all lines */
    double call;            /* of the last line; 0 if none */
};

/* The outcome that a line states; -1 if it is unknown. */
static int outcome_of(const cJSON *line) {
    const char *name = json_text(line, "outcome", "");
    for (int i = LLM_COMPLETE; i <= LLM_FAILED; i++)
        if (!strcmp(name, llm_outcome_name((enum llm_outcome)i))) return i;
    return -1;
}

static int api_of(const cJSON *line) {
    const char *name = json_text(line, "api", "");
    for (int i = LLM_CHAT; i <= LLM_ANTHROPIC; i++)
        if (!strcmp(name, llm_api_name((enum llm_api)i))) return i;
    return -1;
}

static bool is_line(const cJSON *line) {
    return json_number(line, "schema", 0) == 1 && outcome_of(line) >= 0 && api_of(line) >= 0 &&
           cJSON_IsObject(wire_get(line, "request")) &&
           strlen(json_text(line, "request_sha256", "")) == 64 &&
           (cJSON_IsString(wire_get(line, "response")) ||
            cJSON_IsString(wire_get(line, "response_base64")));
}

/* Add the usage of a line to the sum of its call. */
static void add_usage(struct llm_usage *sum, const cJSON *usage) {
    if (!cJSON_IsObject(usage)) return;
    double cost = json_number(usage, "cost", NAN);
    *sum = (struct llm_usage){true,
                              sum->input + json_number(usage, "input", 0),
                              sum->cached + json_number(usage, "cached", 0),
                              sum->cache_write + json_number(usage, "cache_write", 0),
                              sum->cache_write_1h + json_number(usage, "cache_write_1h", 0),
                              sum->output + json_number(usage, "output", 0),
                              sum->reasoning + json_number(usage, "reasoning", 0),
                              sum->known ? sum->cost + cost : cost};
}

static void take_line(struct kept *k, cJSON *line, int number, struct llm_usage *of_call) {
    double call = json_number(line, "call", 0);
    if (call != k->call) *of_call = (struct llm_usage){.cost = NAN};
    k->call = call;
    k->cost += json_number(line, "cost_usd", NAN);
    k->seconds += json_number(line, "seconds", 0);
    add_usage(of_call, wire_get(line, "usage"));
    if (outcome_of(line) == LLM_FAILED) {
        cJSON_Delete(line);
        return;
    }
    cJSON_Delete(k->answered);
    k->answered = line;
    k->line = number;
    k->usage = *of_call;
    k->usage.known &= cJSON_IsObject(wire_get(line, "usage"));
}

/* Read a transcript; an absent one is empty.  Ends the program with KP_INPUT at an invalid line. */
static struct kept load(const char *path) {
    struct kept k = {0};
    struct llm_usage of_call = {.cost = NAN};
    int number = 0;
    if (access(path, F_OK) && errno == ENOENT) return k;
    char *text = file_read(path, NULL);
    for (char *s = text, *end; (end = strchr(s, '\n')); s = end + 1) {
        *end = 0;
        number++;
        cJSON *line = cJSON_ParseWithOpts(s, NULL, 1);
        if (!line || !is_line(line))
            die(KP_INPUT, "%s:%d: not a line of a transcript (edited?)", path, number);
        take_line(&k, line, number, &of_call);
    }
    free(text);
    return k;
}

/* The request of a line, byte for byte as it was sent.  Free it. */
static char *request_of(const cJSON *line) {
    char *text = cJSON_PrintUnformatted(wire_get(line, "request"));
    if (!text) die(KP_MACHINE, "out of memory");
    return text;
}

/* Parse the response of a line again.  A response that was dropped because it held a key keeps
 * its recorded outcome. */
static struct llm_answer *read_again(const char *path, const struct kept *k) {
    const cJSON *line = k->answered;
    const char *coded = json_text(line, "response_base64", NULL),
               *plain = json_text(line, "response", "");
    size_t n = strlen(plain);
    char *bytes = coded ? base64_bytes(coded, &n) : NULL;
    bool sse = cJSON_IsTrue(wire_get(line, "sse"));
    struct llm_answer *a = llm_read((enum llm_api)api_of(line), bytes ? bytes : plain, n, sse);
    free(bytes);
    if (a->outcome == LLM_FAILED) {
        a->outcome = (enum llm_outcome)outcome_of(line);
        if (a->outcome == LLM_COMPLETE)
            die(KP_INPUT, "%s:%d: said to be complete, but %s (edited?)", path, k->line, a->why);
        snprintf(a->why, sizeof a->why, "%s", json_text(line, "why", ""));
        a->maybe_billed = 0;
    }
    a->exit_code = KP_OK;
    a->usage = k->usage;
    a->seconds = json_number(line, "seconds", 0);
    a->tries = (int)json_number(line, "try", 1);
    return a;
}

struct llm_answer *transcript_answer(const char *path, char request_sha256[65], char date[32],
                                     char model[128]) {
    struct kept k = load(path);
    char found[65];
    if (!k.answered) return NULL;
    char *request = request_of(k.answered);
    text_sha256(request, strlen(request), found);
    snprintf(request_sha256, 65, "%s", json_text(k.answered, "request_sha256", ""));
    if (strcmp(found, request_sha256) != 0)
        die(KP_INPUT, "%s:%d: the request does not have the hash that is stated (edited?)", path,
            k.line);
    snprintf(date, 32, "%s", json_text(k.answered, "date", ""));
    snprintf(model, 128, "%s", json_text(k.answered, "model", ""));
    struct llm_answer *a = read_again(path, &k);
    free(request);
    cJSON_Delete(k.answered);
    return a;
}

bool transcript_asked(const char *path, const char *text) {
    struct kept k = load(path);
    if (!k.answered) return false;
    char *request = request_of(k.answered), *clean = utf8_clean(text, strlen(text));
    cJSON *string = cJSON_CreateString(clean);
    char *quoted = string ? cJSON_PrintUnformatted(string) : NULL;
    if (!quoted) die(KP_MACHINE, "out of memory");
    bool holds = strstr(request, quoted) != NULL;
    free(quoted);
    free(clean);
    free(request);
    cJSON_Delete(string);
    cJSON_Delete(k.answered);
    return holds;
}

void transcript_sums(const char *path, double *cost_usd, double *seconds) {
    struct kept k = load(path);
    *cost_usd = k.cost;
    *seconds = k.seconds;
    cJSON_Delete(k.answered);
}

/* ---- Writing ---- */

static void add(cJSON *line, const char *key, cJSON *item) {
    if (!item || !cJSON_AddItemToObject(line, key, item)) die(KP_MACHINE, "out of memory");
}

static void add_usage_of(cJSON *line, const struct llm_usage *u) {
    cJSON *usage = u->known ? cJSON_CreateObject() : cJSON_CreateNull();
    add(line, "usage", usage);
    if (!u->known) return;
    const struct {
        const char *key;
        double x;
    } numbers[] = {{"input", u->input},
                   {"cached", u->cached},
                   {"cache_write", u->cache_write},
                   {"cache_write_1h", u->cache_write_1h},
                   {"output", u->output},
                   {"reasoning", u->reasoning},
                   {"cost", u->cost}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json_add_number(usage, numbers[i].key, numbers[i].x);
}

static void add_response(cJSON *line, const struct llm_try *t) {
    size_t i = 0, k = 1;
    while (i < t->response_size && (k = utf8_length(t->response + i, t->response_size - i))) i += k;
    char *coded = k ? NULL : base64_of(t->response, t->response_size);
    add(line, coded ? "response_base64" : "response",
        cJSON_CreateString(coded ? coded : t->response));
    free(coded);
}

/* A try as a line, without its newline.  Free it. */
static char *line_of(const struct llm_config *c, const struct llm_try *t, double call,
                     double cost_usd) {
    const struct llm_answer *a = t->answer;
    char date[32], sha[65];
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc))
        die(KP_MACHINE, "this machine's clock is set to no date");
    text_sha256(t->request, strlen(t->request), sha);
    cJSON *line = cJSON_CreateObject();
    if (!line) die(KP_MACHINE, "out of memory");
    json_add_number(line, "schema", 1);
    json_add_number(line, "call", call);
    json_add_number(line, "try", t->number);
    add(line, "date", cJSON_CreateString(date));
    add(line, "api", cJSON_CreateString(llm_api_name(c->api)));
    add(line, "host", cJSON_CreateString(c->host));
    add(line, "model", cJSON_CreateString(c->model));
    add(line, "request_sha256", cJSON_CreateString(sha));
    add(line, "request", cJSON_CreateRaw(t->request));
    json_add_number(line, "status", (double)t->status);
    add(line, "headers", t->headers ? cJSON_Duplicate(t->headers, 1) : cJSON_CreateObject());
    add(line, "sse", cJSON_CreateBool(t->sse));
    add_response(line, t);
    add(line, "error", cJSON_CreateString(t->error));
    json_add_number(line, "seconds", t->seconds);
    add(line, "outcome", cJSON_CreateString(llm_outcome_name(a->outcome)));
    add(line, "why", cJSON_CreateString(a->why));
    add_usage_of(line, &a->usage);
    json_add_number(line, "cost_usd", cost_usd);
    char *text = cJSON_PrintUnformatted(line);
    if (!text) die(KP_MACHINE, "out of memory");
    cJSON_Delete(line);
    return text;
}

/* Append all of `text` and flush it.  On failure leaves the file as it was; returns false and
 * errno. */
static bool append(int fd, off_t size, const char *text, size_t n) {
    size_t done = 0;
    ssize_t k = 0;
    while (done < n && ((k = write(fd, text + done, n - done)) > 0 || (k < 0 && errno == EINTR)))
        done += k > 0 ? (size_t)k : 0;
    /* A pipe or a device cannot be flushed. */
    if (done == n && (fsync(fd) == 0 || errno == EINVAL || errno == EROFS)) return true;
    int why = k == 0 && done < n ? ENOSPC : errno;
    if (done && ftruncate(fd, size))
        warn("half a line could not be taken back: %s", strerror(errno));
    errno = why;
    return false;
}

/* Open a file to append to and lock it.  A terminal or device is not locked. */
static int open_locked(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) die(KP_IO, "%s: cannot write: %s: nothing was asked", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
    warn("%s: another process is asking this: waiting for its answer", path);
    while (flock(fd, LOCK_EX) && errno == EINTR) continue;
    return fd;
}

static struct { /* the transcript that this process holds until it ends */
    char *path;
    int fd;
    bool reserved; /* space from `end` on, which no try has used yet */
    off_t end;
} hold;

/* Whether the held file is still the one at its path. */
static bool is_there(const char *path, int fd, struct stat *s) {
    struct stat there;
    return fstat(fd, s) == 0 && stat(path, &there) == 0 && s->st_ino == there.st_ino &&
           s->st_dev == there.st_dev;
}

/* Remove an empty file, which would look like a transcript.  Release unused reserved space, also
 * that of an earlier process that was killed. */
static void let_go(void) {
    struct stat s;
    if (!is_there(hold.path, hold.fd, &s) || !S_ISREG(s.st_mode)) return;
    off_t end = hold.reserved ? hold.end : s.st_size;
    if (end == 0)
        unlink(hold.path);
    else
        disk_release(hold.fd, end);
}

void transcript_hold(const char *path) {
    struct stat held;
    int fd = open_locked(path);
    /* The previous holder may have replaced or removed the file. */
    while (!is_there(path, fd, &held)) {
        close(fd);
        fd = open_locked(path);
    }
    hold.path = strdup(path);
    hold.fd = fd;
    if (!hold.path || atexit(let_go)) die(KP_MACHINE, "out of memory");
    struct kept k = load(path);
    cJSON_Delete(k.answered);
}

/* The end of the last whole line; -1 on failure.  Cuts off what follows it: a line that a crash
 * cut short, or the blanks of pad(). */
static off_t end_of(int fd) {
    off_t size = lseek(fd, 0, SEEK_END), whole = size;
    char some[16384];
    const char *last = NULL;
    while (whole > 0 && !last) {
        size_t n = whole < (off_t)sizeof some ? (size_t)whole : sizeof some;
        if (pread(fd, some, n, whole - (off_t)n) != (ssize_t)n) return -1;
        last = memrchr(some, '\n', n);
        whole -= last ? some + n - 1 - last : (ssize_t)n;
    }
    return whole == size || ftruncate(fd, whole) == 0 ? whole : -1;
}

/* Write blanks at the end, without a newline.  Readers take them for a line that was cut short,
 * and the next append replaces them.  Returns 0, or errno. */
static int pad(int fd, off_t end, off_t bytes) {
    char *blanks = malloc((size_t)bytes);
    if (!blanks) die(KP_MACHINE, "out of memory");
    memset(blanks, ' ', (size_t)bytes);
    int why = append(fd, end, blanks, (size_t)bytes) ? 0 : errno;
    free(blanks);
    return why;
}

void transcript_reserve(size_t request, double tokens) {
    enum { TOKEN = 512, REST = LLM_HEADERS_MAX }; /* REST: headers, names and counts of the line */
    struct stat s;
    if (!hold.path) die(KP_BUG, "room is wanted in a transcript that nobody holds");
    if (fstat(hold.fd, &s) == 0 && !S_ISREG(s.st_mode)) return; /* a device needs no space */
    double answer = fmin(tokens * TOKEN, LLM_BODY_MAX / 3.0 * 4);
    off_t bytes = (off_t)answer + (off_t)request + REST, end = end_of(hold.fd);
    int why = end < 0 ? errno : 0;
    if (!why) {
        hold.reserved = true;
        hold.end = end;
        why = disk_reserve(hold.fd, end, bytes);
    }
    /* Network file systems may not reserve but have quotas, so write blanks to claim the space.
     * transcript_append cuts them off just before it writes the line. */
    if (why == EOPNOTSUPP) why = pad(hold.fd, end, bytes);
    if (why)
        die(KP_IO,
            "%s: no room for an answer: %lld bytes are needed: %s: free some on that disk, or "
            "lower LLM_MAX_TOKENS; no request is sent",
            hold.path, (long long)bytes, strerror(why));
}

void transcript_append(const char *path, const struct llm_config *c, const struct llm_try *t,
                       double cost_usd) {
    if (key_within(t->request, strlen(t->request)))
        die(KP_USAGE, "%s: the prompt holds the key in %s: take it out", path, c->key_env);
    struct kept k = load(path);
    cJSON_Delete(k.answered);
    char *line = line_of(c, t, k.call + (t->number == 1 || k.call == 0), cost_usd);
    size_t n = key_redact(line, strlen(line));
    line[n++] = '\n'; /* replaces the NUL */
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    off_t size = fd < 0 ? -1 : end_of(fd);
    bool kept = size >= 0 && append(fd, size, line, n);
    int why = errno;
    if (kept) {
        disk_release(fd, size + (off_t)n);
        hold.reserved = false;
    }
    if (fd >= 0 && close(fd) && kept) kept = false, why = errno;
    if (!kept)
        die(KP_IO, "%s: cannot write: %s; what was there before is unchanged", path, strerror(why));
    free(line);
}
