/* llm.h: ask a language model, streaming, over HTTP.
 *
 * Three wire formats: OpenAI Chat Completions (and every server that speaks it), OpenAI Responses,
 * Anthropic Messages.  A call is reserved and settled in the ledger (build/attempts/ledger) and
 * recorded in a transcript, and no answer is paid for twice.  The key is read from the environment,
 * sent in a header, and never stored. */
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
    double temperature, seed; /* NAN: not sent */
    double max_tokens;        /* of the answer with its reasoning; default 32768 */
    bool old_max_tokens;      /* the server knows the field max_tokens only */
    char effort[32];          /* "" if unset */
    double call_seconds;      /* wall-clock limit of a call with all its tries; default 3600 */
    double idle_seconds;      /* limit of silence on a connection; default 600 */
    double backoff_ms;        /* before the second try, unless the server says; default 500 */
    double tries;             /* default 8 */
    bool loopback;            /* the server is on this machine */
    bool plain;               /* plain http: to this machine, without a key, or LLM_PLAIN_HTTP=1 */
};

/* Read LLM and its companions (REPRODUCE.md has a table of them).  Ends the program with KP_USAGE
 * if one is malformed, or if a base URL contains credentials or uses plain http beyond loopback
 * with a key (unless LLM_PLAIN_HTTP=1).  Moves the key out of the environment into this process,
 * which writes no core file and cannot be traced; no child process sees it. */
void llm_config_read(struct llm_config *c);

/* The same of a program whose model may be named in a variable of its own, which comes before LLM.
 */
void llm_config_read_of(struct llm_config *c, const char *own);

/* End the program where every call would end it: no key (llm_need_key), a cap that is no number,
 * one in USD for a model without a price. */
void llm_ready(const struct llm_config *c);

/* Their names: chat, responses, anthropic, replay; complete, cut, empty, ... (enum llm_outcome). */
extern const char *const llm_apis[], *const llm_outcomes[];

struct llm_message {
    const char *role; /* system, user, assistant */
    char *text;       /* invalid UTF-8 becomes U+FFFD in the request */
    size_t stable;    /* bytes at its front that are the same in other calls, for caches; 0: none */
};

/* What a token takes at least, in bytes of ASCII (harness/gen/estimate-cost reads it, too). English
 * and code average four, and no tokenizer in use makes less than three of our prompts. */
enum { BYTES_A_TOKEN = 3 };

/* A safe estimate of the number of tokens of the messages, for budgets. */
double tokens_bound(const struct llm_message *m, int n);

struct llm_usage {
    bool known; /* false: the stream broke before the usage came */
    union {
        struct {
            double input;                       /* all input tokens, cached or not */
            double cached;                      /* part of input: read from a cache */
            double cache_write, cache_write_1h; /* part of input: written (5 minutes, 1 hour) */
            double output;                      /* includes reasoning */
            double reasoning;                   /* part of output */
            double cost;                        /* stated by the server, in USD; NAN if it is not */
        };
        double count[7]; /* the same, in this order */
    };
};

enum llm_outcome {
    LLM_COMPLETE, /* the model ended its answer */
    LLM_CUT,      /* at the token cap or at the end of the context */
    LLM_EMPTY,    /* the model ended without text */
    LLM_REFUSED,  /* by the model or a filter */
    LLM_INVALID,  /* not valid source text: a NUL, an unpaired surrogate, not UTF-8 */
    LLM_FAILED    /* no answer: key, quota, size, server; see `why` and `exit_code` */
};

struct llm_answer {
    enum llm_outcome outcome;
    char why[400];          /* one sentence; "" if complete */
    int exit_code;          /* of error.h, if FAILED */
    bool for_all;           /* every call would fail so: the key, the credit, the model's name */
    char *text;             /* "" if none or FAILED; always UTF-8 without a NUL */
    struct llm_usage usage; /* of all tries of the call that is known */
    int tries;              /* requests sent */
    bool maybe_billed;      /* it broke off after the model may have started */
    bool again;             /* a retry may help */
};
void llm_answer_free(struct llm_answer *a);

/* Read a response body without a network.  `sse` false: the body is one JSON object (an error, or
 * a server that does not stream). */
struct llm_answer *llm_read(enum llm_api api, const char *body, size_t size, bool sse);

/* A transcript is the record of all tries of one attempt, one JSON object a line: {"schema":1,
 * "call":1, "try":1, "date":"2026-11-21T10:00:00Z", "api":"chat", "host":"api.openai.com",
 * "model":"...", "request_sha256":"...", "request":{...}, "status":200, "headers":{...},
 * "sse":true, "response":"raw body", "error":"", "seconds":1.5, "outcome":"complete", "why":"",
 * "usage":{...} or null, "cost_usd":0.01 or null}.  Bytes of a body that are not UTF-8 become
 * U+FFFD. Request headers are never stored; a key that a server echoes is replaced by ***. */
struct transcript {
    struct llm_answer *answer; /* the newest (any outcome but failed), with the usage of its call */
    cJSON *line;               /* which has it; both NULL if there is none */
    double cost, seconds;      /* of all tries: in USD (NAN if any is unknown), and of calls */
    double calls;
    long end; /* of the last whole line, in bytes */
};

/* Read PATH, which may be absent; a torn last line is skipped, and the answer is parsed again. Ends
 * the program with KP_INPUT if a line is not one of a transcript, or was edited. */
struct transcript transcript_read(const char *path);
/* The same of the tries that fit alone. */
struct billed_call;
struct transcript transcript_find(const char *path,
                                  bool (*fits)(const struct billed_call *p, const cJSON *line),
                                  const struct billed_call *p);
void transcript_free(struct transcript *t);

struct billed_call {
    const char *gpu, *task, *name;     /* cell and attempt, for the ledger */
    const char *transcript;            /* where each try is recorded */
    const char *replay;                /* the transcript that LLM=replay:DIR reads, below DIR */
    const struct llm_config *llm;      /* a replay, or a model to call */
    const struct llm_message *message; /* n messages; the request is made from them */
    int n;
    bool any;      /* an answer in the transcript counts, whatever its question was */
    bool progress; /* show a progress line while the answer arrives */
    const char *asked_path, *asked; /* a file, and its text, written before a call; NULL */
    /* Filled in by billed_answer: */
    char request_sha256[65], date[32], model[128];
    bool other;           /* the answer is one to another question */
    double cost, seconds; /* of all tries in the transcript, or without `any` of those at this
                             question; NAN: unknown */
};

/* The answer: of the replay, else the recorded one, else of a call, which is tried until there is
 * an answer or no retry can help.  Where reasoning used up the token cap and no text came, one more
 * try has twice the cap.  Before each its worst case is reserved in the ledger and on the disk;
 * after it, it is recorded and settled.  Where a stream broke, its reservation stands, as it may
 * have been billed.  Ends the program if there is no answer (as the error is), no room on the disk
 * (KP_IO) or in a cap (KP_BUDGET), and if a file was edited (KP_INPUT). */
struct llm_answer *billed_answer(struct billed_call *p);

#endif
