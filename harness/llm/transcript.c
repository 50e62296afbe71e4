/* transcript.c: see transcript.h. */
#define _GNU_SOURCE
#include "llm/transcript.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "llm/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Reading ---- */

struct kept {               /* the contents of a transcript */
    cJSON *answered;        /* the newest line with an answer; NULL if none */
    int line;               /* its line number */
    struct llm_usage usage; /* of its call, up to that line */
    double cost, seconds;   /* of all lines */
    double call;            /* of the last line; 0 if none */
};

/* The number that `name` is the name of; -1 if it is unknown. */
static int outcome_of(const cJSON *line) {
    const char *name = json_text(line, "outcome", "");
    for (int i = LLM_COMPLETE; i <= LLM_FAILED; i++)
        if (!strcmp(name, llm_outcome_name((enum llm_outcome)i))) return i;
    return -1;
}

static int api_of(const cJSON *line) {
    const char *name = json_text(line, "api", "");
    for (int i = LLM_CHAT; i < LLM_REPLAY; i++)
        if (!strcmp(name, llm_api_name((enum llm_api)i))) return i;
    return -1;
}

static bool is_line(const cJSON *line) {
    return json_number(line, "schema", 0) == 1 && outcome_of(line) >= 0 && api_of(line) >= 0 &&
           cJSON_IsObject(wire_get(line, "request")) &&
           strlen(json_text(line, "request_sha256", "")) == 64 &&
           cJSON_IsString(wire_get(line, "response"));
}

/* The counts of a usage and their names in a line. */
static const struct {
    const char *key;
    size_t at;
} counts[] = {{"input", offsetof(struct llm_usage, input)},
              {"cached", offsetof(struct llm_usage, cached)},
              {"cache_write", offsetof(struct llm_usage, cache_write)},
              {"cache_write_1h", offsetof(struct llm_usage, cache_write_1h)},
              {"output", offsetof(struct llm_usage, output)},
              {"reasoning", offsetof(struct llm_usage, reasoning)},
              {"cost", offsetof(struct llm_usage, cost)}};
enum { COUNTS = sizeof counts / sizeof *counts };

static struct llm_usage usage_of(const cJSON *usage) {
    struct llm_usage u = {.known = cJSON_IsObject(usage), .cost = NAN};
    for (int i = 0; i < COUNTS && u.known; i++)
        *(double *)((char *)&u + counts[i].at) =
            json_number(usage, counts[i].key, i == COUNTS - 1 ? NAN : 0);
    return u;
}

static void take_line(struct kept *k, cJSON *line, int number, struct llm_usage *of_call) {
    double call = json_number(line, "call", 0);
    struct llm_usage usage = usage_of(wire_get(line, "usage"));
    if (call != k->call) *of_call = (struct llm_usage){.cost = NAN};
    k->call = call;
    k->cost += json_number(line, "cost_usd", NAN);
    k->seconds += json_number(line, "seconds", 0);
    usage_add(of_call, &usage);
    if (outcome_of(line) == LLM_FAILED) {
        cJSON_Delete(line);
        return;
    }
    cJSON_Delete(k->answered);
    k->answered = line;
    k->line = number;
    k->usage = *of_call;
    k->usage.known &= usage.known;
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

/* Parse the response of a line again.  One that was stated to be no complete answer is none, as not
 * every byte of it may have been kept. */
static struct llm_answer *read_again(const char *path, const struct kept *k) {
    const cJSON *line = k->answered;
    const char *body = json_text(line, "response", "");
    bool sse = cJSON_IsTrue(wire_get(line, "sse"));
    struct llm_answer *a = llm_read((enum llm_api)api_of(line), body, strlen(body), sse);
    enum llm_outcome stated = (enum llm_outcome)outcome_of(line);
    if (stated == LLM_COMPLETE && a->outcome == LLM_FAILED)
        die(KP_INPUT, "%s:%d: said to be complete, but %s (edited?)", path, k->line, a->why);
    if (stated != LLM_COMPLETE && (a->outcome == LLM_COMPLETE || a->outcome == LLM_FAILED)) {
        a->outcome = stated;
        snprintf(a->why, sizeof a->why, "%s", json_text(line, "why", ""));
    }
    a->maybe_billed = 0;
    a->exit_code = KP_OK;
    a->usage = k->usage;
    a->seconds = json_number(line, "seconds", 0);
    a->tries = (int)json_number(line, "try", 1);
    return a;
}

struct llm_answer *transcript_answer(const char *path, char request_sha256[65], char date[32],
                                     char model[128]) {
    return transcript_read(path, request_sha256, date, model, NULL);
}

struct llm_answer *transcript_read(const char *path, char request_sha256[65], char date[32],
                                   char model[128], cJSON **asked) {
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
    if (asked) *asked = cJSON_DetachItemFromObjectCaseSensitive(k.answered, "request");
    free(request);
    cJSON_Delete(k.answered);
    return a;
}

/* Whether a request holds this text, as a whole JSON string. */
static bool has_string(const char *request, const char *text, size_t n) {
    char *clean = utf8_clean(text, n);
    cJSON *string = cJSON_CreateString(clean);
    char *quoted = string ? cJSON_PrintUnformatted(string) : NULL;
    if (!quoted) die(KP_MACHINE, "out of memory");
    bool holds = strstr(request, quoted) != NULL;
    free(quoted);
    free(clean);
    cJSON_Delete(string);
    return holds;
}

bool transcript_asked(const char *path, const struct llm_message *m) {
    struct kept k = load(path);
    if (!k.answered) return false;
    char *request = request_of(k.answered);
    const char *rest = m->text + m->stable;
    bool holds = has_string(request, m->text, strlen(m->text)) || /* some formats divide it */
                 (m->stable && has_string(request, m->text, m->stable) &&
                  has_string(request, rest, strlen(rest)));
    free(request);
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

/* A try as a line, without its newline.  A response's bytes that are no text become U+FFFD. */
static char *line_of(const struct llm_config *c, const struct llm_try *t, double call,
                     double cost_usd) {
    const struct llm_answer *a = t->answer;
    char date[32], sha[65];
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc))
        die(KP_MACHINE, "this machine's clock is set to no date");
    text_sha256(t->request, strlen(t->request), sha);
    char *response = utf8_clean(t->response, t->response_size);
    cJSON *line = cJSON_CreateObject(), *usage = a->usage.known ? cJSON_CreateObject() : NULL;
    bool good = line && (usage || !a->usage.known);
    json_add_number(line, "schema", 1);
    json_add_number(line, "call", call);
    json_add_number(line, "try", t->number);
    good = good && cJSON_AddStringToObject(line, "date", date) &&
           cJSON_AddStringToObject(line, "api", llm_api_name(c->api)) &&
           cJSON_AddStringToObject(line, "host", c->host) &&
           cJSON_AddStringToObject(line, "model", c->model) &&
           cJSON_AddStringToObject(line, "request_sha256", sha) &&
           cJSON_AddRawToObject(line, "request", t->request);
    json_add_number(line, "status", (double)t->status);
    cJSON *headers = t->headers ? cJSON_Duplicate(t->headers, 1) : cJSON_CreateObject();
    good = good && cJSON_AddItemToObject(line, "headers", headers) &&
           cJSON_AddBoolToObject(line, "sse", t->sse) &&
           cJSON_AddStringToObject(line, "response", response) &&
           cJSON_AddStringToObject(line, "error", t->error);
    json_add_number(line, "seconds", t->seconds);
    good = good && cJSON_AddStringToObject(line, "outcome", llm_outcome_name(a->outcome)) &&
           cJSON_AddStringToObject(line, "why", a->why);
    for (int i = 0; i < COUNTS && usage; i++)
        json_add_number(usage, counts[i].key, *(double *)((char *)&a->usage + counts[i].at));
    good = good && cJSON_AddItemToObject(line, "usage", usage ? usage : cJSON_CreateNull());
    json_add_number(line, "cost_usd", cost_usd);
    char *text = cJSON_PrintUnformatted(line);
    if (!good || !text) die(KP_MACHINE, "out of memory");
    cJSON_Delete(line);
    free(response);
    return text;
}

/* Open a file to append to and lock it.  A terminal or device is not locked. */
static int open_locked(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) die(KP_IO, "%s: cannot write: %s: nothing was asked", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
    warn("%s: another process is asking this: waiting for its answer", path);
    while (flock(fd, LOCK_EX) && errno == EINTR) continue;
    return fd;
}

static struct { /* the transcript that this process holds until it ends */
    char *path;
    int fd;
} hold;

/* Whether the held file is still the one at its path. */
static bool is_there(const char *path, int fd) {
    struct stat s, there;
    return fstat(fd, &s) == 0 && stat(path, &there) == 0 && s.st_ino == there.st_ino &&
           s.st_dev == there.st_dev;
}

/* The end of the last whole line; -1 on failure.  Behind it may be a line that a crash cut short,
 * or the room of transcript_reserve, which is zeros. */
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
    return whole;
}

/* Give back room, also that of a process that was killed, and remove an empty file, which would
 * look like a transcript. */
static void let_go(void) {
    struct stat s;
    if (!is_there(hold.path, hold.fd) || fstat(hold.fd, &s) || !S_ISREG(s.st_mode)) return;
    off_t end = end_of(hold.fd);
    /* On failure some zeros stay, which no reader sees. */
    if (end == 0 ? unlink(hold.path) : end > 0 && ftruncate(hold.fd, end)) return;
}

void transcript_hold(const char *path) {
    int fd = open_locked(path);
    /* The previous holder may have replaced or removed the file. */
    while (!is_there(path, fd)) {
        close(fd);
        fd = open_locked(path);
    }
    struct kept k = load(path);
    cJSON_Delete(k.answered);
    hold.path = strdup(path);
    hold.fd = fd;
    if (!hold.path || atexit(let_go)) die(KP_MACHINE, "out of memory");
}

void transcript_reserve(size_t request, double tokens) {
    enum { TOKEN = 512, REST = LLM_HEADERS_MAX }; /* REST: headers, names and counts of the line */
    struct stat s;
    struct rlimit most;
    if (!hold.path) die(KP_BUG, "room is wanted in a transcript that nobody holds");
    if (fstat(hold.fd, &s) == 0 && !S_ISREG(s.st_mode)) return; /* a device needs no space */
    double answer = fmin(tokens * TOKEN, LLM_BODY_MAX / 3.0 * 4);
    off_t bytes = (off_t)answer + (off_t)request + REST, end = end_of(hold.fd);
    int why = end < 0 ? errno : 0;
    /* Beyond this limit some file systems send a signal. */
    if (!why && !getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY &&
        (rlim_t)(end + bytes) > most.rlim_cur)
        why = EFBIG;
    /* Where a file system cannot reserve, the C library writes zeros. */
    if (!why) why = posix_fallocate(hold.fd, end, bytes);
    if (why)
        die(KP_IO,
            "%s: no room for an answer: %lld bytes are needed: %s: free some on that disk, or "
            "lower LLM_MAX_TOKENS; no request is sent",
            hold.path, (long long)bytes, strerror(why));
}

/* Write all of `text` at `end`, over reserved room, and flush it.  On failure leaves the file's
 * lines as they were; returns false and errno. */
static bool append(int fd, off_t end, const char *text, size_t n) {
    size_t done = 0;
    ssize_t k = 0;
    lseek(fd, end, SEEK_SET);
    while (done < n && ((k = write(fd, text + done, n - done)) > 0 || (k < 0 && errno == EINTR)))
        done += k > 0 ? (size_t)k : 0;
    int why = k == 0 && done < n ? ENOSPC : errno;
    /* A pipe or a device has no end and cannot be flushed. */
    bool cut = ftruncate(fd, done == n ? end + (off_t)n : end) == 0 || errno == EINVAL;
    if (done == n && cut && (fsync(fd) == 0 || errno == EINVAL || errno == EROFS)) return true;
    errno = done < n ? why : errno;
    return false;
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
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    off_t end = fd < 0 ? -1 : end_of(fd);
    bool kept = end >= 0 && append(fd, end, line, n);
    int why = errno;
    if (fd >= 0 && close(fd) && kept) kept = false, why = errno;
    if (!kept)
        die(KP_IO, "%s: cannot write: %s; what was there before is unchanged", path, strerror(why));
    free(line);
}
