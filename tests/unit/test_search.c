/* What the next attempt is asked: each mode, given made-up attempts. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../harness/error.h"
#include "../../harness/gen/code.h"
#include "../../harness/gen/search.h"
#include "../../harness/hash.h"
#include "../../harness/json.h"

/* ---- Made-up attempts ------------------------------------------------------------- */

enum { MOST = 200 };
static struct attempt list[MOST];
static struct attempts past;
static struct attempt present;
static struct kp_task task = {.name = "l1_019_relu"};
static struct prompt_cell cell;
static struct search_options options;

static int begin(void **state) {
    (void)state;
    static const char *const names[] = {"WIDTH",   "ROUNDS", "TURNS",      "TAU",
                                        "BUCKETS", "IDEAS",  "SEARCH_SEED"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    past = (struct attempts){0, list};
    cell = (struct prompt_cell){.task = &task, .gpu = "h200", .arch = "90", .root = "/nowhere"};
    search_options_read(&options);
    return 0;
}

static int end(void **state) {
    (void)state;
    for (int i = 0; i < past.n; i++) cJSON_Delete(list[i].gen);
    return 0;
}

/* Add an attempt; `ask` is what it was asked. */
static struct attempt *add(const char *name, const char *ask, const char *outcome) {
    struct attempt *a = &list[past.n++];
    assert_true(past.n <= MOST);
    *a = (struct attempt){.idea = -1, .cost = NAN};
    assert_true(attempt_parse(name, a->mode, &a->round, &a->index));
    strcpy(a->name, name);
    strcpy(a->outcome, outcome);
    a->gen = cJSON_CreateObject();
    cJSON_AddStringToObject(a->gen, "ask", ask);
    if (!strcmp(outcome, "code")) strcpy(a->code_hash, name); /* no two alike */
    if (!strcmp(outcome, "duplicate")) strcpy(a->verdict, "duplicate");
    return a;
}

static struct attempt *add_ok(const char *name, const char *ask, double ratio) {
    struct attempt *a = add(name, ask, "code");
    strcpy(a->verdict, "ok");
    strcpy(a->class, "fp32");
    a->ratio = ratio, a->low = 0.99 * ratio, a->high = 1.01 * ratio;
    return a;
}

static struct attempt *add_bad(const char *name, const char *ask, const char *verdict) {
    struct attempt *a = add(name, ask, "code");
    strcpy(a->verdict, verdict);
    snprintf(a->reason, sizeof a->reason, "reason of %s", name);
    return a;
}

static struct prompt_turn turn_of(const char *mode, int round, int index) {
    struct prompt_turn t;
    memset(&t, 0x55, sizeof t); /* all of it is to be filled in */
    search_turn(&options, mode, round, index, &past, &cell, &t);
    char *name = text_format("%s.r%da%d", mode, round, index);
    assert_string_equal(t.attempt, name);
    free(name);
    return t;
}

/* The turn asks `ask` and shows these, in order: "a b c". */
static void asks(const struct prompt_turn *t, const char *ask, const char *shown) {
    char found[600] = "";
    for (int i = 0; i < t->nshown; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                 t->shown[i]->name);
    assert_string_equal(t->ask, ask);
    assert_string_equal(found, shown);
}

/* Run `what` in a process of its own; it should end with this code, and say these words in one
 * line. */
static void ends(void (*what)(void), int code, const char *words) {
    int ends[2], status;
    char line[1024] = "";
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        what();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t k; n < sizeof line - 1 && (k = read(ends[0], line + n, sizeof line - 1 - n)) > 0;)
        n += (size_t)k;
    close(ends[0]);
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != code) fail_msg("exit %d: %s", WEXITSTATUS(status), line);
    if (!strstr(line, words)) fail_msg("'%s' is not in '%s'", words, line);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

/* ---- Options, and the plain modes ------------------------------------------------- */

static void read_options(void) {
    struct search_options o;
    search_options_read(&o);
}

static void test_options(void **state) {
    (void)state;
    assert_int_equal(options.rounds, 5);
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
        {"WIDTH", "0"},     {"WIDTH", "-1"}, {"WIDTH", "1.5"},  {"ROUNDS", "many"},
        {"TURNS", "3x"},    {"TAU", "0"},    {"TAU", "nan"},    {"TAU", "1e999"},
        {"BUCKETS", "1e9"}, {"IDEAS", "33"}, {"ROUNDS", "0x "}, {"BUCKETS", "-0.5"}};
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
    options.width = 4, options.rounds = 3;
    struct prompt_turn t = turn_of("one_shot", 1, 3);
    asks(&t, "one_shot", "");
    assert_int_equal(t.number, 3);
    assert_int_equal(t.of, 4);
    assert_true(!t.failed && !t.idea && !t.ledger && t.idea_index == -1);
    t = turn_of("one_shot", 1, 9); /* one more than was planned */
    assert_int_equal(t.of, 9);
    t = turn_of("best_of_n", 2, 3); /* numbered over all rounds */
    asks(&t, "one_shot", "");
    assert_int_equal(t.number, 7);
    assert_int_equal(t.of, 12);
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
    t = turn_of("repair", 2, 2);
    asks(&t, "optimise", "repair.r1a2");
    assert_null(t.failed);
    /* The best of the chain is improved, not its last. */
    add_ok("repair.r2a2", "optimise", 1.9);
    add_ok("repair.r3a2", "optimise", 1.4);
    t = turn_of("repair", 4, 2);
    asks(&t, "optimise", "repair.r2a2");
    assert_non_null(
        strstr(t.ledger, "- repair.r3a2 (optimise): ok, 1.400x (1.386 to 1.414), fp32\n"));
    /* What later rounds found does not matter. */
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
    t = turn_of("repair", 4, 1); /* three failures in a row, and nothing ever worked */
    asks(&t, "one_shot", "");
    assert_non_null(strstr(t.ledger, "repair.r1a1"));
    add_ok("repair.r1a2", "one_shot", 1.1);
    add_ok("repair.r3a3", "one_shot", 1.3);
    add_ok("repair.r4a3", "optimise", 1.6);
    t = turn_of("repair", 4, 1); /* the best of the mode, of earlier rounds */
    asks(&t, "optimise", "repair.r3a3");
    add_ok("repair.r4a1", "optimise", 0.8);
    add_bad("repair.r5a1", "optimise", "crash");
    t = turn_of("repair", 6, 1); /* a new line: mended first */
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r5a1");
    add_bad("repair.r6a1", "repair", "crash");
    add_bad("repair.r7a1", "repair", "timeout");
    t = turn_of("repair", 8, 1); /* the chain's own best before the mode's */
    asks(&t, "optimise", "repair.r4a1");
    add_bad("repair.r8a1", "optimise", "wrong");
    t = turn_of("repair", 9, 1); /* one failure of the line that began anew */
    asks(&t, "repair", "");
    assert_string_equal(t.failed->name, "repair.r8a1");
    add_ok("repair.r1a9", "one_shot", 1.1);
    add_bad("repair.r2a9", "repair", "wrong"); /* what worked is no part of the line */
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
    t = turn_of("repair", 4, 1); /* the code that is still to be mended */
    assert_string_equal(t.failed->name, "repair.r2a1");
    assert_non_null(strstr(t.ledger, "(repair): empty"));
    add("repair.r4a1", "repair", "code"); /* not measured yet: as if it were not there */
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
    strcpy(list[2].same_as, "repair.r7a7"); /* unknown here: nothing to mend */
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
    add_ok("contrastive.r1a4", "one_shot", 0.7); /* as fast: one bucket, one exemplar */
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
    /* The same code is never shown twice, however it was measured. */
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

/* Five buckets, the highest with two members: the pairs come as often as two draws without
 * replacement, each with a probability proportional to exp((mean - mean of all) / tau), make them.
 */
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

/* The first exemplar's bucket alone, which the order in which a pair is shown hides: with tau so
 * small that the fastest always wins, and so large that all are alike. */
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

/* The same tree gives the same answer, whatever happens after it. */
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
    past.n = 10; /* round 1 alone */
    b = turn_of("contrastive", 2, 5);
    assert_ptr_equal(a.shown[0], b.shown[0]);
    assert_ptr_equal(a.shown[1], b.shown[1]);
    past.n = 30;
    for (int i = 1; i <= 20; i++) differ += turn_of("contrastive", 3, i).shown[0] != other.shown[0];
    assert_true(differ > 0);
}

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
    asks(&t, "ideas", "branching.r1a4"); /* the best; nothing of another idea worked */
    assert_string_equal(t.ledger, "- round 1: tiles\n  worked, 1.800x (1.782 to 1.818), fp32\n"
                                  "- round 1: vectors\n  failed: wrong: reason of branching.r1a5\n"
                                  "- round 1: streams\n  untried\n"
                                  "- round 1: more than asked\n  untried\n");
    t = turn_of("branching", 3, 0); /* slowest first; one of each idea */
    asks(&t, "ideas", "branching.r2a1 branching.r1a4");
    assert_non_null(strstr(t.ledger, "- round 2: half\n  worked, 1.600x"));
    add_ok("branching.r2a3", "optimise", 1.7); /* of no idea: each counts */
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
    add_ok("branching.r2a1", "implement", 5); /* of the same round: must not matter */
    for (int i = 1; i <= 12; i++) {
        static const char *const idea[] = {"a", "b", "c"};
        t = turn_of("branching", 2, i); /* three ideas were asked for; the seed alternates */
        asks(&t, "implement", (i - 1) / 3 % 2 == 0 ? "branching.r1a2" : "branching.r1a1");
        assert_string_equal(t.idea, idea[(i - 1) % 3]);
        assert_int_equal(t.idea_index, (i - 1) % 3);
    }
    /* No idea came: go on from the best, or from nothing. */
    strcpy(list[4].name, "branching.r3a0"), list[4].round = 3;
    t = turn_of("branching", 2, 1);
    asks(&t, "optimise", "branching.r1a2");
    assert_true(!t.idea && t.idea_index == -1);
    cJSON_ReplaceItemInObject(list[0].gen, "ideas", cJSON_CreateArray());
    t = turn_of("branching", 1, 1);
    asks(&t, "one_shot", "");
}

/* ---- Attempts of other modes ------------------------------------------------------ */

/* A kernel that another mode found first was not measured again: its measurement is used. */
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

/* The ideas found, joined by '|'. */
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
          "real"); /* objects were asked for */
    finds("A draft:\n[{\"idea\": \"draft\"}]\nFinal:\n[{\"idea\": \"final\"}]", "final");
    finds("[{\"idea\": \"\"}, {\"idea\": \"  \"}]", "");
    finds("[{\"idea\": \"never closed\"}", "");
    finds("Ideas:\n1. Use tiles\n   of 64.\n2. Use\tstreams\n\n3) Third\n\nThat is all.",
          "Use tiles of 64.|Use streams|Third");
    finds("1. a\n   1. not one\n2. b\n# End\n3. no\n", "a 1. not one|b");
    finds("1. x\n2. y\n\nOrder:\n1. y first\n", "x|y");
    finds("2. no\n3. list\n", "");
    finds("In 1.5 years, 1.2 times.\n1.5x\n", "");
}

static void test_ideas_large(void **state) {
    (void)state;
    /* No more than 32, none longer than 1500 bytes, and no half of a character. */
    cJSON *array = cJSON_CreateArray();
    char longest[4001];
    for (int i = 0; i < 2000; i++) memcpy(longest + 2 * i, "\xc3\xa9", 2);
    longest[0] = 'x', longest[1] = 'x', longest[2] = 'x', longest[3] = ' ', longest[4000] = 0;
    memmove(longest + 3, longest + 4, 3997); /* characters now begin at odd places */
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
    /* Brackets alone take no time. */
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
        cmocka_unit_test_setup_teardown(test_branching_ideas, begin, end),
        cmocka_unit_test_setup_teardown(test_branching_implement, begin, end),
        cmocka_unit_test_setup_teardown(test_other_mode, begin, end),
        cmocka_unit_test(test_ideas),
        cmocka_unit_test(test_ideas_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
