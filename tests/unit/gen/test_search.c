/* test_search.c: the question of the next attempt: options, the plain modes, repair,
 * contrastive. */
#include "ends.h"
#include "search_list.h"

static struct attempt present;

/* ---- Options, and the plain modes ------------------------------------------------- */

static void read_options(void) {
    struct search_options o;
    search_options_read(&o);
}

static void test_options(void **state) {
    (void)state;
    assert_false(options.seed_kernel);
    assert_int_equal(options.turns, 3);
    assert_true(options.tau == 0.5);
    assert_string_equal(options.seed, "0");
    setenv("WIDTH", "12", 1), setenv("TAU", "0.25", 1), setenv("IDEAS", "", 1);
    setenv("SEARCH_SEED", "seven", 1);
    int ideas = options.ideas;
    search_options_read(&options);
    assert_int_equal(options.width, 12);
    assert_int_equal(options.ideas, ideas);
    assert_true(options.tau == 0.25);
    assert_string_equal(options.seed, "seven");
    static const char *const bad[][2] = {
        {"WIDTH", "0"},     {"WIDTH", "-1"}, {"WIDTH", "1.5"},     {"SEED_KERNEL", "many"},
        {"TURNS", "3x"},    {"TAU", "0"},    {"TAU", "nan"},       {"TAU", "1e999"},
        {"BUCKETS", "1e9"}, {"IDEAS", "33"}, {"SEED_KERNEL", "2"}, {"BUCKETS", "-0.5"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(NULL);
        setenv(bad[i][0], bad[i][1], 1);
        ends(read_options, KP_USAGE, bad[i][0]);
    }
}

static void ask_evolve(void) {
    turn_of("evolve", 1, 1);
}

static void ask_ideas_of_repair(void) {
    turn_of("repair", 1, 0);
}

static void ask_round_0(void) {
    turn_of("branching", 0, 1);
}

static void test_plain(void **state) {
    (void)state;
    cell.kernel = "int present;";
    cell.current = &present;
    present = *add_ok("one_shot.r1a1", "one_shot", 2);
    add_bad("best_of_n.r1a1", "one_shot", "wrong");
    options.width = 4;
    struct prompt_turn t = turn_of("one_shot", 1, 3);
    asks(&t, "one_shot", "");
    assert_int_equal(t.number, 3);
    assert_int_equal(t.of, 4);
    assert_true(!t.failed && !t.idea && !t.ledger && t.idea_index == -1);
    t = turn_of("one_shot", 1, 9); /* one more than planned */
    assert_int_equal(t.of, 9);
    t = turn_of("best_of_n", 1, 7); /* an independent draw, which knows of no other */
    asks(&t, "one_shot", "");
    assert_int_equal(t.number, 1);
    assert_int_equal(t.of, 1);
    options.seed_kernel = true; /* it sees what the others see */
    t = turn_of("best_of_n", 1, 7);
    asks(&t, "optimise", "one_shot.r1a1");
    assert_int_equal(t.of, 1);
    t = turn_of("one_shot", 1, 7);
    asks(&t, "one_shot", "");
    strcpy(present.verdict, "wrong");
    t = turn_of("best_of_n", 1, 7);
    asks(&t, "one_shot", "");
    ends(ask_evolve, KP_USAGE, "evolve.r1a1 is no attempt");
    ends(ask_ideas_of_repair, KP_USAGE, "repair.r1a0 is no attempt");
    ends(ask_round_0, KP_USAGE, "branching.r0a1 is no attempt");
}

/* ---- Repair ----------------------------------------------------------------------- */

static void test_repair(void **state) {
    (void)state;
    struct prompt_turn t = turn_of("repair", 1, 1);
    asks(&t, "one_shot", "");
    assert_null(t.ledger);
    add_bad("repair.r1a1", "one_shot", "build");
    add_ok("repair.r1a2", "one_shot", 1.2);
    t = turn_of("repair", 2, 1);
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r1a1");
    assert_non_null(strstr(t.ledger, "- repair.r1a1 (one_shot): build: reason of repair.r1a1\n"));
    assert_null(strstr(t.ledger, "repair.r1a2")); /* another chain */
    assert_null(strstr(t.ledger, "analysis"));
    /* What an answer said of its idea is part of the history, on one line. */
    cJSON_AddStringToObject(list[0].gen, "analysis", "bound by\nmemory, so tiles of 64");
    t = turn_of("repair", 2, 1);
    assert_non_null(strstr(
        t.ledger, "reason of repair.r1a1\n  its analysis: bound by memory, so tiles of 64\n"));
    t = turn_of("repair", 2, 2);
    asks(&t, "optimise", "repair.r1a2");
    assert_null(t.failed);
    /* The chain's best is improved, not its last. */
    add_ok("repair.r2a2", "optimise", 1.9);
    add_ok("repair.r3a2", "optimise", 1.4);
    t = turn_of("repair", 4, 2);
    asks(&t, "optimise", "repair.r2a2");
    assert_non_null(
        strstr(t.ledger, "- repair.r3a2 (optimise): ok, 1.400x (1.386 to 1.414), fp32\n"));
    /* Later rounds do not matter. */
    t = turn_of("repair", 2, 2);
    asks(&t, "optimise", "repair.r1a2");
}

static void test_repair_gives_up(void **state) {
    (void)state;
    struct prompt_turn t;
    add_bad("repair.r1a1", "one_shot", "build");
    add_bad("repair.r2a1", "repair", "gate");
    t = turn_of("repair", 3, 1);
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r2a1");
    add_bad("repair.r3a1", "repair", "wrong");
    t = turn_of("repair", 4, 1); /* three consecutive failures, and nothing ever worked */
    asks(&t, "one_shot", "");
    assert_non_null(strstr(t.ledger, "repair.r1a1"));
    add_ok("repair.r1a2", "one_shot", 1.1);
    add_ok("repair.r3a3", "one_shot", 1.3);
    add_ok("repair.r4a3", "optimise", 1.6);
    t = turn_of("repair", 4, 1); /* the best of the mode, from earlier rounds */
    asks(&t, "optimise", "repair.r3a3");
    add_ok("repair.r4a1", "optimise", 0.8);
    add_bad("repair.r5a1", "optimise", "crash");
    t = turn_of("repair", 6, 1); /* a new line: repair first */
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r5a1");
    add_bad("repair.r6a1", "repair", "crash");
    add_bad("repair.r7a1", "repair", "timeout");
    t = turn_of("repair", 8, 1); /* the chain's own best before the mode's */
    asks(&t, "optimise", "repair.r4a1");
    add_bad("repair.r8a1", "optimise", "wrong");
    t = turn_of("repair", 9, 1); /* the new line has one failure */
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r8a1");
    add_ok("repair.r1a9", "one_shot", 1.1);
    add_bad("repair.r2a9", "repair", "wrong"); /* a working kernel ends the line of failures */
    options.turns = 2;
    t = turn_of("repair", 3, 9);
    asks(&t, "repair", "");
    options.turns = 1;
    t = turn_of("repair", 9, 1);
    asks(&t, "optimise", "repair.r4a1");
}

static void test_repair_without_code(void **state) {
    (void)state;
    struct prompt_turn t;
    strcpy(add("repair.r1a1", "one_shot", "cut")->reason, "at the token cap");
    t = turn_of("repair", 2, 1);
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r1a1");
    assert_non_null(strstr(t.ledger, "cut: at the token cap"));
    add_bad("repair.r2a1", "repair", "wrong");
    add("repair.r3a1", "repair", "empty");
    options.turns = 9;
    t = turn_of("repair", 4, 1); /* the code that still needs repair */
    assert_string_equal(t.failed->name, "repair.r2a1");
    assert_non_null(strstr(t.ledger, "(repair): empty"));
    add("repair.r4a1", "repair", "code"); /* not measured yet: ignored */
    t = turn_of("repair", 5, 1);
    assert_string_equal(t.failed->name, "repair.r2a1");
}

static void test_repair_duplicate(void **state) {
    (void)state;
    struct prompt_turn t;
    add_ok("repair.r1a2", "one_shot", 1.7);
    add_bad("repair.r1a3", "one_shot", "wrong");
    strcpy(add("repair.r1a1", "one_shot", "duplicate")->same_as, "repair.r1a2");
    t = turn_of("repair", 2, 1);
    asks(&t, "optimise", "repair.r1a2");
    assert_non_null(strstr(t.ledger, "the same kernel as repair.r1a2: ok, 1.700x"));
    strcpy(list[2].same_as, "repair.r1a3");
    t = turn_of("repair", 2, 1);
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r1a3");
    strcpy(list[2].same_as, "repair.r7a7"); /* unknown here: nothing to repair */
    t = turn_of("repair", 2, 1);
    asks(&t, "optimise", "repair.r1a2");
}

/* ---- Contrastive ------------------------------------------------------------------ */

static void test_contrastive_few(void **state) {
    (void)state;
    struct prompt_turn t = turn_of("contrastive", 1, 1);
    asks(&t, "one_shot", "");
    assert_null(t.ledger);
    add_bad("contrastive.r1a1", "one_shot", "wrong");
    add("contrastive.r1a2", "one_shot", "refused");
    t = turn_of("contrastive", 2, 1);
    asks(&t, "one_shot", "");
    assert_non_null(strstr(t.ledger, "contrastive.r1a1 (one_shot): wrong: reason"));
    assert_non_null(strstr(t.ledger, "contrastive.r1a2 (one_shot): refused\n"));
    add_ok("contrastive.r1a3", "one_shot", 0.7);
    t = turn_of("contrastive", 2, 1);
    asks(&t, "contrastive", "contrastive.r1a3");
    assert_null(t.ledger);
    add_ok("contrastive.r1a4", "one_shot", 0.7); /* equally fast: one bucket, one exemplar */
    t = turn_of("contrastive", 2, 1);
    assert_int_equal(t.nshown, 1);
    add_ok("contrastive.r1a5", "one_shot", 1.4);
    t = turn_of("contrastive", 2, 1);
    assert_int_equal(t.nshown, 2);
    assert_string_equal(t.shown[1]->name, "contrastive.r1a5"); /* slowest first */
    t = turn_of("contrastive", 1, 1);                          /* they are of this round */
    asks(&t, "one_shot", "");
    options.buckets = 1;
    t = turn_of("contrastive", 2, 1);
    assert_int_equal(t.nshown, 1);
}

static void test_contrastive_current(void **state) {
    (void)state;
    struct prompt_turn t;
    const char *kernel = "int present; // as it is\n";
    present = (struct attempt){.name = "current",
                               .verdict = "ok",
                               .class = "fp32",
                               .idea = -1,
                               .ratio = 3,
                               .low = 2.9,
                               .high = 3.1};
    cell.current = &present;
    cell.kernel = kernel;
    t = turn_of("contrastive", 1, 1);
    asks(&t, "contrastive", "current");
    add_ok("contrastive.r1a1", "contrastive", 1.5);
    t = turn_of("contrastive", 2, 1);
    asks(&t, "contrastive", "contrastive.r1a1 current");
    /* The same code is never shown twice, whatever its measurements. */
    char *normal = code_normal(kernel);
    text_sha256(normal, strlen(normal), list[0].code_hash);
    free(normal);
    t = turn_of("contrastive", 2, 1);
    asks(&t, "contrastive", "contrastive.r1a1");
    strcpy(present.verdict, "wrong");
    list[0].code_hash[0] ^= 1;
    t = turn_of("contrastive", 2, 1);
    asks(&t, "contrastive", "contrastive.r1a1");
}

/* Five buckets, the highest with two members.  The pairs are as frequent as two draws without
 * replacement with probabilities proportional to exp((mean - mean of all) / tau). */
static void test_contrastive_draw(void **state) {
    (void)state;
    enum { N = 10000, B = 5 };
    static const double speed[B] = {0.25, 0.5, 1, 2, 4};
    double mean[B], all = 0, weight[B], total = 0;
    int pair[B][B] = {{0}}, twin = 0, top = 0;
    char name[64];
    for (int b = 0; b < B; b++) {
        snprintf(name, sizeof name, "contrastive.r1a%d", b + 1);
        add_ok(name, "one_shot", speed[b]);
        mean[b] = log2(speed[b]);
    }
    add_ok("contrastive.r1a6", "one_shot", 3.5); /* in the same bucket as 4 */
    mean[B - 1] = (log2(4) + log2(3.5)) / 2;
    for (int b = 0; b < B; b++) all += mean[b] / B;
    options.tau = 1.3;
    for (int b = 0; b < B; b++) total += weight[b] = exp((mean[b] - all) / options.tau);
    for (int i = 0; i < N; i++) {
        char seed[16];
        snprintf(seed, sizeof seed, "%d", i);
        options.seed = seed;
        struct prompt_turn t = turn_of("contrastive", 2, 1);
        assert_int_equal(t.nshown, 2);
        assert_true(t.shown[0]->ratio < t.shown[1]->ratio);
        int low = t.shown[0]->index - 1, high = t.shown[1]->index - 1;
        if (high >= B - 1) top++, twin += high == B, high = B - 1;
        assert_true(low < high && high < B);
        pair[low][high]++;
    }
    for (int i = 0; i < B; i++)
        for (int j = i + 1; j < B; j++) {
            double p = weight[i] / total, q = weight[j] / total;
            double both = p * q / (1 - p) + q * p / (1 - q);
            double sigma = sqrt(N * both * (1 - both));
            if (fabs(pair[i][j] - N * both) > 4 * sigma)
                fail_msg("buckets %d and %d: %d times, expected %.0f +- %.0f", i, j, pair[i][j],
                         N * both, sigma);
        }
    assert_true(fabs(twin - 0.5 * top) < 4 * sqrt(0.25 * top)); /* uniform within a bucket */
}

/* The draw of the first bucket, which the order of display hides: with tau so small that the
 * fastest always wins, and so large that all are equally likely. */
static void test_contrastive_tau(void **state) {
    (void)state;
    int fastest[2] = {0, 0};
    add_ok("contrastive.r1a1", "one_shot", 1e-6);
    add_ok("contrastive.r1a2", "one_shot", 1);
    add_ok("contrastive.r1a3", "one_shot", 1e6);
    for (int k = 0; k < 2; k++) {
        options.tau = k ? 1e6 : 1e-6; /* and no weight overflows */
        for (int i = 1; i <= 3000; i++)
            fastest[k] += turn_of("contrastive", 2, i).shown[1]->index == 3;
    }
    assert_int_equal(fastest[0], 3000);
    assert_true(fabs(fastest[1] - 2000.0) < 4 * sqrt(3000 * 2 / 9.0));
}

/* The same tree gives the same answer, whatever is added later. */
static void test_pure(void **state) {
    (void)state;
    char name[64];
    for (int i = 1; i <= 30; i++) {
        snprintf(name, sizeof name, "contrastive.r%da%d", 1 + i / 11, i);
        add_ok(name, "one_shot", 0.5 + 0.1 * i);
    }
    struct prompt_turn a = turn_of("contrastive", 2, 5), b = turn_of("contrastive", 2, 5);
    struct prompt_turn other = turn_of("contrastive", 3, 5);
    int differ = 0;
    assert_ptr_equal(a.shown[0], b.shown[0]);
    assert_ptr_equal(a.shown[1], b.shown[1]);
    past.n = 10; /* only round 1 */
    b = turn_of("contrastive", 2, 5);
    assert_ptr_equal(a.shown[0], b.shown[0]);
    assert_ptr_equal(a.shown[1], b.shown[1]);
    past.n = 30;
    for (int i = 1; i <= 20; i++) differ += turn_of("contrastive", 3, i).shown[0] != other.shown[0];
    assert_true(differ > 0);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_options, begin, end),
        cmocka_unit_test_setup_teardown(test_plain, begin, end),
        cmocka_unit_test_setup_teardown(test_repair, begin, end),
        cmocka_unit_test_setup_teardown(test_repair_gives_up, begin, end),
        cmocka_unit_test_setup_teardown(test_repair_without_code, begin, end),
        cmocka_unit_test_setup_teardown(test_repair_duplicate, begin, end),
        cmocka_unit_test_setup_teardown(test_contrastive_few, begin, end),
        cmocka_unit_test_setup_teardown(test_contrastive_current, begin, end),
        cmocka_unit_test_setup_teardown(test_contrastive_draw, begin, end),
        cmocka_unit_test_setup_teardown(test_contrastive_tau, begin, end),
        cmocka_unit_test_setup_teardown(test_pure, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
