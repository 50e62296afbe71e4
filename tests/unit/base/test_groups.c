/* test_groups.c: intervals over tasks and seeds, on simulated experiments whose truth is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/groups.h"

enum { TASKS = 10, SEEDS = 3, CALLS = 12, EXPERIMENTS = 200, RESAMPLES = 400 };

static double uniform(uint64_t *s) {
    return (double)(stat_random(s) >> 11) * 0x1p-53;
}

static double normal(uint64_t *s) {
    return sqrt(-2 * log(uniform(s) + 1e-18)) * cos(6.283185307179586 * uniform(s));
}

/* A search by a scripted model: each of CALLS samples is right with probability p, and then faster
 * than the library by a factor that varies; `learns`: a right one raises the next.  Returns log2 of
 * the best so far, 0 if nothing is faster. */
static double search(double p, double speed, int learns, uint64_t *s) {
    double best = 0, lift = 0;
    for (int k = 0; k < CALLS; k++) {
        double r = uniform(s), gain = speed + lift + 0.3 * normal(s);
        if (r >= p) continue;
        best = fmax(best, gain);
        if (learns) lift += 0.1;
    }
    return best;
}

struct task {
    double p, speed;
};

/* Tasks differ in how hard they are and in how much there is to win. */
static struct task draw_task(uint64_t *s) {
    return (struct task){0.05 + 0.5 * uniform(s), 0.5 + 0.4 * normal(s)};
}

static void experiment(int learns, uint64_t *s, double *x, double *y, int *group) {
    for (int t = 0, i = 0; t < TASKS; t++) {
        struct task task = draw_task(s);
        for (int k = 0; k < SEEDS; k++, i++) {
            group[i] = t;
            x[i] = search(task.p, task.speed, learns, s);
            y[i] = search(task.p, task.speed, 0, s);
        }
    }
}

/* The mean over all tasks and seeds that there could be. */
static double truth(int learns) {
    enum { MANY = 200000 };
    uint64_t s = 99;
    double sum = 0;
    for (int i = 0; i < MANY; i++) {
        struct task t = draw_task(&s);
        sum += search(t.p, t.speed, learns, &s) / MANY;
    }
    return sum;
}

/* Intervals hold the truth in 90 % of experiments and more, of one mode and of the difference of
 * two, and are not so wide that this means nothing. */
static void test_coverage(void **state) {
    (void)state;
    for (int learns = 0; learns < 2; learns++) {
        double x[TASKS * SEEDS], y[TASKS * SEEDS], width = 0, sure = 0;
        double of_one = truth(learns), of_two = of_one - truth(0);
        int group[TASKS * SEEDS], one = 0, two = 0;
        uint64_t s = 7;
        for (int e = 0; e < EXPERIMENTS; e++) {
            double above;
            experiment(learns, &s, x, y, group);
            struct kp_interval i =
                stat_groups(x, group, TASKS * SEEDS, NULL, NULL, 0, TASKS, e + 1, RESAMPLES, NULL);
            struct kp_interval d = stat_groups(x, group, TASKS * SEEDS, y, group, TASKS * SEEDS,
                                               TASKS, e + 1, RESAMPLES, &above);
            one += i.low <= of_one && of_one <= i.high;
            two += d.low <= of_two && of_two <= d.high;
            width += (i.high - i.low) / EXPERIMENTS;
            sure += above / EXPERIMENTS;
        }
        print_message(
            "%s: %d and %d of %d intervals hold the truth; mean width %.2f, P(beats) %.2f\n",
            learns ? "learns" : "draws", one, two, EXPERIMENTS, width, sure);
        assert_true(one >= EXPERIMENTS * 90 / 100);
        assert_true(two >= EXPERIMENTS * 90 / 100);
        assert_true(width < 1.2);
        assert_true(learns ? sure > 0.8 : sure > 0.4 && sure < 0.6);
    }
}

static void test_values(void **state) {
    (void)state;
    const double x[] = {1, 3, 10}, y[] = {0, 2, 2};
    const int group[] = {0, 0, 1}, other[] = {0, 1, 1};
    double above;
    struct kp_interval i = stat_groups(x, group, 3, NULL, NULL, 0, 2, 1, 100, NULL);
    assert_true(i.value == 6 && i.low < 6 && i.high > 6); /* tasks weigh the same */
    i = stat_groups(x, group, 3, y, other, 3, 2, 1, 100, &above);
    assert_true(i.value == 5 && above == 1);
    const int alone[] = {0, 0, 0};
    i = stat_groups(x, alone, 3, NULL, NULL, 0, 1, 1, 100, NULL);
    assert_true(isinf(i.low) && isinf(i.high)); /* one task says nothing of others */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_coverage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
