/* test_llm_fault.c: the model client in trouble: error bodies, waits, and echoed keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "llm/wire.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

/* ---- Errors ---- */

/* Bodies of errors, and what the client makes of them. */
static const struct {
    long http;
    const char *body;
    bool retry;
    int exit;
    const char *text;
} faults[] = {
    {401,
     "{\"error\":{\"message\":\"Bad "
     "key\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"invalid_api_key\"}}",
     false, KP_USAGE, "error 401 invalid_api_key: Bad key"},
    {429, "{\"error\":{\"message\":\"Slow\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
     true, KP_MACHINE, "error 429 rate_limit_exceeded: Slow"},
    {429,
     "{\"error\":{\"message\":\"Pay\",\"type\":\"insufficient_quota\",\"code\":\"insufficient_"
     "quota\"}}",
     false, KP_MACHINE, "error 429 insufficient_quota: Pay"},
    {429,
     "{\"error\":{\"message\":\"Pay\",\"type\":\"requests\",\"code\":\"credit_"
     "balance_exhausted\"}}",
     false, KP_MACHINE, "error 429 credit_balance_exhausted: Pay"},
    {500, "{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"Pay\"}}", false,
     KP_MACHINE, "error 500 billing_error: Pay"},
    {529,
     "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},"
     "\"request_id\":\"r\"}",
     true, KP_MACHINE, "error 529 overloaded_error: Overloaded"},
    {400, "{\"error\":{\"message\":\"Long\",\"code\":\"context_length_exceeded\"}}", false,
     KP_INPUT, "error 400 context_length_exceeded: Long"},
    {400,
     "{\"error\":{\"message\":\"prompt is too long: 9 "
     "tokens\",\"type\":\"invalid_request_error\"}}",
     false, KP_INPUT, "error 400 invalid_request_error: prompt is too long: 9 tokens"},
    {400,
     "{\"error\":{\"message\":\"Your credit balance is too "
     "low\",\"type\":\"invalid_request_error\"}}",
     false, KP_MACHINE, "error 400 invalid_request_error: Your credit balance is too low"},
    {413, "<h1>Too Large</h1>", false, KP_INPUT, "error 413: Too Large"},
    {503, "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}",
     true, KP_MACHINE, "error 503 unavailable_error: Loading model"},
    {404, "{\"error\":\"model not found\"}", false, KP_USAGE, "error 404: model not found"},
    {404, "{\"detail\":\"Not Found\"}", false, KP_USAGE, "error 404: Not Found"},
    {400, "{\"object\":\"error\",\"message\":\"bad\",\"type\":\"BadRequestError\",\"code\":400}",
     false, KP_USAGE, "error 400 BadRequestError: bad"},
    {502, "<html><head><title>502 Bad Gateway</title></head></html>", true, KP_MACHINE,
     "error 502: 502 Bad Gateway"},
    {502, "", true, KP_MACHINE, "error 502"},
    {408, "", true, KP_MACHINE, "error 408"},
    {409, "", true, KP_MACHINE, "error 409"},
    {403, "{\"error\":{\"message\":\"No\\nline\\u0000end \\ud800\"}}", false, KP_USAGE, NULL},
    {422, "{\"detail\":[{\"msg\":\"x\"}]}", false, KP_USAGE, NULL},
    {418, "", false, KP_USAGE, "error 418"},
    {500, "{\"error\":{\"message\":", true, KP_MACHINE, NULL},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(faults); i++) {
        struct fault f = {0};
        fault_body(&f, faults[i].http, faults[i].body, strlen(faults[i].body));
        struct llm_answer *a = fault_answer(&f);
        size_t n = faults[i].text ? strlen(faults[i].text) : 0;
        /* The advice is behind a colon. */
        if (!f.any || a->again != faults[i].retry || a->exit_code != faults[i].exit ||
            (n && (strncmp(a->why, faults[i].text, n) != 0 || strncmp(a->why + n, ": ", 2))) ||
            strpbrk(a->why, "\n\r\t"))
            fail_msg("case %zu: '%s', retry %d, exit %d", i, a->why, a->again, a->exit_code);
        llm_answer_free(a);
    }
}

/* The server's x-should-retry is followed, but a wrong key or prompt stays wrong. */
static bool again(long status, const char *should) {
    struct llm_answer *a = fault_answer(&(struct fault){.status = status, .should = should});
    bool is = a->again;
    llm_answer_free(a);
    return is;
}

static void test_should_retry(void **state) {
    (void)state;
    const long wrong[] = {400, 401, 402, 403, 404, 413, 422}, others[] = {0, 418, 425, 429, 503};
    for (size_t i = 0; i < LENGTH(wrong); i++) assert_false(again(wrong[i], "true"));
    for (size_t i = 0; i < LENGTH(others); i++) {
        assert_true(again(others[i], "True"));
        assert_false(again(others[i], "false"));
    }
}

/* Which errors every other call of the run would meet, too. */
static void test_for_all(void **state) {
    (void)state;
    for (long status = 400; status < 600; status++) {
        struct llm_answer *a = fault_answer(&(struct fault){.status = status});
        assert_int_equal(a->for_all, status == 401 || status == 402 || status == 404);
        llm_answer_free(a);
    }
}

/* A stream has no status: words and numbers replace it. */
static void test_words(void **state) {
    (void)state;
    static const struct {
        const char *error;
        long status;
    } cases[] = {
        {"{\"type\":\"overloaded_error\"}", 529},
        {"{\"code\":\"rate_limit_exceeded\"}", 429},
        {"{\"type\":\"authentication_error\"}", 401},
        {"{\"code\":401}", 401},
        {"{\"code\":\"503\"}", 503},
        {"{\"code\":\"server_error\"}", 500},
        {"{\"code\":\"insufficient_quota\"}", 402},
        {"{\"code\":7}", 0},
        {"{\"type\":\"invalid_request_error\"}", 400},
        {"\"text\"", 0},
        {"{\"type\":\"error\",\"code\":\"invalid_prompt\"}", 400},
        {"{\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}", 413},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct fault f = {0};
        cJSON *json = cJSON_Parse(cases[i].error);
        assert_non_null(json);
        fault_read(&f, json);
        if (f.status != cases[i].status) fail_msg("%s: %ld", cases[i].error, f.status);
        cJSON_Delete(json);
    }
}

/* ---- The key ---- */

static void test_key(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"no key", "no key"},
        {"sk-a/b\"c-Z1", "***"},
        {"{\"k\":\"sk-a/b\\\"c-Z1\"}", "{\"k\":\"***\"}"},
        {"sk-a\\/b\\\"c-Z1 and sk-a/b\"c-Z1", "*** and ***"},
        {"sk-a\\u002fb\\u0022c-Z1.", "***."},
        {"sk-a\\\\/b\\\\\\\"c-Z1", "***"},
        {"\\u0073k-a/b\"c-Z1", "***"},
        {"sk-a/b\"c-Z", "sk-a/b\"c-Z"},
        {"sk-sk-a/b\"c-Z1", "sk-***"},
        {"sk-a/b\"c-Z1sk-a/b\"c-Z1", "******"},
        {"short", "short"},
        {"", ""},
    };
    setenv("OPENAI_API_KEY", "sk-a/b\"c-Z1", 1);
    setenv("OWN_KEY", "short", 1);
    const char *where = getenv("OPENAI_API_KEY");
    key_take("OWN_KEY");
    assert_null(getenv("OPENAI_API_KEY"));
    assert_null(getenv("OWN_KEY"));
    assert_int_equal(where[0], 0); /* overwritten, not only unlinked */
    assert_true(key_held("OPENAI_API_KEY"));
    assert_true(key_held("OWN_KEY"));
    assert_false(key_held("ANTHROPIC_API_KEY"));
    key_take("OWN_KEY"); /* still held, though the environment no longer has it */
    assert_true(key_held("OWN_KEY"));
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char s[100];
        strcpy(s, cases[i].in);
        size_t n = strlen(s);
        assert_int_equal(key_within(s, n), strcmp(cases[i].in, cases[i].out) != 0);
        n = key_redact(s, n);
        assert_string_equal(s, cases[i].out);
        assert_int_equal(n, strlen(s));
    }
    setenv("OPENAI_API_KEY", "another-key", 1); /* replaced */
    key_take("OPENAI_API_KEY");
    /* Megabytes of backslashes take linear time. */
    size_t many = 8 << 20;
    char *s = malloc(many + 1);
    assert_non_null(s);
    memset(s, '\\', many);
    s[many] = 0;
    memcpy(s + many - 11, "another-key", 11);
    alarm(20);
    assert_true(key_within(s, many));
    s[many - 1] = 'x';
    assert_false(key_within(s, many));
    alarm(0);
    free(s);
    assert_false(key_within("sk-a/b\"c-Z1", 11));
    assert_true(key_within("another-key", 11));
}

static void test_header(void **state) {
    (void)state;
    struct llm_config c = {.api = LLM_CHAT, .key_env = "OWN_KEY"};
    setenv("OWN_KEY", "abc", 1);
    setenv("ANTHROPIC_AUTH_TOKEN", "token", 1);
    key_take("OWN_KEY");
    char *header = key_header(llm_wire(c.api), c.key_env);
    assert_string_equal(header, "authorization: Bearer abc");
    free(header);
    c.api = LLM_ANTHROPIC;
    header = key_header(llm_wire(c.api), c.key_env);
    assert_string_equal(header, "x-api-key: abc");
    free(header);
    strcpy(c.key_env, "ANTHROPIC_AUTH_TOKEN");
    header = key_header(llm_wire(c.api), c.key_env);
    assert_string_equal(header, "authorization: Bearer token");
    free(header);
    strcpy(c.key_env, "NEVER_SET");
    assert_null(key_header(llm_wire(c.api), c.key_env));
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_should_retry), cmocka_unit_test(test_key),
        cmocka_unit_test(test_header),       cmocka_unit_test(test_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
