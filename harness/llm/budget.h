/* budget.h: what may be spent, and what was.
 *
 * The ledger is a text file that only grows, a line an event, under a lock: a call's worst case is
 * reserved before it is made, and settled after.  A reservation that was never settled (the client
 * was killed) counts in full.  Caps come from the environment; absent means none:
 *
 *   BUDGET_USD BUDGET_TOKENS BUDGET_CALLS BUDGET_HOURS   all of the ledger
 *   TASK_USD   TASK_TOKENS   TASK_CALLS   TASK_HOURS     one task on one GPU
 *
 * BUDGET_HOURS are those since KP_RUN_STARTED (seconds since 1970), TASK_HOURS those of the task's
 * calls. */
#ifndef KP_BUDGET_H
#define KP_BUDGET_H

#include "llm/llm.h"

struct price { /* USD for a million tokens, from harness/llm/prices.json */
    bool known;
    double input, cached, cache_write, cache_write_1h, output;
    double up_to; /* tokens of a prompt: what a longer one costs is unknown; 0: no such limit */
    char valid_from[16];
    char model[256]; /* as it was asked for */
};

/* The price of a model today: of the listed name that it is, or that it is a dated version of (what
 * follows the name is '-', ':' or '@' and a date or "latest": gpt-5-2025-08-07 costs what gpt-5
 * does, and gpt-5-pro does not).  Of several prices of a name, the newest that is valid.  known is
 * false where there is none.  A server on loopback (c->host) and a replay cost nothing: known,
 * zero. */
struct price price_find(const char *prices_path, const struct llm_config *c);

/* Cost in USD, or NAN where the price (for a prompt as long as this) or the usage is unknown.  A
 * cost that the server states wins. */
double price_cost(const struct price *p, const struct llm_usage *u);

/* Reserve one call's worst case: `prompt_tokens` in (an upper bound), `answer_tokens` out.  Returns
 * a ticket.  Where a cap would be exceeded, or a cap in money meets an unknown price, ends the
 * program with KP_BUDGET (exit 6) and one line: which cap, what was spent, what was asked for.
 * KP_USAGE where a cap is no number, KP_INPUT where the ledger is malformed, KP_IO where it cannot
 * be written, or has no room for the settling of all calls that are on their way. */
long budget_reserve(const char *ledger, const char *gpu, const char *task, const char *attempt,
                    const struct price *p, double prompt_tokens, double answer_tokens);

/* Replace a reservation by what the call took: usage (unknown: the reservation stands), cost (NAN:
 * tokens only, and the money that was reserved stands), seconds. */
void budget_settle(const char *ledger, long ticket, const struct llm_usage *u, double cost,
                   double seconds);

/* Sums over the ledger, for all (gpu and task NULL) or for one cell; zero if there is no ledger.
 * usd counts known costs; calls of unknown cost are counted apart (unpriced), and so are those not
 * settled (open). */
struct spent {
    double usd, tokens, seconds;
    long calls, unpriced, open;
};
struct spent budget_spent(const char *ledger, const char *gpu, const char *task);

#endif
