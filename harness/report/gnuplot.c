/* gnuplot.c: see gnuplot.h. */
#include "report/gnuplot.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

extern char **environ;

static const char *const kinds[FIGURE_KINDS] = {"svg", "png"};

/* Start a program of PATH; with `quiet` it prints nothing.  Returns 0 if there is none. */
static pid_t start(char *const *argv, bool quiet) {
    posix_spawn_file_actions_t files;
    pid_t pid;
    posix_spawn_file_actions_init(&files);
    if (quiet) posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return failed ? 0 : pid;
}

/* Wait for a process.  Returns whether it succeeded; false for pid 0. */
static bool succeeded(pid_t pid) {
    int status = 0;
    if (pid == 0) return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool gnuplot_present(void) {
    char *argv[] = {"gnuplot", "--version", NULL};
    return succeeded(start(argv, true));
}

/* Release a drawing, and leave it all zero. */
static void drawing_free(struct drawing *d) {
    for (int k = 0; k < FIGURE_KINDS; k++) {
        free(d->kind[k].out);
        free(d->kind[k].beside);
        free(d->kind[k].script);
    }
    free(d->data);
    free(d->stamped);
    memset(d, 0, sizeof *d);
}

/* The text of a file, or "" if it cannot be read.  Free it. */
static char *text_of(const char *path) {
    return access(path, R_OK) ? text_format("%s", "") : file_read(path, NULL);
}

/* The data with a first line that depends on all that a figure is drawn from besides.  Free it. */
static char *stamped(const char *plots, const char *script, const char *data, const char *vars) {
    char hash[65];
    char *style_path = text_format("%s/style.gp", plots);
    char *style = text_of(style_path), *source = text_of(script);
    char *all = text_format("%s\n%s\n%s", vars, style, source);
    text_sha256(all, strlen(all), hash);
    char *text = text_format("# drawn with %.16s\n%s", hash, data);
    free(all);
    free(source);
    free(style);
    free(style_path);
    return text;
}

void drawing_start(struct drawing *d, const char *plots, const char *name, const char *data,
                   const char *vars, bool gnuplot) {
    char *script = text_format("%s/%s.gp", plots, name);
    memset(d, 0, sizeof *d);
    d->data = text_format("%s/data/%s.tsv", plots, name);
    d->stamped = stamped(plots, script, data, vars);
    char *old = text_of(d->data);
    bool done = strcmp(old, d->stamped) == 0;
    for (int k = 0; k < FIGURE_KINDS; k++) {
        d->kind[k].out = text_format("%s/%s.%s", plots, name, kinds[k]);
        d->kind[k].beside = text_format("%s.%ld+", d->kind[k].out, (long)getpid());
        d->kind[k].script = text_format("%s", script);
        done = done && access(d->kind[k].out, F_OK) == 0;
    }
    if (!done) file_update(d->data, data);
    for (int k = 0; k < FIGURE_KINDS && !done && gnuplot; k++) {
        char *all = text_format("terminal='%s'; plots='%s'; out='%s'; data='%s'; %s", kinds[k],
                                plots, d->kind[k].beside, d->data, vars);
        char *argv[] = {"gnuplot", "-e", all, script, NULL};
        d->kind[k].pid = start(argv, false);
        free(all);
    }
    if (done || !gnuplot) drawing_free(d);
    free(old);
    free(script);
}

bool drawing_end(struct drawing *d) {
    bool good = true;
    if (!d->data) return true;
    for (int k = 0; k < FIGURE_KINDS; k++) {
        const char *out = d->kind[k].out, *beside = d->kind[k].beside;
        if (succeeded(d->kind[k].pid) && rename(beside, out) == 0) continue;
        warn("%s was not drawn: gnuplot failed on %s; the old one is unchanged", out,
             d->kind[k].script);
        unlink(beside);
        good = false;
    }
    if (good) file_replace(d->data, d->stamped);
    drawing_free(d);
    return good;
}
