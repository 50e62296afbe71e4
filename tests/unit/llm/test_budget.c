/* test_budget.c: the ledger and the caps, also with many writers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "llm/ledger_case.h"

static const struct price unknown = {.model = "mystery"};
static const struct llm_usage no_usage = {.cost = NAN};

static void reserve(const char *gpu, const char *task, double in, double out) {
    budget_reserve(LEDGER, gpu, task, "one_shot.r1a1", &dollar, in, out);
}

/* One call that is settled so. */
static void call(const char *gpu, const char *task, double in, double out,
                 const struct llm_usage *u, double cost, double seconds) {
    reserve(gpu, task, in, out);
    budget_settle(LEDGER, u, cost, seconds);
}

/* One call that costs half a dollar and 500 thousand tokens. */
static void half(void) {
    call("h200", "relu", 3e5, 2e5, &no_usage, NAN, 0);
}

static void unpriced(double in, double out, const struct llm_usage *u, double cost) {
    budget_reserve(LEDGER, "h200", "relu", "one_shot.r1a2", &unknown, in, out);
    budget_settle(LEDGER, u, cost, 1);
}

static void half_unpriced(void) {
    unpriced(3e5, 2e5, &no_usage, NAN);
}

static void spent_now(void) {
    budget_spent(LEDGER, NULL, NULL);
}

/* Write bytes at a place of the ledger; from its end if `at` is negative. */
static void write_at(off_t at, const char *text, size_t n) {
    int f = open(LEDGER, O_WRONLY | O_CREAT, 0666);
    if (at < 0) at = lseek(f, 0, SEEK_END);
    assert_int_equal(pwrite(f, text, n, at), n);
    close(f);
}

/* Sums before, during and after; a settlement replaces its reservation. */
static void test_sums(void **state) {
    (void)state;
    struct llm_usage u = {.known = true, .input = 1000, .output = 500, .cost = NAN};
    struct spent s = budget_spent(LEDGER, NULL, NULL);
    assert_int_equal(s.calls, 0);
    assert_int_equal(access(LEDGER, F_OK), -1); /* reading makes no file */
    reserve("h200", "relu", 1e6, 1e6);
    reserve("a100", "relu", 4e6, 0);
    reserve("h200", "gelu", 2e6, 0);
    s = budget_spent(LEDGER, NULL, NULL);
    near(s.usd, 8);
    near(s.tokens, 8e6);
    assert_int_equal(s.open, 3);
    near(s.open_usd, 8);
    budget_settle(LEDGER, &u, 0.25, 12.5);
    s = budget_spent(LEDGER, "h200", "gelu");
    near(s.usd, 0.25);
    near(s.tokens, 1500);
    near(s.seconds, 12.5);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.open, 0);
    s = budget_spent(LEDGER, "h200", "relu");
    near(s.usd, 2);
    assert_int_equal(s.open, 1);
    near(budget_spent(LEDGER, NULL, "relu").usd, 6);
    near(budget_spent(LEDGER, NULL, NULL).usd, 6.25);
}

/* An unknown amount counts as reserved, and a call without a price is not free. */
static void test_unknown(void **state) {
    (void)state;
    struct llm_usage u = {.known = true, .input = 10, .output = 5, .cost = NAN};
    call("h200", "relu", 1e6, 1e6, &no_usage, NAN, 3);
    call("h200", "relu", 1e6, 0, &u, NAN, 1);
    call("h200", "relu", 1e6, 0, &no_usage, 0.125, 1);
    struct spent s = budget_spent(LEDGER, NULL, NULL);
    near(s.usd, 2 + 1 + 0.125);
    near(s.tokens, 2e6 + 15 + 1e6);
    near(s.seconds, 5);
    assert_int_equal(s.open, 0);
    assert_int_equal(s.unpriced, 0);
    unpriced(100, 50, &u, NAN);
    s = budget_spent(LEDGER, NULL, NULL);
    assert_int_equal(s.unpriced, 1);
    near(s.usd, 3.125);
    near(s.tokens, 3e6 + 15 + 15);
    unpriced(100, 50, &u, 0.5); /* the server stated the cost */
    s = budget_spent(LEDGER, NULL, NULL);
    assert_int_equal(s.unpriced, 1);
    near(s.usd, 3.625);
}

static void test_caps(void **state) {
    (void)state;
    setenv("BUDGET_USD", "1.25", 1);
    half();
    half();
    ends(half, KP_BUDGET,
         "test: BUDGET_USD=1.25 would be exceeded: 1 spent, this call may cost 0.5: "
         "raise it, or stop here");
    assert_int_equal(budget_spent(LEDGER, NULL, NULL).calls, 2); /* refused: no line */
    setenv("BUDGET_USD", "1.5", 1);
    ends(half, 0, ""); /* a cap may be reached exactly */
    setenv("BUDGET_USD", "", 1);
    ends(half, 0, "");
    unsetenv("BUDGET_USD");
    setenv("TASK_USD", "2.2", 1);
    ends(half, KP_BUDGET, "TASK_USD=2.2 would be exceeded: 2 spent,");
    call("h200", "gelu", 3e5, 2e5, &no_usage, NAN, 0);
    call("a100", "relu", 3e5, 2e5, &no_usage, NAN, 0);
    unsetenv("TASK_USD");
    setenv("BUDGET_TOKENS", "3e6", 1);
    ends(half, KP_BUDGET,
         "BUDGET_TOKENS=3e6 would be exceeded: 3000000 spent, this call may take "
         "500000");
    setenv("BUDGET_TOKENS", "3500000", 1);
    setenv("TASK_TOKENS", "2499999", 1);
    ends(half, KP_BUDGET, "TASK_TOKENS=2499999 would be");
    unsetenv("TASK_TOKENS");
    setenv("BUDGET_CALLS", "6", 1);
    ends(half, KP_BUDGET, "BUDGET_CALLS=6 would be exceeded: 6 made, this call is 1");
    setenv("BUDGET_CALLS", "7", 1);
    setenv("TASK_CALLS", "4", 1);
    ends(half, KP_BUDGET, "TASK_CALLS=4 would be exceeded: 4 made");
    setenv("TASK_CALLS", "5", 1);
    ends(half, 0, "");
    setenv("BUDGET_CALLS", "0", 1);
    unlink(LEDGER);
    ends(half, KP_BUDGET, "BUDGET_CALLS=0 would be exceeded: 0 made");
}

static void test_hours(void **state) {
    (void)state;
    char started[32];
    call("h200", "relu", 1, 1, &no_usage, 0, 1800);
    setenv("TASK_HOURS", "0.6", 1);
    ends(half, 0, "");
    setenv("TASK_HOURS", "0.5", 1);
    ends(half, KP_BUDGET,
         "TASK_HOURS=0.5 is reached: 0.5 hours of calls for this task on this GPU: raise it");
    reserve("h200", "gelu", 1, 1);
    unsetenv("TASK_HOURS");
    setenv("BUDGET_HOURS", "2", 1);
    ends(half, KP_USAGE, "BUDGET_HOURS needs KP_RUN_STARTED");
    snprintf(started, sizeof started, "%lld", (long long)time(NULL) - 3600);
    setenv("KP_RUN_STARTED", started, 1);
    ends(half, 0, "");
    setenv("BUDGET_HOURS", "1", 1);
    ends(half, KP_BUDGET, "BUDGET_HOURS=1 is reached: 1 hours since the run began");
    setenv("KP_RUN_STARTED", "yesterday", 1);
    ends(half, KP_USAGE, "KP_RUN_STARTED=yesterday is not a number");
}

static void test_malformed_caps(void **state) {
    (void)state;
    static const char *const bad[] = {"-1", "five", "5 USD", "nan", "inf", "1e999", "5,0", " "};
    for (size_t v = 0; v + 1 < sizeof variables / sizeof *variables; v++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            char words[64];
            setenv("KP_RUN_STARTED", "0", 1);
            setenv(variables[v], bad[i], 1);
            snprintf(words, sizeof words, "%s=%s is not a number", variables[v], bad[i]);
            ends(half, KP_USAGE, words);
            unsetenv(variables[v]);
        }
    assert_int_equal(budget_spent(LEDGER, NULL, NULL).calls, 0);
}

static void test_no_price(void **state) {
    (void)state;
    half_unpriced();
    setenv("BUDGET_USD", "1000", 1);
    ends(half_unpriced, KP_BUDGET,
         "no price for mystery in harness/llm/prices.json: add it, or cap tokens (BUDGET_TOKENS) "
         "instead of money");
    ends(half, KP_BUDGET, "BUDGET_USD=1000 cannot be held: 1 calls in ledger have no known cost");
    unsetenv("BUDGET_USD");
    setenv("TASK_USD", "1000", 1);
    ends(half_unpriced, KP_BUDGET, "(TASK_TOKENS) instead");
    unsetenv("TASK_USD");
    setenv("BUDGET_TOKENS", "1200000", 1);
    ends(half_unpriced, 0, "");
    ends(half_unpriced, KP_BUDGET, "BUDGET_TOKENS=1200000 would be exceeded: 1000000 spent");
}

static void long_prompt(void) {
    const struct price p = {
        .known = true, .input = 1, .output = 1, .up_to = 1000, .model = "short"};
    budget_reserve(LEDGER, "h200", "relu", "one_shot.r1a1", &p, 1001, 1);
}

static void test_worst_case(void **state) {
    (void)state;
    const struct price p = {.known = true,
                            .input = 1,
                            .cached = 0.1,
                            .cache_write = 1.25,
                            .cache_write_1h = 2,
                            .output = 5};
    budget_reserve(LEDGER, "h200", "relu", "one_shot.r1a1", &p, 1e6, 1e6);
    near(budget_spent(LEDGER, NULL, NULL).usd, 7);
    setenv("BUDGET_USD", "1000", 1);
    ends(long_prompt, KP_BUDGET, "no price for short with prompts above 1000 tokens");
}

/* A torn last line granted nothing, and the next writer cuts it off. */
static void test_torn(void **state) {
    (void)state;
    char zeros[64] = ""; /* as after a power failure */
    half();
    write_at(-1, "open\t9\t9\t9\t9", 12);
    near(budget_spent(LEDGER, NULL, NULL).usd, 0.5);
    call("h200", "relu", 1e6, 0, &no_usage, NAN, 1);
    near(budget_spent(LEDGER, NULL, NULL).usd, 1.5);
    write_at(-1, zeros, sizeof zeros);
    near(budget_spent(LEDGER, NULL, NULL).usd, 1.5);
    half();
    struct spent s = budget_spent(LEDGER, NULL, NULL);
    near(s.usd, 2);
    assert_int_equal(s.calls, 3);
}

static void settle_none(void) {
    half();
    budget_settle(LEDGER, &no_usage, 0, 0);
}

/* A line that was edited ends the program, and is left as it is. */
static void test_malformed(void **state) {
    (void)state;
    static const char *const bad[] = {"hello",
                                      "open\t-1",
                                      "done\tx",
                                      "open\t1\tnan",
                                      "R\t1",
                                      "done\t1\t1\t1\t1\t1\n",
                                      "open\t1\t1\t1\t-5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clean(NULL);
        half();
        half();
        write_at(512, bad[i], strlen(bad[i]) + 1);
        ends(spent_now, KP_INPUT,
             "ledger:2: not a line of the ledger: put it right or move the file away");
        ends(half, KP_INPUT, "ledger:2: ");
    }
    clean(NULL);
    half();
    write_at(511, " ", 1);
    ends(spent_now, KP_INPUT, "ledger:1: not a line of the ledger");
    clean(NULL);
    ends(settle_none, KP_BUG, "ledger: no call is open");
}

/* Impossible counts from a server leave the reservation and the ledger unchanged. */
static void test_impossible(void **state) {
    (void)state;
    const double x[] = {-1e6, INFINITY, NAN};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        struct llm_usage u = {.known = true, .input = x[i], .output = 1, .cost = NAN};
        call("h200", "relu", 3e5, 2e5, &u, x[i], 1);
    }
    struct spent s = budget_spent(LEDGER, NULL, NULL);
    near(s.usd, 1.5);
    near(s.tokens, 1.5e6);
    assert_int_equal(s.open, 0);
}

static void half_elsewhere(void) {
    budget_reserve("no/such/ledger", "h200", "relu", "one_shot.r1a1", &dollar, 1, 1);
}

/* From now on limit each file of this process to so many bytes. */
static void limit(off_t bytes) {
    struct rlimit small = {(rlim_t)bytes, (rlim_t)bytes};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &small)) _exit(99);
}

static off_t size_of_ledger(void) {
    struct stat s;
    return stat(LEDGER, &s) == 0 ? s.st_size : 0;
}

/* Where there is room for one call, it can be settled, too. */
static void one_on_full_disk(void) {
    limit(size_of_ledger() + 512);
    half();
}

static void none_on_full_disk(void) {
    limit(size_of_ledger() + 511);
    half();
}

static void bad_name(void) {
    reserve("h200", "re\tlu", 1, 1);
}

/* What is below a file, which no folder is. */
static void spent_below(void) {
    budget_spent(LEDGER "/ledger", NULL, NULL);
}

static void test_unwritable(void **state) {
    (void)state;
    ends(half_elsewhere, KP_IO, "no/such/ledger: cannot write the ledger: No such file");
    ends(bad_name, KP_BUG, "holds a blank");
    assert_int_equal(budget_spent("no/such/ledger", NULL, NULL).calls, 0);
    write_at(0, "", 0);
    ends(spent_below, KP_IO, LEDGER "/ledger: cannot read the ledger: Not a directory\n");
}

/* A call starts only if it can be settled. */
static void test_full_disk(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        ends(none_on_full_disk, KP_IO,
             "ledger: no room for a call: No space left on device: free some on that disk; no "
             "request");
        assert_int_equal(size_of_ledger(), 512 * i);
        ends(one_on_full_disk, 0, "");
        assert_int_equal(budget_spent(LEDGER, NULL, NULL).open, 0);
    }
}

/* One of many: make calls until one is refused; some get killed with all of a call used. */
static void spend(int me) {
    for (int i = 0;; i++) {
        reserve("h200", "relu", 3e5, 2e5);
        if (me % 4 == 1 && i == 1) budget_note(2e5), raise(SIGKILL);
        budget_settle(LEDGER, &no_usage, NAN, 1);
    }
}

/* 64 processes at once, and a cap of 150 calls.  Earlier lines slow down reading, so that all
 * collide. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 64, ROOM = 150, EARLIER = 400 };
    pid_t pid[MANY];
    int gate[2], odd = 0;
    char go;
    for (int i = 1; i <= EARLIER; i++) call("h200", "gelu", 0, 0, &no_usage, 0, 0);
    setenv("BUDGET_USD", "75", 1);
    assert_int_equal(pipe(gate), 0);
    fflush(NULL);
    for (int i = 0; i < MANY; i++) {
        pid[i] = fork();
        if (pid[i]) continue;
        close(gate[1]);
        if (read(gate[0], &go, 1) != 0) _exit(99); /* wait until all are ready */
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        spend(i);
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < MANY; i++) {
        int status;
        waitpid(pid[i], &status, 0);
        odd += !WIFSIGNALED(status) && WEXITSTATUS(status) != KP_BUDGET;
    }
    assert_int_equal(odd, 0);
    struct spent s = budget_spent(LEDGER, "h200", "relu");
    assert_int_equal(s.calls, ROOM);
    near(s.usd, 75);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, clean, clean)

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        TEST(test_sums),       TEST(test_unknown),        TEST(test_caps),
        TEST(test_hours),      TEST(test_malformed_caps), TEST(test_no_price),
        TEST(test_worst_case), TEST(test_torn),           TEST(test_malformed),
        TEST(test_unwritable), TEST(test_many),           TEST(test_impossible),
        TEST(test_full_disk)};
    return cmocka_run_group_tests(tests, enter, leave);
}
