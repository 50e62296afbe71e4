/* budget.h: spending caps and the ledger.
 *
 * The ledger is a text file with one line a call.  Each call reserves its worst case before it is
 * sent and settles afterwards.  If the client is killed in between, the call counts what it noted
 * last (budget_note).  Caps come from the environment; an unset cap does not limit:
 *
 *   BUDGET_USD BUDGET_TOKENS BUDGET_CALLS BUDGET_HOURS   the whole ledger
 *   TASK_USD   TASK_TOKENS   TASK_CALLS   TASK_HOURS     one task on one GPU
 *
 * BUDGET_HOURS counts from KP_RUN_STARTED (seconds since 1970); TASK_HOURS adds up the task's
 * calls. */
#ifndef KP_BUDGET_H
#define KP_BUDGET_H

#include "llm/llm.h"

struct price { /* USD per million tokens, from harness/llm/prices.json */
    bool known;
    double input, cached, cache_write, cache_write_1h, output;
    double up_to; /* the prices hold up to this prompt length in tokens; 0: any length */
    char valid_from[16], model[256]; /* model: as requested */
};

/* The newest valid price of a model.  A listed name also prices its dated versions: '-', ':' or '@'
 * and then a date or "latest" may follow (gpt-5-2025-08-07 costs what gpt-5 does; gpt-5-pro does
 * not).  A replay is free.  So is a server on loopback, unless a cap in USD is set and the name has
 * a price: it may be a proxy to a paid one. */
struct price price_find(const char *prices_path, const struct llm_config *c);

/* Cost in USD.  A cost that the server states overrides the price list.  NAN if the usage, or
 * the price of a prompt of this length, is unknown. */
double price_cost(const struct price *p, const struct llm_usage *u);

/* Reserve one call's worst case: `prompt_tokens` in (a safe estimate), `answer_tokens` out.
 * Waits while the open calls of other processes take what is left of a cap.  Ends the program with
 * KP_BUDGET if what is spent and this call exceed a cap, or a cap in money meets an unknown price;
 * with KP_USAGE if a cap is not a number, KP_INPUT if the ledger is malformed, KP_IO if it cannot
 * be written.  A process has one open call at a time. */
void budget_reserve(const char *ledger, const char *gpu, const char *task, const char *attempt,
                    const struct price *p, double prompt_tokens, double answer_tokens);

/* Note what the open call has used so far: its prompt, and so many tokens of answer. */
void budget_note(double answer_tokens);

/* Replace the open reservation by the call's usage, cost and duration.  An unknown usage keeps
 * the reserved tokens, and a cost of NAN keeps the reserved money. */
void budget_settle(const char *ledger, const struct llm_usage *u, double cost, double seconds);

/* No more calls in this run (KP_RUN; none if it is unset): the next budget_reserve ends its program
 * with KP_MACHINE, without a word, because the failed call has said why. */
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
