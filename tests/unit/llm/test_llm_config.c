/* test_llm_config.c: the settings of the model client, how invalid ones are refused, and the
 * bytes of the resulting requests. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "llm/wire.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static const char *const variables[] = {"LLM",
                                        "OPENAI_BASE_URL",
                                        "ANTHROPIC_BASE_URL",
                                        "LLM_KEY_ENV",
                                        "LLM_TEMPERATURE",
                                        "LLM_EFFORT",
                                        "LLM_SEED",
                                        "LLM_MAX_TOKENS",
                                        "LLM_TOKEN_FIELD",
                                        "LLM_SECONDS",
                                        "LLM_TRIES",
                                        "LLM_BACKOFF_MS",
                                        "LLM_IDLE_SECONDS",
                                        "ANTHROPIC_AUTH_TOKEN",
                                        "OPENAI_API_KEY",
                                        "OWN_KEY_NAME",
                                        "ANTHROPIC_API_KEY"};

/* Set variables from "A=1 B=2" and unset all other relevant ones. */
static void environment(const char *settings) {
    char copy[4096], *rest = copy;
    for (size_t i = 0; i < LENGTH(variables); i++) unsetenv(variables[i]);
    assert_true(strlen(settings) < sizeof copy);
    strcpy(copy, settings);
    for (char *one; (one = strsep(&rest, " "));) {
        char *value = strchr(one, '=');
        if (!value) continue;
        *value++ = 0;
        setenv(one, value, 1);
    }
}

/* Read the configuration in a child process and require its key.  Returns the exit code; its
 * message is in `line`. */
static int refused(const char *settings, char line[1024]) {
    int ends[2], status;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct llm_config c;
        dup2(ends[1], 2);
        environment(settings);
        llm_config_read(&c);
        llm_need_key(&c);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t k; n < 1023 && (k = read(ends[0], line + n, 1023 - n)) > 0;) n += (size_t)k;
    line[n] = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_defaults(void **state) {
    (void)state;
    struct llm_config c;
    environment("LLM=openai:gpt-x OPENAI_API_KEY=12345678");
    llm_config_read(&c);
    assert_int_equal(c.api, LLM_CHAT);
    assert_string_equal(c.model, "gpt-x");
    assert_string_equal(c.base, "https://api.openai.com/v1");
    assert_string_equal(c.host, "api.openai.com");
    assert_string_equal(c.key_env, "OPENAI_API_KEY");
    assert_string_equal(c.effort, "");
    assert_true(isnan(c.temperature) && isnan(c.seed) && !c.old_max_tokens && !c.loopback);
    assert_true(c.max_tokens == 32768 && c.tries == 8 && c.call_seconds == 3600 &&
                c.idle_seconds == 600 && c.backoff_ms == 500);
    assert_null(getenv("OPENAI_API_KEY"));
    environment("LLM=responses:a/b:c");
    llm_config_read(&c);
    assert_int_equal(c.api, LLM_RESPONSES);
    assert_string_equal(c.model, "a/b:c");
    environment("LLM=anthropic:claude");
    llm_config_read(&c);
    assert_int_equal(c.api, LLM_ANTHROPIC);
    assert_string_equal(c.base, "https://api.anthropic.com");
    assert_string_equal(c.key_env, "ANTHROPIC_API_KEY");
    environment("LLM=replay:results/transcripts");
    llm_config_read(&c);
    assert_int_equal(c.api, LLM_REPLAY);
    assert_string_equal(c.model, "results/transcripts");
    llm_need_key(&c);
}

static void test_settings(void **state) {
    (void)state;
    struct llm_config c;
    environment(
        "LLM=openai:m LLM_TEMPERATURE=0.7 LLM_SEED=-3 LLM_EFFORT=xhigh LLM_MAX_TOKENS=100 "
        "LLM_TOKEN_FIELD=max_tokens LLM_SECONDS=2.5 LLM_TRIES=1 LLM_BACKOFF_MS=1 "
        "LLM_IDLE_SECONDS=3 OPENAI_BASE_URL=http://127.0.0.1:8080/v1/ LLM_KEY_ENV=OWN_KEY_NAME "
        "OWN_KEY_NAME=abcdefgh OPENAI_API_KEY=ijklmnop");
    llm_config_read(&c);
    assert_true(c.temperature == 0.7 && c.seed == -3);
    assert_true(c.max_tokens == 100 && c.old_max_tokens && c.tries == 1);
    assert_true(c.call_seconds == 2.5 && c.backoff_ms == 1 && c.idle_seconds == 3);
    assert_string_equal(c.effort, "xhigh");
    assert_string_equal(c.base, "http://127.0.0.1:8080/v1");
    assert_string_equal(c.host, "127.0.0.1");
    assert_true(c.loopback);
    char *header = key_header(llm_wire(c.api), c.key_env);
    assert_string_equal(header, "authorization: Bearer abcdefgh");
    free(header);
    assert_null(getenv("OWN_KEY_NAME"));
    assert_null(getenv("OPENAI_API_KEY"));
    environment(
        "LLM=anthropic:m ANTHROPIC_AUTH_TOKEN=token-12 ANTHROPIC_BASE_URL=https://proxy.example/a");
    llm_config_read(&c);
    assert_string_equal(c.key_env, "ANTHROPIC_AUTH_TOKEN");
    assert_string_equal(c.host, "proxy.example");
    assert_false(c.loopback);
}

static void test_no_traces(void **state) {
    (void)state;
    struct llm_config c;
    struct rlimit core;
    environment("LLM=openai:m");
    llm_config_read(&c);
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    assert_true(core.rlim_cur == 0 && core.rlim_max == 0);
    assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
}

/* Settings that are refused, and words of the message. */
static const struct {
    const char *settings, *words;
} wrong[] = {
    {"", "LLM is not set: openai:MODEL"},
    {"LLM=gpt-x", "openai:MODEL, responses:MODEL"},
    {"LLM=openai:", "is expected"},
    {"LLM=openai:a\nb", "model's name"},
    {"LLM=openai:m", "OPENAI_API_KEY is not set, and api.openai.com"},
    {"LLM=openai:m OPENAI_API_KEY=", "OPENAI_API_KEY is not set"},
    {"LLM=responses:m ANTHROPIC_API_KEY=12345678", "OPENAI_API_KEY is not set"},
    {"LLM=anthropic:m", "ANTHROPIC_API_KEY is not set"},
    {"LLM=openai:m LLM_KEY_ENV=OWN_KEY_NAME OPENAI_API_KEY=12345678", "OWN_KEY_NAME is not set"},
    {"LLM=openai:m LLM_KEY_ENV=gsk_1aB2cD3eF", "the variable that LLM_KEY_ENV names is not set"},
    {"LLM=openai:m LLM_KEY_ENV=sk-secret! OPENAI_API_KEY=12345678", "LLM_KEY_ENV is not the name"},
    {"LLM=openai:m OPENAI_API_KEY=1234567\n", "byte 8 of it"},
    {"LLM=openai:m OPENAI_API_KEY=12\r\nx-evil:1", "byte 3 of it"},
    {"LLM=openai:m OPENAI_API_KEY=1234\xC3\xA4", "byte 5 of it"},
    {"LLM=openai:m LLM_TEMPERATURE=warm", "LLM_TEMPERATURE=warm: a number"},
    {"LLM=openai:m LLM_TEMPERATURE=-1", "LLM_TEMPERATURE=-1"},
    {"LLM=openai:m LLM_TEMPERATURE=nan", "LLM_TEMPERATURE=nan"},
    {"LLM=openai:m LLM_TEMPERATURE=1x", "LLM_TEMPERATURE=1x"},
    {"LLM=openai:m LLM_TEMPERATURE=1e999", "LLM_TEMPERATURE=1e999"},
    {"LLM=openai:m LLM_SEED=1.5", "a whole number"},
    {"LLM=openai:m LLM_SEED=1e17", "LLM_SEED=1e17"},
    {"LLM=anthropic:m LLM_SEED=1", "only LLM=openai:MODEL takes a seed"},
    {"LLM=openai:m LLM_MAX_TOKENS=0", "LLM_MAX_TOKENS=0"},
    {"LLM=openai:m LLM_TRIES=0", "LLM_TRIES=0"},
    {"LLM=openai:m LLM_SECONDS=0", "LLM_SECONDS=0"},
    {"LLM=openai:m LLM_IDLE_SECONDS=0.5", "LLM_IDLE_SECONDS=0.5"},
    {"LLM=openai:m LLM_EFFORT=high\"", "LLM_EFFORT"},
    {"LLM=openai:m LLM_TOKEN_FIELD=tokens", "LLM_TOKEN_FIELD=tokens"},
    {"LLM=openai:m OPENAI_BASE_URL=http://api.openai.com/v1 OPENAI_API_KEY=12345678", "use https"},
    {"LLM=openai:m OPENAI_BASE_URL=http://127.0.0.1.example.com/v1 OPENAI_API_KEY=12345678",
     "use https"},
    {"LLM=openai:m OPENAI_BASE_URL=http://128.0.0.1 OPENAI_API_KEY=12345678", "use https"},
    {"LLM=openai:m OPENAI_BASE_URL=http://localhost.example.com OPENAI_API_KEY=12345678",
     "use https"},
    {"LLM=openai:m OPENAI_BASE_URL=http://[::2]/ OPENAI_API_KEY=12345678", "use https"},
    {"LLM=openai:m OPENAI_BASE_URL=ftp://127.0.0.1/", "ftp"},
    {"LLM=openai:m OPENAI_BASE_URL=file:///etc/passwd", "OPENAI_BASE_URL"},
    {"LLM=openai:m OPENAI_BASE_URL=https://user:hunter2@example.com", "carries credentials"},
    {"LLM=openai:m OPENAI_BASE_URL=https://user@example.com", "carries credentials"},
    {"LLM=openai:m OPENAI_BASE_URL=https://example.com/v1?key=hunter2", "has a ?"},
    {"LLM=openai:m OPENAI_BASE_URL=https://example.com/v1#x", "has a ? or a #"},
    {"LLM=openai:m OPENAI_BASE_URL=example.com/v1", "is not a URL"},
    {"LLM=openai:m OPENAI_BASE_URL=https://", "is not a URL"},
};

static void test_refused(void **state) {
    (void)state;
    char line[1024];
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        int code = refused(wrong[i].settings, line);
        if (code != KP_USAGE || !strstr(line, wrong[i].words) ||
            strchr(line, '\n') != line + strlen(line) - 1)
            fail_msg("%s: exit %d: %s", wrong[i].settings, code, line);
        if (strstr(line, "hunter2") || strstr(line, "12345678") || strstr(line, "secret"))
            fail_msg("shown: %s", line);
    }
}

static void test_accepted(void **state) {
    (void)state;
    static const char *const cases[] = {
        "LLM=openai:m OPENAI_BASE_URL=http://127.1.2.3:1/v1",
        "LLM=openai:m OPENAI_BASE_URL=http://localhost:11434/v1",
        "LLM=openai:m OPENAI_BASE_URL=http://[::1]:8080/v1",
        "LLM=openai:m OPENAI_BASE_URL=http://gpu.example.com/v1",
        "LLM=openai:m OPENAI_BASE_URL=http://10.0.0.1 OPENAI_API_KEY=12345678 LLM_PLAIN_HTTP=1",
        "LLM=openai:m OPENAI_BASE_URL=https://127.0.0.1",
        "LLM=openai:m OPENAI_API_KEY=12345678",
        "LLM=openai:m OPENAI_BASE_URL=http://localhost OPENAI_API_KEY=",
        "LLM=anthropic:m ANTHROPIC_API_KEY=12345678 OPENAI_BASE_URL=nonsense",
        "LLM=replay:dir OPENAI_BASE_URL=nonsense",
    };
    char line[1024];
    for (size_t i = 0; i < LENGTH(cases); i++)
        if (refused(cases[i], line) != 0) fail_msg("%s: %s", cases[i], line);
}

/* ---- Requests ---- */

static void sends(const struct llm_config *c, int cap, const char *body) {
    struct llm_message m[] = {{"system", "Be \"brief\".\n", 0},
                              {"user", "bad \xFF, \xE2\x82\xAC", 0}};
    for (int i = 0; i < 2; i++) { /* the same bytes again */
        char *request = llm_request(c, m, 2, cap, false);
        assert_string_equal(request, body);
        free(request);
    }
}

#define SYSTEM "Be \\\"brief\\\".\\n"
#define USER   "bad \xEF\xBF\xBD, \xE2\x82\xAC"

static void test_requests(void **state) {
    (void)state;
    struct llm_config plain = {.api = LLM_CHAT, .model = "m", .max_tokens = 32768};
    plain.temperature = plain.seed = NAN;
    struct llm_config full = plain;
    full.temperature = 0.2;
    full.seed = 42;
    strcpy(full.effort, "high");
    sends(&plain, 1,
          "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"" SYSTEM "\"},"
          "{\"role\":\"user\",\"content\":\"" USER "\"}],\"max_completion_tokens\":32768,"
          "\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    full.old_max_tokens = true;
    sends(&full, 2,
          "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"" SYSTEM "\"},"
          "{\"role\":\"user\",\"content\":\"" USER "\"}],\"max_tokens\":65536,\"temperature\":0.2,"
          "\"reasoning_effort\":\"high\",\"seed\":42,\"stream\":true,"
          "\"stream_options\":{\"include_usage\":true}}");
    plain.api = full.api = LLM_RESPONSES;
    sends(&plain, 1,
          "{\"model\":\"m\",\"instructions\":\"" SYSTEM "\",\"input\":[{\"role\":\"user\","
          "\"content\":\"" USER
          "\"}],\"max_output_tokens\":32768,\"store\":false,\"stream\":true}");
    sends(&full, 2,
          "{\"model\":\"m\",\"instructions\":\"" SYSTEM "\",\"input\":[{\"role\":\"user\","
          "\"content\":\"" USER "\"}],\"max_output_tokens\":65536,\"temperature\":0.2,"
          "\"reasoning\":{\"effort\":\"high\"},\"store\":false,\"stream\":true}");
    plain.api = full.api = LLM_ANTHROPIC;
    sends(&plain, 1,
          "{\"model\":\"m\",\"system\":[{\"type\":\"text\",\"text\":\"" SYSTEM "\","
          "\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[{\"role\":\"user\","
          "\"content\":\"" USER "\"}],\"max_tokens\":32768,\"stream\":true}");
    sends(&full, 2,
          "{\"model\":\"m\",\"system\":[{\"type\":\"text\",\"text\":\"" SYSTEM "\","
          "\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[{\"role\":\"user\","
          "\"content\":\"" USER "\"}],\"max_tokens\":65536,\"temperature\":0.2,"
          "\"output_config\":{\"effort\":\"high\"},\"stream\":true}");
}

int main(void) {
    kp_program("test");
    /* Tests that fork go first, before a key is taken: a process keeps its key. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_settings),
        cmocka_unit_test(test_no_traces), cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
