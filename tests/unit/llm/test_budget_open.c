/* test_budget_open.c: open calls: of killed processes, and waiting for those of others. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "llm/ledger_case.h"

/* One call that may cost half a dollar, 0.3 of it for the prompt. */
static void half_open(void) {
    budget_reserve(LEDGER, "h200", "relu", "one_shot.r1a1", &dollar, 3e5, 2e5);
}

/* The same, after a line's end: the message of the stopped run is empty. */
static void quiet(void) {
    fputs("\n", stderr);
    half_open();
}

/* A process that reserves, notes part of its answer, says so, and waits to be killed. */
static pid_t killed_later(void) {
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL); /* a shell may have it ignored in what it runs behind its back */
        half_open();
        budget_note(1e5);
        if (write(ready[1], "", 1) == 1) pause();
        _exit(99);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

/* What a killed process reserved counts as it noted, not in full. */
static void test_killed(void **state) {
    (void)state;
    for (int signal = 0; signal < 2; signal++) {
        clean(NULL);
        pid_t pid = killed_later();
        struct spent s = budget_spent(LEDGER, NULL, NULL);
        near(s.usd, 0.5);
        near(s.open_usd, 0.5);
        assert_int_equal(s.open, 1);
        kill(pid, signal ? SIGKILL : SIGINT);
        waitpid(pid, NULL, 0);
        s = budget_spent(LEDGER, NULL, NULL);
        near(s.usd, 0.4);
        near(s.tokens, 4e5);
        assert_int_equal(s.open, 0);
    }
}

/* A call waits while open calls take what is left, and is refused only by what is spent. */
static void test_wait(void **state) {
    (void)state;
    setenv("BUDGET_USD", "0.95", 1);
    pid_t open = killed_later(), waiting = fork();
    if (waiting == 0) {
        half_open();
        _exit(0);
    }
    const struct timespec pause = {.tv_nsec = 700000000};
    nanosleep(&pause, NULL);
    assert_int_equal(waitpid(waiting, NULL, WNOHANG), 0);
    assert_int_equal(budget_spent(LEDGER, NULL, NULL).calls, 1);
    kill(open, SIGKILL); /* 0.4 of its 0.5 are used */
    waitpid(open, NULL, 0);
    int status = -1;
    waitpid(waiting, &status, 0);
    assert_int_equal(status, 0);
    ends(half_open, KP_BUDGET,
         "BUDGET_USD=0.95 would be exceeded: 0.7 spent, this call may cost 0.5");
}

/* After a stop no call of this run is reserved; other runs go on. */
static void test_stop(void **state) {
    (void)state;
    setenv("KP_RUN", "7.1", 1);
    ends(half_open, 0, "");
    budget_stop(LEDGER);
    ends(quiet, KP_MACHINE, "\n");
    setenv("KP_RUN", "7.2", 1);
    ends(half_open, 0, "");
    unsetenv("KP_RUN");
    budget_stop(LEDGER);
    ends(half_open, 0, "");
    assert_int_equal(budget_spent(LEDGER, NULL, NULL).calls, 3);
}

/* A call that is settled just as it is counted counts once, and in full. */
static void test_settled(void **state) {
    (void)state;
    const struct llm_usage unknown = {.known = false};
    int lines = 0, status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 500; i++) half_open(), budget_settle(LEDGER, &unknown, NAN, 0);
        _exit(0);
    }
    for (; !waitpid(pid, &status, WNOHANG); lines++) {
        struct spent s = budget_spent(LEDGER, NULL, NULL);
        near(s.usd, 0.5 * (double)s.calls);
    }
    assert_int_equal(status, 0);
    assert_true(lines > 500);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, clean, clean)

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {TEST(test_killed), TEST(test_wait), TEST(test_stop),
                                       TEST(test_settled)};
    return cmocka_run_group_tests(tests, enter, leave);
}
