/* transcript.c: see llm.h. */
#define _GNU_SOURCE
#include "base/hash.h"
#include "llm/wire.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Lines ---- */

/* Which of n names a member of a line is; -1: none. */
static int index_of(const cJSON *line, const char *key, const char *const *names, int n) {
    while (--n >= 0 && strcmp(json_text(line, key, ""), names[n]) != 0) continue;
    return n;
}

static int outcome_of(const cJSON *line) {
    return index_of(line, "outcome", llm_outcomes, LLM_FAILED + 1);
}

enum llm_api transcript_api(const cJSON *line) {
    return (enum llm_api)index_of(line, "api", llm_apis, LLM_REPLAY);
}

static bool is_line(const cJSON *line) {
    return json_number(line, "schema", 0) == 1 && outcome_of(line) >= 0 &&
           index_of(line, "api", llm_apis, LLM_REPLAY) >= 0 &&
           cJSON_IsObject(cJSON_GetObjectItem(line, "request")) &&
           strlen(json_text(line, "request_sha256", "")) == 64 && json_text(line, "response", NULL);
}

/* The names of struct llm_usage.count in a line. */
static const char *const counts[] = {"input",  "cached",    "cache_write", "cache_write_1h",
                                     "output", "reasoning", "cost"};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Add the usage of a try to that of its call, if it is known; return whether it is. */
static bool add_usage(struct llm_usage *sum, const cJSON *usage) {
    if (!cJSON_IsObject(usage)) return false;
    if (!sum->known) sum->cost = 0;
    for (int i = 0; i < COUNTS; i++)
        sum->count[i] += json_number(usage, counts[i], i == COUNTS - 1 ? NAN : 0);
    return sum->known = true;
}

/* A try as a line, without its newline.  A response's bytes that are no text become U+FFFD. */
static char *line_of(const struct llm_config *c, double call, const char *request,
                     const struct http_reply *reply, const struct llm_answer *a, double cost_usd) {
    char date[32], sha[65];
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc))
        die(KP_MACHINE, "this machine's clock is set to no date");
    text_sha256(request, strlen(request), sha);
    cJSON *line = cJSON_CreateObject();
    json_add_number(line, "schema", 1);
    json_add_number(line, "call", call);
    json_add_number(line, "try", a->tries);
    cJSON_AddStringToObject(line, "date", date);
    cJSON_AddStringToObject(line, "api", llm_apis[c->api]);
    cJSON_AddStringToObject(line, "host", c->host);
    cJSON_AddStringToObject(line, "model", c->model);
    cJSON_AddStringToObject(line, "request_sha256", sha);
    cJSON_AddRawToObject(line, "request", request);
    json_add_number(line, "status", (double)reply->status);
    cJSON_AddItemToObject(line, "headers", cJSON_Duplicate(reply->headers, 1));
    cJSON_AddBoolToObject(line, "sse", reply->kind == BODY_STREAM);
    message_text(line, "response", reply->body.s ? reply->body.s : "", reply->body.n);
    cJSON_AddStringToObject(line, "error", reply->error);
    json_add_number(line, "seconds", reply->seconds);
    cJSON_AddStringToObject(line, "outcome", llm_outcomes[a->outcome]);
    cJSON_AddStringToObject(line, "why", a->why);
    cJSON *usage = a->usage.known ? cJSON_CreateObject() : cJSON_CreateNull();
    for (int i = 0; i < COUNTS && a->usage.known; i++)
        json_add_number(usage, counts[i], a->usage.count[i]);
    cJSON_AddItemToObject(line, "usage", usage);
    json_add_number(line, "cost_usd", cost_usd);
    char *text = cJSON_PrintUnformatted(line);
    cJSON_Delete(line);
    return text;
}

/* ---- Reading ---- */

/* Read the answer of a line, number `at` of its file.  One that was stated to be no complete answer
 * is none, as not every byte of it may have been kept. */
static struct llm_answer *answer_of(const cJSON *line, const char *path, int at) {
    const char *body = json_text(line, "response", "");
    char sha[65], *request = cJSON_PrintUnformatted(cJSON_GetObjectItem(line, "request"));
    bool sse = cJSON_IsTrue(cJSON_GetObjectItem(line, "sse"));
    enum llm_outcome stated = (enum llm_outcome)outcome_of(line);
    text_sha256(request, strlen(request), sha); /* it is byte for byte as it was sent */
    free(request);
    if (strcmp(sha, json_text(line, "request_sha256", "")) != 0)
        die(KP_INPUT, "%s:%d: the request does not have the hash that is stated (edited?)", path,
            at);
    struct llm_answer *a = llm_read(transcript_api(line), body, strlen(body), sse);
    if (stated == LLM_COMPLETE && a->outcome == LLM_FAILED)
        die(KP_INPUT, "%s:%d: said to be complete, but %s (edited?)", path, at, a->why);
    if (stated != LLM_COMPLETE && (a->outcome == LLM_COMPLETE || a->outcome == LLM_FAILED)) {
        a->outcome = stated;
        snprintf(a->why, sizeof a->why, "%s", json_text(line, "why", ""));
    }
    a->tries = (int)json_number(line, "try", 1);
    return a;
}

struct transcript transcript_read(const char *path) {
    return transcript_find(path, NULL, NULL);
}

struct transcript transcript_find(const char *path,
                                  bool (*fits)(const struct billed_call *p, const cJSON *line),
                                  const struct billed_call *p) {
    struct transcript t = {0};
    struct llm_usage of_call = {0}, usage = {0};
    int number = 0, at = 0;
    if (access(path, F_OK) && errno == ENOENT) return t;
    char *text = file_read(path, NULL);
    for (char *s = text, *end; (end = strchr(s, '\n')); s = end + 1) {
        *end = 0;
        number++;
        cJSON *line = cJSON_ParseWithOpts(s, NULL, 1), *old = line;
        if (!line || !is_line(line))
            die(KP_INPUT, "%s:%d: not a line of a transcript (edited?)", path, number);
        double call = json_number(line, "call", 0);
        if (call != t.calls) of_call = (struct llm_usage){.cost = NAN};
        t.calls = call;
        bool counts = !fits || fits(p, line);
        if (counts) t.cost += json_number(line, "cost_usd", NAN);
        if (counts) t.seconds += json_number(line, "seconds", 0);
        bool known = add_usage(&of_call, cJSON_GetObjectItem(line, "usage"));
        if (outcome_of(line) != LLM_FAILED && counts) {
            old = t.line;
            t.line = line;
            at = number;
            usage = of_call;
            usage.known &= known;
        }
        cJSON_Delete(old);
        t.end = end + 1 - text;
    }
    free(text);
    if (!t.line) return t;
    t.answer = answer_of(t.line, path, at);
    t.answer->usage = usage;
    return t;
}

void transcript_free(struct transcript *t) {
    llm_answer_free(t->answer);
    cJSON_Delete(t->line);
}

/* ---- Writing ---- */

static struct { /* the transcript that this process holds until it ends */
    char *path;
    int fd;
    off_t end; /* of its last whole line: behind it may be a torn one, or reserved zeros */
    double calls;
} hold;

/* Open and lock the file at the held path. */
static void lock(void) {
    if (hold.fd > 0) close(hold.fd);
    hold.fd = open(hold.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (hold.fd < 0)
        die(KP_IO, "%s: cannot write: %s: nothing was asked", hold.path, strerror(errno));
    if (flock(hold.fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    warn("%s: another process is asking this: waiting for its answer", hold.path);
    while (flock(hold.fd, LOCK_EX) && errno == EINTR) continue;
}

/* Whether the held file is still the one at its path. */
static bool is_there(void) {
    struct stat s, there;
    return fstat(hold.fd, &s) == 0 && stat(hold.path, &there) == 0 && s.st_ino == there.st_ino &&
           s.st_dev == there.st_dev;
}

/* Give back room, also that of a process that was killed, and remove an empty file, which would
 * look like a transcript.  On failure some zeros stay, which no reader sees. */
static void let_go(void) {
    if (is_there() && (hold.end ? ftruncate(hold.fd, hold.end) : unlink(hold.path))) return;
}

void transcript_hold(const char *path) {
    bool held = hold.path && !strcmp(hold.path, path) && is_there();
    free(hold.path);
    hold.path = text_format("%s", path);
    /* The previous holder may have replaced or removed the file. */
    for (; !held; held = is_there()) lock();
    struct transcript t = transcript_read(path);
    hold.calls = t.calls;
    hold.end = t.end;
    transcript_free(&t);
    if (atexit(let_go)) die(KP_MACHINE, "out of memory");
}

void transcript_reserve(size_t request, double tokens) {
    enum { TOKEN = 512, REST = LLM_HEADERS_MAX }; /* REST: headers, names and counts of the line */
    struct rlimit most;
    double answer = fmin(tokens * TOKEN, LLM_BODY_MAX / 3.0 * 4);
    off_t bytes = (off_t)answer + (off_t)request + REST;
    /* Beyond this limit some file systems send a signal. */
    bool beyond = !getrlimit(RLIMIT_FSIZE, &most) && (rlim_t)(hold.end + bytes) > most.rlim_cur;
    /* Where a file system cannot reserve, the C library writes zeros. */
    int why = beyond ? EFBIG : posix_fallocate(hold.fd, hold.end, bytes);
    if (why)
        die(KP_IO,
            "%s: no room for an answer: %lld bytes are needed: %s: free some on that disk, or "
            "lower LLM_MAX_TOKENS; no request is sent",
            hold.path, (long long)bytes, strerror(why));
}

void transcript_append(const struct llm_config *c, const char *request,
                       const struct http_reply *reply, const struct llm_answer *a,
                       double cost_usd) {
    if (a->tries == 1) hold.calls++;
    char *line = line_of(c, hold.calls, request, reply, a, cost_usd);
    size_t n = key_redact(line, strlen(line)), done = 0;
    line[n++] = '\n'; /* replaces the NUL */
    errno = ENOSPC;
    ssize_t k = 1;
    while (k > 0 && done < n) {
        k = pwrite(hold.fd, line + done, n - done, hold.end + (off_t)done);
        done += k > 0 ? (size_t)k : 0;
    }
    bool kept = done == n && !ftruncate(hold.fd, hold.end + (off_t)n) && !fsync(hold.fd);
    if (!kept)
        die(KP_IO, "%s: cannot write: %s; what was there before is unchanged", hold.path,
            strerror(errno));
    hold.end += (off_t)n;
    free(line);
}
