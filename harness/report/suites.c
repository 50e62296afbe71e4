/* suites.c: the sums on the page of a GPU: by suite, by class, by kind of op and opponent, and
 * which tasks count as one. */
#include "report/report.h"
#include "report/markdown.h"

#include <string.h>

typedef void suite_row(const struct report *, const struct column *, const char *suite, FILE *);

/* Call f for each suite of the grid, in order, and for all of them (NULL) if there are several. */
static void each_suite(const struct report *r, const struct column *c, FILE *out, suite_row *f) {
    int suites = 0;
    for (int i = 0; i < r->nrows; i = report_next_suite(r, i), suites++)
        f(r, c, r->rows[i].suite, out);
    if (suites > 1) f(r, c, NULL, out);
}

/* ---- how many, how fast ---- */

/* suite_row: how many cells are correct and how fast. */
static void count_row(const struct report *r, const struct column *c, const char *suite,
                      FILE *out) {
    struct aggregate a = report_aggregate(r, c, suite);
    fprintf(out, "| %s | %d / %d |", suite ? suite : "**all**", a.correct, a.all);
    for (int p = 0; p < FAST_P; p++) put_share(a.fast[p], a.all, out);
    put_share(a.significant, a.all, out);
    fprintf(out, " %d | %d |\n", a.other_class, a.left_out);
}

/* A row of means and quartiles, and how many of the cells have what they are of; `reach` is that of
 * the geometric mean, or 0. */
static void spread_row(const char *name, const char *of, int cells, int all, const struct spread *s,
                       double reach, FILE *out) {
    fprintf(out, "| %s | %s | %d / %d | %d |", name, of, cells, all, s->n);
    if (s->n) {
        put_geomean(s->geomean, reach, out);
        fprintf(out, " %.3f | %.3f | %.3f to %.3f | %.2f |\n", s->median, s->mean, s->q1, s->q3,
                s->max);
    } else {
        fputs(" - | - | - | - | - |\n", out);
    }
}

/* suite_row: two rows of speedups, over all tasks and over the correct ones. */
static void spread_rows(const struct report *r, const struct column *c, const char *suite,
                        FILE *out) {
    struct aggregate a = report_aggregate(r, c, suite);
    const struct mean *m = &a.over[OVER_BASELINE];
    const char *name = suite ? suite : "**all**";
    spread_row(name, "all tasks", a.correct, a.all, &m->over_all, 0, out);
    spread_row(name, "correct only", a.correct, a.all, &m->over_correct, m->reach, out);
}

/* A row for each class that a kernel has and its task does not ask for. */
static void class_rows(const struct report *r, const struct column *c, FILE *out) {
    int all = report_aggregate(r, c, NULL).all;
    for (int i = 0; i < r->nrows; i++) {
        const struct selection s = {.class = c->cell[i].class};
        bool first = true;
        for (int j = 0; j < i; j++) first &= strcmp(c->cell[j].class, s.class) != 0;
        if (!first || !*s.class) continue;
        struct aggregate a = report_select(r, c, &s);
        const struct mean *m = &a.over[OVER_BASELINE];
        if (m->cells)
            spread_row("**all**", s.class, m->cells, all, &m->over_correct, m->reach, out);
    }
}

/* Both tables of suites. */
static void suite_tables(const struct report *r, const struct column *c, FILE *out) {
    fputs("## Suites\n\n| suite | correct / all | fast_0 | fast_0.5 | fast_0.8 | fast_1 | "
          "fast_1.5 "
          "| fast_2 | significantly faster | another class | left out |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
          out);
    each_suite(r, c, out, count_row);
    fputs("\nfast_p is the share of all tasks whose kernel is correct and more than p times as "
          "fast as its\nbaseline. Significantly faster means that the low end of the predicted "
          "interval "
          "is above 1. Kernels of another\nclass than their task's own (fp32; f16 or bf16 where "
          "its tensors are) count as missing. Left out are cells\nwhose task, baseline or time "
          "cannot carry a headline number (degenerate, no-influence, cannot-tell,\nweak-baseline, "
          "control-ratio, clocks-disagree, slow-quarter, throttled, below-floor). No other column "
          "counts "
          "them. The shapes of a\nfamily are in its row, and not in that of all.\n\n",
          out);
    fputs("| suite | speedup over | kernels / tasks | n | geometric mean (95 %) | median | mean | "
          "quartiles | "
          "maximum |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
          out);
    each_suite(r, c, out, spread_rows);
    class_rows(r, c, out);
    fputs(
        "\nThese are speedups over the baseline of the class; *kernels* are those of their "
        "tasks' class, n "
        "counts problems. Over all tasks, "
        "a cell that is missing,\nnot measured or wrong counts as 1.0. In brackets: where the mean "
        "over the same cells falls in 95 % of runs on another board\n"
        "([reruns](../reruns/README.md); a GPU with too few boards borrows those of another).\n",
        out);
}

/* ---- what vanishes ---- */

/* Write " 2.95 |": the geometric mean over the correct cells, or a dash. */
static void put_mean(const struct mean *m, FILE *out) {
    if (m->cells)
        fprintf(out, " %.3f |", m->over_correct.geomean);
    else
        fputs(" - |", out);
}

/* The row of some cells; none if no cell is correct. */
static void whom_row(const struct report *r, const struct column *c, const struct selection *s,
                     const char *name, const char *class, FILE *out) {
    struct aggregate a = report_select(r, c, s);
    const struct mean *torch = &a.over[OVER_TORCH];
    if (!a.correct) return;
    fprintf(out, "| %s%s%s | %d / %d | %d |", name, *class ? ", " : "", class, a.correct, a.all,
            a.over[OVER_BASELINE].over_correct.n);
    for (int o = 0; o < OVERS; o++) put_mean(&a.over[o], out);
    fprintf(out, " %d of %d | %d | %d |\n", torch->faster, torch->cells, torch->compiled,
            torch->same_board);
}

/* The table of kinds and opponents. */
static void whom_table(const struct report *r, const struct column *c, FILE *out) {
    static const char *const class[] = {"fp32", "f16", "bf16"};
    fputs("\n## What vanishes\n\n| kind | kernels / tasks | problems | over the baseline | over "
          "PyTorch as it "
          "comes | over PyTorch, all TF32 | faster than PyTorch | torch.compile's time | on one "
          "board |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
          out);
    for (int k = KP_OP_KINDS; k-- > 0;)
        for (int i = 0; i < 3; i++) {
            const char *kind = kp_kind_name((enum kp_op_kind)k);
            const struct selection s = {.kind = kind, .own_class = class[i]};
            whom_row(r, c, &s, kind, i ? class[i] : "", out);
        }
    const struct selection all = {0};
    whom_row(r, c, &all, "**all**", "", out);
    fputs("\nGeometric means over the correct cells, by the heaviest op of the task: what is left "
          "of the speedup over the\nbaseline of the kernel's class where the opponent is PyTorch "
          "with its default flags (TF32 in convolutions alone),\nor PyTorch with TF32 everywhere. "
          "PyTorch is the fastest of eager call, graph replay and torch.compile,\nmeasured apart "
          "from the rest; its columns are over the cells that have its time. Where torch.compile "
          "was not\nmeasured the fastest is of the other two, and PyTorch may be faster than it "
          "seems. *On one board* counts the cells where\nboth were measured on the same one.",
          out);
    fprintf(out, " %s%s.\n", c->torch ? "PyTorch's times: " : "Nothing was measured with PyTorch",
            c->torch ? c->torch_from : "");
}

/* The tasks that count as one; nothing if there are none. */
static void twins(const struct report *r, FILE *out) {
    int groups = 0;
    for (int i = 0; i < r->nrows; i++) {
        int members = 1;
        for (int j = i + 1; j < r->nrows && r->rows[i].twin == i; j++) {
            if (r->rows[j].twin != i) continue;
            if (members++ == 1)
                fprintf(out, "%s%s", groups++ ? "; " : "\nThe same problem: ", r->rows[i].task);
            fprintf(out, " = %s", r->rows[j].task);
        }
    }
    if (groups)
        fputs(".\nTasks with the same graph, shapes, types and attributes are one problem "
              "(`build/task meaning`). It counts\nonce in means, by the geometric mean of its "
              "ratios. Its cells are counted each.\n",
              out);
}

void report_suites(const struct report *r, const struct column *c, FILE *out) {
    suite_tables(r, c, out);
    if (shapes_shown(r, c))
        fputs("\n![speedup of families of products by M N and K](../../plots/shapes.svg)\n"
              "\n![its distribution over each of the libraries' calls, and by size]"
              "(../../plots/curves.svg)\n",
              out);
    shapes_tables(r, c, out);
    if (beside_shown(r, c))
        fputs("\n![speedups of a family behind an emptied L2 and in other modes, and of CUDA-L2's "
              "kernels](../../plots/beside.svg)\n",
              out);
    beside_tables(r, c, out);
    whom_table(r, c, out);
    twins(r, out);
}
