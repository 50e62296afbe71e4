/* process.c: see process.h. */
#define _GNU_SOURCE
#include "measure/process.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All processes of a cancelled job have their signal after this long. */
enum { CANCEL_SECONDS = 1 };

/* The path of a program in the folder of the one that runs.  New string. */
static char *program_path(const char *name) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) die(KP_MACHINE, "/proc/self/exe: %s", strerror(errno));
    self[n] = 0;
    *strrchr(self, '/') = 0;
    return text_format("%s/%s", self, name);
}

double process_deadline(void) {
    const char *text = getenv("KP_DEADLINE");
    double x = text ? atof(text) : 0;
    return x > 0 ? x : KP_DEADLINE_SECONDS;
}

double process_cell_seconds(void) {
    return KP_CELL_DEADLINES * process_deadline();
}

/* What CUDA needs of the environment, and nothing else. */
static char **bare_environment(bool eager) {
    static const char *const keep[] = {"PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
                                       "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"};
    static char *env[16];
    int n = 0;
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
        if (getenv(keep[i])) env[n++] = text_format("%s=%s", keep[i], getenv(keep[i]));
    env[n++] = text_format("CUDA_CACHE_DISABLE=1");
    if (eager) env[n++] = text_format("CUDA_MODULE_LOADING=EAGER");
    env[n] = NULL;
    return env;
}

static void make_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC)) die(KP_MACHINE, "pipe: %s", strerror(errno));
}

static void put(int fd, const void *from, size_t n) {
    for (const char *p = from; n;) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return; /* the process has died: waiting for its reply will say so */
        p += k, n -= (size_t)k;
    }
}

void process_start(struct kp_process *p, const char *name, char *const argv[], bool eager,
                   const struct runner_setup *setup, const struct kp_shared *shared) {
    int down[2], up[2];
    size_t n = (size_t)setup->nbuffers * setup->nplacements + (setup->flush_bytes > 0);
    posix_spawn_file_actions_t fa;
    signal(SIGPIPE, SIG_IGN);
    make_pipe(down);
    make_pipe(up);
    posix_spawn_file_actions_init(&fa);
    /* Exported memory is close-on-exec: duplicating a descriptor onto itself clears that. */
    for (size_t i = 0; i < n; i++)
        if (shared[i].fd >= 0) posix_spawn_file_actions_adddup2(&fa, shared[i].fd, shared[i].fd);
    posix_spawn_file_actions_adddup2(&fa, down[0], 0);
    posix_spawn_file_actions_adddup2(&fa, 2, 1);
    posix_spawn_file_actions_adddup2(&fa, up[1], RUNNER_REPLY_FD);
    char *path = program_path(argv[0]);
    int e = posix_spawn(&p->pid, path, &fa, NULL, argv, bare_environment(eager));
    if (e) die(KP_MACHINE, "%s: cannot be started: %s", path, strerror(e));
    posix_spawn_file_actions_destroy(&fa);
    free(path);
    close(down[0]);
    close(up[1]);
    p->to = down[1], p->from = up[0], p->name = name;
    put(p->to, setup, sizeof *setup);
    put(p->to, shared, n * sizeof *shared);
}

/* Read n bytes.  1: all read; 0: the pipe was closed; -1: the deadline has passed. */
static int get(int fd, void *to, size_t n, double until) {
    for (char *p = to; n;) {
        double left = until - seconds_now();
        struct pollfd q = {fd, POLLIN, 0};
        int ready = left > 0 ? poll(&q, 1, (int)(left * 1e3) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return -1;
        ssize_t k = read(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return 0;
        p += k, n -= (size_t)k;
    }
    return 1;
}

/* Whether a signal is one that ends whole jobs. */
static bool ends_jobs(int signal) {
    return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP;
}

/* Why a process ended without a reply.  If the job is being cancelled, its processes get the signal
 * one by one, and ours is still to come: then the kernel has not crashed, and nothing may be
 * said. */
static enum runner_status post_mortem(struct kp_process *p, char *message) {
    int status = 0;
    waitpid(p->pid, &status, 0);
    p->pid = 0;
    if (WIFSIGNALED(status) && ends_jobs(WTERMSIG(status))) sleep(CANCEL_SECONDS);
    if (WIFSIGNALED(status))
        snprintf(message, KP_TAPE_MESSAGE, "the %s process was ended by signal %d (%s)", p->name,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(message, KP_TAPE_MESSAGE,
                 "the %s process ended without an answer (exit status %d)", p->name,
                 WEXITSTATUS(status));
    return WIFEXITED(status) ? RUNNER_MACHINE : RUNNER_CRASH;
}

enum runner_status process_wait(struct kp_process *p, double seconds, struct runner_reply *r,
                                char **text) {
    double until = seconds_now() + seconds;
    memset(r, 0, sizeof *r);
    int got = get(p->from, r, sizeof *r, until);
    char *body = NULL;
    if (got == 1 && r->length) {
        body = calloc(1, (size_t)r->length + 1);
        if (!body) die(KP_MACHINE, "out of memory");
        got = get(p->from, body, r->length, until);
    }
    r->message[sizeof r->message - 1] = 0;
    if (got == 0) r->status = (int32_t)post_mortem(p, r->message);
    if (got < 0) {
        r->status = RUNNER_TIMEOUT;
        snprintf(r->message, sizeof r->message, "no answer from the %s process in %.0f s", p->name,
                 seconds);
        kill(p->pid, SIGKILL);
    }
    if (got == 1 && (r->status < RUNNER_OK || r->status > RUNNER_MACHINE)) r->status = RUNNER_CRASH;
    if (text)
        *text = body;
    else
        free(body);
    return (enum runner_status)r->status;
}

enum runner_status process_ask(struct kp_process *p, enum runner_what what, int placement,
                               double seconds, double *left, struct runner_reply *reply) {
    struct runner_request q = {(uint32_t)what, (uint32_t)placement};
    double began = seconds_now();
    put(p->to, &q, sizeof q);
    process_wait(p, fmin(seconds, *left), reply, NULL);
    *left -= seconds_now() - began;
    if (reply->status == RUNNER_TIMEOUT && *left <= 0)
        snprintf(reply->message, sizeof reply->message,
                 "all runs of the kernel, to verify and to time it, took more than %.0f s",
                 process_cell_seconds());
    return (enum runner_status)reply->status;
}

void process_end(struct kp_process *p) {
    if (p->to > 0) close(p->to);
    if (p->from > 0) close(p->from);
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }
    memset(p, 0, sizeof *p);
}
