/* markdown.h: parts of tables, and pages that are only written when they change. */
#ifndef KP_REPORT_MARKDOWN_H
#define KP_REPORT_MARKDOWN_H

#include <stdio.h>

/* Write text from a result or a task on one line, without meaning in Markdown.  Text of more than
 * `most` bytes is cut and ends in dots. */
void put_plain(const char *s, int most, FILE *out);

/* Decimals that leave a time in microseconds with about four digits. */
int time_decimals(double us);

/* Write the rest of a table's cell, " 12.34 |": a time in microseconds, or a dash if it is not
 * above 0. */
void put_time(double us, FILE *out);

/* Write " 45 % |": the share of n in `of`, or a dash if `of` is 0. */
void put_share(int n, int of, FILE *out);

/* Write " 1.081 (1.071 to 1.091) |": a geometric mean, and the ends that are `reach` from it in
 * logarithms, unless reach is 0. */
void put_geomean(double mean, double reach, FILE *out);

/* Write a page: a line that says what generates it, and `text`.  The file is replaced only if it
 * would change; dies with KP_IO if it cannot be written. */
void page_write(const char *path, const char *text);

#endif
