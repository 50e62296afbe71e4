/* llm.h: call a language model over HTTP, streaming.
 *
 * Three wire formats: OpenAI Chat Completions (and every server that speaks it), OpenAI Responses,
 * Anthropic Messages.  The request's body is a pure function of the configuration and the messages,
 * so its hash identifies it.  The key is read from the environment, sent in a header, and never
 * stored. */
#ifndef KP_LLM_H
#define KP_LLM_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum llm_api { LLM_CHAT, LLM_RESPONSES, LLM_ANTHROPIC, LLM_REPLAY };

struct llm_config {
    enum llm_api api;
    char model[256];  /* LLM_REPLAY: the folder of transcripts */
    char base[512];   /* no trailing slash; Chat and Responses include /v1, Anthropic does not */
    char key_env[64]; /* the variable that holds the key */
    char host[256];   /* of base, for messages */
    bool has_temperature, has_seed, has_max_tokens, old_max_tokens;
    double temperature;
    long seed, max_tokens;  /* max_tokens: of the answer with its reasoning; default 32768 */
    char effort[32];        /* "" if unset */
    double call_seconds;    /* wall-clock limit of a call with all its tries; default 3600 */
    double idle_seconds;    /* limit of silence on a connection; default 600 */
    double backoff_seconds; /* before the second try, unless the server says; default 0.5 */
    int tries;              /* default 8 */
    bool loopback;          /* the server is on this machine */
    bool plain;             /* plain http: to this machine, without a key, or LLM_PLAIN_HTTP=1 */
};

/* Read LLM=openai:MODEL | responses:MODEL | anthropic:MODEL | replay:DIR and its companions:
 * OPENAI_BASE_URL, ANTHROPIC_BASE_URL, LLM_KEY_ENV (the name of the variable with the key;
 * default OPENAI_API_KEY or ANTHROPIC_API_KEY), LLM_TEMPERATURE, LLM_EFFORT, LLM_SEED,
 * LLM_MAX_TOKENS, LLM_TOKEN_FIELD=max_tokens (for servers that know no other name), LLM_SECONDS,
 * LLM_IDLE_SECONDS, LLM_BACKOFF_MS, LLM_TRIES, LLM_PLAIN_HTTP.
 *
 * Ends the program with KP_USAGE if one is malformed, or if a base URL contains credentials or
 * uses plain http beyond loopback with a key (unless LLM_PLAIN_HTTP=1).  Moves the key out of the
 * environment into this process, which writes no core file and cannot be traced; no child process
 * sees it. */
void llm_config_read(struct llm_config *c);

/* End the program with KP_USAGE, and a line that names the variable, if there is no key.  A
 * server on loopback or of plain http needs none. */
void llm_need_key(const struct llm_config *c);

struct llm_message {
    const char *role; /* system, user, assistant */
    char *text;       /* invalid UTF-8 becomes U+FFFD in the request */
    size_t stable;    /* bytes at its front that are the same in other calls, for caches; 0: none */
};

/* The request as JSON without whitespace; equal arguments give equal bytes.  `retry_cap` is 1,
 * or 2 for the one repetition with twice the token cap, so an answer in a transcript may belong
 * to either.  KP_USAGE for LLM_REPLAY, which sends nothing.  Free it. */
char *llm_request(const struct llm_config *c, const struct llm_message *m, int n, int retry_cap);

struct llm_usage {
    bool known;                         /* false: the stream broke before the usage came */
    double input;                       /* all input tokens, cached or not */
    double cached;                      /* part of input: read from a cache */
    double cache_write, cache_write_1h; /* part of input: written to a cache (5 minutes, 1 hour) */
    double output;                      /* includes reasoning */
    double reasoning;                   /* part of output */
    double cost;                        /* stated by the server, in USD; NAN if it is not */
};

enum llm_outcome {
    LLM_COMPLETE, /* the model ended its answer */
    LLM_CUT,      /* at the token cap or at the end of the context */
    LLM_EMPTY,    /* the model ended without text */
    LLM_REFUSED,  /* by the model or a filter */
    LLM_INVALID,  /* not valid source text: a NUL, an unpaired surrogate, not UTF-8 */
    LLM_FAILED    /* no answer: key, quota, size, server; see `why` and `exit_code` */
};

/* complete, cut, empty, refused, invalid, failed. */
const char *llm_outcome_name(enum llm_outcome outcome);
/* chat, responses, anthropic, replay. */
const char *llm_api_name(enum llm_api api);

struct llm_answer {
    enum llm_outcome outcome;
    char why[400];          /* one sentence; "" if complete */
    int exit_code;          /* of error.h, if FAILED: KP_USAGE for the key, model or a setting,
                             * KP_INPUT for a prompt that is too long, KP_MACHINE for quota,
                             * server, network */
    bool for_all;           /* every call would fail so: the key, the credit, the model's name */
    char *text;             /* "" if none or FAILED; always UTF-8 without a NUL */
    char *reasoning;        /* "" if none; for the log, never compiled */
    struct llm_usage usage; /* sum over all tries of known usage */
    char model[128];        /* as the server names it; "" if it does not */
    double seconds;
    bool will_retry;  /* for llm_keep: llm_call is about to send another request */
    int tries;        /* requests sent */
    int maybe_billed; /* tries that broke off after the model may have started */
};

/* One try, as llm_call hands it to its llm_keep callback.  It has no request headers. */
struct llm_try {
    int number;           /* from 1 */
    const char *request;  /* body */
    long status;          /* HTTP; 0: no answer */
    cJSON *headers;       /* selected response headers, names in lower case */
    const char *response; /* body as received, SSE included, at most 16 MB; may be "" */
    size_t response_size;
    bool sse;          /* the response is a stream */
    const char *error; /* of the transport; "" if none */
    double seconds;
    const struct llm_answer *answer; /* the judgment of this try alone, with its own usage and
                                      * seconds */
    int next_cap;                    /* x the token cap: what the next request may take */
};
typedef void llm_keep(void *context, const struct llm_try *t);

/* Called now and then while text arrives, to show progress; may be NULL. */
typedef void llm_progress(void *context, double seconds, size_t bytes_of_text);

/* Send `request` until there is an answer or no retry can help.  If reasoning used up the token
 * cap and no text came, send it once more with twice the cap; that body has its own hash.  If
 * that fails, the first, cut answer counts.  A caller with a budget reserves one try before the
 * call, and one more in `keep` whenever will_retry is set, with twice the cap after such a cut.
 * Never ends the program.  Free the answer with llm_answer_free. */
struct llm_answer *llm_call(const struct llm_config *c, const char *request, llm_keep *keep,
                            llm_progress *progress, void *context);
void llm_answer_free(struct llm_answer *a);

/* Read a recorded response body, with the reader of llm_call but without a network.  `sse`
 * false: the body is one JSON object (an error, or a server that does not stream). */
struct llm_answer *llm_read(enum llm_api api, const char *body, size_t size, bool sse);

#endif
