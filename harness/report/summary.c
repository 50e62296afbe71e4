/* summary.c: the table of README.md, between its markers: one row a GPU. */
#include "report/report.h"
#include "report/markdown.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static const char begin_mark[] = "<!-- results:begin -->";
static const char end_mark[] = "<!-- results:end -->";

/* A figure over the correct cells, and in brackets over all; a dash if there are none. */
static void both(double correct, double all, const struct aggregate *a, FILE *out) {
    if (a->correct)
        fprintf(out, " %.3f (%.3f) |", correct, all);
    else
        fputs(" - |", out);
}

/* The row of a GPU. */
static void summary_row(const struct report *r, const struct column *c, const char *results,
                        FILE *out) {
    struct aggregate a = report_aggregate(r, c, NULL);
    fprintf(out, "| %s", c->name);
    if (*c->whole_name) {
        fputs(" (", out);
        put_plain(c->whole_name, sizeof c->whole_name, out);
        fputc(')', out);
    }
    fprintf(out, " | %d / %d |", a.correct, a.all);
    put_share(a.correct, a.all, out);
    put_share(a.fast[FAST_1], a.all, out);
    both(a.over_correct.geomean, a.over_all.geomean, &a, out);
    both(a.over_correct.median, a.over_all.median, &a, out);
    put_share(a.significant, a.all, out);
    fprintf(out, " %d | [%s](%s/%s/README.md) |\n", a.left_out, c->name, results, c->name);
}

void report_summary(const struct report *r, const char *results, FILE *out) {
    if (!r->ncolumns) {
        fputs("No results are recorded yet: run `make reproduce` on a machine with a GPU.\n", out);
        return;
    }
    fputs("| GPU | correct / all | coverage | fast_1 | geometric mean | median | significantly "
          "faster | left out | every cell |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
          out);
    for (int i = 0; i < r->ncolumns; i++) summary_row(r, &r->columns[i], results, out);
    fputs("\nA cell is one task on one GPU. Coverage is the share of all cells whose kernel is "
          "correct; fast_1 the\nshare whose kernel is correct and faster than its baseline; "
          "significantly faster the share where the\nwhole predicted interval of the speedup is "
          "above "
          "1. Geometric mean and median are of the speedup over the\nbaseline: first over the "
          "correct cells, then, in brackets, over all cells, where a missing or wrong one\ncounts "
          "as 1. Left out are cells whose task, baseline or time cannot carry a number; no other "
          "column\ncounts them.\n",
          out);
    int stale = 0;
    for (int i = 0; i < r->ncolumns; i++) stale += r->columns[i].nstale;
    if (stale)
        fprintf(out,
                "\n**Stale: %d of these results.** What they were measured of has changed since; "
                "the rows of their\ncells say what.\n",
                stale);
    if (r->search)
        fprintf(out, "\nWhat searches with models found: [%s/search](%s/search/README.md).\n",
                results, results);
}

void report_readme(const struct report *r, const char *results, const char *readme) {
    char *old = file_read(readme, NULL), *text = NULL;
    size_t size = 0;
    char *begin = strstr(old, begin_mark);
    char *end = begin ? strstr(begin, end_mark) : NULL;
    if (!end)
        die(KP_INPUT, "%s: expected a line %s and below it a line %s; put them back", readme,
            begin_mark, end_mark);
    FILE *out = open_memstream(&text, &size);
    if (!out) die(KP_MACHINE, "out of memory");
    fwrite(old, 1, (size_t)(begin - old) + strlen(begin_mark), out);
    fputs("\n\n", out);
    report_summary(r, results, out);
    fprintf(out, "\n%s", end);
    fclose(out);
    file_update(readme, text);
    free(text);
    free(old);
}
