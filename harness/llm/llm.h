/* llm.h: one call of a language model over HTTP, streaming.
 *
 * Three wire formats: OpenAI Chat Completions (and every server that speaks it), OpenAI
 * Responses, Anthropic Messages.  The body of a request is a pure function of the
 * configuration and the messages, so its hash names it.  The key is read from the
 * environment, sent in a header, and kept nowhere. */
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
    char key_env[64]; /* variable that holds the key */
    char host[256];   /* of base, for messages */
    bool has_temperature, has_seed, has_max_tokens, old_max_tokens;
    double temperature;
    long seed, max_tokens;  /* max_tokens: of the answer, reasoning included; 32768 unless set */
    char effort[32];        /* "" unless set */
    double call_seconds;    /* wall clock of a call, all tries; 3600 unless set */
    double idle_seconds;    /* a connection that is silent for longer is given up; 600 unless set */
    double backoff_seconds; /* before the second try, unless the server says; 0.5 unless set */
    int tries;              /* 8 unless set */
    bool loopback;          /* the server is on this machine */
};

/* Read LLM=openai:MODEL | responses:MODEL | anthropic:MODEL | replay:DIR and its
 * companions: OPENAI_BASE_URL, ANTHROPIC_BASE_URL, LLM_KEY_ENV (name of the variable
 * with the key; OPENAI_API_KEY or ANTHROPIC_API_KEY), LLM_TEMPERATURE, LLM_EFFORT,
 * LLM_SEED, LLM_MAX_TOKENS, LLM_TOKEN_FIELD=max_tokens (for servers that know only that),
 * LLM_SECONDS, LLM_IDLE_SECONDS, LLM_BACKOFF_MS, LLM_TRIES.  Ends the program with KP_USAGE
 * where one is malformed, a base URL carries credentials or is plain http to anything but
 * loopback.  Takes the key out of the environment: it stays in this process, which leaves no
 * core and cannot be traced, and no child sees it. */
void llm_config_read(struct llm_config *c);

/* Refuse, with KP_USAGE and one line that names the variable, to go on without a key.  A
 * server on loopback needs none. */
void llm_need_key(const struct llm_config *c);

struct llm_message {
    const char *role; /* system, user, assistant */
    char *text;       /* UTF-8; bytes that are not are replaced by U+FFFD in the request */
};

/* The request's JSON, without whitespace; the same bytes for the same arguments.  `retry_cap`
 * is 1, or 2 for the one repetition with twice the token cap (so an answer in a transcript may
 * be to either).  KP_USAGE for LLM_REPLAY, which sends nothing.  Free it. */
char *llm_request(const struct llm_config *c, const struct llm_message *m, int n, int retry_cap);

struct llm_usage {
    bool known;                         /* false: the stream broke before it came */
    double input;                       /* all of it, cached or not */
    double cached;                      /* of input: read from a cache */
    double cache_write, cache_write_1h; /* of input: written to a cache (5 minutes, an hour) */
    double output;                      /* reasoning included */
    double reasoning;                   /* of output */
    double cost;                        /* as the server states it, in USD; NAN where it does not */
};

enum llm_outcome {
    LLM_COMPLETE, /* the model ended its answer */
    LLM_CUT,      /* at the token cap, or at the context's end */
    LLM_EMPTY,    /* it ended with no text */
    LLM_REFUSED,  /* by the model or a filter */
    LLM_INVALID,  /* text that cannot be a source: a NUL, half a surrogate pair, not UTF-8 */
    LLM_FAILED    /* no answer: key, quota, size, server; `why` and `exit_code` say which */
};

/* complete, cut, empty, refused, invalid, failed. */
const char *llm_outcome_name(enum llm_outcome outcome);
/* chat, responses, anthropic, replay. */
const char *llm_api_name(enum llm_api api);

struct llm_answer {
    enum llm_outcome outcome;
    char why[400];          /* one sentence, unless complete */
    int exit_code;          /* of error.h, where FAILED: KP_USAGE the key, the model or a setting,
                             * KP_INPUT a prompt too long, KP_MACHINE quota, server, network */
    char *text;             /* "" if none or FAILED; always UTF-8 without a NUL inside */
    char *reasoning;        /* "" if none; for the log, never compiled */
    struct llm_usage usage; /* of all tries whose usage is known */
    char model[128];        /* as the server names it; "" if it does not */
    double seconds;
    bool will_retry;  /* as keep() sees it: llm_call is about to send another request */
    int tries;        /* requests sent */
    int maybe_billed; /* of them, those that broke off when the model may have begun */
};

/* What llm_call does after each try, with all that may be kept of it.  Request headers are
 * not among it. */
struct llm_try {
    int number;           /* from 1 */
    const char *request;  /* body */
    long status;          /* HTTP; 0: no answer */
    cJSON *headers;       /* chosen response headers, lower case */
    const char *response; /* body as received, SSE included, at most 16 MB; may be "" */
    size_t response_size;
    bool sse;          /* the response is a stream */
    const char *error; /* of the transport; "" if none */
    double seconds;
    const struct llm_answer *answer; /* what this try amounts to, with its own usage and seconds */
};
typedef void llm_keep(void *context, const struct llm_try *t);

/* Called now and then while text arrives, for a progress line; may be NULL. */
typedef void llm_progress(void *context, double seconds, size_t bytes_of_text);

/* Send `request` until there is an answer or trying on is pointless.  Where the whole cap went
 * into reasoning and no text came, sends it once more with twice the cap, under a body (and so
 * a hash) of its own; where that fails, the first, cut answer stands.  A caller with a budget
 * reserves one try before the call, and one more in `keep` wherever will_retry is set: with
 * twice the cap after such a cut.  Never ends the program.  The caller frees with
 * llm_answer_free. */
struct llm_answer *llm_call(const struct llm_config *c, const char *request, llm_keep *keep,
                            llm_progress *progress, void *context);
void llm_answer_free(struct llm_answer *a);

/* What a response body, kept in a transcript, says: the same reader as llm_call's, without
 * a network.  `sse` false: the body is one JSON object (an error, or a server that does not
 * stream). */
struct llm_answer *llm_read(enum llm_api api, const char *body, size_t size, bool sse);

#endif
