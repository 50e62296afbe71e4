/* llm/wire.h: shared by the files of the client.  Only they and their tests include it. */
#ifndef KP_LLM_WIRE_H
#define KP_LLM_WIRE_H

#include "llm/llm.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LLM_BODY_MAX = 16 << 20,    /* of a response */
    LLM_LINE_MAX = 1 << 20,     /* of a line of a stream, and of an event */
    LLM_HEADERS_MAX = 64 << 10, /* of all response headers */
    LLM_ERROR_MAX = 256 << 10   /* of a body that is not an answer */
};

/* ---- Text (answer_text.c) -------------------------------------------------------------- */

/* Parse n bytes of a server's JSON, with a NUL behind them, and remove the key.  What cJSON would
 * end a string at or reject (\u0000, half of a surrogate pair) stays in it as invalid UTF-8.  NULL
 * if it is not JSON.  Delete it. */
cJSON *json_foreign(const char *s, size_t n);

/* Join surrogate halves that came in two pieces, and replace other invalid UTF-8 by U+FFFD.
 * Returns what was replaced ("a NUL", ...); NULL if nothing was. */
const char *text_settle(struct text *t);

/* Take <think>...</think> from the front of an answer.  An unclosed <think> takes all of it. */
void text_unthink(struct text *answer);

/* The start of foreign text as one line of plain text, at most room - 1 bytes, cut between
 * characters.  Drops tags and control characters and joins runs of blanks. */
void text_excerpt(char *out, size_t room, const char *s, size_t n);

/* Whether a text matches an extended regular expression. */
bool text_matches(const char *s, const char *pattern);

/* Whether a list of words, with blanks between, has this one, in letters of either case. */
bool text_listed(const char *list, const char *word);

/* An answer without text, whose `why` is a format.  Free it with llm_answer_free. */
struct llm_answer *answer_new(enum llm_outcome outcome, int exit_code, const char *why, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Faults (fault.c) ------------------------------------------------------------- */

struct fault { /* an error as the server states it */
    bool any;
    long http;   /* status as received; 0 inside a stream */
    long status; /* the same, or the equivalent of the words; 0: unknown */
    char type[64], code[64], message[256];
    const char
        *should; /* x-should-retry, which is followed, but a wrong key or prompt stays wrong */
};

/* Read the value of an "error" member; a whole body without a key: JSON of any shape, HTML, text.
 */
void fault_read(struct fault *f, const cJSON *error);
void fault_body(struct fault *f, long status, const char *body, size_t n);
/* The answer of a call that failed so: "error 429 rate_limit_error: Slow down: try again later". */
struct llm_answer *fault_answer(const struct fault *f);

/* ---- Wire formats (chat.c, responses.c, anthropic.c) -------------------------- */

/* What a value in an answer is. */
enum meaning {
    IS_TEXT, /* a piece of the answer */
    IS_REASONING,
    IS_REFUSAL,
    TEXTS,            /* how many texts there are */
    IS_BEGUN = TEXTS, /* nothing but a sign that the model has started */
    IS_STOP,          /* the word for why the model stopped */
    IS_USAGE,
    IS_END,   /* the terminal marker */
    IS_FAULT, /* an error */
    IS_WHOLE, /* an object like an answer that is not streamed; its texts replace those so far */
    IS_COUNT  /* of tokens: + N_IN, ... */
};

/* Counts of tokens, as servers state them.  Those that are apart are not part of the input. */
enum { N_IN, N_READ, N_NEW, N_READ_APART, N_NEW_APART, N_HOUR, N_OUT, N_THOUGHT, N_ALL, N_COST };

/* Where a value is.  A path has names with dots between; of a|b the first that is there and not
 * null counts; a number is an element of an array, * all of them, *:TYPE those of this "type". */
struct field {
    const char *event; /* the type of its event; NULL: any; "": an answer that is not streamed */
    const char *path;  /* "": the event itself */
    enum meaning is;
};

struct wire {
    const char *word;                 /* in LLM=WORD:MODEL */
    const char *base_variable, *base; /* which variable names the server, and the usual one */
    const char *path;                 /* after the base URL */
    const char *key_variable;         /* which holds the key */
    const char *key_header;           /* before that key; NULL: it is a bearer's */
    const char *token_variable;       /* which may hold a bearer's token instead; NULL */
    const char *header;               /* one more of the request; NULL */
    void (*messages)(cJSON *body, const struct llm_message *m, int n); /* adds them to a request */
    const char *cap, *effort, *seed; /* names of members, NULL if there is none; a.b: b of a */
    const char *fixed;               /* more members of every request, as JSON */
    const char *usage;          /* one that asks for the usage, which some servers refuse; NULL */
    const struct field *fields; /* of answers, in the order in which they are read */
    bool done;                  /* a stream ends with [DONE], which some servers leave out */
};
extern const struct wire wire_chat, wire_responses, wire_anthropic;

/* NULL for LLM_REPLAY. */
const struct wire *llm_wire(enum llm_api api);

/* Helpers of wire.messages (chat.c): add a text as valid UTF-8; start a message; add an array of
 * {"role","content"}, with those of the system or without. */
void message_text(cJSON *parent, const char *key, const char *text, size_t n);
cJSON *message_start(cJSON *list, const char *role);
void message_list(cJSON *body, const char *key, const struct llm_message *m, int n, bool system);

/* The request as JSON without whitespace; equal arguments give equal bytes.  `caps` is 1, or 2 for
 * twice the token cap; `bare`: without wire.usage.  Free it. */
char *llm_request(const struct llm_config *c, const struct llm_message *m, int n, int caps,
                  bool bare);

/* End the program with KP_USAGE, and a line that names the variable, if there is no key.  A
 * server on loopback or of plain http needs none. */
void llm_need_key(const struct llm_config *c);

/* ---- Reading (read.c) --------------------------------------------------------------- */

enum stop { STOP_NONE, STOP_END, STOP_CAP, STOP_CONTEXT, STOP_FILTER, STOP_BROKEN, STOP_OTHER };

struct llm_reader { /* of one response */
    const struct wire *wire;
    struct text line, data; /* of a stream of server-sent events: the line and the event so far */
    char event[64];
    bool has_data, after_cr;
    struct text said[TEXTS];
    double count[N_COST + 1]; /* of its usage */
    bool counted;             /* they are final */
    enum stop stop;
    char stop_word[64];   /* as the server says it */
    long item, last_item; /* that is read; that has said the last word */
    bool begun, ended;    /* the model has started; the terminal marker came */
    bool torn;            /* the connection broke: a stop alone ends no answer */
    bool leaked;          /* the joined text held the key */
    struct fault fault;
    const char *broken; /* what is wrong with the stream; NULL: nothing */
    bool again;         /* worth a retry: the stream broke, or the fault is temporary */
};

void reader_start(struct llm_reader *r, enum llm_api api);
/* Take more of a stream.  False: stop reading, the answer is complete or the stream is broken. */
bool reader_feed(struct llm_reader *r, const char *bytes, size_t n);
/* Take a body that is not a stream. */
void reader_whole(struct llm_reader *r, const char *body, size_t n);
/* Judge the response and free the reader's texts. */
struct llm_answer *reader_end(struct llm_reader *r);

/* ---- The key (key.c) ---- */

/* Move the value of this variable, and of the usual ones, out of the environment, and overwrite it
 * there.  KP_USAGE if the named one holds a byte that no key holds.  May be called again. */
void key_take(const char *name);
/* Whether the variable was set to a non-empty value. */
bool key_held(const char *name);
/* The header with the key of this variable; NULL if there is none.  Overwrite it and free it. */
char *key_header(const struct wire *wire, const char *name);
/* Whether these bytes contain a key of 8 bytes or more (EMPTY is none), in any JSON escaping. */
bool key_within(const char *s, size_t n);
/* Replace each key by ***, in place.  Returns the new length; if it is shorter, a NUL follows. */
size_t key_redact(char *s, size_t n);

/* ---- HTTP (http.c) ------------------------------------------------------------------- */

enum body { BODY_NONE, BODY_STREAM, BODY_JSON, BODY_OTHER };

struct http_reply {
    long status;    /* 0: none */
    cJSON *headers; /* selected ones, names in lower case */
    struct text body;
    char error[360]; /* why there is no whole answer, where no server says it; "" if none */
    double wait;     /* seconds that the server asks for before a retry; NAN: none */
    bool again;      /* the error is worth a retry */
    bool sent;       /* the whole request was sent */
    enum body kind;  /* of a stream the reader has read all; another one is no answer */
    double seconds;
};

/* Called now and then while text arrives. */
typedef void http_progress(void *context, double seconds, size_t bytes_of_text);

/* Send a request and receive its answer, feeding a stream to the reader, within `seconds`.  Free
 * the reply's headers and body. */
void http_post(const struct llm_config *c, const char *request, double seconds,
               struct llm_reader *r, http_progress *progress, void *context,
               struct http_reply *reply);

/* Split a base URL into c->base, c->host, c->loopback.  KP_USAGE if it is not allowed;
 * `variable` names its source. */
void http_base(struct llm_config *c, const char *variable, const char *url);

/* ---- Transcripts (transcript.c) ---- */

/* The API that a line is of. */
enum llm_api transcript_api(const cJSON *line);

/* Lock PATH for appending until this process ends; another process that wants it waits.  Call it
 * before any money is spent: it ends the program with KP_IO if PATH cannot be written, and with
 * KP_INPUT if it is not a transcript. */
void transcript_hold(const char *path);

/* Reserve disk space in the held transcript for one try: `request` bytes, and for the answer 512 a
 * token (one event each, stored as JSON), but no more than 4/3 of the largest body.
 * transcript_append and the end of the program release what is left; if it is killed, the next
 * holder does.  Ends the program with KP_IO if there is no space. */
void transcript_reserve(size_t request, double tokens);

/* Append a try to the held transcript, in the place of a torn last line, and flush it to the disk.
 * `a` is the answer of this try alone, with its number (from 1) as `tries`; cost_usd NAN: unknown.
 * Ends the program with KP_IO on failure. */
void transcript_append(const struct llm_config *c, const char *request,
                       const struct http_reply *reply, const struct llm_answer *a, double cost_usd);

/* ---- Money (budget.c) --------------------------------------------------------
 *
 * The ledger has a line for each call, which reserves its worst case before it is sent and settles
 * afterwards.  Caps come from the environment; an unset cap does not limit: BUDGET_USD, _TOKENS,
 * _CALLS and _HOURS (from KP_RUN_STARTED, in seconds since 1970) hold the whole ledger, TASK_USD,
 * ... one task on one GPU (its hours are those of its calls). */

struct price { /* USD per million tokens, from harness/llm/prices.json */
    bool known;
    double input, cached, cache_write, cache_write_1h, output;
    double up_to; /* the prices hold up to this prompt length in tokens; 0: any length */
    char valid_from[16], model[256]; /* model: the name that was looked up */
};

/* The newest valid price of a model.  A listed name also prices its dated versions: '-', ':' or '@'
 * and then a date or "latest" may follow (gpt-5-2025-08-07 costs what gpt-5 does; gpt-5-pro does
 * not).  A server on loopback is free, unless a cap in USD is set and the name has a price, also
 * behind its maker's (openai/gpt-5): it may be a proxy to a paid one. */
struct price price_find(const char *prices_path, const struct llm_config *c);

/* Cost in USD.  A cost that the server states overrides the price list.  NAN if the usage, or
 * the price of a prompt of this length, is unknown. */
double price_cost(const struct price *p, const struct llm_usage *u);

/* Reserve one call's worst case: `prompt_tokens` in (a safe estimate), `answer_tokens` out.  Waits
 * while the open calls of other processes take what is left of a cap.  Ends the program with
 * KP_BUDGET if what is spent and this call exceed a cap, or a cap in money meets an unknown price.
 * A process has one open call at a time. */
void budget_reserve(const char *ledger, const char *gpu, const char *task, const char *attempt,
                    const struct price *p, double prompt_tokens, double answer_tokens);

/* End the program where the caps would end every call, whatever was spent: KP_USAGE, KP_BUDGET. */
void budget_ready(const struct price *p);

/* Note what the open call has used so far: its prompt, and so many tokens of answer. */
void budget_note(double answer_tokens);

/* Replace the open reservation by the call's usage, cost and duration.  An unknown usage keeps
 * the reserved tokens, and a cost of NAN keeps the reserved money. */
void budget_settle(const char *ledger, const struct llm_usage *u, double cost, double seconds);

/* No more calls in this run (KP_RUN; none if it is unset): the next budget_reserve ends its program
 * with KP_MACHINE and no word. */
void budget_stop(const char *ledger);

/* Sums over the ledger: over everything (gpu and task NULL) or over one cell; zero if there is
 * no ledger.  Unpriced are the calls of unknown cost; open those that a living process has not
 * settled, and what they reserved. */
struct spent {
    double usd, tokens, seconds, open_usd, open_tokens;
    long calls, unpriced, open;
};
struct spent budget_spent(const char *ledger, const char *gpu, const char *task);

#endif
