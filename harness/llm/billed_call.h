/* billed_call.h: one question to a model.
 *
 * Every program asks models through this, so that each call is reserved and settled in the ledger
 * (build/attempts/ledger) and recorded in a transcript, and no answer is paid for twice. */
#ifndef KP_BILLED_CALL_H
#define KP_BILLED_CALL_H

#include "llm/llm.h"

struct billed_call {
    const char *gpu, *task, *name;     /* cell and attempt, for the ledger */
    const char *transcript;            /* where each try is recorded; NULL: nowhere */
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
    double cost, seconds; /* of all tries in the transcript; NAN: unknown */
};

/* The answer: of the replay, else the recorded one, else of a call.  Before each try of a call,
 * reserves its worst case in the ledger and on the disk; after it, records the try and settles its
 * cost.  A try whose stream broke may have been billed, so its reservation stands.  Ends the
 * program if there is no answer, and as budget_reserve and the functions of transcript.h do. */
struct llm_answer *billed_answer(struct billed_call *p);

/* What a token takes at least, in bytes of ASCII (harness/gen/estimate-cost reads it, too). English
 * and code average four, and no tokenizer in use makes less than three of our prompts. */
enum { BYTES_A_TOKEN = 3 };

/* A safe estimate of the number of tokens of the messages, for budgets. */
double tokens_bound(const struct llm_message *m, int n);

#endif
