/* test_price.c: which price applies to a model, and the shipped list. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "llm/wire.h"
#include "base/json.h"

#define PRICES "prices.json"

static char folder[] = "/tmp/kernelproof-XXXXXX", shipped[4096];

static int enter(void **state) {
    (void)state;
    if (!realpath("harness/llm/prices.json", shipped)) return -1;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    unlink(PRICES);
    return chdir("/") || rmdir(folder);
}

static void near(double x, double y) {
    if (!(fabs(x - y) <= 1e-9 * (1 + fabs(y)))) fail_msg("%.12g is not %.12g", x, y);
}

static struct price find_on(const char *path, const char *model, const char *host) {
    struct llm_config c = {.api = LLM_CHAT};
    snprintf(c.model, sizeof c.model, "%s", model);
    snprintf(c.host, sizeof c.host, "%s", host);
    return price_find(path, &c);
}

static struct price find(const char *model) {
    return find_on(PRICES, model, "api.example.com");
}

static void list(const char *models) {
    char *text =
        text_format("{\"schema\":1,\"unit\":1000000,\"currency\":\"USD\",\"models\":[%s]}", models);
    file_replace(PRICES, text);
    free(text);
}

static const char three[] =
    "{\"model\":\"gpt-5\",\"input\":1,\"cached\":0.1,\"output\":10,\"valid_from\":\"2020-01-01\"},"
    "{\"model\":\"gpt-5\",\"input\":2,\"cached\":0.2,\"output\":20,\"valid_from\":\"2021-01-01\"},"
    "{\"model\":\"gpt-5\",\"input\":9,\"cached\":0.9,\"output\":90,\"valid_from\":\"2999-01-01\"},"
    "{\"model\":\"gpt-5\",\"input\":1.5,\"cached\":0.1,\"output\":15,\"valid_from\":\"2020-06-01\"}"
    ","
    "{\"model\":\"gpt-5-mini\",\"input\":0.5,\"cached\":null,\"output\":2,\"valid_from\":\"2020-01-"
    "01\"},"
    "{\"model\":\"later\",\"input\":1,\"output\":1,\"valid_from\":\"2999-01-01\"},"
    "{\"model\":\"claude\",\"input\":3,\"cached\":0.3,\"cache_write\":3.75,\"cache_write_1h\":6,"
    "\"output\":15,"
    "\"up_to\":200000,\"valid_from\":\"2020-01-01\"}";

static void test_prices(void **state) {
    (void)state;
    list(three);
    struct price p = find("gpt-5");
    assert_true(p.known);
    near(p.input, 2); /* the newest that is valid today */
    near(p.cached, 0.2);
    near(p.cache_write, 2); /* not listed: as input */
    assert_string_equal(p.valid_from, "2021-01-01");
    assert_string_equal(p.model, "gpt-5");
    static const char *const same[] = {"gpt-5-2025-08-07", "gpt-5-20250807", "gpt-5@20250807",
                                       "gpt-5:latest",     "gpt-5-latest",   "gpt-5-0807"};
    for (size_t i = 0; i < 6; i++) near(find(same[i]).output, 20);
    static const char *const other[] = {"gpt-5-pro",
                                        "gpt-5.4",
                                        "gpt-50",
                                        "gpt",
                                        "gpt-5-",
                                        "gpt-5-1",
                                        "gpt-5-2025-13-07",
                                        "gpt-5-9999",
                                        "gpt-5-2025-08-07-x",
                                        "GPT-5",
                                        "later",
                                        "openai/gpt-5",
                                        ""};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (find(other[i]).known) fail_msg("%s has a price", other[i]);
    near(find("gpt-5-mini").input, 0.5);
    near(find("gpt-5-mini-2025-08-07").output, 2);
    near(find("gpt-5-mini").cached, 0.5);
    near(find("claude").cache_write_1h, 6);
    near(find("claude").up_to, 200000);
}

/* A server on loopback is free, unless a cap in money is set and the name has a price. */
static void test_loopback(void **state) {
    (void)state;
    list(three);
    const struct llm_config priced = {.model = "gpt-5", .host = "127.0.0.1", .loopback = true},
                            routed = {.model = "openai/gpt-5",
                                      .host = "127.0.0.1",
                                      .loopback = true},
                            local = {.model = "own", .host = "127.0.0.1", .loopback = true};
    static const char *const caps[] = {"BUDGET_USD", "TASK_USD"};
    struct price p = price_find(PRICES, &priced);
    assert_true(p.known && p.input == 0 && p.output == 0);
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        setenv(caps[i], "1", 1);
        near(price_find(PRICES, &priced).output, find("gpt-5").output);
        near(price_find(PRICES, &routed).output, find("gpt-5").output);
        p = price_find(PRICES, &local);
        assert_true(p.known && p.input == 0 && p.output == 0);
        unsetenv(caps[i]);
    }
    assert_false(find_on(PRICES, "own", "localhost.example.com").known);
}

static void look_up(void) {
    find("gpt-5");
}

static void test_malformed(void **state) {
    (void)state;
    unlink(PRICES);
    ends(look_up, KP_IO, "prices.json: cannot read");
    file_replace(PRICES, "{\"schema\":1,\"unit\":1000,\"currency\":\"USD\",\"models\":[]}");
    ends(look_up, KP_INPUT, "not a list of prices in USD for a million tokens");
    file_replace(PRICES, "{\"schema\":1,\"unit\":1000000,\"currency\":\"EUR\",\"models\":[]}");
    ends(look_up, KP_INPUT, "not a list of prices");
    file_replace(PRICES, "{\"schema\":1,\"unit\":1000000,\"currency\":\"USD\"}");
    ends(look_up, KP_INPUT, "not a list of prices");
    list("{\"model\":\"gpt-5\",\"input\":\"1\",\"output\":10,\"valid_from\":\"2020-01-01\"}");
    ends(look_up, KP_INPUT, "gpt-5: \"input\" is not a price");
    list("{\"model\":\"gpt-5\",\"input\":1,\"valid_from\":\"2020-01-01\"}");
    ends(look_up, KP_INPUT, "gpt-5: \"output\" is not a price");
    list("{\"model\":\"gpt-5\",\"input\":1,\"cached\":-1,\"output\":1,\"valid_from\":\"2020-01-"
         "01\"}");
    ends(look_up, KP_INPUT, "\"cached\" is not a price");
    list("{\"model\":\"other\",\"input\":1,\"output\":1,\"valid_from\":\"20200101\"}");
    ends(look_up, KP_INPUT, "no date in \"valid_from\"");
}

static void test_cost(void **state) {
    (void)state;
    list(three);
    const struct price none = {.model = "mystery"};
    struct price p = find("claude");
    struct llm_usage u = {.known = true,
                          .input = 1000,
                          .cached = 100,
                          .cache_write = 200,
                          .cache_write_1h = 300,
                          .output = 50,
                          .cost = NAN};
    near(price_cost(&p, &u), (400 * 3 + 100 * 0.3 + 200 * 3.75 + 300 * 6 + 50 * 15) / 1e6);
    u.cached = 2000; /* more than all of input: the cost does not become negative */
    near(price_cost(&p, &u), (2000 * 0.3 + 200 * 3.75 + 300 * 6 + 50 * 15) / 1e6);
    u.input = 200001;
    assert_true(isnan(price_cost(&p, &u)));
    u.cost = 0.125;
    near(price_cost(&p, &u), 0.125);
    near(price_cost(&none, &u), 0.125);
    u.cost = -1; /* a server must not state this */
    assert_true(isnan(price_cost(&none, &u)));
    u = (struct llm_usage){.cost = NAN};
    assert_true(isnan(price_cost(&p, &u)));
}

/* The shipped list: every entry is found under its own name and names its source. */
static void test_shipped(void **state) {
    (void)state;
    cJSON *json = json_read(shipped);
    const cJSON *entry;
    int n = 0;
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(json, "models")) {
        const char *model = json_text(entry, "model", "");
        struct price p = find_on(shipped, model, "api.example.com");
        double input = json_number(entry, "input", NAN), output = json_number(entry, "output", NAN);
        if (!p.known || !(input > 0 && output > input)) fail_msg("%s has no sound price", model);
        if (p.cached > p.input || p.cache_write < p.input || p.cache_write_1h < p.cache_write)
            fail_msg("%s: odd price of caches", model);
        if (!*json_text(entry, "source", "") || !*json_text(entry, "provider", ""))
            fail_msg("%s has no source", model);
        n++;
    }
    cJSON_Delete(json);
    assert_true(n > 0);
    near(find_on(shipped, "claude-opus-4-20250514", "api.anthropic.com").output, 75);
    near(find_on(shipped, "claude-opus-4-5-20251101", "api.anthropic.com").output, 25);
    assert_false(find_on(shipped, "no-such-model", "api.anthropic.com").known);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prices),
                                       cmocka_unit_test(test_loopback),
                                       cmocka_unit_test(test_malformed),
                                       cmocka_unit_test(test_cost), cmocka_unit_test(test_shipped)};
    return cmocka_run_group_tests(tests, enter, leave);
}
