/* test_json.c: which JSON files are read and refused, and that a file is replaced whole or not
 * at all. */
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
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "base/json.h"

static char folder[] = "/tmp/kernelproof-XXXXXX";

static int enter(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    unlink("a.json");
    return chdir("/") || rmdir(folder); /* fails if any other file is left there */
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void holds(const char *path, const char *text) {
    long size;
    char *found = file_read(path, &size);
    assert_string_equal(found, text);
    assert_int_equal(size, strlen(text));
    free(found);
}

static void read_it(void) {
    cJSON_Delete(json_read("a.json"));
}

static void test_read(void **state) {
    (void)state;
    write_text("a.json", "{\"text\": \"words\", \"number\": 1.5, \"none\": null}\n");
    cJSON *json = json_read("a.json");
    assert_string_equal(json_text(json, "text", "other"), "words");
    assert_string_equal(json_text(json, "number", "other"), "other");
    assert_string_equal(json_text(json, "none", "other"), "other");
    assert_null(json_text(json, "absent", NULL));
    assert_true(json_number(json, "number", 7) == 1.5);
    assert_true(json_number(json, "text", 7) == 7);
    assert_true(json_number(json, "absent", 7) == 7);
    cJSON_Delete(json);
}

static void say_lines(void) {
    die(KP_INPUT, "%s", "one\ntwo \x1b[31m \xc3\xa9");
}

/* A message that holds text of a file stays one line. */
static void test_one_line(void **state) {
    (void)state;
    ends(say_lines, KP_INPUT, "one?two ?[31m \xc3\xa9");
}

static void test_refused(void **state) {
    (void)state;
    unlink("a.json");
    ends(read_it, KP_IO, "a.json: cannot read: No such file");
    write_text("a.json", "");
    ends(read_it, KP_INPUT, "a.json:1: not JSON (truncated or edited?): remove it");
    write_text("a.json", "{\n  \"a\": 1,\n  \"b\": [1, 2");
    ends(read_it, KP_INPUT, "a.json:3: not JSON");
    write_text("a.json", "{}\n{}\n");
    ends(read_it, KP_INPUT, "a.json:2: not JSON");
    unlink("a.json");
    mkdir("a.json", 0700);
    ends(read_it, KP_IO, "a.json: cannot read: not a regular file\n");
    rmdir("a.json");
}

static void test_numbers(void **state) {
    (void)state;
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "a", 0.1);
    json_add_number(json, "b", INFINITY);
    json_add_number(json, "c", NAN);
    char *text = cJSON_PrintUnformatted(json);
    assert_string_equal(text, "{\"a\":0.1,\"b\":null,\"c\":null}");
    free(text);
    cJSON_Delete(json);
}

static void test_replace(void **state) {
    (void)state;
    unlink("a.json");
    file_replace("a.json", "first\n");
    holds("a.json", "first\n");
    file_replace("a.json", "");
    holds("a.json", "");
    cJSON *json = cJSON_Parse("{\"a\": [1, 2]}");
    json_write("a.json", json);
    cJSON_Delete(json);
    json = json_read("a.json");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "a")), 2);
    cJSON_Delete(json);
}

/* A reader never sees a partial file while the file is replaced again and again. */
static void test_readers(void **state) {
    (void)state;
    enum { SIZE = 100000 };
    char *text = malloc(SIZE + 1);
    int status;
    assert_non_null(text);
    memset(text, 'x', SIZE), text[SIZE] = 0;
    file_replace("a.json", text);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 100; i++) file_replace("a.json", text);
        _exit(0);
    }
    do {
        long size;
        char *found = file_read("a.json", &size);
        assert_int_equal(size, SIZE);
        free(found);
    } while (waitpid(pid, &status, WNOHANG) == 0);
    assert_int_equal(status, 0);
    free(text);
}

/* Write on a disk that is full, or nearly so. */
static void write_little(void) {
    struct rlimit small = {1000, 1000};
    char text[5000];
    memset(text, 'x', sizeof text), text[sizeof text - 1] = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    file_replace("a.json", text);
}

static void write_nowhere(void) {
    file_replace("no/such/a.json", "text");
}

static void write_over_folder(void) {
    file_replace("a.json", "text");
}

static void test_full(void **state) {
    (void)state;
    write_text("a.json", "old\n");
    ends(write_little, KP_IO, "a.json: cannot write: File too large; what was there before is");
    holds("a.json", "old\n");
    ends(write_nowhere, KP_IO, "no/such/a.json: cannot write: No such file");
    unlink("a.json");
    mkdir("a.json", 0700);
    ends(write_over_folder, KP_IO, "a.json: cannot write: ");
    rmdir("a.json");
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),    cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_replace), cmocka_unit_test(test_readers),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
