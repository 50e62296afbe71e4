/* gnuplot.h: draws figures, several at a time, and only those that would change. */
#ifndef KP_REPORT_GNUPLOT_H
#define KP_REPORT_GNUPLOT_H

#include <stdbool.h>
#include <sys/types.h>

enum { FIGURE_KINDS = 2 }; /* svg and png */

struct drawing {   /* a figure that is being drawn; all zero if there is nothing to do */
    char *data;    /* the path of its data */
    char *stamped; /* the data with a first line that says what was drawn from it */
    struct {
        pid_t pid; /* 0 if gnuplot did not start */
        char *out, *beside, *script;
    } kind[FIGURE_KINDS];
};

/* Whether gnuplot is installed. */
bool gnuplot_present(void);

/* Write PLOTS/data/NAME.tsv and start to draw PLOTS/NAME.svg and .png by PLOTS/NAME.gp.  `vars` is
 * gnuplot source that tells the script what to draw.  Does nothing if both figures were drawn from
 * these data, variables and scripts.  Without gnuplot only the data are written. */
void drawing_start(struct drawing *d, const char *plots, const char *name, const char *data,
                   const char *vars, bool gnuplot);

/* Wait for a figure and put it in its place.  Returns false, after a line on stderr, if gnuplot
 * failed; the old figure then stays, and the next report draws it again. */
bool drawing_end(struct drawing *d);

#endif
