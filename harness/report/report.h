/* report.h: what the parts of `report` share.
 *
 * Recorded results form a grid, tasks down and GPUs across.  Every number of the pages and figures
 * comes from this grid; nothing is typed. */
#ifndef KP_REPORT_H
#define KP_REPORT_H

#include "record/boards.h"
#include "record/result.h"
#include "task/op.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct row { /* a task */
    char task[64];
    char suite[24];
    bool own;      /* of a suite that is not published: in no row of all, and not in README */
    bool family;   /* one of a family's shapes, which would outnumber the rest: in no row of all */
    bool left_out; /* the task itself is flagged, whatever its results say */
    char *meaning;   /* what it computes (task_text_meaning); NULL if its graph cannot be read */
    char class[8];   /* its own, by its tensors: f16, bf16 or fp32; "", any, without a meaning */
    enum kp_op_kind kind; /* elementwise without a meaning */
    int twin;             /* the first row that means the same: its own, if no earlier one does */
};

/* PyTorch's flags of precision: as it comes (TF32 in convolutions alone), TF32 nowhere, and
 * everywhere.  How it runs a task: a call, a replay, or compiled. */
enum torch_flags { TORCH_DEFAULT, TORCH_FP32, TORCH_TF32, TORCH_FLAGS };
enum torch_way { TORCH_EAGER, TORCH_GRAPH, TORCH_COMPILED, TORCH_WAYS };

extern const char *const torch_flags_name[TORCH_FLAGS], *const torch_way_name[TORCH_WAYS];

/* Where a time was measured, seen from the cell's result. */
enum torch_beside { TORCH_ELSEWHERE, TORCH_SAME_BOARD, TORCH_SAME_DAY };

struct torch {                          /* PyTorch's times for a task, in microseconds */
    double us[TORCH_FLAGS][TORCH_WAYS]; /* 0 if not measured */
    enum torch_beside beside[TORCH_FLAGS][TORCH_WAYS];
};

/* What stands beside the headline of a family of products: its own kernel back to back and after
 * gaps, and CUDA-L2's kernel, as judged here and as published. */
enum {
    BESIDE_OFFLINE,
    BESIDE_SERVER,
    BESIDE_THEIRS,
    BESIDE_PUBLISHED_OFFLINE,
    BESIDE_PUBLISHED_SERVER,
    BESIDES
};

struct beside {
    double ratio[BESIDES]; /* over the fastest of the libraries' calls; 0 if there is none */
    char verdict[16];      /* of CUDA-L2's kernel; "" if it was not judged */
};

struct staleness {    /* of a recorded result: whether what it was measured of has changed since */
    bool unknown;     /* it was recorded before hashes of its inputs were */
    bool newer;       /* the cell had no kernel then, and has one now */
    char changed[48]; /* "kernel, harness"; "" if nothing has, or nobody can tell */
};

enum { KP_MOST_TREES = 4 };

struct tree {        /* which results of a GPU are of another tree than this */
    char commit[41]; /* whose */
    char family[32]; /* a family's, or ""; then all that no other says */
    int nown;        /* results whose kernel or task has changed since */
    int nrest;       /* others, of which only the reference or the harness has */
};

struct column {              /* a GPU with recorded results */
    char name[32];           /* its folder: h200 */
    char whole_name[80];     /* "NVIDIA H200", or "" if no result says */
    char arch[16];           /* sm_90, or "" if no result says */
    bool arch_of_machine;    /* from the machine, not from what a kernel was compiled for */
    struct result *cell;     /* one a row; verdict "" where nothing was recorded */
    struct staleness *stale; /* one a row; NULL until report_staleness() */
    int nstale, nunknown;    /* without those that are said to be of another tree */
    struct tree tree[KP_MOST_TREES];
    int ntrees;
    struct torch *torch;    /* one a row, from RESULTS/pytorch/NAME.csv; NULL without that file */
    char *torch_from;       /* its versions and dates; NULL without that file */
    struct beside *beside;  /* one a row; NULL if nothing stands there */
    char published_for[32]; /* the GPU for which CUDA-L2's numbers there were published; "": none */
};

struct report {
    int nrows;
    struct row *rows;  /* by suite, then by name */
    int likely_row;    /* where the search for a task begins */
    const char *shown; /* the suites beside the published ones that have rows; NULL: all */
    bool rows_known;   /* they come from tasks/: a result of any other task is refused */
    int ncolumns;
    struct column *columns;      /* by architecture, then by name */
    struct boards boards;        /* how far speedups scatter: RESULTS/reruns */
    int read, refused;           /* results that could and could not be used */
    struct search_calls *search; /* of search_load(), or NULL; report_load() leaves it NULL */
};

/* Read the names, suites and flags of all tasks below TASKS, and every result below RESULTS.  A
 * task or a result that does not fit costs one line on stderr and is left out.  If there is no
 * folder TASKS, the rows are the tasks that have results.  Dies with KP_INPUT on a shape that its
 * family's template cannot take, and on a malformed file of PyTorch's times.
 *
 * crfm, hgemm and level1 to level3 are published.  Of other suites those that `shown` names have
 * rows of their own, and the results of the rest are passed over; NULL takes every suite as if it
 * were published. */
void report_load(struct report *r, const char *results, const char *tasks, const char *shown);

/* The row of a task; -1 for one that is no more, or never was. */
static inline int report_row(const struct report *r, const char *task) {
    for (int i = 0; i < r->nrows; i++)
        if (!strcmp(r->rows[i].task, task)) return i;
    return -1;
}
void report_free(struct report *r);

/* List the tasks that `chosen` names ("SUITE TASK" a line): what each asks for, its floor by what
 * was recorded of a GPU's rates (a dash where nothing was), and the folders of OPTIMIZED with a
 * kernel of it.  Dies with KP_INPUT on a task that cannot be read. */
void report_tasks(FILE *chosen, const char *tasks, const char *results, const char *gpu,
                  const char *optimized, FILE *out);

/* Whether a cell is left out of the headline numbers: its task cannot tell a right kernel from a
 * wrong one, its baseline is weaker than what users have, or its time is doubtful (flag_kind of
 * result.h). */
bool report_left_out(const struct report *r, const struct column *c, int row);

/* Whether a cell carries the headline: not left out, ok, and of its task's own class or a better
 * one.  A kernel of another class (TF32 for an fp32 task) solves another problem. */
bool report_counts(const struct report *r, const struct column *c, int row);

/* What tree the results of a GPU are of: those of a family, or where `family` is NULL those of
 * none. NULL if that is this tree. */
const struct tree *report_tree(const struct column *c, const char *family);

/* Whether a task is in the row of a suite or, where `suite` is NULL, in that of all. */
bool report_in_row_of(const struct row *row, const char *suite);

/* The next row of another suite; nrows if there is none.  From row 0 it visits all suites. */
int report_next_suite(const struct report *r, int row);

/* ---- aggregates (aggregates.c) ---- */

enum { FAST_P = 6, FAST_1 = 3 };    /* FAST_1: fast_p[FAST_1] is 1 */
extern const double fast_p[FAST_P]; /* 0 0.5 0.8 1 1.5 2 */

struct spread { /* of speedups; all 0 if n is 0 */
    int n;
    double geomean, median, mean, q1, q3, max;
};

/* What a kernel's time is compared with: the baseline of its class, measured beside it; PyTorch as
 * it comes, and with TF32 everywhere, each the fastest of its ways. */
enum over { OVER_BASELINE, OVER_TORCH, OVER_TF32, OVERS };

/* A cell's ratio above one of these; 0 if it is not ok or there is no such time. */
double report_ratio(const struct column *c, int row, enum over over);

/* Whether both times of that ratio are of one board. */
bool report_same_board(const struct column *c, int row, enum over over);

struct mean {                   /* of ratios; tasks that mean the same count once */
    int cells;                  /* that have the ratio and carry the headline */
    int same_board;             /* of those, cells whose opponent ran on the same board */
    int compiled;               /* of those, cells that torch.compile was measured for */
    int faster;                 /* of those, cells with a ratio above 1 */
    struct spread over_all;     /* missing and wrong cells count as 1.0 */
    struct spread over_correct; /* they do not count */
    double reach; /* of the geometric mean over the correct ones, boards_mean_reach(); 0: not known,
                   * as over PyTorch, whose times are of other boards */
};

struct aggregate {   /* counts are of cells */
    int all;         /* cells that count */
    int recorded;    /* of those, cells with a result, whatever its verdict */
    int correct;     /* of those, cells that carry the headline */
    int other_class; /* of those, ok but of another class: they count as missing */
    int significant; /* of those, significantly faster: the low end of the prediction is above 1 */
    int slower;      /* and significantly slower: its high end is below 1 */
    int left_out;
    int fast[FAST_P]; /* correct and faster than p */
    struct mean over[OVERS];
};

/* Some rows; what is NULL selects nothing, so that all zero is all rows but those of families. */
struct selection {
    const char *suite, *kind, *own_class; /* kp_kind_name() */
    const char *class;                    /* cells of this class, which is not their task's own */
};

/* Aggregate the selected cells of one GPU; tasks that mean the same count once in means, by the
 * geometric mean of their ratios. */
struct aggregate report_select(const struct report *r, const struct column *c,
                               const struct selection *s);

/* Aggregate those of one suite, or of all suites if `suite` is NULL. */
struct aggregate report_aggregate(const struct report *r, const struct column *c,
                                  const char *suite);

/* Quartiles and means of n speedups > 0. */
struct spread spread_of(const double *x, int n);

/* ---- other people's numbers (published.c) ---- */

/* Write the data of the figure of published speedups: a block a GPU, and for each its quoted title
 * and its number of points, comma-separated.  Returns the number of GPUs; 0 if there is no such
 * file. */
int published_data(const char *published, FILE *data, FILE *titles, FILE *counts);

/* ---- families of products (shapes.c) ---- */

/* The same for the figure of families whose tasks are SUITE_M_N_K: a panel for each GPU and family
 * with at least ten shapes that count. */
int shapes_data(const struct report *r, FILE *data, FILE *titles, FILE *counts);

/* The same for the figure of their distributions: two panels for each, over each of the libraries'
 * calls and over the fastest by size; `counts` says how many curves each has. */
int curves_data(const struct report *r, FILE *data, FILE *titles, FILE *counts);

/* Write a curve of n speedups, which are sorted: a block that its name heads, with how many they
 * are and their geometric mean.  Nothing if n is 0. */
void curve_write(FILE *data, const char *gpu, const char *family, const char *name, double *x,
                 int n);

/* Whether a GPU has such a panel. */
bool shapes_shown(const struct report *r, const struct column *c);

/* Write a table for each such family: geometric means by M N K, over the best of the libraries'
 * calls and over each. */
void shapes_tables(const struct report *r, const struct column *c, FILE *out);

/* ---- beside the headline (beside.c) ---- */

/* Read what stands beside the loaded results: RESULTS/modes/GPU.csv, RESULTS/foreign/GPU.csv and
 * RESULTS/published/cuda_l2.csv, as far as there are such files.  Dies with KP_INPUT on a malformed
 * one. */
void beside_load(struct report *r, const char *results);

/* Whether a family of this GPU has anything beside its headline. */
bool beside_shown(const struct report *r, const struct column *c);

/* Write a table for each such family. */
void beside_tables(const struct report *r, const struct column *c, FILE *out);

/* Write the data of the figure: a panel for each GPU and such family, and as the bits of a number
 * which curves it has, the headline's last.  Returns the number of panels. */
int beside_data(const struct report *r, FILE *data, FILE *titles, FILE *drawn);

/* ---- PyTorch beside ours (torch.c) ---- */

/* Read PyTorch's times for the rows of a GPU, whose results are there.  Does nothing if there is no
 * such file; dies with KP_INPUT, file and line if it is malformed. */
void torch_load(const struct report *r, struct column *c, const char *path);

/* PyTorch's fastest time for a row under these flags, in microseconds, and its way in `how`.  0 if
 * there is none. */
double torch_time(const struct column *c, int row, enum torch_flags flags, const char **how);

/* Whether that time is of the board of the cell's result; false if there is none. */
bool torch_same_board(const struct column *c, int row, enum torch_flags flags);

/* Whether there is a time by torch.compile. */
bool torch_compiled(const struct column *c, int row, enum torch_flags flags);

/* Write how the baselines of a GPU compare with PyTorch (parity.c); nothing if it has no times. */
void report_parity(const struct report *r, const struct column *c, FILE *out);

/* ---- searches (search_load.c, search_table.c) ---- */

/* Read RESULTS/search/GPU/TASK.csv, a line a call of a model.  Returns NULL if there is none; dies
 * with KP_INPUT, file and line if one is malformed. */
struct search_calls *search_load(const char *results);

/* Take out the calls of cells that are left out of the headline numbers, and count these cells.
 * Does nothing if s is NULL. */
void search_leave_out(struct search_calls *s, const struct report *r);
void search_free(struct search_calls *s);

/* Write the result of each mode, with each model on each GPU; nothing if s is NULL. */
void search_table(const struct search_calls *s, FILE *out);

/* Write the data of the figure of searches: twelve blocks a panel, which is a GPU and a model.  For
 * each panel write its quoted title and, as the bits of a number, the modes that were tried and
 * those whose prices are known, comma-separated.  Returns the number of panels; 0 if s is NULL. */
int search_data(const struct search_calls *s, FILE *data, FILE *titles, FILE *tried);

/* ---- staleness (stale.c) ---- */

/* Find which results are stale, by the sources in the current folder and the tasks below TASKS. */
void report_staleness(struct report *r, const char *tasks);

/* Write one line for each stale result: "h200/l1_019_relu stale: kernel".  Those that are said to
 * be of another tree have one line, with how many of them are. */
void report_stale(const struct report *r, FILE *out);

/* What the row of a result says of its sources: "stale: kernel, harness".  A result of another tree
 * says only whether its own kernel or task has changed, as the page says the rest of all.  "" for
 * nothing; valid until the next call. */
const char *stale_remark(const struct column *c, const struct row *row, int i);

/* Write "**NAME, FAMILY**: measured at commit ...", and how many of `results` have changed since.
 */
void tree_line(const struct tree *t, const char *name, const char *results, FILE *out);

/* Write how many results of a GPU are stale or cannot tell; nothing if none is. */
void stale_line(const struct column *c, FILE *out);

/* ---- output ---- */

/* Write a table with one row a GPU (summary.c).  RESULTS is the folder to link to. */
void report_summary(const struct report *r, const char *results, FILE *out);

/* Put that table between the markers of README.  Dies with KP_INPUT if README lacks the markers. */
void report_readme(const struct report *r, const char *results, const char *readme);

/* Write the page of a GPU (page.c). */
void report_page(const struct report *r, const struct column *c, FILE *out);

/* Write the tables that sum up the cells of a GPU (suites.c). */
void report_suites(const struct report *r, const struct column *c, FILE *out);

/* Write RESULTS/GPU/README.md for each GPU, and RESULTS/search/README.md if there are searches or
 * it is there.  A page that would not change is not written. */
void report_pages(const struct report *r, const char *results);

/* Write PLOTS/data/ and draw every figure (plots.c).  Returns KP_OK, also if gnuplot is not
 * installed, or KP_IO after saying which figure failed. */
int report_plots(const struct report *r, const char *plots, const char *published);

/* Write RESULTS/reruns/README.md: what runs on several boards say, and how often predictions hold
 * (reruns.c).  Nothing if there are no such runs. */
void report_reruns(const struct report *r, const char *results);

/* Write one line for a finished cell: "h200/l1_019_relu ok 1.83x +-0.4%" (cells.c). */
void report_cell(const struct result *r, const struct boards *known, FILE *out);

/* Write the same for every cell below BUILD that is not ok, from its last step; what is left there
 * of a task that is gone does not count.  Returns how many there are. */
int report_failed(const char *build, const struct report *r, FILE *out);

#endif
