/* search_table.c: the results of searches, as a table and as a figure.
 *
 * A mode's best so far on a task is the highest speedup among its right kernels, each against the
 * baseline of its own arithmetic, and at least 1: without a faster kernel the user has the
 * baseline, and a mode that finds nothing must not look better than one that finds a slow kernel.
 * So a best so far never falls.  Over tasks it is the geometric mean.  Calls for ideas make no
 * kernel, so they are no attempts, but they count as costs. */
#include "report/report.h"
#include "base/error.h"
#include "report/search_load.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the sums of a mode, with a model on a GPU ---- */

/* The end of the calls from `from` on that have its GPU and model. */
static int end_model(const struct search_calls *s, int from) {
    const struct call *first = &s->calls[from];
    int i = from;
    while (i < s->n && !strcmp(s->calls[i].gpu, first->gpu) &&
           !strcmp(s->calls[i].model, first->model))
        i++;
    return i;
}

/* The end of those that have its mode as well. */
static int end_mode(const struct search_calls *s, int from) {
    int i = from, end = end_model(s, from);
    while (i < end && s->calls[i].mode == s->calls[from].mode) i++;
    return i;
}

/* The end of those that have its task as well. */
static int end_task(const struct search_calls *s, int from) {
    int i = from, end = end_mode(s, from);
    while (i < end && !strcmp(s->calls[i].task, s->calls[from].task)) i++;
    return i;
}

struct sums {
    int tasks, attempts, ok, unmeasured, unpriced;
    int won;                    /* tasks with a significantly faster kernel */
    int longest;                /* attempts of the task with most */
    double input, output, cost; /* cost: of the calls that have one */
};

/* Sums of the calls from..to, which are of one GPU, model and mode. */
static struct sums sums_of(const struct search_calls *s, int from, int to) {
    struct sums u = {0};
    for (int i = from, next; i < to; i = next, u.tasks++) {
        int attempts = 0;
        bool won = false;
        next = end_task(s, i);
        for (int k = i; k < next; k++) {
            const struct call *c = &s->calls[k];
            attempts += c->fate != IDEAS;
            u.ok += c->ratio > 0;
            u.unmeasured += c->fate == UNMEASURED;
            won |= c->fate == FASTER;
            u.input += c->input;
            u.output += c->output;
            if (isnan(c->cost))
                u.unpriced++;
            else
                u.cost += c->cost;
        }
        u.attempts += attempts;
        u.won += won;
        if (attempts > u.longest) u.longest = attempts;
    }
    return u;
}

/* The geometric mean over the tasks of from..to of the best of each one's first `most`
 * attempts that cost up to `usd` together (both may be infinite). */
static double best_within(const struct search_calls *s, int from, int to, double most, double usd) {
    double sum = 0;
    int tasks = 0;
    for (int i = from, next; i < to; i = next, tasks++) {
        double best = 1, spent = 0;
        int attempts = 0;
        next = end_task(s, i);
        for (int k = i; k < next; k++) {
            const struct call *c = &s->calls[k];
            spent += isnan(c->cost) ? 0 : c->cost;
            attempts += c->fate != IDEAS;
            if (attempts > most || spent > usd) break;
            best = fmax(best, c->ratio);
        }
        sum += log(best);
    }
    return tasks ? exp(sum / tasks) : 1;
}

/* ---- names ---- */

/* Whether a character of a name can be written as it is: a letter, a digit, a space, or one of the
 * usual signs between letters or digits. */
static bool plain(const char *name, const char *p) {
    if (isalnum((unsigned char)*p) || *p == ' ') return true;
    return strchr("-._:/", *p) && p > name && isalnum((unsigned char)p[-1]) &&
           isalnum((unsigned char)p[1]);
}

/* Write a model's name into Markdown.  Servers choose these names. */
static void put_model(const char *name, FILE *out) {
    for (const char *p = name; *p; p++)
        if (plain(name, p) || (unsigned char)*p >= 0x80)
            fputc(*p, out);
        else
            fprintf(out, "&#%d;", *p);
}

/* Write its first `most` characters into a string of gnuplot in double quotes.  What is not ASCII
 * becomes a '?': gnuplot draws a box as large as the figure for a character that its font lacks. */
static void quote_model(const char *name, int most, FILE *out) {
    for (const char *p = name; *p; p++) {
        if (((unsigned char)*p & 0xC0) == 0x80) continue; /* no first byte of a character */
        if (most-- == 0) {
            fputs("...", out);
            return;
        }
        if ((unsigned char)*p >= 0x80)
            fputc('?', out);
        else
            fprintf(out, plain(name, p) ? "%c" : "\\%03o", *p);
    }
}

/* ---- the table ---- */

/* A sum of money.  If some calls have no known cost the sum is "over" the known ones; if all have
 * none it is unknown, never 0. */
static void money(const struct sums *u, double over, FILE *out) {
    if (over == 0 || (u->unpriced && u->cost == 0))
        fputs(over == 0 ? " - |" : " unknown |", out);
    else
        fprintf(out, " %s%.2f |", u->unpriced ? "over " : "", u->cost / over);
}

void search_table(const struct search_calls *s, FILE *out) {
    if (!s || !s->n) return;
    fputs("# Searches\n\n"
          "| GPU | model | mode | tasks | attempts | right | best (geometric mean) | tokens in "
          "| tokens out | USD | USD a task | USD a verified speedup |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
          out);
    for (int i = 0, next; i < s->n; i = next) {
        next = end_mode(s, i);
        struct sums u = sums_of(s, i, next);
        fprintf(out, "| %s | ", s->calls[i].gpu);
        put_model(s->calls[i].model, out);
        fprintf(out, " | %s | %d | %d |", search_modes[s->calls[i].mode], u.tasks, u.attempts);
        if (u.attempts > u.unmeasured)
            fprintf(out, " %.0f %% |", 100.0 * u.ok / (u.attempts - u.unmeasured));
        else
            fputs(" - |", out);
        fprintf(out, " %.3f | %.0f | %.0f |", best_within(s, i, next, INFINITY, INFINITY), u.input,
                u.output);
        money(&u, 1, out);
        money(&u, u.tasks, out);
        money(&u, u.won, out);
        fputc('\n', out);
    }
    fputs(
        "\n*Right* is the share of the attempts whose verdict is `ok`; one without code, or whose "
        "kernel came before, is\nnot right, and kernels that were not measured are left out. "
        "*Best* is the best right kernel of each task, in\nwhatever arithmetic, against the "
        "baseline of the same; a task without a faster kernel counts as 1. A *verified\nspeedup* "
        "is a task with a significantly faster kernel: the low end of its interval is above 1. "
        "Both use\nthe measurements of the search, and the best of many is also the luckiest; a "
        "kernel is measured again before\nit is promoted. *over* and *unknown* mean that the "
        "prices of some or of all calls are not known.",
        out);
    if (s->left_out)
        fprintf(out,
                " Left out, with their attempts and costs: %d cell%s whose task, baseline or time\n"
                "cannot carry a headline number.",
                s->left_out, s->left_out == 1 ? "" : "s");
    fputs("\n\n![best speedup so far by attempt and by money, and the outcomes of each round's "
          "attempts](../../plots/search.svg)\n",
          out);
}

/* ---- the figure ---- */

/* The first line of a curve's block. */
static void head(const struct call *c, FILE *data) {
    fprintf(data, "# %s %s %s\n", c->gpu, c->model, search_modes[c->mode]);
}

/* The block of a curve: best so far by attempt. */
static void attempts_curve(const struct search_calls *s, int from, int to, FILE *data) {
    head(&s->calls[from], data);
    fputs("# attempts_of_a_task\tbest\n", data);
    int last = sums_of(s, from, to).longest;
    for (int k = 0; k <= last; k++)
        fprintf(data, "%d\t%.6g\n", k, best_within(s, from, to, k, INFINITY));
    fputs("\n\n", data);
}

/* qsort order of doubles. */
static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The block of a curve: best so far by the money spent on each task.  All prices are known. */
static void cost_curve(const struct search_calls *s, int from, int to, FILE *data) {
    double *at = calloc((size_t)(to - from) + 1, sizeof *at);
    int n = 0;
    if (!at) die(KP_MACHINE, "out of memory");
    head(&s->calls[from], data);
    fputs("# usd_of_a_task\tbest\n", data);
    for (int i = from, next; i < to; i = next) {
        double spent = 0;
        next = end_task(s, i);
        for (int k = i; k < next; k++) at[n++] = spent += s->calls[k].cost;
    }
    qsort(at, (size_t)n, sizeof *at, by_number);
    fputs("0\t1\n", data);
    for (int i = 0; i < n; i++)
        if (i + 1 == n || at[i + 1] > at[i])
            fprintf(data, "%.6g\t%.6g\n", at[i], best_within(s, from, to, INFINITY, at[i]));
    fputs("\n\n", data);
    free(at);
}

/* The bars of a mode: a line a round, with the share of each fate.  Returns where the next
 * bar may stand. */
static int outcome_bars(const struct search_calls *s, int from, int to, int at, FILE *data) {
    int last = 0;
    for (int i = from; i < to; i++)
        if (s->calls[i].round > last) last = s->calls[i].round;
    for (int round = 1; round <= last; round++) {
        int count[FATES] = {0}, n = 0;
        for (int i = from; i < to; i++)
            if (s->calls[i].round == round && s->calls[i].fate < FATES)
                count[s->calls[i].fate]++, n++;
        fprintf(data, "%d\t%d\t%d", at++, round, n);
        for (int f = FATES; f--;) fprintf(data, "\t%.6g", n ? 100.0 * count[f] / n : 0);
        fputc('\n', data);
    }
    return at + 1;
}

/* The blocks of a GPU and a model: a curve by attempts for each mode, one by cost for each, the
 * bars, and where each mode's name stands below them.  A mode that was not tried has a block
 * without points.  Returns the modes tried as bits, and above them those whose money is known. */
static int blocks(const struct search_calls *s, int from, int to, FILE *data) {
    int first[MODES + 1], tried = 0, at = 1;
    for (int m = 0, i = from; m < MODES; m++) {
        first[m] = i;
        while (i < to && s->calls[i].mode == m) i++;
        first[m + 1] = i;
        if (i == first[m]) continue;
        tried |= 1 << m;
        if (!sums_of(s, first[m], i).unpriced) tried |= 1 << (MODES + m);
    }
    for (int m = 0; m < 2 * MODES; m++) {
        int k = m % MODES;
        if (!(tried >> m & 1))
            fprintf(data, "# %s: %s\nNaN\tNaN\n\n\n", search_modes[k],
                    tried >> k & 1 ? "prices are not known" : "not tried");
        else
            (m < MODES ? attempts_curve : cost_curve)(s, first[k], first[k + 1], data);
    }
    fputs("# bar\tround\tattempts\tfaster\tright\twrong\tgated\tbuild\tduplicate\tno_code\n", data);
    double middle[MODES] = {0};
    for (int m = 0; m < MODES; m++) {
        if (!(tried >> m & 1)) continue;
        int next = outcome_bars(s, first[m], first[m + 1], at, data);
        middle[m] = (at + next - 2) / 2.0;
        at = next;
    }
    fputs("\n\n# middle\tmode\n", data);
    for (int m = 0; m < MODES; m++)
        if (tried >> m & 1) fprintf(data, "%g\t%s\n", middle[m], search_modes[m]);
    fputs("\n\n", data);
    return tried;
}

int search_data(const struct search_calls *s, FILE *data, FILE *titles, FILE *tried) {
    int panels = 0;
    for (int i = 0, next; s && i < s->n; i = next, panels++) {
        int attempts = 0, unmeasured = 0, unpriced = 0;
        double cost = 0;
        next = end_model(s, i);
        for (int k = i, end; k < next; k = end) {
            end = end_mode(s, k);
            struct sums u = sums_of(s, k, end);
            attempts += u.attempts;
            unmeasured += u.unmeasured;
            unpriced += u.unpriced;
            cost += u.cost;
        }
        fprintf(titles, "%s\"%s, ", panels ? ", " : "", s->calls[i].gpu);
        quote_model(s->calls[i].model, 80, titles);
        /* a long name has a line of its own */
        fprintf(titles, ":%s%d attempts", strlen(s->calls[i].model) > 40 ? "\\n" : " ", attempts);
        if (unmeasured) fprintf(titles, " (%d not measured)", unmeasured);
        if (cost > 0 || !unpriced) fprintf(titles, ", %.2f USD", cost);
        if (unpriced) fprintf(titles, ", %d calls of unknown price", unpriced);
        fputs("\"", titles);
        fprintf(tried, "%s%d", panels ? ", " : "", blocks(s, i, next, data));
    }
    return panels;
}
