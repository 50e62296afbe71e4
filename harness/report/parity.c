/* parity.c: our baselines over PyTorch, class by class.
 *
 * A baseline is to be no weaker than what a user of PyTorch has, or speedups over it flatter.  Both
 * sides of a pair are the fastest of the class or a better one; only times of the same board and
 * day make a pair. */
#include "report/report.h"
#include "report/markdown.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stats.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORST = 10, /* pairs of a class that are listed, however good */
    NAMED = 100 /* tasks without a pair that are named */
};

/* A ratio up to the first is what PyTorch's user gets; one above the second needs a reason. */
static const double fair = 1.10, poor = 1.25;

struct pair { /* a baseline, and PyTorch */
    int row;
    double ours, theirs; /* microseconds */
    double ratio;
    const char *way, *flags;
};

struct pairs { /* of a class */
    struct pair *pair;
    int n;
};

/* Our fastest baseline of a class or a better one; 0 if none was timed in the class itself. */
static double our_time(const struct result *cell, const char *class) {
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(cell->json, "time_us"), *runner;
    double best = result_number(cJSON_GetObjectItemCaseSensitive(times, class), "midmean");
    cJSON_ArrayForEach(runner, times) {
        double us = result_number(runner, "midmean");
        if (!strcmp(runner->string, "candidate") || class_rank(runner->string) > class_rank(class))
            continue;
        if (us > 0 && us < best) best = us;
    }
    return best;
}

/* PyTorch's fastest call or replay of a class or a better one.  Flags that allow TF32 are of class
 * fp32 where they change nothing, and then their times are those without.  Returns false if it was
 * not measured on the cell's board and day, and then `elsewhere` says whether it was at all. */
static bool their_time(const struct torch *t, const char *class, struct pair *p, bool *elsewhere) {
    for (int f = 0; f < TORCH_FLAGS; f++)
        for (int w = TORCH_EAGER; w <= TORCH_GRAPH; w++) {
            double us = t->us[f][w];
            if (!(us > 0) || (class_rank(class) == 0 && f != TORCH_FP32)) continue;
            if (t->beside[f][w] != TORCH_SAME_DAY)
                *elsewhere = true;
            else if (p->theirs == 0 || us < p->theirs)
                p->theirs = us, p->way = torch_way_name[w], p->flags = torch_flags_name[f];
        }
    return p->theirs > 0;
}

/* qsort order: the worst first. */
static int by_ratio(const void *x, const void *y) {
    const struct pair *a = x, *b = y;
    if (a->ratio != b->ratio) return a->ratio > b->ratio ? -1 : 1;
    return a->row - b->row;
}

/* Find the pairs of a class, the worst first.  A cell has one if it was timed, with a kernel or
 * without; a doubtful kernel can slow down the baseline that is measured after it.  absent[i] is
 * set to why row i has none that PyTorch's times could have made. */
static struct pairs find_pairs(const struct report *r, const struct column *c, const char *class,
                               const char **absent) {
    struct pairs found = {calloc((size_t)r->nrows + 1, sizeof *found.pair), 0};
    if (!found.pair) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < r->nrows; i++) {
        const struct result *cell = &c->cell[i];
        bool timed = result_ok(cell) || !strcmp(cell->verdict, "missing"), elsewhere = false;
        struct pair p = {.row = i, .ours = timed ? our_time(cell, class) : 0};
        if (!(p.ours > 0) || result_flag(cell->json, FLAG_DOUBT)) continue;
        if (their_time(&c->torch[i], class, &p, &elsewhere)) {
            p.ratio = p.ours / p.theirs;
            found.pair[found.n++] = p;
        } else
            absent[i] = elsewhere ? "of another board or day" : "not measured";
    }
    qsort(found.pair, (size_t)found.n, sizeof *found.pair, by_ratio);
    return found;
}

/* Write the row of some pairs of a class: those of a kind of op, or of all if it is NULL. */
static void sum_row(const struct report *r, const struct pairs *of, const char *class,
                    const char *kind, FILE *out) {
    double *x = calloc((size_t)of->n + 1, sizeof *x);
    int n = 0, above[2] = {0};
    if (!x) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < of->n; i++) {
        if (kind && strcmp(kind, kp_kind_name(r->rows[of->pair[i].row].kind))) continue;
        x[n++] = of->pair[i].ratio;
        above[0] += of->pair[i].ratio > fair;
        above[1] += of->pair[i].ratio > poor;
    }
    if (n)
        fprintf(out, "| %s | %s | %d | %.3f | %.3f | %.3f | %.3f | %d | %d |\n", class,
                kind ? kind : "**all**", n, stat_geomean(x, n), stat_median(x, n),
                stat_quantile(x, n, 0.95), x[0], above[0], above[1]);
    free(x);
}

/* Write the worst pairs of a class, and all that are not fair. */
static void worst_rows(const struct report *r, const struct pairs *of, const char *class,
                       FILE *out) {
    for (int i = 0; i < of->n && (i < WORST || of->pair[i].ratio > fair); i++) {
        const struct pair *p = &of->pair[i];
        fprintf(out, "| %s | %s | %s |", class, r->rows[p->row].task,
                kp_kind_name(r->rows[p->row].kind));
        put_time(p->ours, out);
        fprintf(out, " %.*f (%s, %s) | %.3f |\n", time_decimals(p->theirs), p->theirs, p->way,
                p->flags, p->ratio);
    }
}

/* Name the rows that have no pair for this reason; nothing if there is none. */
static void absent_line(const struct report *r, const char *const *absent, const char *why,
                        FILE *out) {
    int n = 0;
    for (int i = 0; i < r->nrows; i++) {
        if (!absent[i] || strcmp(absent[i], why)) continue;
        if (!n) fprintf(out, "\nNot compared, as PyTorch's time is %s: ", why);
        if (n < NAMED) fprintf(out, "%s%s", n ? ", " : "", r->rows[i].task);
        n++;
    }
    if (n > NAMED) fprintf(out, " and %d more", n - NAMED);
    if (n) fputs(".\n", out);
}

static const char title[] = "\n## Baselines against PyTorch\n\n";
static const char head[] =
    "Time of our fastest baseline of a class or a better one, over PyTorch's: the faster of eager "
    "call and graph\nreplay with flags of that class or a better one. A pair is of one board and "
    "one day. Above 1, a speedup over\nour baseline flatters; below 1, it is harder to get than "
    "one over PyTorch's calls.\n\n"
    "| class | kind of op | pairs | geometric mean | median | 95 % | worst | above 1.10 | above "
    "1.25 |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n";

void report_parity(const struct report *r, const struct column *c, FILE *out) {
    static const char *const class[] = {"fp32", "tf32", "f16", "bf16"};
    enum { CLASSES = sizeof class / sizeof *class };
    struct pairs of[CLASSES];
    int n = 0;
    if (!c->torch) return;
    const char **absent = calloc((size_t)r->nrows + 1, sizeof *absent);
    if (!absent) die(KP_MACHINE, "out of memory");
    for (int k = 0; k < CLASSES; k++) {
        of[k] = find_pairs(r, c, class[k], absent);
        n += of[k].n;
    }
    fputs(title, out);
    if (n == 0)
        fputs("Not compared: no time of PyTorch is of the board and the day of a result.\n", out);
    else
        fputs(head, out);
    for (int k = 0; k < CLASSES && n; k++) {
        sum_row(r, &of[k], class[k], NULL, out);
        for (int kind = 0; kind < KP_OP_KINDS; kind++)
            sum_row(r, &of[k], class[k], kp_kind_name((enum kp_op_kind)kind), out);
    }
    if (n)
        fputs("\nThe worst ten of each class, and all above 1.10:\n\n"
              "| class | task | kind of op | baseline, us | PyTorch, us | ratio |\n"
              "|---|---|---|--:|--:|--:|\n",
              out);
    for (int k = 0; k < CLASSES; k++) worst_rows(r, &of[k], class[k], out), free(of[k].pair);
    if (n) absent_line(r, absent, "of another board or day", out);
    if (n) absent_line(r, absent, "not measured", out);
    free(absent);
}
