/* billed_call.h: reserve, make, record and settle one call of a model.
 *
 * Every program calls models through this, so that each call is in the ledger
 * (build/attempts/ledger) and in its transcript. */
#ifndef KP_BILLED_CALL_H
#define KP_BILLED_CALL_H

#include "llm/llm.h"

struct billed_call {
    const char *gpu, *task, *name;     /* cell and attempt, for the ledger */
    const char *transcript;            /* records each try; hold it first (transcript_hold);
                                        * NULL: none */
    const struct llm_config *llm;      /* llm_need_key has checked its key */
    const struct llm_message *message; /* n messages; the request is made from them */
    int n;
    bool progress; /* show a progress line while the answer arrives */
};

/* Send `request`.  Before each try, reserve its worst case in the ledger and on the disk; after
 * it, record the try and settle its cost.  A try whose stream broke may have been billed, so its
 * reservation stands.  Returns the answer, LLM_FAILED included; *cost is its cost in USD (NAN:
 * unknown).  Ends the program as budget_reserve, transcript_reserve and transcript_append do. */
struct llm_answer *billed_call(const struct billed_call *p, const char *request, double *cost);

/* The answer in the transcript PATH, for LLM=replay; NULL if there is none.  Warns if it answers
 * a different prompt.  Fills in request_sha256, date and model as transcript_answer does. */
struct llm_answer *billed_before(const struct billed_call *p, const char *path,
                                 char request_sha256[65], char date[32], char model[128]);

/* A safe estimate of the number of tokens of the messages, for budgets: a third more than
 * tokenizers in use make of English and code. */
double tokens_bound(const struct llm_message *m, int n);

#endif
