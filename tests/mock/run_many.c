/* run_many.c: run a command many times in parallel, and print statistics.
 *
 *   run_many [-n COUNT] [-P PARALLEL] [-i STDIN] COMMAND ARG...
 *
 * Each run reads the file STDIN; its stdout and stderr are /dev/null.  Prints the runs per
 * second, the largest resident set of any run and the number of failures.  Exits 0 unless a run
 * could not be started. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* Start one run.  The child exits with 127 if the command cannot be started. */
static void start(const char *input, char **command) {
    pid_t pid = fork();
    if (pid < 0) die(KP_MACHINE, "fork: %s", strerror(errno));
    if (pid) return;
    int in = open(input, O_RDONLY), out = open("/dev/null", O_WRONLY);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
    execvp(command[0], command);
    _exit(127);
}

int main(int argc, char **argv) {
    long count = 250, parallel = 64, started = 0, ended = 0, failed = 0, largest = 0;
    const char *input = "/dev/null";
    kp_program("run_many");
    for (int c; (c = getopt(argc, argv, "+n:P:i:")) != -1;) switch (c) {
        case 'n': count = atol(optarg); break;
        case 'P': parallel = atol(optarg); break;
        case 'i': input = optarg; break;
        default: die(KP_USAGE, "run_many [-n COUNT] [-P PARALLEL] [-i STDIN] COMMAND ARG...");
        }
    if (optind >= argc || count < 1 || parallel < 1)
        die(KP_USAGE, "run_many [-n COUNT] [-P PARALLEL] [-i STDIN] COMMAND ARG...");
    double began = now(), busy = 0;
    while (ended < count) {
        while (started < count && started - ended < parallel)
            start(input, argv + optind), started++;
        int status;
        struct rusage use;
        if (wait4(-1, &status, 0, &use) < 0) die(KP_MACHINE, "wait: %s", strerror(errno));
        ended++;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
            die(KP_MACHINE, "%s: cannot be started", argv[optind]);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if (use.ru_maxrss > largest) largest = use.ru_maxrss;
        busy += use.ru_utime.tv_sec + use.ru_stime.tv_sec +
                (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    }
    double took = now() - began;
    printf("%ld runs, %ld side by side: %.0f a second, %.1f ms of processor each, at most %.1f MB "
           "resident, %ld failed\n",
           count, parallel, count / took, 1e3 * busy / count, largest / 1024.0, failed);
    return 0;
}
