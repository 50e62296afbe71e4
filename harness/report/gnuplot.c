/* gnuplot.c: see gnuplot.h. */
#include "report/gnuplot.h"
#include "base/error.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

extern char **environ;

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

void drawing_start(struct drawing *d, const char *plots, const char *name, const char *kind,
                   const char *vars) {
    d->out = text_format("%s/%s.%s", plots, name, kind);
    d->beside = text_format("%s.%ld+", d->out, (long)getpid());
    d->script = text_format("%s/%s.gp", plots, name);
    char *all = text_format("terminal='%s'; plots='%s'; out='%s'; data='%s/data/%s.tsv'; %s", kind,
                            plots, d->beside, plots, name, vars);
    char *argv[] = {"gnuplot", "-e", all, d->script, NULL};
    d->pid = start(argv, false);
    free(all);
}

bool drawing_end(struct drawing *d) {
    bool good = succeeded(d->pid) && rename(d->beside, d->out) == 0;
    if (!good) {
        warn("%s was not drawn: gnuplot failed on %s; the old one is unchanged", d->out, d->script);
        unlink(d->beside);
    }
    free(d->out);
    free(d->beside);
    free(d->script);
    return good;
}
