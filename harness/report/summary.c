/* summary.c: the table of README.md, between its markers: one row a GPU, and one a family on it. */
#include "report/report.h"
#include "report/markdown.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static const char begin_mark[] = "<!-- results:begin -->";
static const char end_mark[] = "<!-- results:end -->";

/* A geometric mean over the correct cells, and in brackets over all; a dash if there are none. */
static void put_both(const struct mean *m, FILE *out) {
    if (m->cells)
        fprintf(out, " %.3f (%.3f) |", m->over_correct.geomean, m->over_all.geomean);
    else
        fputs(" - |", out);
}

/* The row of a GPU, or of a family on it; none if no cell has a result or is left out. */
static void summary_row(const struct report *r, const struct column *c, const char *family,
                        const char *results, FILE *out) {
    struct aggregate a = report_aggregate(r, c, family);
    const struct mean *torch = &a.over[OVER_TORCH];
    if (!a.recorded && !a.left_out) return;
    fprintf(out, "| %s", c->name);
    if (family) fprintf(out, ", %s", family);
    if (*c->whole_name && !family) {
        fputs(" (", out);
        put_plain(c->whole_name, sizeof c->whole_name, out);
        fputc(')', out);
    }
    const struct tree *tree = report_tree(c, family);
    if (tree) fprintf(out, ", of %.7s", tree->commit);
    fputs(" |", out);
    put_both(torch, out);
    fprintf(out, " %d of %d", torch->cells, a.all);
    if (torch->same_board < torch->cells)
        fprintf(out, ", %d on another board", torch->cells - torch->same_board);
    if (torch->compiled < torch->cells)
        fprintf(out, ", %d without torch.compile", torch->cells - torch->compiled);
    fputs(" |", out);
    put_both(&a.over[OVER_TF32], out);
    put_both(&a.over[OVER_BASELINE], out);
    fprintf(out, " %d / %d |", a.correct, a.all);
    put_share(a.fast[FAST_1], a.all, out);
    put_share(a.significant, a.all, out);
    fprintf(out, " %d | [%s](%s/%s/README.md) |\n", a.left_out, c->name, results, c->name);
}

static const char explained[] =
    "\n- The three speedups are geometric means over the correct cells; in brackets, over all "
    "cells, where a missing or\n  wrong kernel counts as 1. A cell is one task on one GPU. A "
    "kernel "
    "whose class of error is worse than its task's\n  counts as not correct.\n"
    "- *PyTorch as it comes* has its default flags and is the fastest of eager call, graph replay "
    "and torch.compile.\n  *All TF32* is PyTorch with TF32 allowed everywhere. *PyTorch timed for* "
    "counts the cells that have its time, those\n  timed on another board than the kernel, and "
    "those without torch.compile.\n"
    "- The *baseline* is the library call, or chain of calls, of the kernel's class of error "
    "(fp32; f16 for half tensors).\n"
    "- *fast_1* is the share of all cells whose kernel is correct and faster than its baseline; "
    "*significantly faster*\n  is the share whose 95 % prediction interval lies above 1.\n"
    "- *Left out* are cells whose task, baseline or time cannot carry a number; no other column "
    "counts them. Tasks that are\n  the same problem count once in means. A family (tasks that "
    "differ in their sizes alone) has a row of its own.\n";

void report_summary(const struct report *r, const char *results, FILE *out) {
    if (!r->ncolumns) {
        fputs("No results are recorded yet: run `make reproduce` on a machine with a GPU.\n", out);
        return;
    }
    fputs(
        "| GPU | over PyTorch as it comes | PyTorch timed for | over PyTorch, all TF32 | over the "
        "baseline | correct / all | fast_1 | significantly faster | left out | page |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
        out);
    for (int i = 0; i < r->ncolumns; i++) {
        summary_row(r, &r->columns[i], NULL, results, out);
        for (int row = 0; row < r->nrows; row = report_next_suite(r, row))
            if (r->rows[row].family && !r->rows[row].own)
                summary_row(r, &r->columns[i], r->rows[row].suite, results, out);
    }
    fputs(explained, out);
    int stale = 0;
    for (int i = 0; i < r->ncolumns; i++) {
        const struct column *c = &r->columns[i];
        for (const struct tree *t = c->tree; t < c->tree + c->ntrees; t++) {
            fputc('\n', out);
            tree_line(t, c->name, "its results", out);
        }
        stale += c->nstale;
    }
    if (stale)
        fprintf(out,
                "\n**Stale: %d of these results.** What they were measured of has changed since; "
                "the rows of their\ncells say what.\n",
                stale);
    for (int i = 0; i < r->ncolumns; i++)
        if (r->columns[i].nunknown)
            fprintf(out,
                    "\n**%s: %d by earlier rules**: recorded before results had hashes of what "
                    "they were measured\nof. Kernels may be called fp32 there that are not.\n",
                    r->columns[i].name, r->columns[i].nunknown);
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
