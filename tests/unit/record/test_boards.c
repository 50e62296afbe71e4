/* test_boards.c: how far speedups scatter, with values worked out by hand, and what is predicted.
 *
 * The rows are written as logarithms: a speedup of exp(x), whose own interval claims a standard
 * deviation of 1 %. */
#include "own_folder.h"
#include "ends.h"
#include "record/boards.h"
#include "record/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double own = 0.01, normal = 1.959964;

static void near(double x, double expected) {
    if (!(fabs(x - expected) <= 1e-4 * fabs(expected))) fail_msg("%.8g, not %.8g", x, expected);
}

/* Add a run to a table: bound by memory (floors 9 and 1), products (1 and 9), both of 20 us, or 19
 * us short. */
static void add(FILE *f, const char *task, const char *setup, const char *board, double x,
                char kind) {
    fprintf(f, "%s,%s,%s,r,c,%.12g,%.12g,%.12g,%d,%d,%d,1\n", task, setup, board, exp(x),
            exp(x - normal * own), exp(x + normal * own), kind == 'l' ? 19 : 20,
            kind == 'p' ? 1 : 9, kind == 'p' ? 9 : 1);
}

/* Begin results/reruns/GPU.csv. */
static FILE *begin(const char *gpu) {
    char *path = text_format("results/reruns/%s.csv", gpu);
    FILE *f = fopen(path, "w");
    free(path);
    if (!f) fail_msg("no %s.csv", gpu);
    fputs("# a comment\ntask,setup,board,run,commit,ratio,low,high,candidate_us,floor_bytes_us,"
          "floor_flops_us,wall_s\n",
          f);
    return f;
}

/* A result of a GPU with a speedup of exp(x). */
static struct result result(const char *gpu, const char *board, double x, char kind) {
    char *json = text_format("{\"floor_bytes_us\":%d,\"floor_flops_us\":%d,\"machine\":"
                             "{\"uuid_hash\":\"%s\"}}",
                             kind == 'p' ? 1 : 9, kind == 'p' ? 9 : 1, board);
    struct result r = {.verdict = "ok", .ratio = exp(x), .candidate_us = kind == 'l' ? 19 : 20};
    snprintf(r.gpu, sizeof r.gpu, "%s", gpu);
    r.low = exp(x - normal * own), r.high = exp(x + normal * own);
    r.json = cJSON_Parse(json);
    free(json);
    return r;
}

/* Three boards at 0, 2 and 4 %, the first with a second run at 3 %, and a cell of another setup, 50
 * % off, which is no rerun. */
static void write_runs(void) {
    FILE *f = begin("g1");
    add(f, "a", "s", "A", 0.00, 'm');
    add(f, "b", "s", "B", 1.00, 'p');
    add(f, "a", "s", "B", 0.02, 'm');
    add(f, "a", "t", "B", 0.50, 'm'); /* another kernel */
    add(f, "a", "s", "C", 0.04, 'm');
    add(f, "b", "s", "A", 1.00, 'p');
    add(f, "a", "s", "A", 0.03, 'm'); /* a rerun */
    add(f, "c", "s", "A", 0.00, 'l'); /* nobody else ran it */
    add(f, "e", "s", "A", 0.00, 'm'); /* and nobody else as long */
    add(f, "e", "s", "B", 0.90, 'l');
    fclose(f);
    f = begin("g2"); /* four boards, 6 % apart and 0: more than g1 has, where it has some */
    for (int i = 0; i < 4; i++) {
        const char *board = (const char *[]){"D", "E", "F", "G"}[i];
        add(f, "c", "s", board, 0.06 * (i % 2), 'l');
        add(f, "d", "s", board, 0.06 * (i % 2), 'm');
    }
    fclose(f);
}

/* Pairs of two boards in task a, in %: AB 2, AC 4, A'B 1, A'C 1, BC 2.  Each own part is 1. */
static const double between_a = ((4 - 2) + (16 - 2) + (1 - 2) + (1 - 2) + (4 - 2)) * 1e-4 / 2 / 5;
/* AA': 3. */
static const double reruns_a = (9 - 2) * 1e-4 / 2;
/* Pairs of two boards in task c, in %: four of 6, two of 0. */
static const double between_c = (4 * (36 - 2) + 2 * (0 - 2)) * 1e-4 / 2 / 6;

static void test_scatter(void **state) {
    struct boards b;
    (void)state;
    boards_load(&b, "results");
    assert_int_equal(b.n, 2);
    const struct boards_of *g1 = &b.of[0], *g2 = &b.of[1];
    assert_string_equal(g1->gpu, "g1");
    assert_int_equal(g1->between[BOUND_MEMORY].pairs, 5);
    assert_int_equal(g1->between[BOUND_MEMORY].freedom, 2);
    near(g1->between[BOUND_MEMORY].variance, between_a);
    assert_int_equal(g1->reruns[BOUND_MEMORY].pairs, 1);
    assert_int_equal(g1->reruns[BOUND_MEMORY].freedom, 1);
    near(g1->reruns[BOUND_MEMORY].variance, reruns_a);
    assert_int_equal(g1->between[BOUND_COMPUTE].freedom, 1);
    near(g1->between[BOUND_COMPUTE].variance, 0); /* closer than their intervals say: not below 0 */
    assert_int_equal(g1->reruns[BOUND_COMPUTE].freedom, 0);
    assert_int_equal(g1->between[BOUND_LATENCY].freedom, 0);
    assert_int_equal(g2->between[BOUND_LATENCY].freedom, 3);
    near(g2->between[BOUND_LATENCY].variance, between_c);
    boards_free(&b);
    boards_load(&b, "no such folder");
    assert_int_equal(b.n, 0);
    boards_free(&b);
}

static void test_prediction(void **state) {
    struct boards b, none;
    struct result memory = result("g1", "X", 0.7, 'm'), latency = result("g1", "X", 0.7, 'l');
    (void)state;
    boards_load(&b, "results");
    boards_load(&none, "no such folder");
    struct prediction p = boards_predict(&b, &memory);
    double far = 4.3027 * sqrt(2 * own * own + 2 * between_a); /* t of 2 */
    near(p.low, exp(0.7 - far));
    near(p.high, exp(0.7 + far));
    assert_int_equal(p.boards, 3);
    assert_string_equal(p.of, "g1");
    p = boards_predict(&b, &latency); /* one board of g1 ran such a cell, four of g2 */
    near(p.high, exp(0.7 + 3.1824 * sqrt(2 * own * own + 2 * between_c)));
    assert_int_equal(p.boards, 4);
    assert_string_equal(p.of, "g2");
    strcpy(memory.gpu, "g9"); /* which nobody ran: the GPU with the most boards stands in */
    p = boards_predict(&b, &memory);
    assert_int_equal(p.boards, 4);
    assert_string_equal(p.of, "g2");
    p = boards_predict(&none, &memory); /* the run's own */
    near(p.low, memory.low);
    near(p.high, memory.high);
    assert_int_equal(p.boards, 1);
    result_free(&memory);
    result_free(&latency);
    boards_free(&b);
    boards_free(&none);
}

/* Two results reproduce each other up to what is predicted, and no further. */
static void test_compare(void **state) {
    struct boards b, none;
    char why[600];
    double two = 4.3027 * sqrt(2 * own * own + 2 * between_a); /* two boards */
    double one = 12.7062 * sqrt(2 * own * own + 2 * reruns_a); /* one board, run once more */
    double alone = normal * sqrt(2 * own * own);               /* nothing is known */
    struct {
        const char *board;
        double x;
        bool known;
        enum judgment expected;
        const char *why;
    } cases[] = {{"Y", 0.99 * two, true, REPRODUCED, "predicted +-10.3"},
                 {"Y", 1.01 * two, true, FASTER, ""},
                 {"Y", -1.01 * two, true, SLOWER, ""},
                 {"X", 0.99 * one, true, REPRODUCED, ""},
                 {"X", 1.01 * one, true, FASTER, ""},
                 {"Y", 0.99 * alone, false, REPRODUCED, "(one board: boards are not in it)"},
                 {"Y", 1.01 * alone, false, FASTER, ""}};
    (void)state;
    boards_load(&b, "results");
    boards_load(&none, "no such folder");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result x = result("g1", "X", 0, 'm'),
                      y = result("g1", cases[i].board, cases[i].x, 'm');
        /* the machine is compared, too: the hash of the board is no part of that */
        enum judgment j = compare_results(&y, &x, cases[i].known ? &b : &none, why, sizeof why);
        if (j != cases[i].expected) fail_msg("case %zu: %s: %s", i, judgment_name[j], why);
        if (!strstr(why, cases[i].why)) fail_msg("case %zu: %s", i, why);
        result_free(&x);
        result_free(&y);
    }
    struct {
        const char *xboard, *yboard;
        double x;
        char kind;
        enum judgment expected;
        const char *why;
    } others[] = {{"X", "Y", 0, 'l', REPRODUCED, "(by boards of g2)"},
                  {"", "", 1.01 * two, 'm', FASTER, ""},     /* perhaps not the same board */
                  {"X", "X", 0.1, 'p', REPRODUCED, "+-19"}}; /* that nobody ran again: by boards */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct result x = result("g1", others[i].xboard, 0, others[i].kind),
                      y = result("g1", others[i].yboard, others[i].x, others[i].kind);
        assert_int_equal(compare_results(&y, &x, &b, why, sizeof why), others[i].expected);
        holds(why, others[i].why);
        result_free(&x);
        result_free(&y);
    }
    boards_free(&b);
    boards_free(&none);
}

/* Each of four boards is tried by what the other three say.  D and F are at 0, E and G at 6 %:
 * three boards leave one pair of 0 and two of 6, so all pairs lie inside. */
static void test_coverage(void **state) {
    struct boards b;
    (void)state;
    boards_load(&b, "results");
    struct coverage c = boards_coverage(&b.of[1], BOUND_LATENCY, false);
    assert_int_equal(c.cells, 1);
    assert_int_equal(c.pairs, 12);
    assert_int_equal(c.inside, 12);
    assert_int_equal(c.own, 4); /* the pairs of 0; those of 6 are beyond 2.8 % */
    c = boards_coverage(&b.of[0], BOUND_COMPUTE, false);
    assert_int_equal(c.pairs, 0); /* one board alone says nothing */
    boards_free(&b);

    /* One board of five is far off: the other four, which agree, cannot predict it.  A rule that
     * looks at the board it tries would. */
    FILE *f = begin("g3");
    const char *const board[] = {"P", "Q", "R", "S", "T"};
    for (int i = 0; i < 5; i++) add(f, "a", "s", board[i], i == 4 ? 0.05 : 0, 'm');
    fclose(f);
    boards_load(&b, "results");
    c = boards_coverage(&b.of[2], BOUND_MEMORY, false);
    assert_int_equal(c.pairs, 20);
    assert_int_equal(c.inside, 16); /* T left out: +-4.5 %; another left out: +-9 % */
    c = boards_coverage(&b.of[2], BOUND_MEMORY, true);
    assert_int_equal(c.pairs, 0);
    boards_free(&b);

    /* Of reruns each pair counts once. */
    f = begin("g4");
    for (int i = 0; i < 4; i++) add(f, "a", "s", board[i / 2], 0.01 * i, 'm');
    fclose(f);
    boards_load(&b, "results");
    c = boards_coverage(&b.of[3], BOUND_MEMORY, true);
    assert_int_equal(c.pairs, 2);
    assert_int_equal(c.own, 2);
    boards_free(&b);
}

/* Ten cells on each of three boards, 2 % above the first and 1 % below, the second 0.3 % off either
 * way besides; a fourth board shares nine. */
static void write_shifts(void) {
    FILE *f = begin("g5");
    for (int i = 0; i < 10; i++) {
        char task[8];
        snprintf(task, sizeof task, "t%d", i);
        if (i % 3) add(f, task, "s", "P", 0.1 * i, 'm'); /* in any order */
        add(f, task, "s", "Q", 0.1 * i + 0.02 + (i % 2 ? 0.003 : -0.003), 'm');
        if (i % 3 == 0) add(f, task, "s", "P", 0.1 * i, 'm');
        add(f, task, "s", "R", 0.1 * i - 0.01, 'm');
        if (i) add(f, task, "s", "S", 0.1 * i + 0.5, 'm');
    }
    fclose(f);
}

/* What a board does to all cells alike: a mean over many differs by that. */
static void test_shift(void **state) {
    (void)state;
    struct boards b;
    struct result one = result("g5", "X", 0.7, 'm'), elsewhere = result("g9", "X", 0.7, 'm');
    const struct result *cell[] = {&one, &one, &one, &one};
    boards_load(&b, "results"); /* no two boards share so many cells */
    assert_true(b.n > 0 && boards_mean_reach(&b, cell, 1) == 0);
    boards_free(&b);
    write_shifts();
    boards_load(&b, "results");
    const struct boards_of *of = &b.of[b.n - 1];
    /* In %: PQ 2, PR 1, QR 3; of what has Q the variance of the mean is 0.09 / 9. */
    const double variance = ((4 - 0.01) + 1 + (9 - 0.01)) * 1e-4 / 2 / 3;
    assert_string_equal(of->gpu, "g5");
    assert_int_equal(of->shift.pairs, 3);
    assert_int_equal(of->shift.freedom, 2);
    near(of->shift.variance, variance);
    assert_int_equal(b.of[0].shift.freedom, 0);

    double each = own * own + of->between[BOUND_MEMORY].variance, t = 4.303;
    near(boards_mean_reach(&b, cell, 4) / (t * sqrt(2 * each / 4 + 2 * variance)), 1);
    assert_true(boards_mean_reach(&b, cell, 1) > boards_mean_reach(&b, cell, 4));
    assert_true(boards_mean_reach(&b, cell, 0) == 0);
    cell[0] = &elsewhere; /* a GPU without boards borrows */
    assert_true(boards_mean_reach(&b, cell, 1) > 0);
    struct boards none = {0};
    assert_true(boards_mean_reach(&none, cell, 1) == 0);

    struct coverage c = boards_shift_coverage(of);
    assert_int_equal(c.pairs, 6); /* each of three, by the two that are left */
    assert_int_equal(c.inside, 6);
    assert_int_equal(c.own, 0); /* 1 % is beyond what their cells scatter */
    result_free(&one), result_free(&elsewhere);
    boards_free(&b);

    /* A board that is far off is not predicted by the others, nor by itself. */
    FILE *f = begin("g6");
    for (int i = 0; i < 50; i++) {
        char task[8];
        snprintf(task, sizeof task, "t%d", i / 5);
        add(f, task, "s", (const char *[]){"P", "Q", "R", "S", "T"}[i % 5],
            i % 5 == 4 ? 0.05 : 1e-6 * (i % 5), 'm');
    }
    fclose(f);
    boards_load(&b, "results");
    c = boards_shift_coverage(&b.of[b.n - 1]);
    assert_int_equal(c.pairs, 20);
    assert_int_equal(c.inside, 16);
    boards_free(&b);
}

/* What was recorded bears the claim: nine of ten pairs of runs on two boards lie inside the
 * prediction, for each kind of bound that enough boards ran. */
static void test_recorded_runs(void **state) {
    struct boards b;
    int tried = 0;
    (void)state;
    char *results = text_format("%s/results", root);
    boards_load(&b, results);
    for (int i = 0; i < b.n; i++)
        for (int k = 0; k < BOUNDS; k++) {
            struct coverage c = boards_coverage(&b.of[i], (enum bound)k, false);
            tried += c.pairs;
            if (c.inside < 0.9 * c.pairs)
                fail_msg("%s, %s: %d of %d", b.of[i].gpu, bound_name[k], c.inside, c.pairs);
        }
    assert_true(tried > 1000);
    for (int i = tried = 0; i < b.n; i++) {
        struct coverage c = boards_shift_coverage(&b.of[i]);
        tried += c.pairs;
        if (c.inside < 0.9 * c.pairs)
            fail_msg("%s, whole boards: %d of %d", b.of[i].gpu, c.inside, c.pairs);
    }
    assert_true(tried >= 40);
    boards_free(&b);
    free(results);
}

/* A GPU's own boards are used from three on, or where no other has more. */
static void test_own(void **state) {
    struct boards b;
    struct result x = result("g7", "X", 0.7, 'm');
    (void)state;
    for (int n = 2; n <= 3; n++) {
        FILE *f = begin("g7");
        for (int i = 0; i < n; i++) add(f, "a", "s", (const char *[]){"A", "B", "C"}[i], 0.01, 'm');
        fclose(f);
        boards_load(&b, "results");
        struct prediction p = boards_predict(&b, &x);
        assert_int_equal(!strcmp(p.of, "g7"), n == 3);
        assert_true(p.boards > 2);
        boards_free(&b);
    }
    result_free(&x);
}

static void malformed(void) {
    struct boards b;
    boards_load(&b, "bad");
}

static void test_malformed(void **state) {
    (void)state;
    FILE *f = begin("g1");
    fputs("a,s,A,r,c,2,2.1,3,100,9,1,1\n", f);
    fclose(f);
    if (system("mkdir -p bad && mv results/reruns bad/reruns")) fail();
    ends(malformed, 3, "bad/reruns/g1.csv: a on A: no ratio inside low and high");
}

static int enter(void **state) {
    (void)state;
    if (enter_with("mkdir -p results/reruns")) return 1;
    write_runs();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scatter), cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_compare), cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_shift),   cmocka_unit_test(test_recorded_runs),
        cmocka_unit_test(test_own),     cmocka_unit_test(test_malformed)};
    return cmocka_run_group_tests(tests, enter, leave);
}
