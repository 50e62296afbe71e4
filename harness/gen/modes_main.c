/* modes_main.c: compare the modes of an experiment.
 *
 *   modes BUDGET < LINES
 *
 * A line is TASK MODE SEED B1 B2 B3 B4 TOKENS: the best speedup so far after a quarter of the
 * BUDGET of calls, a half, three quarters and all (1 if nothing is faster than the library), and
 * the tokens of all calls.  Prints for each mode the geometric mean over tasks (of seeds within a
 * task) with its 95 % interval, a bootstrap over tasks; then, after all calls, the
 * probability that the mode of the row beats that of the column, as these bootstraps find it. */
#include "record/result.h"
#include "base/error.h"
#include "base/groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20000, NAMES = 1000, POINTS = 4, RESAMPLES = 2000 };

struct names {
    int n;
    char name[NAMES][64];
};

struct arms { /* of one mode */
    int n;
    int task[MOST];
    double gain[POINTS][MOST], tokens; /* gain: log2 of the best speedup */
};

static struct names tasks, modes;
static struct arms *arms[NAMES];

/* The number of a name, which is added if it is new. */
static int number_of(struct names *l, const char *name) {
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->name[i], name)) return i;
    if (l->n == NAMES) die(KP_INPUT, "more than %d tasks or modes", NAMES);
    strcpy(l->name[l->n], name);
    return l->n++;
}

static void read_lines(void) {
    char task[64], mode[64];
    double b[POINTS], tokens;
    int seed, k;
    while ((k = scanf("%63s %63s %d %lf %lf %lf %lf %lf", task, mode, &seed, &b[0], &b[1], &b[2],
                      &b[3], &tokens)) == 8) {
        int m = number_of(&modes, mode);
        if (!arms[m] && !(arms[m] = calloc(1, sizeof *arms[m]))) die(KP_MACHINE, "out of memory");
        struct arms *a = arms[m];
        if (a->n == MOST) die(KP_INPUT, "more than %d searches of a mode", MOST);
        for (int p = 0; p < POINTS; p++) {
            if (!(usable_number(b[p]) > 0))
                die(KP_INPUT, "%s %s: %g is no speedup", task, mode, b[p]);
            a->gain[p][a->n] = log2(b[p]);
        }
        if (!(tokens >= 0 && isfinite(tokens)))
            die(KP_INPUT, "%s %s: %g is no number of tokens", task, mode, tokens);
        a->tokens += tokens;
        a->task[a->n++] = number_of(&tasks, task);
    }
    if (k != EOF || !modes.n) die(KP_INPUT, "no lines TASK MODE SEED B1 B2 B3 B4 TOKENS");
}

/* Every task is compared in every mode. */
static void check_all(void) {
    for (int m = 0; m < modes.n; m++)
        for (int t = 0; t < tasks.n; t++) {
            bool any = false;
            for (int i = 0; i < arms[m]->n; i++) any |= arms[m]->task[i] == t;
            if (!any)
                die(KP_INPUT, "%s has no search of %s: finish the experiment", modes.name[m],
                    tasks.name[t]);
        }
}

static void print_means(double budget) {
    printf("best speedup so far, geometric mean of %d task%s [95 %%]\n%-14s", tasks.n,
           tasks.n == 1 ? "" : "s", "calls");
    for (int p = 1; p <= POINTS; p++) printf(" %21.0f", floor(budget * p / POINTS));
    printf(" %14s\n", "tokens a search");
    for (int m = 0; m < modes.n; m++) {
        const struct arms *a = arms[m];
        printf("%-14s", modes.name[m]);
        for (int p = 0; p < POINTS; p++) {
            struct kp_interval i =
                stat_groups(a->gain[p], a->task, a->n, NULL, NULL, 0, tasks.n, 1, RESAMPLES, NULL);
            printf("   %5.2f [%4.2f, %5.2f]", exp2(i.value), exp2(i.low), exp2(i.high));
        }
        printf(" %14.0f\n", a->tokens / a->n);
    }
}

static void print_beats(void) {
    printf("\nprobability that the mode on the left beats the one above, after all calls\n%-14s",
           "");
    for (int m = 0; m < modes.n; m++) printf(" %12s", modes.name[m]);
    for (int m = 0; m < modes.n; m++) {
        printf("\n%-14s", modes.name[m]);
        for (int k = 0; k < modes.n; k++) {
            const struct arms *a = arms[m], *b = arms[k];
            double above = NAN;
            if (m == k)
                printf(" %12s", "-");
            else
                stat_groups(a->gain[POINTS - 1], a->task, a->n, b->gain[POINTS - 1], b->task, b->n,
                            tasks.n, 1, RESAMPLES, &above);
            if (m != k) printf(" %12.2f", above);
        }
    }
    printf("\n");
}

int main(int argc, char **argv) {
    kp_program("modes");
    if (argc != 2 || !(usable_number(atof(argv[1])) > 0))
        die(KP_USAGE, "usage: modes BUDGET < LINES");
    read_lines();
    check_all();
    print_means(atof(argv[1]));
    print_beats();
    output_end();
    return KP_OK;
}
