/* process.c: see process.h. */
#define _GNU_SOURCE
#include "measure/process.h"
#include "measure/phases.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/environment.h"
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
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* All processes of a cancelled job have their signal after this long. */
enum { CANCEL_SECONDS = 1 };

/* The path of a program in the folder of the one that runs.  New string. */
static char *program_beside(const char *name) {
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

static void put(int fd, const void *from, size_t n) {
    for (const char *p = from; n;) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return; /* the process has died: waiting for its reply will say so */
        p += k, n -= (size_t)k;
    }
}

/* Pass on the descriptors of the memory, as many at once as go.  If the process has died, waiting
 * for its reply will say so. */
static void put_descriptors(int to, const struct kp_shared *shared, size_t n) {
    for (size_t i = 0; i < n;) {
        int fd[KP_MOST_DESCRIPTORS], count = 0;
        for (; i < n && count < KP_MOST_DESCRIPTORS; i++)
            if (shared[i].fd >= 0) fd[count++] = shared[i].fd;
        if (!count || !descriptors_give(to, fd, count)) return;
    }
}

void process_setup(struct kp_process *p, const struct runner_setup *setup,
                   const struct kp_shared *shared) {
    size_t n = (size_t)setup->nbuffers * setup->nplacements + (setup->flush_bytes > 0);
    put(p->to, setup, sizeof *setup);
    put(p->to, shared, n * sizeof *shared);
    put_descriptors(p->to, shared, n);
}

/* Start a program that waits for what it is told. */
static void start(struct kp_process *p, const char *name, char *const argv[], bool eager) {
    int down[2], up[2];
    posix_spawn_file_actions_t fa;
    signal(SIGPIPE, SIG_IGN);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, down) || pipe2(up, O_CLOEXEC) ||
        shutdown(down[1], SHUT_RD))
        die(KP_MACHINE, "pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, down[0], 0);
    posix_spawn_file_actions_adddup2(&fa, 2, 1);
    posix_spawn_file_actions_adddup2(&fa, up[1], RUNNER_REPLY_FD);
    char *path = program_beside(argv[0]), *env[KP_MOST_VARIABLES + 2], **to = env;
    for (char **e = cuda_environment(); *e; e++) *to++ = *e;
    if (eager) *to++ = "CUDA_MODULE_LOADING=EAGER";
    *to = NULL;
    int e = posix_spawn(&p->pid, path, &fa, NULL, argv, env);
    if (e) die(KP_MACHINE, "%s: cannot be started: %s", path, strerror(e));
    posix_spawn_file_actions_destroy(&fa);
    free(path);
    close(down[0]);
    close(up[1]);
    p->to = down[1], p->from = up[0], p->name = name;
}

void process_spawn(struct kp_process *p, const char *name, char *const argv[]) {
    start(p, name, argv, true);
}

static void forget(struct kp_process *p) {
    if (p->to > 0) close(p->to);
    if (p->from > 0) close(p->from);
    memset(p, 0, sizeof *p);
}

bool process_lives(struct kp_process *p) {
    if (p->pid > 0 && !waitpid(p->pid, NULL, WNOHANG)) return true;
    forget(p);
    return false;
}

void process_tell(struct kp_process *p, const void *what, size_t n) {
    int streams[1] = {2};
    put(p->to, what, n);
    descriptors_give(p->to, streams, 1);
}

/* Opening the driver takes 0.2 s, which pass while another cell is measured. */
static struct kp_process ahead;

void process_runner_ahead(void) {
    char *argv[] = {"runner", NULL};
    if (!process_lives(&ahead)) process_spawn(&ahead, "candidate's", argv);
}

void process_start_runner(struct kp_process *p, const char *name, const char *prefix) {
    struct runner_replaying what = {{0}, {0}};
    char folder[PATH_MAX] = ""; /* a runner that was started ahead may be in another */
    if (*prefix != '/' && !getcwd(folder, sizeof folder))
        die(KP_MACHINE, "getcwd: %s", strerror(errno));
    const char *between = *folder ? "/" : "";
    int n = snprintf(what.tape, sizeof what.tape, "%s%s%s.tape", folder, between, prefix);
    int m = snprintf(what.cubin, sizeof what.cubin, "%s%s%s.cubin", folder, between, prefix);
    if (n >= PATH_MAX || m >= PATH_MAX) die(KP_USAGE, "%s: the path is too long", prefix);
    process_runner_ahead();
    *p = ahead;
    memset(&ahead, 0, sizeof ahead);
    p->name = name;
    process_tell(p, &what, sizeof what);
}

/* Processes of baselines that no cell has now. */
enum { MOST_LEFT = 4 };
static struct kp_process left[MOST_LEFT];

void process_start_baseline(struct kp_process *p, const char *name, const char *task,
                            const char *math, const char *choices, const struct runner_setup *setup,
                            const struct kp_shared *shared) {
    char *argv[] = {"baseline", NULL};
    struct runner_baseline what = {{0}, {0}, {0}};
    int i = 0;
    while (i < MOST_LEFT - 1 && !left[i].pid) i++;
    if (left[i].pid) {
        *p = left[i];
        memset(&left[i], 0, sizeof left[i]);
        p->name = name;
    } else
        start(p, name, argv, false);
    if (!realpath(task, what.task)) die(KP_MACHINE, "%s: %s", task, strerror(errno));
    snprintf(what.math, sizeof what.math, "%s", math);
    snprintf(what.choices, sizeof what.choices, "%s", choices ? choices : "");
    process_tell(p, &what, sizeof what);
    process_setup(p, setup, shared);
}

void process_leave(struct kp_process *p, double seconds) {
    struct runner_request next = {.what = RUNNER_NEXT};
    struct runner_reply reply;
    int i = 0;
    while (i < MOST_LEFT && left[i].pid) i++;
    put(p->to, &next, sizeof next);
    if (i == MOST_LEFT || process_wait(p, seconds, &reply, NULL) != RUNNER_OK)
        process_end(p, 1);
    else
        left[i] = *p;
    memset(p, 0, sizeof *p);
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

enum runner_status process_ask(struct kp_process *p, const struct runner_request *q, double seconds,
                               double *left, struct runner_reply *reply) {
    double began = seconds_now();
    const char *before = phase("replays");
    put(p->to, q, sizeof *q);
    process_wait(p, fmin(seconds, *left), reply, NULL);
    phase(before);
    *left -= seconds_now() - began;
    if (reply->status == RUNNER_TIMEOUT && *left <= 0)
        snprintf(reply->message, sizeof reply->message,
                 "all runs of the kernel, to verify and to time it, took more than %.0f s",
                 process_cell_seconds());
    return (enum runner_status)reply->status;
}

void process_kill(struct kp_process *p, int n) {
    for (int i = 0; i < n; i++)
        if (p[i].pid > 0) kill(p[i].pid, SIGKILL);
}

void process_end(struct kp_process *p, int n) {
    process_kill(p, n);
    for (int i = 0; i < n; i++) {
        if (p[i].pid > 0) waitpid(p[i].pid, NULL, 0);
        forget(&p[i]);
    }
}
