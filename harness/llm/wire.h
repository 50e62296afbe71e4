/* llm/wire.h: shared by the files of the client.  Only they and their tests include it. */
#ifndef KP_LLM_WIRE_H
#define KP_LLM_WIRE_H

#include "llm/llm.h"
#include "base/text.h"

#include <time.h>

enum {
    LLM_BODY_MAX = 16 << 20,    /* of a response */
    LLM_LINE_MAX = 1 << 20,     /* of a line of a stream, and of an event */
    LLM_HEADERS_MAX = 64 << 10, /* of all response headers */
    LLM_ERROR_MAX = 256 << 10   /* of a body that is not an answer */
};

/* ---- Text (answer_text.c) -------------------------------------------------------------- */

/* Rewrite JSON so that cJSON keeps its strings whole: cJSON ends a string at \u0000 and rejects
 * an unpaired surrogate.  Both become invalid UTF-8 (C0 80, and ED A0 80 to ED BF BF), which
 * cJSON passes through and text_settle finds again.  Free it. */
char *json_armour(const char *s, size_t n);

/* Join surrogate halves that arrived in two pieces, and replace all other invalid UTF-8 by
 * U+FFFD.  Returns what was replaced ("a NUL", ...); NULL if nothing was. */
const char *text_settle(struct text *t);

/* Move <think>...</think> from the front of an answer to the reasoning.  An unclosed <think>
 * takes the whole answer. */
void text_unthink(struct text *answer, struct text *reasoning);

/* The start of foreign text as one line of plain text, at most room - 1 bytes, cut between
 * characters.  Drops tags and control characters and joins runs of blanks. */
void text_excerpt(char *out, size_t room, const char *s, size_t n);

/* ---- Server-sent events (sse.c) --------------------------------------------------- */

struct sse {
    struct text line, data;
    char event[64];
    bool has_data, after_cr, begun;
};
enum sse_state { SSE_MORE, SSE_STOPPED, SSE_TOO_LONG };

/* Take one event.  `last`: it came at the end of the stream and may be cut short.  Return false
 * to stop. */
typedef bool sse_event(void *context, const char *event, const char *data, size_t n, bool last);

enum sse_state sse_feed(struct sse *s, const char *bytes, size_t n, sse_event *event,
                        void *context);
/* End the stream.  Data without a closing blank line is delivered as an event. */
void sse_end(struct sse *s, sse_event *event, void *context);
void sse_free(struct sse *s);

/* ---- Faults (fault.c) ------------------------------------------------------------- */

struct fault { /* an error as the server states it */
    bool any;
    long http;   /* status as received; 0 inside a stream */
    long status; /* the same, or the equivalent of the words; 0: unknown */
    char type[64], code[64], message[256];
};

/* Read the value of an "error" member, or a whole body that is an error. */
void fault_read(struct fault *f, const cJSON *error);
/* Read the body of a response that is not an answer: JSON of any known shape, HTML or text.  The
 * caller has removed the key. */
void fault_body(struct fault *f, long status, const char *body, size_t n);

bool fault_retry(const struct fault *f);
int fault_exit(const struct fault *f);
/* Write "error 429 rate_limit_error: Slow down".  fault_advice says what to do about it. */
void fault_text(const struct fault *f, char *out, size_t room);
const char *fault_advice(const struct fault *f);

/* ---- Wire formats (chat.c, responses.c, anthropic.c) -------------------------- */

enum stop { STOP_NONE, STOP_END, STOP_CAP, STOP_CONTEXT, STOP_FILTER, STOP_BROKEN, STOP_OTHER };

struct llm_reader { /* of one response */
    const struct wire *wire;
    struct sse sse;
    struct text text, reasoning, refusal;
    struct llm_usage usage;
    double uncached, written; /* Anthropic: usage.input is their sum plus cached */
    char model[128];
    enum stop stop;
    char stop_word[64], stop_detail[256]; /* in the server's words */
    long part;                            /* the item that the last text belongs to */
    bool begun, ended;                    /* the model has started; the terminal marker came */
    bool torn;                            /* the connection broke: a stop alone ends no answer */
    bool leaked;                          /* the joined text held the key */
    struct fault fault;
    const char *broken; /* what is wrong with the stream; NULL: nothing */
    bool again;         /* worth a retry: the stream broke, or the fault is temporary */
};

struct wire {
    const char *name, *word;          /* in transcripts; in LLM=WORD:MODEL */
    const char *base_variable, *base; /* which variable names the server, and the usual one */
    const char *path;                 /* after the base URL */
    const char *key_variable,
        *token_variable;    /* which hold the key; NULL; the second is a bearer's */
    const char *key_header; /* before a key of key_variable; NULL: a bearer's */
    const char *header;     /* one more of the request; NULL */
    bool has_seed;          /* it takes a seed */
    void (*request)(cJSON *body, const struct llm_config *c, const struct llm_message *m, int n,
                    double cap);
    void (*event)(struct llm_reader *r, const char *event, const cJSON *data);
    void (*whole)(struct llm_reader *r, const cJSON *body); /* reads an answer that was not
                                                             * streamed */
};
extern const struct wire wire_chat, wire_responses, wire_anthropic;

/* NULL for LLM_REPLAY. */
const struct wire *llm_wire(enum llm_api api);

/* Helpers of the wire formats (wire_json.c): they add members to requests (out of memory ends
 * the program) and read members of answers. */
cJSON *wire_object(cJSON *parent, const char *key);
cJSON *wire_array(cJSON *parent, const char *key);
cJSON *wire_member(cJSON *array); /* a new object in the array */
void wire_text(cJSON *parent, const char *key, const char *text);
void wire_number(cJSON *parent, const char *key, double x);
void wire_bool(cJSON *parent, const char *key, bool x);
char *wire_system(const struct llm_message *m, int n); /* all system messages; NULL if none */
/* An array of {"role","content"}, with those of the system or without. */
void wire_messages(cJSON *body, const char *key, const struct llm_message *m, int n, bool system);

/* Parse JSON from a server: armoured (json_armour), the key removed.  NULL if it is not JSON.
 * Delete it. */
cJSON *wire_parse(const char *s, size_t n);
const cJSON *wire_get(const cJSON *object, const char *key);
void wire_get_number(const cJSON *object, const char *key, double *x); /* unchanged if absent */
/* Counts called IN_tokens and OUT_tokens, with details. */
void wire_usage(struct llm_usage *u, const cJSON *usage, const char *in, const char *out);
void wire_name_model(struct llm_reader *r, const cJSON *object);
void wire_stop(struct llm_reader *r, const char *word);
void wire_add(struct text *t, const cJSON *string); /* no effect unless it is a string */
void wire_scan(struct llm_reader *r); /* look for the key, which may have come in pieces */

/* ---- Reading (read.c) --------------------------------------------------------------- */

void reader_start(struct llm_reader *r, enum llm_api api);
/* Take more of a stream.  False: stop reading, the answer is complete or the stream is broken. */
bool reader_feed(struct llm_reader *r, const char *bytes, size_t n);
/* Take a body that is not a stream. */
void reader_whole(struct llm_reader *r, const char *body, size_t n);
/* Judge the response and free the reader.  r->again says whether to retry. */
struct llm_answer *reader_end(struct llm_reader *r);
/* Add the counts of a usage, if it is known. */
void usage_add(struct llm_usage *sum, const struct llm_usage *u);
/* The answer of a call that the server refused. */
struct llm_answer *fault_answer(const struct fault *f);
struct llm_answer *answer_failed(int exit_code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- The key (key.c) ---- */

/* Move the value of this variable, and of the conventional ones, from the environment into
 * key.c, and overwrite its bytes in the environment.  KP_USAGE if the named one holds a byte
 * that no key holds.  May be called again. */
void key_take(const char *name);
/* Whether the variable was set to a non-empty value. */
bool key_held(const char *name);
/* The header with the key of this variable; NULL if there is none.  Overwrite it and free it. */
char *key_header(const struct wire *wire, const char *name);
/* Whether these bytes contain a key, in any JSON escaping.  Values shorter than 8 bytes (EMPTY,
 * none) are not secrets and are not searched for. */
bool key_within(const char *s, size_t n);
/* Replace each key by ***, in place.  Returns the new length; if it is shorter, a NUL follows. */
size_t key_redact(char *s, size_t n);

/* ---- HTTP (http.c) ------------------------------------------------------------------- */

struct http_reply {
    long status;    /* 0: none */
    cJSON *headers; /* selected ones */
    struct text body;
    char error[300];    /* of the transport, or the limit that was hit; "" if none */
    char redirect[256]; /* the host it points to */
    bool again;         /* the error is worth a retry */
    bool sent;          /* the whole request was sent */
    bool sse;           /* the body is a stream, and the reader has read it */
    bool foreign;       /* status 200, but neither a stream nor JSON */
    double seconds;
};

/* Send one request and receive its answer, feeding a stream to the reader.  Gives up after
 * `seconds`.  Free with http_free. */
void http_post(const struct llm_config *c, const char *request, double seconds,
               struct llm_reader *r, llm_progress *progress, void *context,
               struct http_reply *reply);
void http_free(struct http_reply *reply);

/* Split a base URL into c->base, c->host, c->loopback.  KP_USAGE if it is not allowed;
 * `variable` names its source. */
void http_base(struct llm_config *c, const char *variable, const char *url);

/* The seconds that a server asks to wait, from retry-after-ms or Retry-After (seconds or a
 * date); NAN if it states none that is usable. */
double http_wait(const char *after_ms, const char *after, time_t now);

/* Seconds before try number `done + 1`: doubling from `base` up to 16 times `base`, minus up to
 * a quarter chosen by `random` in [0, 1). */
double llm_backoff(double base, int done, double random);

#endif
