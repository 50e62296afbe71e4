/* page.c: the page of a GPU, RESULTS/GPU/README.md: its machine, its sums (suites.c), its cells,
 * and PyTorch beside our baselines (parity.c). */
#include "report/report.h"
#include "report/markdown.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BIG_SUITE = 100,  /* a suite with more recorded cells is not listed whole */
    EXTREMES = 10,    /* of a big suite: its fastest and its slowest cells */
    NAMED_ABSENT = 20 /* tasks that were not measured and are named */
};

/* The machine of a GPU's cells, from the first one that was timed; nothing if none was. */
static void machine_line(const struct report *r, const struct column *c, FILE *out) {
    static const char *const key[] = {"gpu_name", "driver", "cuda", "cublas", "cudnn"};
    static const char *const word[] = {"", ", driver ", ", CUDA ", ", cuBLAS ", ", cuDNN "};
    int row = 0;
    while (row < r->nrows && !result_ok(&c->cell[row])) row++;
    if (row == r->nrows) return;
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(c->cell[row].json, "machine");
    for (int k = 0; k < 5; k++) {
        if (!*json_text(m, key[k], "")) continue;
        fputs(word[k], out);
        put_plain(json_text(m, key[k], ""), 60, out);
    }
    double watts = json_number(m, "power_limit_w", NAN);
    if (watts > 0) fprintf(out, ", %.0f W", watts);
    fputs(".\n\n", out);
}

/* ---- cells ---- */

/* Whether there is no kernel for it. */
static bool is_missing(const struct result *cell) {
    return !strcmp(cell->verdict, "missing");
}

/* The class of the baseline that the speedup is over, where it is another than the one it is named
 * after: cuDNN may choose an algorithm that is less accurate, and faster.  NULL if it is not, or is
 * not known. */
static const char *lesser_baseline(const struct result *cell) {
    const cJSON *classes = cJSON_GetObjectItemCaseSensitive(cell->json, "baseline_class");
    if (!result_ok(cell) || !classes) return NULL;
    const char *class = json_text(classes, cell->against, "a lesser class");
    return strcmp(class, cell->against) && strcmp(cell->against, "tf32") ? class : NULL;
}

/* What there is to say of a cell beside its numbers: why it failed, what its baseline is, and its
 * flags. */
static void remarks(const struct report *r, const struct column *c, int row, FILE *out) {
    const struct result *cell = &c->cell[row];
    int said = 0;
    if (!result_ok(cell) && !is_missing(cell) && *cell->reason) {
        put_plain(cell->reason, 120, out);
        said++;
    }
    if (r->rows[row].left_out && !cell->nflags) fputs(said++ ? "; left out" : "left out", out);
    const char *lesser = lesser_baseline(cell);
    if (lesser) fprintf(out, "%sthe baseline is of %s", said++ ? "; " : "", lesser);
    const char *stale = c->stale ? stale_remark(c, &r->rows[row], row) : "";
    if (*stale) fprintf(out, "%s%s", said++ ? "; " : "", stale);
    if (c->stale && c->stale[row].newer)
        fprintf(out, "%sits kernel is newer, and not measured", said++ ? "; " : "");
    for (int i = 0; i < cell->nflags; i++) {
        if (!flag_is_listed(cell, i)) continue;
        if (said++) fputs("; ", out);
        put_plain(cell->flags[i], 80, out);
    }
    fputs(" |\n", out);
}

/* A speedup and its prediction, which names the boards that it is by, if these are of another
 * GPU. */
static void put_speedup(const struct boards *known, const struct result *cell, FILE *out) {
    struct prediction p = {0};
    if (result_ok(cell)) p = boards_predict(known, cell);
    if (!p.boards) {
        fputs(" - |", out);
        return;
    }
    fprintf(out, " **%.3f** (%.3f to %.3f", cell->ratio, p.low, p.high);
    if (p.boards == 1)
        fputs(", one board", out);
    else if (strcmp(p.of, cell->gpu))
        fprintf(out, ", boards of %s", p.of);
    fputs(") |", out);
}

/* Write " 2.13 |": a ratio without an interval; a star if the two were measured on two boards. */
static void put_ratio(const struct column *c, int row, enum over over, FILE *out) {
    double ratio = report_ratio(c, row, over);
    if (ratio > 0)
        fprintf(out, " %.3f%s |", ratio, report_same_board(c, row, over) ? "" : "\\*");
    else
        fputs(" - |", out);
}

/* PyTorch's time for a cell as it comes, and both ratios over PyTorch. */
static void put_torch(const struct column *c, int row, FILE *out) {
    const char *how = "";
    double us = torch_time(c, row, TORCH_DEFAULT, &how);
    if (us > 0)
        fprintf(out, " %.*f (%s) |", time_decimals(us), us, how);
    else
        fputs(" - |", out);
    put_ratio(c, row, OVER_TORCH, out);
    put_ratio(c, row, OVER_TF32, out);
}

/* The time of the baseline: of a cell without a kernel, that of the most accurate one, which is
 * named first.  0 if none was timed. */
static double baseline_us(const struct result *cell) {
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(cell->json, "time_us");
    return is_missing(cell) && times ? result_number(times->child, "midmean") : cell->against_us;
}

/* The row of a recorded cell. */
static void cell_row(const struct report *r, const struct column *c, int row, FILE *out) {
    const struct result *cell = &c->cell[row];
    bool ok = result_ok(cell);
    fprintf(out, "| %s | %s | %s |", r->rows[row].task, cell->verdict,
            *cell->class ? cell->class : "-");
    put_time(cell->candidate_us, out);
    put_time(baseline_us(cell), out);
    put_speedup(&r->boards, cell, out);
    if (ok && cell->floor_us > 0)
        fprintf(out, " %.0f %% |", 100 * cell->floor_us / cell->candidate_us);
    else
        fputs(" - |", out);
    put_torch(c, row, out);
    fputc(' ', out);
    remarks(r, c, row, out);
}

/* A table of some cells. */
static void cell_table(const struct report *r, const struct column *c, const int *row, int n,
                       FILE *out) {
    fputs("| task | verdict | class | kernel, us | baseline, us | speedup (95 %) | of floor | "
          "PyTorch, us | over PyTorch | over TF32 | remarks |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
          out);
    for (int i = 0; i < n; i++) cell_row(r, c, row[i], out);
    fputc('\n', out);
}

struct ranked { /* a correct cell */
    double ratio;
    int row;
};

/* qsort order: the slowest first. */
static int by_ratio(const void *x, const void *y) {
    const struct ranked *a = x, *b = y;
    if (a->ratio != b->ratio) return a->ratio < b->ratio ? -1 : 1;
    return a->row - b->row;
}

/* Of a suite with many recorded cells: the fastest, the slowest, and those that are not correct,
 * are left out or of another class. */
static void big_suite(const struct report *r, const struct column *c, const int *row, int n,
                      FILE *out) {
    struct ranked *rank = calloc((size_t)n, sizeof *rank);
    int *odd = calloc((size_t)n, sizeof *odd), some[EXTREMES], nranked = 0, nodd = 0;
    if (!rank || !odd) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) {
        const struct result *cell = &c->cell[row[i]];
        if (report_counts(r, c, row[i]))
            rank[nranked++] = (struct ranked){cell->ratio, row[i]};
        else
            odd[nodd++] = row[i];
    }
    qsort(rank, (size_t)nranked, sizeof *rank, by_ratio);
    int most = nranked < EXTREMES ? nranked : EXTREMES;
    fprintf(out,
            "Of %d recorded cells, %d are listed here: the %d fastest, the %d slowest, and those "
            "that are not\nok, left out, or of another class. All are in this folder, and in "
            "[speedup.tsv](../../plots/data/speedup.tsv) if they are ok.\n\n",
            n, 2 * most + (nodd < BIG_SUITE ? nodd : BIG_SUITE), most, most);
    for (int i = 0; i < most; i++) some[i] = rank[nranked - 1 - i].row;
    fprintf(out, "The %d fastest:\n\n", most);
    cell_table(r, c, some, most, out);
    for (int i = 0; i < most; i++) some[i] = rank[i].row;
    fprintf(out, "The %d slowest:\n\n", most);
    cell_table(r, c, some, most, out);
    if (nodd) fputs("Not ok, left out, or of another class:\n\n", out);
    if (nodd) cell_table(r, c, odd, nodd < BIG_SUITE ? nodd : BIG_SUITE, out);
    if (nodd > BIG_SUITE) fprintf(out, "And %d more of these.\n\n", nodd - BIG_SUITE);
    free(rank);
    free(odd);
}

/* Name the tasks from..to that have no result; nothing if all have one. */
static void absent_line(const struct report *r, const struct column *c, int from, int to,
                        FILE *out) {
    int absent = 0;
    for (int i = from; i < to; i++) {
        if (*c->cell[i].verdict) continue;
        if (absent == 0) fputs("Not measured: ", out);
        if (absent < NAMED_ABSENT) fprintf(out, "%s%s", absent ? ", " : "", r->rows[i].task);
        absent++;
    }
    if (absent > NAMED_ABSENT) fprintf(out, " and %d more", absent - NAMED_ABSENT);
    if (absent) fputs(".\n\n", out);
}

/* The cells of the suite from row `from` to row `to`. */
static void suite_cells(const struct report *r, const struct column *c, int from, int to,
                        FILE *out) {
    int *row = calloc((size_t)(to - from), sizeof *row), n = 0;
    if (!row) die(KP_MACHINE, "out of memory");
    for (int i = from; i < to; i++)
        if (*c->cell[i].verdict) row[n++] = i;
    fprintf(out, "### %s\n\n", r->rows[from].suite);
    if (n > BIG_SUITE)
        big_suite(r, c, row, n, out);
    else if (n)
        cell_table(r, c, row, n, out);
    absent_line(r, c, from, to, out);
    free(row);
}

static const char columns[] =
    "Times are interquartile means: means of the middle half. *Speedup* is the baseline's time "
    "over the kernel's,\nand where another run on another board falls in 95 % of cases "
    "([reruns](../reruns/README.md)); *one board*: nothing\nis known of others, and the interval "
    "is "
    "that of this run. *Of floor* is the time that the compulsory bytes "
    "and flops take at this machine's\nmeasured peaks, over the kernel's time; products of class "
    "fp32 count at a third of the f16 peak if that\nis more than the fp32 peak. *PyTorch* is its "
    "fastest time as it comes, and *over PyTorch* that time over\nthe kernel's; *over TF32* is "
    "the same with TF32 allowed everywhere. They have no interval. A star marks\na ratio of times "
    "from two boards, and a dash a cell that PyTorch was not measured for\n"
    "([pytorch](../pytorch)). What a result file says is in [SCHEMA.md](../SCHEMA.md).\n";

void report_page(const struct report *r, const struct column *c, FILE *out) {
    fprintf(out, "# Results on %s%s%s\n\n", c->name, *c->arch ? ", " : "", c->arch);
    machine_line(r, c, out);
    stale_line(c, out);
    report_suites(r, c, out);
    fputs("\n## Cells\n\n", out);
    for (int i = 0, next; i < r->nrows; i = next) {
        next = report_next_suite(r, i);
        suite_cells(r, c, i, next, out);
    }
    fputs(columns, out);
    report_parity(r, c, out);
}

/* Write the page of searches.  If none is recorded, a page that is there says so. */
static void search_page(const struct report *r, const char *results) {
    char *text = NULL, *path = text_format("%s/search/README.md", results);
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) die(KP_MACHINE, "out of memory");
    search_table(r->search, out);
    if (!r->search) fputs("# Searches\n\nNone is recorded.\n", out);
    fclose(out);
    if (r->search || access(path, F_OK) == 0) page_write(path, text);
    free(text);
    free(path);
}

void report_pages(const struct report *r, const char *results) {
    for (int i = 0; i < r->ncolumns; i++) {
        char *text = NULL, *path = text_format("%s/%s/README.md", results, r->columns[i].name);
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        if (!out) die(KP_MACHINE, "out of memory");
        report_page(r, &r->columns[i], out);
        fclose(out);
        page_write(path, text);
        free(text);
        free(path);
    }
    search_page(r, results);
}
