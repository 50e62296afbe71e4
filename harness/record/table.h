/* table.h: a table of text, as in results/published/, results/pytorch/ and results/reruns/.
 *
 * Lines that start with # are comments.  The first other line names the columns.  The last column
 * may hold commas. */
#ifndef KP_TABLE_H
#define KP_TABLE_H

#include <stdbool.h>

struct table {
    char *text;
    int ncolumns, nrows;
    char **field; /* names, then nrows * ncolumns fields */
    int *line;    /* of the names, then of each row: its number in the file */
};

/* Read a table.  Returns false, with an empty table, if there is no such file; dies with KP_INPUT
 * if a line lacks fields or no line names the columns. */
bool table_load(struct table *t, const char *path);

/* Release a table and leave it empty. */
void table_free(struct table *t);

/* The index of a column; -1 if there is none of this name. */
int table_find(const struct table *t, const char *name);

/* The same.  Dies with KP_INPUT if `t`, which was read from `path`, has none of this
 * name. */
int table_column(const struct table *t, const char *name, const char *path);

/* A field; rows are counted from 0, without the line of names. */
const char *table_field(const struct table *t, int row, int column);

/* The time or ratio in a field; 0 if it is empty.  Anything else that is no usable_number() counts
 * as empty and costs a line on stderr.  `path` is where `t` was read from. */
double table_number(const struct table *t, int row, int column, const char *path);

#endif
