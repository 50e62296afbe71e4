/* http.c: one POST through libcurl, limited in bytes, line length and time. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/json.h"
#include "llm/wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum body { BODY_UNKNOWN, BODY_STREAM, BODY_JSON, BODY_ERROR };

struct transfer {
    CURL *curl;
    struct http_reply *reply;
    struct llm_reader *reader;
    llm_progress *progress;
    void *context;
    curl_off_t size; /* of the request */
    enum body kind;
    size_t header_bytes;
    bool stopped; /* we ended it: enough has arrived */
    double shown; /* seconds at which progress was last shown */
};

/* ---- Addresses ---- */

/* Copy a part of a URL to `out`; false if it is absent or too long. */
static bool part(CURLU *u, CURLUPart what, char *out, size_t room) {
    char *value = NULL;
    bool ok = curl_url_get(u, what, &value, 0) == CURLUE_OK && strlen(value) < room;
    snprintf(out, room, "%s", ok ? value : "");
    curl_free(value);
    return ok;
}

static bool is_loopback(const char *host) {
    struct in_addr four;
    struct in6_addr six;
    if (!strcasecmp(host, "localhost")) return true;
    if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* The host of a URL, without the brackets of IPv6. */
static bool url_host(CURLU *u, char *host, size_t room) {
    bool ok = part(u, CURLUPART_HOST, host, room);
    size_t n = strlen(host);
    if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
        memmove(host, host + 1, n - 2);
        host[n - 2] = 0;
    }
    return ok && *host;
}

void http_base(struct llm_config *c, const char *variable, const char *url) {
    CURLU *u = curl_url();
    char scheme[16], any[512];
    size_t n = strlen(url);
    if (!u) die(KP_MACHINE, "out of memory");
    while (n && url[n - 1] == '/') n--;
    if (n >= sizeof c->base) die(KP_USAGE, "%s is longer than a URL may be", variable);
    memcpy(c->base, url, n);
    c->base[n] = 0;
    if (curl_url_set(u, CURLUPART_URL, c->base, 0) ||
        !part(u, CURLUPART_SCHEME, scheme, sizeof scheme) || !url_host(u, c->host, sizeof c->host))
        die(KP_USAGE, "%s is not a URL: https://HOST/PATH is expected", variable);
    /* Do not print it: it may be a password. */
    if (part(u, CURLUPART_USER, any, sizeof any) || part(u, CURLUPART_PASSWORD, any, sizeof any))
        die(KP_USAGE, "%s carries credentials: take them out, the key has a variable of its own",
            variable);
    if (part(u, CURLUPART_QUERY, any, sizeof any) || part(u, CURLUPART_FRAGMENT, any, sizeof any))
        die(KP_USAGE, "%s has a ? or a #: it is put in front of a path", variable);
    c->loopback = is_loopback(c->host);
    const char *allowed = getenv("LLM_PLAIN_HTTP");
    c->plain = !strcmp(scheme, "http") &&
               (c->loopback || !key_held(c->key_env) || (allowed && !strcmp(allowed, "1")));
    if (strcmp(scheme, "https") != 0 && !c->plain)
        die(KP_USAGE,
            "%s: %s to %s would show the key to everyone on the way: use https, or unset the key, "
            "or "
            "set LLM_PLAIN_HTTP=1",
            variable, scheme, c->host);
    curl_url_cleanup(u);
}

/* ---- Waiting ---- */

/* A number of seconds; NAN if the text is not one. */
static double seconds_of(const char *text) {
    char *end;
    if (!*text || strspn(text, "0123456789.") != strlen(text)) return NAN;
    double x = strtod(text, &end);
    return *end ? NAN : x;
}

double http_wait(const char *after_ms, const char *after, time_t now) {
    double x = seconds_of(after_ms) / 1000;
    if (x > 0) return x;
    x = seconds_of(after);
    if (isnan(x) && *after) {
        time_t date = curl_getdate(after, NULL);
        if (date != -1) x = difftime(date, now);
    }
    return x > 0 ? x : NAN;
}

/* ---- What curl calls ---- */

/* Whether a header helps to explain an answer. */
static bool is_kept(const char *name) {
    static const char *const kept[] = {"content-type",   "date",           "server",
                                       "x-request-id",   "request-id",     "retry-after",
                                       "retry-after-ms", "x-should-retry", "openai-processing-ms",
                                       "openai-version"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (!strcmp(name, kept[i])) return true;
    return !strncmp(name, "x-ratelimit-", 12) || !strncmp(name, "anthropic-ratelimit-", 20);
}

/* Take one line of the response's headers. */
static size_t take_header(char *line, size_t size, size_t n, void *context) {
    struct transfer *t = context;
    char name[64], value[1024], clean[512];
    n *= size;
    if ((t->header_bytes += n) > LLM_HEADERS_MAX) {
        snprintf(t->reply->error, sizeof t->reply->error, "its headers are larger than 64 KB");
        return 0;
    }
    if (n > 5 && !strncmp(line, "HTTP/", 5)) { /* drop the headers of a 1xx response */
        cJSON_Delete(t->reply->headers);
        if (!(t->reply->headers = cJSON_CreateObject())) die(KP_MACHINE, "out of memory");
    }
    const char *colon = memchr(line, ':', n);
    if (!colon || (size_t)(colon - line) >= sizeof name) return n;
    snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
    for (char *p = name; *p; p++) *p = (char)tolower((unsigned char)*p);
    if (!is_kept(name) || cJSON_HasObjectItem(t->reply->headers, name)) return n;
    snprintf(value, sizeof value, "%.*s", (int)(line + n - colon - 1), colon + 1);
    text_excerpt(clean, sizeof clean, value, key_redact(value, strlen(value)));
    if (!cJSON_AddStringToObject(t->reply->headers, name, clean)) die(KP_MACHINE, "out of memory");
    return n;
}

/* The kind of body, from the status and content type, else from its first bytes. */
static enum body kind_of(const struct transfer *t, const char *bytes, size_t n) {
    const char *type = json_text(t->reply->headers, "content-type", "");
    long status = 0;
    if (curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status)) status = 0;
    if (status < 200 || status > 299) return BODY_ERROR;
    if (!strncasecmp(type, "text/event-stream", 17)) return BODY_STREAM;
    bool json = !strncasecmp(type, "application/", 12) && strcasestr(type, "json");
    if (*type && !json) return BODY_ERROR;
    while (n && (*bytes == ' ' || *bytes == '\n' || *bytes == '\r' || *bytes == '\t')) bytes++, n--;
    /* Some servers call a stream JSON; no JSON begins as "data:", "event:" or a comment does. */
    if (json) return n && strchr("de:", *bytes) ? BODY_STREAM : BODY_JSON;
    return n && *bytes == '{' ? BODY_JSON : BODY_STREAM;
}

/* Take some bytes of the body.  libcurl ends the transfer if the return value is not their
 * number. */
static size_t take_body(char *bytes, size_t size, size_t n, void *context) {
    struct transfer *t = context;
    n *= size;
    if (!n) return 0;
    if (t->kind == BODY_UNKNOWN) t->kind = kind_of(t, bytes, n);
    size_t most = t->kind == BODY_ERROR ? LLM_ERROR_MAX : LLM_BODY_MAX;
    size_t fits = most - t->reply->body.n < n ? most - t->reply->body.n : n;
    text_add(&t->reply->body, bytes, fits);
    if (t->kind == BODY_STREAM && !reader_feed(t->reader, bytes, fits)) {
        t->stopped = true;
    } else if (fits < n) {
        t->stopped = t->kind == BODY_ERROR; /* enough to see the error */
        if (!t->stopped)
            snprintf(t->reply->error, sizeof t->reply->error, "its answer is larger than 16 MB");
    }
    return fits < n || t->stopped ? 0 : n;
}

/* libcurl calls this about once a second and whenever data arrives. */
static int take_time(void *context, curl_off_t down, curl_off_t downed, curl_off_t up,
                     curl_off_t upped) {
    struct transfer *t = context;
    curl_off_t us = 0;
    (void)down, (void)downed, (void)up, (void)upped;
    if (curl_easy_getinfo(t->curl, CURLINFO_TOTAL_TIME_T, &us)) return 0;
    double seconds = (double)us / 1e6;
    if (seconds < t->shown + 0.25) return 0;
    t->shown = seconds;
    t->progress(t->context, seconds, t->reader->text.n + t->reader->reasoning.n);
    return 0;
}

/* ---- The request ---- */

static struct curl_slist *add(struct curl_slist *list, const char *header) {
    struct curl_slist *more = curl_slist_append(list, header);
    if (!more) die(KP_MACHINE, "out of memory");
    return more;
}

/* Our request headers.  If there is a key, its header is the first. */
static struct curl_slist *headers_of(const struct llm_config *c, bool *keyed) {
    char *key = key_header(llm_wire(c->api), c->key_env);
    struct curl_slist *list = NULL;
    *keyed = key != NULL;
    if (key) {
        list = add(list, key);
        explicit_bzero(key, strlen(key));
        free(key);
    }
    list = add(list, "content-type: application/json");
    list = add(list, "accept: text/event-stream, application/json");
    list = add(list, "Expect:"); /* do not wait for 100 Continue */
    if (llm_wire(c->api)->header) list = add(list, llm_wire(c->api)->header);
    return list;
}

#define SET(option, value)                                                                       \
    do {                                                                                         \
        CURLcode code_ = curl_easy_setopt(t->curl, option, value);                               \
        if (code_)                                                                               \
            die(KP_MACHINE, "libcurl does not take %s: %s", #option, curl_easy_strerror(code_)); \
    } while (0)

/* Limit the transfer, and keep the key on the way to its host. */
static void set_limits(struct transfer *t, const struct llm_config *c, double seconds) {
    const char *ca = getenv("SSL_CERT_FILE");
    if (!ca || !*ca) ca = getenv("CURL_CA_BUNDLE");
    if (ca && *ca) SET(CURLOPT_CAINFO, ca);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, c->plain ? "http,https" : "https");
#else
    SET(CURLOPT_PROTOCOLS, c->plain ? CURLPROTO_HTTP | CURLPROTO_HTTPS : CURLPROTO_HTTPS);
#endif
    /* A redirect would carry x-api-key and the prompt to another host. */
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (c->loopback) SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT, 10L);
    SET(CURLOPT_TIMEOUT_MS, (long)ceil(seconds * 1000));
    /* Models think for minutes without a byte: only long silence is a fault. */
    SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
    SET(CURLOPT_LOW_SPEED_TIME, (long)c->idle_seconds);
}

/* Whether a retry may succeed. */
static bool passes(CURLcode code) {
    switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL: /* the reply is not HTTP */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

/* Record how the transfer ended. */
static void conclude(struct transfer *t, CURLcode code, const char *words) {
    struct http_reply *reply = t->reply;
    char *redirect = NULL;
    curl_off_t us = 0, sent = 0;
    bool timed = !curl_easy_getinfo(t->curl, CURLINFO_TOTAL_TIME_T, &us);
    reply->seconds = timed ? (double)us / 1e6 : 0;
    reply->sent = !curl_easy_getinfo(t->curl, CURLINFO_SIZE_UPLOAD_T, &sent) && sent >= t->size;
    if (curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &reply->status)) reply->status = 0;
    if (!curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &redirect) && redirect) {
        CURLU *u = curl_url();
        if (!u) die(KP_MACHINE, "out of memory");
        if (curl_url_set(u, CURLUPART_URL, redirect, 0) == CURLUE_OK)
            url_host(u, reply->redirect, sizeof reply->redirect);
        curl_url_cleanup(u);
    }
    reply->sse = t->kind == BODY_STREAM;
    reply->foreign = t->kind == BODY_ERROR && reply->status >= 200 && reply->status < 300;
    if (code == CURLE_OK || t->stopped || *reply->error) return;
    reply->again = passes(code);
    /* Headers above 100 KB are out of memory to libcurl, and error 100 to newer versions. */
    if (code == CURLE_OUT_OF_MEMORY || (int)code == 100) words = "its headers are too large";
    if (!*words) words = curl_easy_strerror(code);
    text_excerpt(reply->error, sizeof reply->error, words, strlen(words));
}

void http_post(const struct llm_config *c, const char *request, double seconds,
               struct llm_reader *r, llm_progress *progress, void *context,
               struct http_reply *reply) {
    static bool ready;
    char words[CURL_ERROR_SIZE] = "", url[600];
    bool keyed;
    /* CURLOPT_NOSIGNAL leaves SIGPIPE to us.  Ignore it: a lost connection must end the try, not
     * the program. */
    if (!ready && (curl_global_init(CURL_GLOBAL_DEFAULT) || signal(SIGPIPE, SIG_IGN) == SIG_ERR))
        die(KP_MACHINE, "libcurl cannot start");
    ready = true;
    *reply = (struct http_reply){.headers = cJSON_CreateObject()};
    struct transfer transfer = {.curl = curl_easy_init(),
                                .reply = reply,
                                .reader = r,
                                .progress = progress,
                                .context = context,
                                .size = (curl_off_t)strlen(request)},
                    *t = &transfer;
    if (!t->curl || !reply->headers) die(KP_MACHINE, "out of memory");
    struct curl_slist *headers = headers_of(c, &keyed);
    snprintf(url, sizeof url, "%s%s", c->base, r->wire->path);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_USERAGENT, "kernelproof/1");
    SET(CURLOPT_POSTFIELDSIZE_LARGE, t->size);
    SET(CURLOPT_POSTFIELDS, request);
    SET(CURLOPT_ERRORBUFFER, words);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, t);
    if (progress) {
        SET(CURLOPT_NOPROGRESS, 0L);
        SET(CURLOPT_XFERINFOFUNCTION, take_time);
        SET(CURLOPT_XFERINFODATA, t);
    }
    set_limits(t, c, seconds);
    conclude(t, curl_easy_perform(t->curl), words);
    if (keyed) explicit_bzero(headers->data, strlen(headers->data));
    curl_slist_free_all(headers);
    curl_easy_cleanup(t->curl);
}

void http_free(struct http_reply *reply) {
    cJSON_Delete(reply->headers);
    text_free(&reply->body);
}
