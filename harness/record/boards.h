/* boards.h: how far the speedup of a cell scatters from run to run and from board to board.
 *
 * A result's own interval says where a rerun of the same processes would fall.  It knows neither
 * other processes nor other boards.  What these add is estimated from recorded runs,
 * RESULTS/reruns/GPU.csv (results/SCHEMA.md), apart for each kind of bound, since boards differ by
 * clocks and power where products bound a kernel, and hardly where memory does.
 *
 * A pair is two runs of one cell with the same setup.  d is the difference of the logarithms of
 * their speedups, o the standard deviation that a run's own interval claims (a quarter of its
 * width, nearly). d^2 - o1^2 - o2^2 is on average twice the variance that the intervals do not
 * know.  Its mean over pairs of different boards gives the scatter between boards (which holds that
 * of reruns), its mean over pairs on one board the scatter of reruns.
 *
 * All cells of a board are fast or slow together, so boards count, not cells: the quantile is that
 * of Student's t with as many degrees of freedom as there are boards, less one (for reruns: as
 * there are reruns of whole boards).
 *
 * In a mean over many cells what each of them does by itself cancels; what a board does to all of
 * them alike, its shift, stays.  Two boards that share SHARED_CELLS or more differ by m, the mean
 * of d, whose variance is that of d over their number v.  m^2 - v is on average twice the variance
 * of a shift. */
#ifndef KP_BOARDS_H
#define KP_BOARDS_H

#include "record/result.h"

enum bound {
    BOUND_MEMORY,  /* the floor of bytes is the higher one */
    BOUND_COMPUTE, /* that of flops is: products, often at the power limit */
    BOUND_LATENCY, /* the kernel is so short that processes and placement of buffers count most */
    BOUNDS
};
extern const char *const bound_name[BOUNDS];

enum { SHARED_CELLS = 10 };

/* A GPU with fewer boards is predicted by those of another: Student's t of two boards is 12.7. */
enum { OWN_BOARDS = 3 };

struct scatter { /* of log speedup, beyond what own intervals say */
    int freedom; /* degrees of freedom; 0: nothing is known */
    int pairs;   /* that it was estimated from */
    double variance;
};

struct board_run;   /* a row */
struct board_pairs; /* the differences of each two boards */
struct table;

struct boards_of { /* the recorded runs on boards of one GPU */
    char gpu[32];
    struct table *table;
    int nruns;
    struct board_run *run; /* by task and setup */
    struct scatter between[BOUNDS], reruns[BOUNDS];
    struct board_pairs *boards;
    struct scatter shift; /* of whole boards; pairs are of boards */
};

struct boards {
    int n;
    struct boards_of *of; /* by name */
};

/* Read every RESULTS/reruns/GPU.csv.  Where there is none, nothing is known.  Ends the program with
 * KP_INPUT if a file is malformed. */
void boards_load(struct boards *b, const char *results);
void boards_free(struct boards *b);

struct prediction {
    double low, high; /* 95 % of runs of the same files on other boards fall between these */
    int boards;       /* that it was estimated from; 1: none but the run's own interval */
    const char *of;   /* the GPU of these boards; its own interval: that of the result */
};

/* Where the speedup of an `ok` result falls on another board of its GPU.  If fewer than
 * OWN_BOARDS of this GPU are recorded, those of the GPU with the most stand in; `of` names it. */
struct prediction boards_predict(const struct boards *b, const struct result *r);

/* By how much the log speedups of two `ok` results of a cell differ in 95 % of cases: results of
 * one board by the scatter of reruns, where it is known; others by that between boards. */
double boards_reach(const struct boards *b, const struct result *x, const struct result *y,
                    int *boards, const char **of);

/* By how much the logarithm of the geometric mean of the speedups of n `ok` results differs on
 * another board in 95 % of cases.  Boards of another GPU stand in as in boards_predict(); 0 if
 * there are none. */
double boards_mean_reach(const struct boards *b, const struct result *const *cell, int n);

struct coverage {
    int cells;         /* with a pair */
    int pairs, inside; /* pairs, and those that differ by no more than predicted */
    int own;           /* pairs that differ by no more than the own intervals say */
};

/* How often a prediction holds: each board is left out in turn, the scatter is estimated from the
 * others, and the pairs of the one that was left out are tried: with other boards, or with itself
 * (`same`).  Pairs for which nothing can be estimated are not counted. */
struct coverage boards_coverage(const struct boards_of *of, enum bound bound, bool same);

/* The same for means over what two boards share: pairs are of boards, each tried twice. */
struct coverage boards_shift_coverage(const struct boards_of *of);

#endif
