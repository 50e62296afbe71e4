/* table.c: see table.h. */
#include "record/table.h"
#include "record/result.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Cut the next line off *text, without its end.  Returns NULL after the last. */
static char *next_line(char **text) {
    char *line = *text;
    if (!*line) return NULL;
    size_t n = strcspn(line, "\n");
    *text = line + n + (line[n] == '\n');
    line[n] = '\0';
    if (n && line[n - 1] == '\r') line[n - 1] = '\0';
    return line;
}

/* Cut a line at its first n - 1 commas into n fields.  Returns how many it has. */
static int cut(char *line, char **field, int n) {
    int found = 0;
    while (line && found < n) {
        field[found++] = line;
        char *comma = found < n ? strchr(line, ',') : NULL;
        if (comma) *comma = '\0';
        line = comma ? comma + 1 : NULL;
    }
    return found;
}

bool table_load(struct table *t, const char *path) {
    memset(t, 0, sizeof *t);
    if (access(path, R_OK)) return false;
    char *rest = t->text = file_read(path, NULL), *line, *c;
    int number = 0;
    while ((line = next_line(&rest))) {
        number++;
        if (!*line || *line == '#') continue;
        if (!t->ncolumns)
            for (t->ncolumns = 1, c = line; (c = strchr(c, ',')); c++) t->ncolumns++;
        size_t n = (size_t)t->ncolumns;
        t->field = realloc(t->field, ((size_t)t->nrows + 2) * n * sizeof *t->field);
        t->line = realloc(t->line, ((size_t)t->nrows + 2) * sizeof *t->line);
        if (!t->field || !t->line) die(KP_MACHINE, "out of memory");
        int found = cut(line, t->field + (size_t)t->nrows * n, t->ncolumns);
        if (found != t->ncolumns)
            die(KP_INPUT, "%s:%d: %d fields, expected %d: remove the line, or restore the file",
                path, number, found, t->ncolumns);
        t->line[t->nrows++] = number;
    }
    if (t->nrows == 0) die(KP_INPUT, "%s: no line names the columns", path);
    t->nrows--; /* the names */
    return true;
}

void table_free(struct table *t) {
    free(t->field);
    free(t->line);
    free(t->text);
    memset(t, 0, sizeof *t);
}

int table_find(const struct table *t, const char *name) {
    for (int i = 0; i < t->ncolumns; i++)
        if (!strcmp(t->field[i], name)) return i;
    return -1;
}

int table_column(const struct table *t, const char *name, const char *path) {
    int column = table_find(t, name);
    if (column < 0) die(KP_INPUT, "%s: no column %s", path, name);
    return column;
}

const char *table_field(const struct table *t, int row, int column) {
    return t->field[(size_t)(row + 1) * (size_t)t->ncolumns + (size_t)column];
}

double table_number(const struct table *t, int row, int column, const char *path) {
    const char *field = table_field(t, row, column);
    char *end;
    double x = usable_number(strtod(field, &end));
    if (!*field || (x > 0 && !*end)) return x;
    warn("%s:%d: %s: expected a number from 1e-12 to 1e12, found \"%.40s\"; it is left out", path,
         t->line[row + 1], t->field[column], field);
    return 0;
}
