/* ledger_case.h: a ledger in a folder of its own, for the tests of budget.c. */
#ifndef KP_LEDGER_CASE_H
#define KP_LEDGER_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "llm/wire.h"

#define LEDGER "ledger"

static char folder[] = "/tmp/kernelproof-XXXXXX";
static const struct price dollar = {.known = true, .input = 1, .output = 1, .model = "m"};

static const char *const variables[] = {"BUDGET_USD",   "BUDGET_TOKENS", "BUDGET_CALLS",
                                        "BUDGET_HOURS", "TASK_USD",      "TASK_TOKENS",
                                        "TASK_CALLS",   "TASK_HOURS",    "KP_RUN_STARTED"};

static inline int enter(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int leave(void **state) {
    (void)state;
    return chdir("/") || rmdir(folder);
}

/* Before and after each test: no ledger, no caps. */
static inline int clean(void **state) {
    (void)state;
    unlink(LEDGER);
    unlink(LEDGER ".stop");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    return 0;
}

static inline void near(double x, double y) {
    if (!(fabs(x - y) <= 1e-9 * (1 + fabs(y)))) fail_msg("%.12g is not %.12g", x, y);
}

#endif
