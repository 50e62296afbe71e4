/* server.c: play a script to HTTP clients on loopback, and write a journal of their requests.
 *
 *   mock [-l PORT] [-p PORTFILE] [-j JOURNAL] [-t SECONDS] [-k] SCRIPT
 *
 * Each connection has a thread and is kept alive.  -k reads the expected key from stdin, so it
 * is in no argument and no environment; the journal says whether a request had it, never what it
 * is.  Stops after SECONDS (300) or on SIGTERM. */
#define _GNU_SOURCE
#include "mock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

enum { HEAD_ROOM = 64 << 10, BODY_ROOM = 64 << 20, HANG_SECONDS = 600 };

static struct script script;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects script and `requests` */
static long requests;
static int journal = -1;
static char expected[4096]; /* the key; "" unless -k */

struct request {
    long number;
    char *head, *body; /* head: header lines, without the request line */
    char method[16], path[2048];
    size_t size;
    char key[4096]; /* as the client sent it */
};

struct reply { /* one reply being sent */
    int fd;
    const struct rule *rule;
    const struct request *request;
    bool counting;      /* add up the size of the body, send nothing */
    bool headed;        /* the headers are sent */
    bool gone;          /* the client hung up, or a step ended the reply early */
    size_t total, sent; /* bytes of the body: all, and those sent */
    size_t limit;       /* 0: none */
    long pace, pause;   /* bytes at a time, and ms between them; 0: all at once */
};

static void pause_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- Journal ----------------------------------------------------------------------- */

static void journal_line(struct text *t) {
    text_add(t, "\n", 1);
    if (journal >= 0 && write(journal, t->p, t->n) != (ssize_t)t->n)
        die(KP_IO, "journal: cannot write: %s", strerror(errno));
    free(t->p);
}

static bool secret(const char *name, size_t n) {
    static const char *names[] = {"authorization", "x-api-key", "api-key", "cookie",
                                  "proxy-authorization"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !strncasecmp(names[i], name, n)) return true;
    return false;
}

/* Remove the key from the headers, and write them down without it. */
static void journal_headers(struct text *t, struct request *r) {
    const char *comma = "";
    text_add(t, "{", 1);
    for (char *line = r->head, *next; *line; line = next, comma = ",") {
        size_t n = strcspn(line, "\r\n"), name = strcspn(line, ":");
        next = line + n + strspn(line + n, "\r\n");
        if (name >= n) name = n;
        char lower[256] = "";
        for (size_t i = 0; i < name && i + 1 < sizeof lower; i++)
            lower[i] = line[i] >= 'A' && line[i] <= 'Z' ? line[i] + 32 : line[i];
        const char *value = line + name + (name < n);
        while (*value == ' ' && value < line + n) value++;
        size_t length = line + n - value;
        text_add(t, comma, strlen(comma));
        text_json(t, lower, strlen(lower));
        text_add(t, ":", 1);
        if (!secret(line, name)) {
            text_json(t, value, length);
            continue;
        }
        text_printf(t, "\"%zu bytes\"", length);
        if (length > 7 && !strncasecmp(value, "Bearer ", 7)) value += 7, length -= 7;
        snprintf(r->key, sizeof r->key, "%.*s", (int)length, value);
    }
    text_add(t, "}", 1);
}

static void journal_request(struct request *r) {
    struct text t = {0};
    text_printf(&t, "{\"request\":%ld,\"time\":%.3f,\"method\":", r->number, now());
    text_json(&t, r->method, strlen(r->method));
    text_printf(&t, ",\"path\":");
    text_json(&t, r->path, strlen(r->path));
    text_printf(&t, ",\"headers\":");
    journal_headers(&t, r);
    if (*expected)
        text_printf(&t, ",\"key\":\"%s\"",
                    !*r->key                   ? "none"
                    : strcmp(r->key, expected) ? "another"
                                               : "right");
    text_printf(&t, ",\"size\":%zu,\"body\":", r->size);
    text_json(&t, r->body, r->size);
    text_add(&t, "}", 1);
    journal_line(&t);
}

/* Journal a connection without a valid request: only the number of bytes. */
static void journal_broken(size_t size) {
    struct text t = {0};
    text_printf(&t, "{\"broken\":true,\"time\":%.3f,\"size\":%zu}", now(), size);
    journal_line(&t);
}

static void journal_reply(const struct reply *r) {
    struct text t = {0};
    text_printf(&t, "{\"reply\":%ld,\"time\":%.3f,\"status\":%d,\"sent\":%zu,\"whole\":%s}",
                r->request->number, now(), r->rule->status, r->sent, r->gone ? "false" : "true");
    journal_line(&t);
}

/* ---- Sending ----------------------------------------------------------------------- */

static bool send_all(struct reply *r, const char *p, size_t n) {
    while (n && !r->gone) {
        ssize_t k = send(r->fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            r->gone = true;
        else
            p += k, n -= k;
    }
    return !r->gone;
}

static bool send_head(struct reply *r) {
    if (r->headed || r->gone || r->counting) return !r->gone;
    r->headed = true;
    const struct rule *rule = r->rule;
    if (!rule->status) return true;
    struct text t = {0};
    text_printf(&t, "HTTP/1.1 %d %s\r\n%s", rule->status, rule->reason,
                rule->headers ? rule->headers : "");
    if (!rule->has_type)
        text_printf(&t, "Content-Type: %s\r\n",
                    rule->status == 200 && answer_streams(rule, r->request->body)
                        ? "text/event-stream; charset=utf-8"
                        : "application/json");
    if (rule->framing == CHUNKED) text_printf(&t, "Transfer-Encoding: chunked\r\n");
    if (rule->framing == LENGTH) text_printf(&t, "Content-Length: %zu\r\n", r->total);
    if (rule->framing == CLOSE) text_printf(&t, "Connection: close\r\n");
    bool ok = send_all(r, t.p, t.n);
    free(t.p);
    for (long i = 0; i < rule->filler && ok; i++) {
        char line[1024];
        int n = snprintf(line, sizeof line, "X-Filler-%ld: ", i);
        memset(line + n, 'x', sizeof line - n - 2);
        memcpy(line + sizeof line - 2, "\r\n", 2);
        ok = send_all(r, line, sizeof line);
    }
    return ok && send_all(r, "\r\n", 2);
}

/* Send some bytes of the body with the framing, pace and limit of the rule. */
static bool send_body(void *context, const char *p, size_t n) {
    struct reply *r = context;
    if (r->counting) return r->total += n, true;
    if (!send_head(r)) return false;
    while (n && !r->gone) {
        size_t k = r->pace && (size_t)r->pace < n ? (size_t)r->pace : n;
        if (r->limit && k > r->limit - r->sent) k = r->limit - r->sent;
        char size[32];
        bool chunk = r->rule->status && r->rule->framing == CHUNKED;
        if (chunk && !send_all(r, size, snprintf(size, sizeof size, "%zx\r\n", k))) break;
        if (!send_all(r, p, k)) break;
        if (chunk && !send_all(r, "\r\n", 2)) break;
        r->sent += k, p += k, n -= k;
        if (r->limit && r->sent >= r->limit) r->gone = true;
        if (r->pace && !r->gone) pause_ms(r->pause);
    }
    return !r->gone;
}

/* Send the key of the request in one of its disguises. */
static bool send_key(struct reply *r, const char *word) {
    const char *key = r->request->key;
    size_t n = strlen(key), half = n / 2;
    struct text t = {0};
    if (!strcmp(word, "%HEAD%")) text_add(&t, key, half);
    if (!strcmp(word, "%TAIL%")) text_add(&t, key + half, n - half);
    for (size_t i = 0; i < n && !strcmp(word, "%KEY%"); i++) text_add(&t, key + i, 1);
    for (size_t i = 0; i < n && !strcmp(word, "%SLASH%"); i++)
        text_printf(&t, key[i] == '/' ? "\\/" : "%c", key[i]);
    for (size_t i = 0; i < n && !strcmp(word, "%HEX%"); i++) text_printf(&t, "\\u%04x", key[i]);
    bool ok = send_body(r, t.p ? t.p : "", t.n);
    free(t.p);
    return ok;
}

/* Send a text, replacing %KEY%, %HEAD% and so on by the key. */
static bool send_text(struct reply *r, const struct step *s) {
    static const char *words[] = {"%KEY%", "%HEAD%", "%TAIL%", "%SLASH%", "%HEX%"};
    const char *from = s->text, *end = s->text + s->size, *at = from;
    while ((at = memchr(at, '%', end - at))) {
        const char *word = NULL;
        for (size_t i = 0; i < sizeof words / sizeof *words && !word; i++)
            if (!strncmp(at, words[i], strlen(words[i]))) word = words[i];
        if (word) {
            if (!send_body(r, from, at - from) || !send_key(r, word)) return false;
            from = at + strlen(word);
        }
        at = word ? from : at + 1;
    }
    return send_body(r, from, end - from);
}

/* Wait until the client disconnects. */
static void hang(struct reply *r) {
    char byte;
    struct timeval t = {HANG_SECONDS, 0};
    setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    (void)!recv(r->fd, &byte, 1, 0);
    r->gone = true;
}

static void play_step(struct reply *r, const struct step *s) {
    struct linger now_or_never = {1, 0};
    switch (s->kind) {
    case SEND: send_head(r), send_text(r, s); break;
    case REPEAT:
        for (long i = 0; i < s->a && !r->gone; i++) send_text(r, s);
        break;
    case ANSWER:
        answer_emit(r->rule, s, answer_api(r->request->path), r->request->body, send_body, r);
        break;
    default:
        if (r->counting) return;
        if (s->kind == WAIT) pause_ms(s->a);
        if (s->kind == PACE) r->pace = s->a, r->pause = s->b;
        if (s->kind == LIMIT) r->limit = s->a;
        if (s->kind == HANG) hang(r);
        if (s->kind == RESET)
            setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now_or_never, sizeof now_or_never);
        if (s->kind == CUT || s->kind == RESET) r->gone = true;
    }
}

/* Play a rule; true if the connection can serve another request. */
static bool play(int fd, const struct rule *rule, const struct request *request) {
    struct reply r = {.fd = fd, .rule = rule, .request = request, .counting = true};
    for (int i = 0; i < rule->nsteps && rule->framing == LENGTH; i++)
        play_step(&r, &rule->steps[i]);
    r.counting = false;
    for (int i = 0; i < rule->nsteps && !r.gone; i++) play_step(&r, &rule->steps[i]);
    if (!r.gone) send_head(&r);
    if (!r.gone && rule->status && rule->framing == CHUNKED) send_all(&r, "0\r\n\r\n", 5);
    journal_reply(&r);
    return !r.gone && rule->status && rule->framing != CLOSE;
}

/* ---- Receiving --------------------------------------------------------------------- */

/* Read a request into `r`; false if there is none or it is invalid.  `*seen` counts the bytes. */
static bool receive(int fd, struct request *r, size_t *seen) {
    char *head = malloc(HEAD_ROOM + 1), *end = NULL;
    size_t n = 0;
    *seen = 0;
    while (head && !end && n < HEAD_ROOM) {
        ssize_t k = recv(fd, head + n, HEAD_ROOM - n, 0);
        if (k <= 0) break;
        *seen = n += k;
        head[n] = 0;
        end = strstr(head, "\r\n\r\n");
    }
    if (!end || sscanf(head, "%15s %2047s", r->method, r->path) != 2) return free(head), false;
    size_t body = n - (end + 4 - head);
    end[2] = 0;
    char *first = strstr(head, "\r\n"), *length = strcasestr(head, "\r\ncontent-length:");
    r->size = length ? strtoul(length + 17, NULL, 10) : 0;
    r->head = strdup(first + 2);
    r->body = r->size <= BODY_ROOM ? malloc(r->size + 1) : NULL;
    bool ok = r->head && r->body && body <= r->size;
    if (ok) memcpy(r->body, end + 4, body);
    if (ok && strcasestr(r->head, "expect: 100-continue"))
        (void)!send(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
    while (ok && body < r->size) {
        ssize_t k = recv(fd, r->body + body, r->size - body, 0);
        ok = k > 0;
        if (ok) *seen += k, body += k;
    }
    if (ok) r->body[r->size] = 0;
    free(head);
    return ok;
}

/* A rule of the server's own: it answers with a JSON error. */
static void refuse(struct rule *rule, struct step *step, int status, const char *why) {
    struct text t = {0};
    text_printf(&t, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":");
    text_json(&t, why, strlen(why));
    text_printf(&t, ",\"code\":null,\"param\":null}}");
    *step = (struct step){.kind = SEND, .text = t.p, .size = t.n};
    *rule = (struct rule){
        .status = status, .reason = "Refused", .framing = LENGTH, .steps = step, .nsteps = 1};
}

/* Find the rule for a request and play it; true if the connection can continue. */
static bool serve(int fd, struct request *r) {
    pthread_mutex_lock(&lock);
    r->number = ++requests;
    journal_request(r);
    script_read(&script);
    const struct rule *rule = script_rule(&script, r->path, r->body);
    pthread_mutex_unlock(&lock);
    struct rule own;
    struct step step = {0};
    const char *objection = rule ? NULL : "no rule of the script fits this request";
    for (int i = 0; rule && i < rule->nsteps && !objection; i++)
        if (rule->steps[i].kind == ANSWER)
            objection = answer_objection(answer_api(r->path), r->head, r->body);
    if (objection) refuse(&own, &step, rule ? 400 : 404, objection);
    bool go_on = play(fd, objection ? &own : rule, r);
    free(step.text);
    return go_on;
}

static void *converse(void *arg) {
    int fd = (int)(long)arg, yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    bool go_on = true, first = true;
    while (go_on) {
        struct request *r = calloc(1, sizeof *r);
        size_t seen = 0;
        go_on = r && receive(fd, r, &seen);
        if (!go_on && (seen || first)) journal_broken(seen);
        go_on = go_on && serve(fd, r);
        first = false;
        if (r) {
            free(r->head);
            free(r->body);
            explicit_bzero(r->key, sizeof r->key);
        }
        free(r);
    }
    /* The requests were read whole: closing with unread bytes would send a reset, which could
     * overtake the end of the reply. */
    close(fd);
    return NULL;
}

/* ---- The rest ---------------------------------------------------------------------- */

static void stop(int signal) {
    (void)signal;
    _exit(0);
}

/* Listen on 127.0.0.1:`port` (0: any free one), and write the port to a file. */
static int listen_on(int port, const char *file) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((unsigned short)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        die(KP_MACHINE, "127.0.0.1:%d: cannot listen: %s", port, strerror(errno));
    if (!file) return fd;
    struct text beside = {0};
    text_printf(&beside, "%s+", file);
    FILE *f = fopen(beside.p, "w");
    if (!f || fprintf(f, "%d\n", ntohs(a.sin_port)) < 0 || fclose(f) != 0 ||
        rename(beside.p, file) != 0)
        die(KP_IO, "%s: cannot write: %s", file, strerror(errno));
    free(beside.p);
    return fd;
}

int main(int argc, char **argv) {
    int port = 0, seconds = 300;
    const char *port_file = NULL, *journal_file = NULL;
    kp_program("mock");
    for (int c; (c = getopt(argc, argv, "l:p:j:t:k")) != -1;) switch (c) {
        case 'l': port = atoi(optarg); break;
        case 'p': port_file = optarg; break;
        case 'j': journal_file = optarg; break;
        case 't': seconds = atoi(optarg); break;
        case 'k':
            if (!fgets(expected, sizeof expected, stdin)) die(KP_USAGE, "-k: no key on stdin");
            expected[strcspn(expected, "\n")] = 0;
            break;
        default:
            die(KP_USAGE, "mock [-l PORT] [-p PORTFILE] [-j JOURNAL] [-t SECONDS] [-k] SCRIPT");
        }
    if (optind + 1 != argc || port < 0 || port > 65535 || seconds < 1)
        die(KP_USAGE, "mock [-l PORT] [-p PORTFILE] [-j JOURNAL] [-t SECONDS] [-k] SCRIPT");
    script.path = argv[optind];
    script_read(&script);
    if (journal_file) {
        journal = open(journal_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (journal < 0) die(KP_IO, "%s: cannot write: %s", journal_file, strerror(errno));
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, stop);
    signal(SIGALRM, stop);
    alarm((unsigned)seconds);
    int fd = listen_on(port, port_file);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    for (;;) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        if (client >= 0 && pthread_create(&thread, &small, converse, (void *)(long)client) != 0)
            close(client);
        if (client < 0) pause_ms(10);
    }
}
