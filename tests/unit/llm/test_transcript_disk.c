/* test_transcript_disk.c: a transcript is locked, and its disk space is reserved before a call. */
#define _GNU_SOURCE
#include "transcript_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void hold(void) {
    transcript_hold(path);
}

static void hold_and_fail(void) {
    transcript_hold(path);
    die(KP_BUDGET, "no more");
}

static void hold_nowhere(void) {
    transcript_hold("no/such/a.jsonl");
}

/* A transcript that cannot be written fails before the request; two processes that want one take
 * turns. */
static void test_hold(void **state) {
    (void)state;
    ends(hold_nowhere, KP_IO, "no/such/a.jsonl: cannot write: No such file");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("notes\n", f) >= 0 && fclose(f) == 0);
    ends(hold, KP_INPUT, "a.jsonl:1: not a line of a transcript");
    unlink(path);
    ends(hold_and_fail, KP_BUDGET, "no more");
    assert_int_equal(access(path, F_OK), -1); /* no empty file remains */
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t first = fork();
    if (first == 0) {
        hold();
        if (write(ready[1], "x", 1) != 1) _exit(1);
        usleep(300000);
        record_stream(1, "first", "stop", 0);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    pid_t second = fork();
    if (second == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(2); /* hide the message that it waits */
        hold();
        struct llm_answer *a = newest();
        _exit(a && !strcmp(a->text, "first") ? 0 : 1);
    }
    int status = 1;
    waitpid(second, &status, 0);
    assert_int_equal(status, 0);
    waitpid(first, &status, 0);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- Disk space ---- */

enum { NEEDED = 100 * 512 + 1000 + (64 << 10) }; /* what reserve() asks for */

static struct stat now(void) {
    struct stat s = {0};
    if (stat(path, &s)) s.st_size = -1;
    return s;
}

static void reserve(void) {
    transcript_hold(path);
    transcript_reserve(1000, 100);
}

static void reserve_and_record(void) {
    reserve();
    if (now().st_blocks * 512 < NEEDED) die(KP_BUG, "no blocks are taken");
    record_stream(1, "code", "stop", 0);
    if (now().st_blocks * 512 > now().st_size + (32 << 10)) die(KP_BUG, "space is still reserved");
}

static void reserve_and_fail(void) {
    reserve();
    die(KP_BUDGET, "no more");
}

static void reserve_beyond(void) {
    struct rlimit small = {(rlim_t)now().st_size + NEEDED - 1, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &small);
    reserve();
}

static void reserve_most(void) {
    int before = lines();
    transcript_hold(path);
    transcript_reserve(0, 1e8);
    if (now().st_size > 24 << 20) die(KP_BUG, "%lld bytes", (long long)now().st_size);
    record_stream(1, "code", "stop", 0);
    if (lines() != before + 1 || now().st_size > 8192) die(KP_BUG, "zeros are left");
}

/* Reserve, and get killed. */
static void reserve_and_vanish(void) {
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        reserve();
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_true(now().st_blocks * 512 >= NEEDED);
}

/* Space is reserved before a try and released after it: with and without lines, and however the
 * process ends. */
static void test_reserved(void **state) {
    (void)state;
    ends(reserve_and_fail, KP_BUDGET, "no more");
    assert_int_equal(access(path, F_OK), -1);
    reserve_and_vanish();
    assert_null(newest());
    ends(reserve_and_record, 0, "");
    assert_int_equal(lines(), 1);
    off_t one = now().st_size;
    reserve_and_vanish();
    llm_answer_free(newest());
    ends(reserve_and_record, 0, "");
    assert_int_equal(lines(), 2);
    assert_int_equal(now().st_size, 2 * one);
    ends(reserve_and_fail, KP_BUDGET, "no more");
    assert_int_equal(now().st_size, 2 * one);
    assert_true(now().st_blocks * 512 < NEEDED);
    reserve_and_vanish();
    ends(hold_and_fail, KP_BUDGET, "no more");
    assert_true(now().st_blocks * 512 < NEEDED); /* what another process had reserved */
    ends(reserve_most, 0, "");
}

static void test_disk_full(void **state) {
    (void)state;
    static const char words[] = "a.jsonl: no room for an answer: 117736 bytes are needed: File too "
                                "large: free some on that disk, or lower LLM_MAX_TOKENS; no "
                                "request is sent";
    ends(reserve_beyond, KP_IO, words);
    assert_int_equal(access(path, F_OK), -1);
    record_stream(1, "code", "stop", 0);
    off_t before = now().st_size;
    ends(reserve_beyond, KP_IO, words);
    assert_int_equal(now().st_size, before);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_hold, fresh),
        cmocka_unit_test_setup(test_reserved, fresh),
        cmocka_unit_test_setup(test_disk_full, fresh),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
