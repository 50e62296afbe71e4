/* gnuplot.h: draws figures, several at a time. */
#ifndef KP_REPORT_GNUPLOT_H
#define KP_REPORT_GNUPLOT_H

#include <stdbool.h>
#include <sys/types.h>

struct drawing { /* a figure that gnuplot draws */
    pid_t pid;   /* 0 if gnuplot did not start */
    char *out, *beside, *script;
};

/* Whether gnuplot is installed. */
bool gnuplot_present(void);

/* Start to draw PLOTS/NAME.gp as PLOTS/NAME.KIND, where KIND is svg or png.  `vars` is gnuplot
 * source that tells the script what to draw. */
void drawing_start(struct drawing *d, const char *plots, const char *name, const char *kind,
                   const char *vars);

/* Wait for a figure and put it in its place.  Returns false, after a line on stderr, if gnuplot
 * failed; the old figure then stays. */
bool drawing_end(struct drawing *d);

#endif
