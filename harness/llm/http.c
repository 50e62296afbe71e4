/* http.c: one POST through libcurl, limited in bytes, line length and time. */
#define _GNU_SOURCE
#include "llm/wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <signal.h>
#include <strings.h>

struct transfer {
    CURL *curl;
    struct http_reply *reply;
    struct llm_reader *reader;
    http_progress *progress;
    void *context;
    size_t header_bytes;
    double shown; /* seconds at which progress was last shown */
};

/* ---- Addresses ---- */

/* Copy a part of a URL; false if it is absent or too long. */
static bool part(CURLU *u, CURLUPart what, char *out, size_t room) {
    char *value = NULL;
    bool ok = curl_url_get(u, what, &value, 0) == CURLUE_OK && strlen(value) < room;
    snprintf(out, room, "%s", ok ? value : "");
    curl_free(value);
    return ok;
}

static bool is_loopback(const char *host) {
    struct in_addr four;
    if (!strcasecmp(host, "localhost") || !strcmp(host, "[::1]")) return true;
    return inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

void http_base(struct llm_config *c, const char *variable, const char *url) {
    CURLU *u = curl_url();
    char scheme[16], any[sizeof c->base];
    const char *allowed = getenv("LLM_PLAIN_HTTP");
    size_t n = strlen(url);
    if (!u) die(KP_MACHINE, "out of memory");
    while (n && url[n - 1] == '/') n--;
    if (n >= sizeof c->base) die(KP_USAGE, "%s is longer than a URL may be", variable);
    snprintf(c->base, sizeof c->base, "%.*s", (int)n, url);
    if (curl_url_set(u, CURLUPART_URL, c->base, 0) ||
        !part(u, CURLUPART_SCHEME, scheme, sizeof scheme) ||
        !part(u, CURLUPART_HOST, c->host, sizeof c->host) || !*c->host)
        die(KP_USAGE, "%s is not a URL: https://HOST/PATH is expected", variable);
    /* Do not print it: it may be a password. */
    if (part(u, CURLUPART_USER, any, sizeof any) || part(u, CURLUPART_PASSWORD, any, sizeof any))
        die(KP_USAGE, "%s carries credentials: take them out, the key has a variable of its own",
            variable);
    if (part(u, CURLUPART_QUERY, any, sizeof any) || part(u, CURLUPART_FRAGMENT, any, sizeof any))
        die(KP_USAGE, "%s has a ? or a #: it is put in front of a path", variable);
    c->loopback = is_loopback(c->host);
    c->plain = !strcmp(scheme, "http") &&
               (c->loopback || !key_held(c->key_env) || (allowed && !strcmp(allowed, "1")));
    if (strcmp(scheme, "https") != 0 && !c->plain)
        die(KP_USAGE,
            "%s: %s to %s would show the key to everyone on the way: use https, or unset the key, "
            "or set LLM_PLAIN_HTTP=1",
            variable, scheme, c->host);
    curl_url_cleanup(u);
}

/* ---- What curl calls ---- */

/* Take one line of the response's headers, if it helps to explain an answer. */
static size_t take_header(char *line, size_t size, size_t n, void *context) {
    static const char kept[] = "content-type date server x-request-id request-id retry-after "
                               "retry-after-ms x-should-retry openai-processing-ms openai-version";
    struct transfer *t = context;
    char name[64], value[1024], clean[512];
    n *= size;
    if ((t->header_bytes += n) > LLM_HEADERS_MAX) {
        snprintf(t->reply->error, sizeof t->reply->error, "its headers are larger than 64 KB");
        return 0;
    }
    if (n > 5 && !strncmp(line, "HTTP/", 5)) { /* drop the headers of a 1xx response */
        cJSON_Delete(t->reply->headers);
        t->reply->headers = cJSON_CreateObject();
    }
    const char *colon = memchr(line, ':', n);
    if (!colon || (size_t)(colon - line) >= sizeof name) return n;
    snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
    for (char *p = name; *p; p++) *p = (char)tolower((unsigned char)*p);
    if (cJSON_HasObjectItem(t->reply->headers, name) ||
        !(text_listed(kept, name) || strstr(name, "ratelimit-")))
        return n;
    snprintf(value, sizeof value, "%.*s", (int)(line + n - colon - 1), colon + 1);
    text_excerpt(clean, sizeof clean, value, key_redact(value, strlen(value)));
    cJSON_AddStringToObject(t->reply->headers, name, clean);
    return n;
}

/* The kind of body, from the status and content type, else from its first bytes. */
static enum body kind_of(const struct transfer *t, const char *bytes, size_t n) {
    const char *type = json_text(t->reply->headers, "content-type", "");
    long status = 0;
    if (curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status) || status / 100 != 2)
        return BODY_OTHER;
    if (!strncasecmp(type, "text/event-stream", 17)) return BODY_STREAM;
    bool json = !strncasecmp(type, "application/", 12) && strcasestr(type, "json");
    if (*type && !json) return BODY_OTHER;
    while (n && isspace((unsigned char)*bytes)) bytes++, n--;
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
    enum body *kind = &t->reply->kind;
    if (*kind == BODY_NONE) *kind = kind_of(t, bytes, n);
    size_t left = (*kind == BODY_OTHER ? LLM_ERROR_MAX : LLM_BODY_MAX) - t->reply->body.n;
    size_t fits = left < n ? left : n;
    text_add(&t->reply->body, bytes, fits);
    bool on = *kind != BODY_STREAM || reader_feed(t->reader, bytes, fits);
    if (on && fits < n && *kind != BODY_OTHER) /* of other bodies that much is enough */
        snprintf(t->reply->error, sizeof t->reply->error, "its answer is larger than 16 MB");
    return on && fits == n ? n : 0;
}

/* libcurl calls this about once a second and whenever data arrives. */
static int take_time(void *context, curl_off_t down, curl_off_t downed, curl_off_t up,
                     curl_off_t upped) {
    struct transfer *t = context;
    double seconds = 0;
    (void)down, (void)downed, (void)up, (void)upped;
    if (curl_easy_getinfo(t->curl, CURLINFO_TOTAL_TIME, &seconds) || seconds < t->shown + 0.25)
        return 0;
    t->shown = seconds;
    t->progress(t->context, seconds, t->reader->said[IS_TEXT].n + t->reader->said[IS_REASONING].n);
    return 0;
}

/* ---- The request ---- */

static void add(struct curl_slist **list, const char *header) {
    struct curl_slist *more = curl_slist_append(*list, header);
    if (!more) die(KP_MACHINE, "out of memory");
    *list = more;
}

#define SET(option, value)                                                                       \
    do {                                                                                         \
        CURLcode code_ = curl_easy_setopt(t->curl, option, value);                               \
        if (code_)                                                                               \
            die(KP_MACHINE, "libcurl does not take %s: %s", #option, curl_easy_strerror(code_)); \
    } while (0)

/* Set our request headers; the first is that with the key, if there is one. */
static struct curl_slist *set_headers(struct transfer *t, const struct llm_config *c) {
    char *key = key_header(t->reader->wire, c->key_env);
    struct curl_slist *list = NULL;
    if (key) {
        add(&list, key);
        explicit_bzero(key, strlen(key));
        free(key);
    }
    add(&list, "content-type: application/json");
    add(&list, "accept: text/event-stream, application/json");
    add(&list, "Expect:"); /* do not wait for 100 Continue */
    if (t->reader->wire->header) add(&list, t->reader->wire->header);
    SET(CURLOPT_HTTPHEADER, list);
    return list;
}

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

/* Record how the transfer ended. */
static void conclude(struct transfer *t, CURLcode code, const char *words, size_t size) {
    struct http_reply *reply = t->reply;
    char *to = NULL, says[160];
    curl_off_t sent = 0, after = 0;
    if (curl_easy_getinfo(t->curl, CURLINFO_TOTAL_TIME, &reply->seconds) ||
        curl_easy_getinfo(t->curl, CURLINFO_SIZE_UPLOAD_T, &sent) ||
        curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &reply->status) ||
        curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &after) ||
        curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &to))
        die(KP_MACHINE, "libcurl cannot tell how a transfer ended");
    reply->sent = sent >= (curl_off_t)size;
    reply->wait = strtod(json_text(reply->headers, "retry-after-ms", ""), NULL) / 1000;
    if (!(reply->wait > 0)) reply->wait = after > 0 ? (double)after : NAN;
    if (*reply->error) return;
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR) { /* that is ours: enough has arrived */
        /* Headers above 100 KB are out of memory to libcurl, and error 100 to newer versions. */
        bool large = code == CURLE_OUT_OF_MEMORY || (int)code == 100;
        reply->again = !large && code != CURLE_PEER_FAILED_VERIFICATION &&
                       code != CURLE_SSL_CACERT_BADFILE && code != CURLE_URL_MALFORMAT;
        if (large) words = "its headers are too large";
        if (!*words) words = curl_easy_strerror(code);
        text_excerpt(reply->error, sizeof reply->error, words, strlen(words));
    } else if (reply->kind == BODY_OTHER && reply->status / 100 == 2) {
        text_excerpt(says, sizeof says, reply->body.s, reply->body.n);
        snprintf(reply->error, sizeof reply->error,
                 "answers with %s, neither a stream nor JSON (%s)",
                 json_text(reply->headers, "content-type", ""), says);
    } else if (reply->status < 400 && reply->status / 100 != 2) {
        text_excerpt(says, sizeof says, to ? to : "nowhere", to ? strlen(to) : 7);
        snprintf(reply->error, sizeof reply->error,
                 "status %ld points to %s, and redirects are not followed", reply->status, says);
    }
}

void http_post(const struct llm_config *c, const char *request, double seconds,
               struct llm_reader *r, http_progress *progress, void *context,
               struct http_reply *reply) {
    static bool ready;
    char words[CURL_ERROR_SIZE] = "", *url = text_format("%s%s", c->base, r->wire->path);
    /* CURLOPT_NOSIGNAL leaves SIGPIPE to us.  Ignore it: a lost connection must end the try, not
     * the program. */
    if (!ready && (curl_global_init(CURL_GLOBAL_DEFAULT) || signal(SIGPIPE, SIG_IGN) == SIG_ERR))
        die(KP_MACHINE, "libcurl cannot start");
    ready = true;
    *reply = (struct http_reply){.headers = cJSON_CreateObject()};
    struct transfer transfer = {curl_easy_init(), reply, r, progress, context, 0, 0},
                    *t = &transfer;
    if (!t->curl) die(KP_MACHINE, "out of memory");
    struct curl_slist *headers = set_headers(t, c);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_USERAGENT, "kernelproof/1");
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request));
    SET(CURLOPT_POSTFIELDS, request);
    SET(CURLOPT_ERRORBUFFER, words);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, take_time);
    SET(CURLOPT_XFERINFODATA, t);
    set_limits(t, c, seconds);
    conclude(t, curl_easy_perform(t->curl), words, strlen(request));
    explicit_bzero(headers->data, strlen(headers->data)); /* the key, if there is one */
    curl_slist_free_all(headers);
    curl_easy_cleanup(t->curl);
    free(url);
}
