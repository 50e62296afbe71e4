/* reruns.c: the page of reruns, RESULTS/reruns/README.md: how far speedups scatter between boards
 * and between runs, and how often predictions hold. */
#include "report/report.h"
#include "report/markdown.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

/* A part of n in per cent; a dash if there are none. */
static void put_part(int part, int n, FILE *out) {
    if (n)
        fprintf(out, " %.1f %% |", 100.0 * part / n);
    else
        fputs(" - |", out);
}

/* The row of a GPU and a kind of bound; nothing if no pair of runs says anything. */
static void scatter_row(const struct boards_of *of, enum bound bound, bool same, FILE *out) {
    const struct scatter *s = same ? &of->reruns[bound] : &of->between[bound];
    if (s->freedom == 0) return;
    struct coverage c = boards_coverage(of, bound, same);
    fprintf(out, "| %s | %s | %d | %d | %.2f %% | %.2f | %d |", of->gpu, bound_name[bound],
            s->freedom + !same, s->pairs, 100 * sqrt(s->variance), stat_student(s->freedom),
            c.pairs);
    put_part(c.inside, c.pairs, out);
    put_part(c.own, c.pairs, out);
    fputc('\n', out);
}

/* The row of a GPU's whole boards; nothing if too few share cells. */
static void shift_row(const struct boards_of *of, FILE *out) {
    const struct scatter *s = &of->shift;
    if (s->freedom == 0) return;
    struct coverage c = boards_shift_coverage(of);
    double deviation = sqrt(s->variance);
    fprintf(out, "| %s | %d | %d | %.2f %% | %.2f | %d |", of->gpu, s->freedom + 1, s->pairs,
            100 * deviation, stat_student(s->freedom), c.pairs);
    put_part(c.inside, c.pairs, out);
    put_part(c.own, c.pairs, out);
    fputc('\n', out);
}

/* The table of whole boards. */
static void shift_table(const struct boards *known, FILE *out) {
    fprintf(
        out,
        "\n## Means on two boards\n\nEach pair is of two boards that share %d cells or more, and "
        "of the mean logarithm over these: what each cell does by\nitself cancels in it, what a "
        "board does to all of them stays.\n\n| GPU | boards | pairs | scatter | t | pairs tried "
        "| inside the prediction | inside the cells' own scatter |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|\n",
        SHARED_CELLS);
    for (int i = 0; i < known->n; i++) shift_row(&known->of[i], out);
}

/* A table of all GPUs. */
static void scatter_table(const struct boards *known, bool same, const char *units, FILE *out) {
    fprintf(out,
            "| GPU | bound by | %s | pairs | scatter | t | pairs tried | inside the prediction | "
            "inside own intervals |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
            units);
    for (int i = 0; i < known->n; i++)
        for (int k = 0; k < BOUNDS; k++) scatter_row(&known->of[i], (enum bound)k, same, out);
}

void report_reruns(const struct report *r, const char *results) {
    char *text = NULL, *path = text_format("%s/reruns/README.md", results);
    size_t size = 0;
    FILE *out = r->boards.n ? open_memstream(&text, &size) : NULL;
    if (r->boards.n && !out) die(KP_MACHINE, "out of memory");
    if (out) {
        fputs(
            "# Runs on several boards\n\n"
            "How far the speedup of a cell scatters where the same files run again, beyond what "
            "the interval of each\nrun says. *Scatter* is a standard deviation, estimated from "
            "all pairs. A prediction is Student's *t* times\nthe standard deviation of a "
            "difference: of both runs' own intervals and twice the scatter. To try it, each\nboard "
            "is left out in turn, the scatter is estimated from the others, and the pairs of the "
            "board that was\nleft out are counted, so a pair of two boards counts twice; a dash "
            "means "
            "that too few boards are left for\nthat. 95 % should be inside.\n\n## Two boards\n\n",
            out);
        scatter_table(&r->boards, false, "boards", out);
        fputs("\n## Two runs on one board, in fresh processes\n\n", out);
        scatter_table(&r->boards, true, "reruns of boards", out);
        shift_table(&r->boards, out);
        fclose(out);
        page_write(path, text);
    }
    free(text);
    free(path);
}
