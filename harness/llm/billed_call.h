/* billed_call.h: a call of a model that is reserved, made, kept and settled.
 *
 * Whoever calls a model does it through this, so that no call escapes the ledger
 * (build/attempts/ledger) or its transcript. */
#ifndef KP_BILLED_CALL_H
#define KP_BILLED_CALL_H

#include "llm/llm.h"

struct billed_call {
    const char *gpu, *task, *name;     /* whose call it is, for the ledger */
    const char *transcript;            /* held, where each try is kept; NULL: nowhere */
    const struct llm_config *llm;      /* whose key was checked by llm_need_key */
    const struct llm_message *message; /* n messages, of which the request is made */
    int n;
    bool progress; /* show a line while the answer arrives */
};

/* Send `request`.  Before each try what it may take is reserved, in money and on the disk; then it
 * is kept, and settled by what it took; one whose stream broke may have been billed, so its
 * reservation stands.  Returns the answer, LLM_FAILED included; *cost is what it took in USD (NAN:
 * unknown).  Ends the program as budget_reserve, transcript_reserve and transcript_append do. */
struct llm_answer *billed_call(const struct billed_call *p, const char *request, double *cost);

/* The answer of the transcript PATH, for LLM=replay; warns if it was asked something else.  NULL if
 * there is none; request_sha256 and the others are filled in as by transcript_answer. */
struct llm_answer *billed_before(const struct billed_call *p, const char *path,
                                 char request_sha256[65], char date[32], char model[128]);

/* An upper bound of the number of tokens of a text, for budgets: never below what a tokenizer of
 * today makes of it. */
double tokens_bound(const struct llm_message *m, int n);

#endif
