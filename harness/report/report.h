/* report.h: what the parts of `report` share.
 *
 * Recorded results are laid out as a grid, tasks down and GPUs across.  Every
 * number of the tables and figures comes from this grid; nothing is typed. */
#ifndef KP_REPORT_H
#define KP_REPORT_H

#include "report/result.h"

#include <stdbool.h>
#include <stdio.h>

/* A table of text, as in results/published/ and results/pytorch/: lines starting with # are
 * comments, the first other line names the columns, the last column may hold commas. */
struct table {
    char *text;
    int ncolumns, nrows;
    char **field; /* names, then nrows * ncolumns fields */
};

struct row { /* a task */
    char task[64];
    char suite[24];
    bool left_out; /* the task itself is flagged, whatever its results say */
};

struct column {          /* a GPU with recorded results */
    char name[32];       /* its folder: h200 */
    char arch[16];       /* sm_90, or "" if no result says */
    struct result *cell; /* one a row; verdict "" where nothing was recorded */
    struct table torch;  /* PyTorch's times on it: RESULTS/pytorch/NAME.csv, or empty */
};

struct report {
    int nrows;
    struct row *rows; /* by suite, then by name */
    bool rows_known;  /* they come from task files: any other task is foreign */
    int ncolumns;
    struct column *columns;      /* by architecture, then by name */
    int read, refused;           /* result files that could and could not be used */
    struct search_calls *search; /* what was searched for, or NULL; not filled in by report_load */
};

/* Read every task below TASKS (names, suites and flags only) and every result
 * below RESULTS.  A file that does not fit costs one line on stderr and is left
 * out.  Without a folder TASKS, the rows are the tasks that have results. */
void report_load(struct report *r, const char *results, const char *tasks);
void report_free(struct report *r);

/* Whether a cell is out of the headline numbers: its task cannot tell a right
 * kernel from a wrong one, its baseline is weaker than what users have, or its
 * time is doubtful (flag_kind of result.h). */
bool report_left_out(const struct report *r, const struct column *c, int row);

/* ---- aggregates (aggregates.c) ---- */

enum { FAST_P = 6 };
extern const double fast_p[FAST_P]; /* 0 0.5 0.8 1 1.5 2 */

struct spread { /* of speedups; all 0 if n is 0 */
    int n;
    double geomean, median, mean, q1, q3, max;
};

struct aggregate {
    int all;     /* cells that count */
    int correct; /* of those, verdict ok */
    int wins;    /* of those, faster by the low end of the interval */
    int left_out;
    int fast[FAST_P];           /* correct and faster than p */
    struct spread over_all;     /* missing and wrong cells count as 1.0 */
    struct spread over_correct; /* they do not count */
};

/* Aggregate one GPU's cells of one suite, or of all suites if `suite` is NULL. */
struct aggregate report_aggregate(const struct report *r, const struct column *c,
                                  const char *suite);

/* Quartiles and means of n speedups > 0. */
struct spread spread_of(const double *x, int n);

/* ---- other people's numbers (published.c) ---- */

/* Returns false if there is no such file; dies if a line lacks fields. */
bool table_load(struct table *t, const char *path);
void table_free(struct table *t);

/* The index of a column, or dies: the file is not the one that is expected. */
int table_column(const struct table *t, const char *name, const char *path);
const char *table_field(const struct table *t, int row, int column);

/* Write the data of the figure of published speedups: a block a GPU, and for
 * each its quoted title and its number of points, comma-separated.  Returns the
 * number of GPUs; 0 where there is no such file. */
int published_data(const char *published, FILE *data, FILE *titles, FILE *counts);

/* ---- PyTorch beside ours (torch.c) ---- */

/* PyTorch's time in microseconds for a task on the GPU of a column, in an arithmetic
 * class: the faster of eager call and graph replay, else, where the column has no table
 * of its own, the published eager time.  Stores which it is in `how`; 0 if there is none. */
double torch_time(const struct column *c, const struct table *published, const char *task,
                  const char *class, const char **how);

/* Time of torch.compile on this GPU in the arithmetic of a class, or 0. */
double torch_compiled(const struct column *c, const char *task, const char *class);

/* Write how our kernels and our baselines compare with PyTorch; nothing if no GPU has a
 * table of its own. */
void torch_baselines(const struct report *r, FILE *out);

/* ---- searches (search_table.c) ---- */

/* Read RESULTS/search/GPU/TASK.csv, a line a call of a model.  Returns NULL where there is
 * none; dies with KP_INPUT, file and line where one is malformed. */
struct search_calls *search_load(const char *results);

/* Take out the calls of cells that are out of the headline numbers; counted, nothing if s is NULL.
 */
void search_leave_out(struct search_calls *s, const struct report *r);
void search_free(struct search_calls *s);

/* Write what each mode came to, with each model on each GPU; nothing if s is NULL. */
void search_table(const struct search_calls *s, FILE *out);

/* Write the data of the figure of searches: twelve blocks a panel, which is a GPU and a model, and
 * for each its quoted title and, as the bits of a number, the modes that were tried and those whose
 * money is known, comma-separated.  Returns the number of panels; 0 if s is NULL. */
int search_data(const struct search_calls *s, FILE *data, FILE *titles, FILE *tried);

/* ---- output ---- */

/* Replace what stands between the markers of README by the tables (tables.c). */
void report_readme(const struct report *r, const struct table *published, const char *readme);

/* Write the tables alone. */
void report_tables(const struct report *r, const struct table *published, FILE *out);

/* Write PLOTS/data/ and draw every figure (plots.c).  Returns KP_OK, also
 * where gnuplot is not installed, or KP_IO after saying which figure failed. */
int report_plots(const struct report *r, const char *plots, const char *published);

/* One line for a finished cell: "h200/l1_019_relu ok 1.83x +-0.4%" (cells.c). */
void report_cell(const struct result *r, FILE *out);

/* The same for every cell below BUILD that is not ok, as far as it got.
 * Returns how many there are. */
int report_failed(const char *build, FILE *out);

#endif
