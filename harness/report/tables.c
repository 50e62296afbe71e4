/* tables.c: the tables of README.md, between its markers. */
#include "report/report.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char begin_mark[] = "<!-- results:begin -->";
static const char end_mark[] = "<!-- results:end -->";
enum { OPEN_ROWS = 60 }; /* a longer table is folded away */

/* Text from a result or a task, on one line and without meaning in Markdown. */
static void plain(const char *s, int most, FILE *out) {
    int n = 0;
    for (; *s && n < most; s++, n++) {
        if ((unsigned char)*s < ' ')
            fputc(' ', out);
        else if (strchr("|<>&`[]*\\", *s))
            fprintf(out, "&#%d;", *s);
        else
            fputc(*s, out);
    }
    while (((unsigned char)*s & 0xc0) == 0x80) fputc(*s++, out); /* never half a character */
    if (*s) fputs("...", out);
}

/* Decimals that leave a time in microseconds with about four digits. */
static int digits(double us) {
    return us >= 1000 ? 0 : us >= 100 ? 1 : us >= 10 ? 2 : 3;
}

static void time_cell(double us, FILE *out) {
    if (us > 0)
        fprintf(out, " %.*f |", digits(us), us);
    else
        fputs(" - |", out);
}

/* Call f for each suite of the grid, in order. */
static void each_suite(const struct report *r, const struct column *c, FILE *out,
                       void (*f)(const struct report *, const struct column *, const char *,
                                 FILE *)) {
    int suites = 0;
    for (int i = 0; i < r->nrows; i++) {
        if (i && !strcmp(r->rows[i].suite, r->rows[i - 1].suite)) continue;
        f(r, c, r->rows[i].suite, out);
        suites++;
    }
    if (suites > 1) f(r, c, NULL, out);
}

static void count_row(const struct report *r, const struct column *c, const char *suite,
                      FILE *out) {
    struct aggregate a = report_aggregate(r, c, suite);
    fprintf(out, "| %s | %s | %d / %d |", c->name, suite ? suite : "**all**", a.correct, a.all);
    for (int p = 0; p < FAST_P; p++)
        if (a.all)
            fprintf(out, " %.0f %% |", 100.0 * a.fast[p] / a.all);
        else
            fputs(" - |", out);
    if (a.all)
        fprintf(out, " %.0f %% |", 100.0 * a.wins / a.all);
    else
        fputs(" - |", out);
    fprintf(out, " %d |\n", a.left_out);
}

static void spread_row(const struct spread *s, FILE *out) {
    if (s->n)
        fprintf(out, " %d | %.3f | %.3f | %.3f | %.3f to %.3f | %.2f |\n", s->n, s->geomean,
                s->median, s->mean, s->q1, s->q3, s->max);
    else
        fputs(" 0 | - | - | - | - | - |\n", out);
}

static void spread_rows(const struct report *r, const struct column *c, const char *suite,
                        FILE *out) {
    struct aggregate a = report_aggregate(r, c, suite);
    fprintf(out, "| %s | %s | all tasks |", c->name, suite ? suite : "**all**");
    spread_row(&a.over_all, out);
    fprintf(out, "| %s | %s | correct only |", c->name, suite ? suite : "**all**");
    spread_row(&a.over_correct, out);
}

static void aggregate_tables(const struct report *r, FILE *out) {
    fputs("| GPU | suite | correct / all | fast_0 | fast_0.5 | fast_0.8 | fast_1 | fast_1.5 | "
          "fast_2 | surely faster | left out |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
          out);
    for (int i = 0; i < r->ncolumns; i++) each_suite(r, &r->columns[i], out, count_row);
    fputs("\nfast_p: share of all tasks whose kernel is correct and more than p times as fast as "
          "its baseline.\nSurely faster: the low end of the 95 % interval is above 1. Left out: "
          "cells whose task,\nbaseline or time cannot carry a headline number (degenerate, "
          "no-influence, weak-baseline,\ndecoy-ratio, clocks-disagree); they are in no other "
          "column.\n\n",
          out);
    fputs("| GPU | suite | speedup over | n | geometric mean | median | mean | quartiles | "
          "maximum |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n",
          out);
    for (int i = 0; i < r->ncolumns; i++) each_suite(r, &r->columns[i], out, spread_rows);
    fputs("\nAll tasks: a cell that is missing, not measured or wrong counts as 1.0.\n", out);
}

/* The machine of a GPU's cells, from the first one that was timed. */
static void machine_line(const struct report *r, const struct column *c, FILE *out) {
    for (int i = 0; i < r->nrows; i++) {
        if (!result_ok(&c->cell[i])) continue;
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(c->cell[i].json, "machine");
        static const char *const key[] = {"gpu_name", "driver", "cuda", "cublas", "cudnn"};
        static const char *const word[] = {"", ", driver ", ", CUDA ", ", cuBLAS ", ", cuDNN "};
        for (int k = 0; k < 5; k++) {
            if (!*json_text(m, key[k], "")) continue;
            fputs(word[k], out);
            plain(json_text(m, key[k], ""), 60, out);
        }
        double watts = json_number(m, "power_limit_w", NAN);
        if (watts > 0) fprintf(out, ", %.0f W", watts);
        fputs(".\n\n", out);
        return;
    }
}

/* What there is to say of a cell beside its numbers: flags, or why it failed. */
static void remarks(const struct report *r, const struct column *c, int row, FILE *out) {
    const struct result *cell = &c->cell[row];
    int said = 0;
    if (*cell->verdict && !result_ok(cell) && *cell->reason) {
        plain(cell->reason, 120, out);
        said++;
    }
    if (r->rows[row].left_out && !cell->nflags) {
        fputs(said++ ? "; left out" : "left out", out);
    }
    for (int i = 0; i < cell->nflags; i++) {
        if (said++) fputs("; ", out);
        plain(cell->flags[i], 80, out);
    }
    fputs(" |\n", out);
}

static void cell_row(const struct report *r, const struct column *c, int row,
                     const struct table *published, FILE *out) {
    const struct result *cell = &c->cell[row];
    const char *how = "";
    if (!*cell->verdict) {
        fprintf(out, "| %s | not measured | - | - | - | - | - | - | - | ", r->rows[row].task);
        remarks(r, c, row, out);
        return;
    }
    fprintf(out, "| %s | %s | %s |", r->rows[row].task, cell->verdict,
            *cell->class ? cell->class : "-");
    time_cell(cell->candidate_us, out);
    time_cell(cell->against_us, out);
    if (result_ok(cell))
        fprintf(out, " **%.3f** (%.3f to %.3f) |", cell->ratio, cell->low, cell->high);
    else
        fputs(" - |", out);
    if (result_ok(cell) && cell->floor_us > 0)
        fprintf(out, " %.0f %% |", 100 * cell->floor_us / cell->candidate_us);
    else
        fputs(" - |", out);
    double us = torch_time(c, published, cell->task, cell->class, &how);
    if (us > 0)
        fprintf(out, " %.*f (%s) |", digits(us), us, how);
    else
        fputs(" - |", out);
    time_cell(torch_compiled(c, cell->task, cell->class), out);
    fputc(' ', out);
    remarks(r, c, row, out);
}

static void cell_table(const struct report *r, const struct column *c,
                       const struct table *published, FILE *out) {
    fprintf(out, "\n### %s%s%s\n\n", c->name, *c->arch ? ", " : "", c->arch);
    machine_line(r, c, out);
    if (r->nrows > OPEN_ROWS) fputs("<details><summary>every cell</summary>\n\n", out);
    fputs(
        "| task | verdict | class | kernel, us | baseline, us | speedup (95 %) | of floor | "
        "PyTorch, us | torch.compile, us | remarks |\n|---|---|---|--:|--:|--:|--:|--:|--:|---|\n",
        out);
    for (int i = 0; i < r->nrows; i++) cell_row(r, c, i, published, out);
    if (r->nrows > OPEN_ROWS) fputs("\n</details>\n", out);
}

void report_tables(const struct report *r, const struct table *published, FILE *out) {
    if (!r->ncolumns) {
        fputs("No results are recorded yet: run `make reproduce` on a machine with a GPU.\n", out);
        return;
    }
    aggregate_tables(r, out);
    for (int i = 0; i < r->ncolumns; i++) cell_table(r, &r->columns[i], published, out);
    fputs("\nTimes are mid-means (mean of the middle half). Of floor: the time that the "
          "compulsory bytes and\nflops take at this machine's measured peaks, over the kernel's "
          "time; products of class fp32 count at a\nthird of the f16 peak where that is more than "
          "the fp32 peak. PyTorch: the faster of an eager call and\na graph replay, in the "
          "arithmetic of the kernel's class, measured apart from the rest\n(`results/pytorch/`); "
          "for a GPU that has no such file, one eager call as published\n"
          "(`results/published/`); - where there is none.\n",
          out);
    torch_baselines(r, out);
    search_table(r->search, out);
}

void report_readme(const struct report *r, const struct table *published, const char *readme) {
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
    report_tables(r, published, out);
    fprintf(out, "\n%s", end);
    fclose(out);
    if (strcmp(old, text)) file_replace(readme, text);
    free(text);
    free(old);
}
