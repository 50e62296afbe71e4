/* llm/wire.h: what the files of the client share.  Nobody else includes it, but its tests. */
#ifndef KP_LLM_WIRE_H
#define KP_LLM_WIRE_H

#include "llm/llm.h"
#include "base/text.h"

#include <time.h>

enum {
    LLM_BODY_MAX = 16 << 20,    /* of a response */
    LLM_LINE_MAX = 1 << 20,     /* of a line of a stream, and of an event */
    LLM_HEADERS_MAX = 64 << 10, /* of all response headers */
    LLM_ERROR_MAX = 256 << 10   /* of a body that is no answer */
};

/* ---- Text (answer_text.c) -------------------------------------------------------------- */

/* JSON whose strings cJSON keeps whole: cJSON ends a string at \u0000 and refuses half a surrogate
 * pair.  Both become bytes that are not UTF-8 (C0 80, and ED A0 80 to ED BF BF), which it
 * passes through, and which text_settle finds again.  Free it. */
char *json_armour(const char *s, size_t n);

/* Join halves of a pair that came in two pieces, and put U+FFFD for all else that is not UTF-8.
 * Returns what that was ("a NUL", ...), or NULL if there was nothing. */
const char *text_settle(struct text *t);

/* Move <think>...</think> from the front of an answer to the reasoning.  One that is not closed
 * takes all of it. */
void text_unthink(struct text *answer, struct text *reasoning);

/* The first bytes of something foreign as one line of plain text: tags and control characters
 * dropped, runs of blanks joined.  At most room - 1 bytes, cut between characters. */
void text_excerpt(char *out, size_t room, const char *s, size_t n);

/* ---- Server-sent events (sse.c) --------------------------------------------------- */

struct sse {
    struct text line, data;
    char event[64];
    bool has_data, after_cr, begun;
};
enum sse_state { SSE_MORE, SSE_STOPPED, SSE_TOO_LONG };

/* One event.  `last`: it came at the end of the stream and may be cut short.  False: stop. */
typedef bool sse_event(void *context, const char *event, const char *data, size_t n, bool last);

enum sse_state sse_feed(struct sse *s, const char *bytes, size_t n, sse_event *event,
                        void *context);
/* The stream ended: what it had not ended with a blank line is an event, too. */
void sse_end(struct sse *s, sse_event *event, void *context);
void sse_free(struct sse *s);

/* ---- Faults (fault.c) ------------------------------------------------------------- */

struct fault { /* an error as a server states it */
    bool any;
    long http;   /* status as received; 0 in a stream */
    long status; /* the same, or what the words amount to; 0: unknown */
    char type[64], code[64], message[256];
};

/* Read the value of an "error" member, or a whole body that is an error. */
void fault_read(struct fault *f, const cJSON *error);
/* Read the body of a response that is no answer: JSON of any known shape, HTML, text.  It must hold
 * no key. */
void fault_body(struct fault *f, long status, const char *body, size_t n);

bool fault_retry(const struct fault *f);
int fault_exit(const struct fault *f);
/* "429 rate_limit_error: Slow down"; `advice` says what to do about it, "" if there is nothing. */
void fault_text(const struct fault *f, char *out, size_t room);
const char *fault_advice(const struct fault *f);

/* ---- Wire formats (chat.c, responses.c, anthropic.c) -------------------------- */

enum stop { STOP_NONE, STOP_END, STOP_CAP, STOP_CONTEXT, STOP_FILTER, STOP_BROKEN, STOP_OTHER };

struct llm_reader { /* of one response */
    const struct wire *wire;
    struct sse sse;
    struct text text, reasoning, refusal;
    struct llm_usage usage;
    double uncached, written; /* Anthropic: what usage.input is the sum of, but for cached */
    char model[128];
    enum stop stop;
    char stop_word[64], stop_detail[256]; /* in the server's words */
    long part;                            /* of the answer that text came from last */
    bool begun, ended;                    /* the model has begun; the terminal marker came */
    struct fault fault;
    const char *broken; /* what is wrong with the stream; NULL */
    bool again;         /* worth another try: broken, or a fault that passes */
};

struct wire {
    const char *path; /* after the base URL */
    void (*request)(cJSON *body, const struct llm_config *c, const struct llm_message *m, int n,
                    double cap);
    void (*event)(struct llm_reader *r, const char *event, const cJSON *data);
    void (*whole)(struct llm_reader *r, const cJSON *body); /* an answer that was not streamed */
};
extern const struct wire wire_chat, wire_responses, wire_anthropic;

/* NULL for LLM_REPLAY. */
const struct wire *llm_wire(enum llm_api api);

/* What wires use (wire_json.c): members of requests (out of memory ends the program), and of
 * answers. */
cJSON *wire_object(cJSON *parent, const char *key);
cJSON *wire_array(cJSON *parent, const char *key);
cJSON *wire_member(cJSON *array); /* a new object in an array */
void wire_text(cJSON *parent, const char *key, const char *text);
void wire_number(cJSON *parent, const char *key, double x);
void wire_bool(cJSON *parent, const char *key, bool x);
char *wire_system(const struct llm_message *m, int n); /* all system messages, NULL if none */

/* Parse the JSON of a server, armoured and without a key; NULL if it is none.  Delete it. */
cJSON *wire_parse(const char *s, size_t n);
const cJSON *wire_get(const cJSON *object, const char *key);
void wire_get_number(const cJSON *object, const char *key, double *x); /* stays if absent */
void wire_name_model(struct llm_reader *r, const cJSON *object);
void wire_stop(struct llm_reader *r, const char *word);
void wire_add(struct text *t, const cJSON *string); /* if it is one */

/* ---- Reading (read.c) --------------------------------------------------------------- */

void reader_start(struct llm_reader *r, enum llm_api api);
/* More of a stream.  False: the answer is whole, or the stream is broken; stop reading. */
bool reader_feed(struct llm_reader *r, const char *bytes, size_t n);
/* A body that is no stream. */
void reader_whole(struct llm_reader *r, const char *body, size_t n);
/* What it all amounts to; frees what the reader holds.  r->again says whether to try on. */
struct llm_answer *reader_end(struct llm_reader *r);
struct llm_answer *answer_failed(int exit_code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- The key (key.c) ---- */

/* Move the value of this variable, and of the conventional ones, from the environment to this
 * file's memory; its bytes in the environment are overwritten.  KP_USAGE if the one named holds a
 * byte that no key holds.  May be called again. */
void key_take(const char *name);
/* Whether such a variable was set, and not empty. */
bool key_held(const char *name);
/* The header that carries the key; NULL if there is none.  Overwrite it, and free it. */
char *key_header(const struct llm_config *c);
/* Whether a key is in these bytes, however JSON may escape it.  Values shorter than 8 bytes are no
 * secrets (EMPTY, none) and are not looked for. */
bool key_within(const char *s, size_t n);
/* Put *** for each, in place.  Returns how many bytes are left; where
 * they are fewer, a NUL follows them. */
size_t key_redact(char *s, size_t n);

/* ---- HTTP (http.c) ------------------------------------------------------------------- */

struct http_reply {
    long status;    /* 0: none */
    cJSON *headers; /* chosen ones */
    struct text body;
    char error[300];    /* of the transport, or a limit that was met; "" if none */
    char redirect[256]; /* host that it pointed to */
    char content_type[64], after[64], after_ms[64], should_retry[16];
    bool again;   /* the error is worth another try */
    bool sent;    /* all of the request went out */
    bool sse;     /* the body is a stream, and the reader has seen it */
    bool foreign; /* 200, but neither a stream nor JSON */
    double seconds;
};

/* Send one request and read its answer, feeding a stream to the reader.  Gives up after `seconds`.
 * Free with http_free. */
void http_post(const struct llm_config *c, const char *request, double seconds,
               struct llm_reader *r, llm_progress *progress, void *context,
               struct http_reply *reply);
void http_free(struct http_reply *reply);

/* Split a base URL into c->base, c->host, c->loopback.  KP_USAGE where it may not be used;
 * `variable` names where it came from. */
void http_base(struct llm_config *c, const char *variable, const char *url);

/* Seconds that a server asks to wait, from retry-after-ms or Retry-After (seconds or a date); NAN
 * if it says nothing that can be used. */
double http_wait(const char *after_ms, const char *after, time_t now);

/* Seconds before try number `done + 1`, with `random` in [0, 1): doubling from base, at most 16
 * times it, less up to a quarter. */
double llm_backoff(double base, int done, double random);

#endif
