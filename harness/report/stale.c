/* stale.c: which recorded results are stale: what they were measured of has changed since. */
#include "report/report.h"
#include "record/inputs.h"
#include "task/taskfile.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text of a task's file, which may be one of a family.  NULL if there is none, or the family's
 * template is malformed, as report_load() says then.  Free it. */
static char *task_text(const char *tasks, const struct row *row) {
    char *own = text_format("%s/%s/%s.json", tasks, row->suite, row->task);
    char *family = text_format("%s/%s/template.json", tasks, row->suite), *text = NULL, why[256];
    if (access(own, R_OK) == 0)
        text = file_read(own, NULL);
    else if (access(family, R_OK) == 0)
        text = family_expand_error(family, row->task, why, sizeof why);
    free(own);
    free(family);
    return text;
}

/* The path of the kernel of a cell, as the Makefile finds it: the first of the folders of its GPU,
 * of its architecture and of all, and there that of the task before that of the suite.  NULL if
 * there is none.  Free it. */
static char *kernel_path(const struct column *c, const struct row *row) {
    static const char *const no_own[] = {"sm_80", "sm_86", "sm_89"}; /* others are sm_90a, ... */
    const char *own = "a";
    for (int i = 0; i < 3; i++)
        if (!strcmp(c->arch, no_own[i])) own = "";
    char *arch = text_format("%s%s", c->arch, own);
    const char *const folder[] = {c->name, arch, "portable"}, *const name[] = {row->task,
                                                                               row->suite};
    char *path = NULL;
    for (int i = 0; i < 6 && !path; i++) {
        path = text_format("optimized/%s/%s.cu", folder[i / 2], name[i % 2]);
        if (access(path, F_OK) == 0) break;
        free(path);
        path = NULL;
    }
    free(arch);
    return path;
}

/* Look at a recorded result. */
static struct staleness look(struct sources *s, const struct column *c, const struct row *row,
                             const struct result *cell, const char *tasks) {
    struct staleness stale = {.unknown = !inputs_known(cell->json)};
    if (stale.unknown || !sources_here()) return stale;
    char *task = task_text(tasks, row), *kernel = kernel_path(c, row);
    struct inputs now;
    /* What was measured without a kernel says the same of the baselines when one has come. */
    bool missing = !strcmp(cell->verdict, "missing");
    stale.newer = missing && kernel;
    if (task) {
        inputs_of(s, task, missing ? NULL : kernel, &now);
        inputs_changed(cell->json, &now, stale.changed, sizeof stale.changed);
    }
    free(task);
    free(kernel);
    return stale;
}

const struct tree *report_tree(const struct column *c, const char *family) {
    const struct tree *found = NULL;
    for (int i = 0; i < c->ntrees; i++) {
        const struct tree *t = &c->tree[i];
        if (*t->family ? family && !strcmp(t->family, family) : !found) found = t;
    }
    return found;
}

/* What tree a result is said to be of; NULL if of this. */
static const struct tree *tree_of(const struct column *c, const struct row *row) {
    return report_tree(c, row->family && !row->own ? row->suite : NULL);
}

/* Whether the kernel or the task of a result has changed. */
static bool own_changed(const struct staleness *s) {
    return strstr(s->changed, "kernel") || strstr(s->changed, "task");
}

/* Count a stale result. */
static void count(struct column *c, const struct row *row, const struct staleness *s) {
    const struct tree *of = tree_of(c, row);
    struct tree *t = of ? &c->tree[of - c->tree] : NULL;
    ++*(!t ? &c->nstale : own_changed(s) ? &t->nown : &t->nrest);
}

const char *stale_remark(const struct column *c, const struct row *row, int i) {
    static char text[sizeof c->stale->changed + 16];
    const struct staleness *s = &c->stale[i];
    if (tree_of(c, row)) return own_changed(s) ? "its kernel or task has changed since" : "";
    snprintf(text, sizeof text, "%s%s", *s->changed ? "stale: " : "", s->changed);
    return text;
}

void report_staleness(struct report *r, const char *tasks) {
    struct sources *s = sources_open();
    for (int i = 0; i < r->ncolumns; i++) {
        struct column *c = &r->columns[i];
        c->stale = calloc((size_t)r->nrows + 1, sizeof *c->stale);
        if (!c->stale) die(KP_MACHINE, "out of memory");
        for (int j = 0; j < r->nrows; j++) {
            if (!*c->cell[j].verdict) continue;
            c->stale[j] = look(s, c, &r->rows[j], &c->cell[j], tasks);
            c->nunknown += c->stale[j].unknown;
            if (*c->stale[j].changed) count(c, &r->rows[j], &c->stale[j]);
        }
    }
    sources_close(s);
}

/* Say of how many results of another tree the sources have changed, if of any. */
static void stale_of_tree(const struct report *r, const struct column *c, const struct tree *t,
                          FILE *out) {
    int changed = t->nown + t->nrest, all = 0;
    for (int j = 0; j < r->nrows; j++) all += *c->cell[j].verdict && tree_of(c, &r->rows[j]) == t;
    if (changed)
        fprintf(out,
                "%s%s%s: %d result%s of commit %.7s, the sources of %d ha%s changed since: "
                "stale here\n",
                c->name, *t->family ? ", " : "", t->family, all, all == 1 ? " is" : "s are",
                t->commit, changed, changed == 1 ? "s" : "ve");
}

void report_stale(const struct report *r, FILE *out) {
    for (int i = 0; i < r->ncolumns; i++) {
        const struct column *c = &r->columns[i];
        for (int j = 0; j < c->ntrees; j++) stale_of_tree(r, c, &c->tree[j], out);
        for (int j = 0; j < r->nrows; j++)
            if (*c->stale[j].changed && !tree_of(c, &r->rows[j]))
                fprintf(out, "%s/%s stale: %s\n", c->name, r->rows[j].task, c->stale[j].changed);
    }
}

void tree_line(const struct tree *t, const char *name, const char *results, FILE *out) {
    fprintf(out, "**%s%s%s**: measured at commit %.12s", name, *name && *t->family ? ", " : "",
            t->family, t->commit);
    if (t->nown + t->nrest == 0) {
        fprintf(out, "; nothing that %s depend on has changed since.\n", results);
        return;
    }
    fprintf(out, ". Since then the %s of %d of %s\nhas changed",
            t->nown ? "kernel or the task" : "reference or the harness",
            t->nown ? t->nown : t->nrest, results);
    if (t->nown && t->nrest)
        fprintf(out, ", and the reference or the harness of %d others", t->nrest);
    fputs(".\n", out);
}

void stale_line(const struct column *c, FILE *out) {
    for (int i = 0; i < c->ntrees; i++) {
        tree_line(&c->tree[i], *c->tree[i].family ? "" : c->name, "these results", out);
        fputc('\n', out);
    }
    if (c->nstale)
        fprintf(
            out,
            "**Stale**: what %d result%s measured of has changed since; the remarks say what.\n\n",
            c->nstale, c->nstale == 1 ? " was" : "s were");
    if (c->nunknown)
        fprintf(out,
                "%d result%s recorded before hashes of inputs were: whether they are stale is not "
                "known.\n\n",
                c->nunknown, c->nunknown == 1 ? " was" : "s were");
}
