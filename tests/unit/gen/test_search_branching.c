/* test_search_branching.c: the question of the next attempt: branching, and ideas in answers. */
#include "search_list.h"

/* ---- Branching -------------------------------------------------------------------- */

/* Add a round's call for ideas. */
static void add_ideas(const char *name, const char *json) {
    cJSON *ideas = cJSON_Parse(json);
    assert_non_null(ideas);
    cJSON_AddItemToObject(add(name, "ideas", "ideas")->gen, "ideas", ideas);
}

static void test_branching_ideas(void **state) {
    (void)state;
    struct prompt_turn t = turn_of("branching", 1, 0);
    asks(&t, "ideas", "");
    assert_int_equal(t.ideas_wanted, options.ideas);
    assert_int_equal(t.of, 1);
    assert_null(t.ledger);
    add_ideas("branching.r1a0", "[\"tiles\", \"vectors\", \"streams\", \"more than asked\"]");
    add_ok("branching.r1a1", "implement", 1.5)->idea = 0;
    add_bad("branching.r1a2", "implement", "gate")->idea = 1;
    add_ok("branching.r1a4", "implement", 1.8)->idea = 0;
    add_bad("branching.r1a5", "implement", "wrong")->idea = 1;
    add_ideas("branching.r2a0", "[\"half\"]");
    add_ok("branching.r2a1", "implement", 1.6)->idea = 0;
    t = turn_of("branching", 2, 0);
    asks(&t, "ideas", "branching.r1a4"); /* the best; no kernel of another idea worked */
    assert_string_equal(t.ledger, "- round 1: tiles\n  worked, 1.800x (1.782 to 1.818), fp32\n"
                                  "- round 1: vectors\n  failed: wrong: reason of branching.r1a5\n"
                                  "- round 1: streams\n  untried\n"
                                  "- round 1: more than asked\n  untried\n");
    t = turn_of("branching", 3, 0); /* slowest first; one of each idea */
    asks(&t, "ideas", "branching.r2a1 branching.r1a4");
    assert_non_null(strstr(t.ledger, "- round 2: half\n  worked, 1.600x"));
    add_ok("branching.r2a3", "optimise", 1.7); /* without an idea: counts by itself */
    add_ok("branching.r2a4", "optimise", 1.4);
    t = turn_of("branching", 3, 0);
    asks(&t, "ideas", "branching.r2a1 branching.r2a3 branching.r1a4");
    strcpy(list[6].class, "bf16"); /* faster, but less accurate than the rest */
    list[6].ratio = list[6].low = list[6].high = 9;
    t = turn_of("branching", 3, 0);
    asks(&t, "ideas", "branching.r2a4 branching.r2a3 branching.r1a4");
}

static void test_branching_implement(void **state) {
    (void)state;
    struct prompt_turn t;
    options.ideas = 3;
    add_ideas("branching.r1a0", "[\"tiles\", \"vectors\"]");
    t = turn_of("branching", 1, 2);
    asks(&t, "implement", "");
    assert_string_equal(t.idea, "vectors");
    assert_int_equal(t.idea_index, 1);
    t = turn_of("branching", 1, 3);
    assert_string_equal(t.idea, "tiles");
    assert_int_equal(t.idea_index, 0);
    add_ok("branching.r1a1", "implement", 1.2)->idea = 0;
    add_ok("branching.r1a2", "implement", 1.9)->idea = 1;
    add_ok("branching.r1a4", "implement", 1.8)->idea = 1;
    add_ideas("branching.r2a0", "[\"a\", \"b\", \"c\", \"d\"]");
    add_ok("branching.r2a1", "implement", 5); /* of the same round: must not count */
    for (int i = 1; i <= 12; i++) {
        static const char *const idea[] = {"a", "b", "c"};
        t = turn_of("branching", 2, i); /* three ideas were requested; the seed alternates */
        asks(&t, "implement", (i - 1) / 3 % 2 == 0 ? "branching.r1a2" : "branching.r1a1");
        assert_string_equal(t.idea, idea[(i - 1) % 3]);
        assert_int_equal(t.idea_index, (i - 1) % 3);
    }
    /* Without ideas: continue from the best, or start anew. */
    strcpy(list[4].name, "branching.r3a0"), list[4].round = 3;
    t = turn_of("branching", 2, 1);
    asks(&t, "optimise", "branching.r1a2");
    assert_true(!t.idea && t.idea_index == -1);
    cJSON_ReplaceItemInObject(list[0].gen, "ideas", cJSON_CreateArray());
    t = turn_of("branching", 1, 1);
    asks(&t, "one_shot", "");
}

/* ---- Attempts of other modes ------------------------------------------------------ */

/* A kernel that another mode found first is not measured again: that measurement counts. */
static void test_other_mode(void **state) {
    (void)state;
    char root[] = "/tmp/kernelproof-XXXXXX", *text;
    assert_non_null(mkdtemp(root));
    cell.root = root;
    char *folder = text_format("%s/one_shot.r1a4/h200", root);
    *strrchr(folder, '/') = 0, mkdir(folder, 0700);
    folder[strlen(folder)] = '/', mkdir(folder, 0700);
    text = text_format("%s/l1_019_relu.gen.json", folder);
    file_replace(text,
                 "{\"schema\": 1, \"attempt\": \"one_shot.r1a4\", \"gpu\": \"h200\", \"task\": "
                 "\"l1_019_relu\", \"outcome\": \"code\", \"code_sha256\": \"abc\"}");
    strcpy(add("contrastive.r1a1", "one_shot", "duplicate")->same_as, "one_shot.r1a4");
    struct prompt_turn t = turn_of("contrastive", 2, 1);
    asks(&t, "one_shot", ""); /* not measured yet */
    free(text);
    text = text_format("%s/l1_019_relu.time.json", folder);
    file_replace(text,
                 "{\"schema\": 1, \"gpu\": \"h200\", \"task\": \"l1_019_relu\", \"verdict\": "
                 "\"ok\", \"class\": \"fp32\", \"speedup\": {\"against\": \"fp32\", \"ratio\": 2, "
                 "\"low\": 1.9, \"high\": 2.1}, \"time_us\": {\"candidate\": {\"midmean\": 5}}}");
    t = turn_of("contrastive", 2, 1);
    asks(&t, "contrastive", "one_shot.r1a4");
    free(text);
    text = text_format("rm -r %s", root);
    assert_int_equal(system(text), 0);
    free(text);
    free(folder);
}

/* ---- Ideas in an answer ----------------------------------------------------------- */

/* Expect these ideas, joined by '|'. */
static void finds(const char *answer, const char *ideas) {
    cJSON *found = search_ideas(answer), *idea;
    char text[2000] = "";
    assert_true(cJSON_IsArray(found));
    cJSON_ArrayForEach(idea, found) {
        assert_true(cJSON_IsString(idea));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "|" : "",
                 idea->valuestring);
    }
    assert_string_equal(text, ideas);
    cJSON_Delete(found);
}

static void test_ideas(void **state) {
    (void)state;
    finds("", "");
    finds("I have none.", "");
    finds(
        "[{\"idea\": \"tiles\", \"why\": \"reuse\", \"gain\": 2}, {\"idea\": \" wide\\n loads \"}]",
        "tiles|wide loads");
    finds("Use a[0] and b[i]:\n```json\n[{\"idea\": \"x [y]\"}, {\"why\": \"none\"}, 3]\n```\nDone "
          "[1].",
          "x [y]");
    finds("{\"ideas\": [{\"idea\": \"in an object\"}]}", "in an object");
    finds("[\"a\", \"b\"]", "a|b");
    finds("[{\"idea\": \"real\"}]\nRanked: [\"fast\", \"safe\"]",
          "real"); /* objects were requested */
    finds("A draft:\n[{\"idea\": \"draft\"}]\nFinal:\n[{\"idea\": \"final\"}]", "final");
    finds("[{\"idea\": \"\"}, {\"idea\": \"  \"}]", "");
    finds("[{\"idea\": \"never closed\"}", "");
    finds("1. a list\n2. in words\n", ""); /* JSON is asked for */
}

static void test_ideas_large(void **state) {
    (void)state;
    /* At most 32 ideas, at most 1500 bytes each, no partial character. */
    cJSON *array = cJSON_CreateArray();
    char longest[4001];
    for (int i = 0; i < 2000; i++) memcpy(longest + 2 * i, "\xc3\xa9", 2);
    longest[0] = 'x', longest[1] = 'x', longest[2] = 'x', longest[3] = ' ', longest[4000] = 0;
    memmove(longest + 3, longest + 4, 3997); /* now every character starts at an odd offset */
    for (int i = 0; i < 100; i++) cJSON_AddItemToArray(array, cJSON_CreateString(longest));
    char *answer = cJSON_PrintUnformatted(array);
    cJSON *found = search_ideas(answer);
    assert_int_equal(cJSON_GetArraySize(found), 32);
    const char *text = cJSON_GetArrayItem(found, 0)->valuestring;
    assert_int_equal(strlen(text), 1499);
    assert_memory_equal(text + 1497, "\xc3\xa9", 3);
    cJSON_Delete(found);
    cJSON_Delete(array);
    free(answer);
    /* Brackets alone take little time. */
    size_t n = 1 << 20;
    answer = malloc(n + 1);
    assert_non_null(answer);
    for (size_t i = 0; i < n; i++) answer[i] = "[\"\","[i % 4];
    answer[n] = 0;
    alarm(20);
    finds(answer, "");
    memset(answer, '[', n);
    finds(answer, "");
    alarm(0);
    free(answer);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_branching_ideas, begin, end),
        cmocka_unit_test_setup_teardown(test_branching_implement, begin, end),
        cmocka_unit_test_setup_teardown(test_other_mode, begin, end),
        cmocka_unit_test(test_ideas),
        cmocka_unit_test(test_ideas_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
