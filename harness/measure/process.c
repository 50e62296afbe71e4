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
    *p = (struct kp_process){.pid = p->pid, .to = down[1], .from = up[0], .name = name};
}

void process_spawn(struct kp_process *p, const char *name, char *const argv[]) {
    start(p, name, argv, true);
}

static void forget(struct kp_process *p) {
    if (p->to > 0) close(p->to);
    if (p->from > 0) close(p->from);
    memset(p, 0, sizeof *p);
}

/* Whether it runs still.  One that does not is forgotten. */
static bool lives(struct kp_process *p) {
    if (p->pid > 0 && !waitpid(p->pid, NULL, WNOHANG)) return true;
    forget(p);
    return false;
}

void process_tell(struct kp_process *p, const void *what, size_t n) {
    int streams[1] = {2};
    put(p->to, what, n);
    descriptors_give(p->to, streams, 1);
}

/* ---- Processes that are left from cell to cell --------------------------------------------- */

/* A cell has few runners; one of short kernels has four sets, which a family's shapes share.  After
 * so many cells a process of theirs ends: what it adds to a time shall not be all shapes'. */
enum { MOST_LEFT = 8, USUALLY_LEFT = 4, MOST_SERVED = 32 };
static struct kp_process left[MOST_LEFT];
static char *family; /* of the cell that is done, or was the last */

void process_begin(const char *of) {
    bool same = of && family && !strcmp(of, family);
    int baselines = 0;
    for (int i = 0; i < MOST_LEFT; i++) {
        if (left[i].pid <= 0) continue;
        bool keep = same || (!left[i].candidates && baselines++ < USUALLY_LEFT);
        if (!keep) process_end(&left[i], 1);
    }
    free(family);
    family = of ? text_format("%s", of) : NULL;
}

/* Take a process that is left, of a candidate or of a baseline.  False if there is none. */
static bool take_left(struct kp_process *p, bool candidates, const char *name) {
    for (int i = 0; i < MOST_LEFT; i++) {
        if (left[i].pid <= 0 || left[i].candidates != candidates) continue;
        if (!lives(&left[i])) continue;
        *p = left[i];
        p->name = name;
        memset(&left[i], 0, sizeof left[i]);
        return true;
    }
    return false;
}

void process_leave(struct kp_process *p, double seconds) {
    struct runner_request next = {.what = RUNNER_NEXT};
    struct runner_reply reply;
    int i = 0;
    while (i < MOST_LEFT && left[i].pid > 0) i++;
    bool wanted = i < MOST_LEFT && (family ? ++p->served < MOST_SERVED : !p->candidates);
    if (wanted) process_send(p, &next);
    if (wanted && process_wait(p, seconds, &reply, NULL) == RUNNER_OK)
        left[i] = *p;
    else
        process_end(p, 1);
    memset(p, 0, sizeof *p);
}

/* Opening the driver takes 0.3 s, which pass while another cell is verified or timed. */
static struct kp_process next_recorder, next_runner;

void process_recorder_ahead(void) {
    char *argv[] = {"recorder", NULL};
    if (!lives(&next_recorder)) process_spawn(&next_recorder, "recording", argv);
}

void process_start_recorder(struct kp_process *p, const struct runner_recording *what) {
    process_recorder_ahead();
    *p = next_recorder;
    memset(&next_recorder, 0, sizeof next_recorder);
    process_tell(p, what, sizeof *what);
}

void process_runner_ahead(void) {
    char *argv[] = {"runner", NULL};
    for (int i = 0; i < MOST_LEFT; i++)
        if (left[i].pid > 0 && left[i].candidates) return;
    if (!lives(&next_runner)) process_spawn(&next_runner, "candidate's", argv);
}

/* The absolute path of PREFIX.SUFFIX: the runner may be in another folder. */
static void path_of(char path[PATH_MAX], const char *prefix, const char *suffix) {
    char folder[PATH_MAX] = "";
    if (*prefix != '/' && !getcwd(folder, sizeof folder))
        die(KP_MACHINE, "getcwd: %s", strerror(errno));
    int n = snprintf(path, PATH_MAX, "%s%s%s.%s", folder, *folder ? "/" : "", prefix, suffix);
    if (n >= PATH_MAX) die(KP_USAGE, "%s: the path is too long", prefix);
}

void process_start_runner(struct kp_process *p, const char *name, const char *prefix) {
    struct runner_replaying what = {{0}, {0}};
    path_of(what.tape, prefix, "tape");
    path_of(what.cubin, prefix, "cubin");
    if (!take_left(p, true, name)) {
        process_runner_ahead();
        *p = next_runner;
        memset(&next_runner, 0, sizeof next_runner);
        p->name = name;
        p->candidates = true;
    }
    process_tell(p, &what, sizeof what);
}

void process_start_baseline(struct kp_process *p, const char *name, const char *task,
                            const char *math, const char *choices, const struct runner_setup *setup,
                            const struct kp_shared *shared) {
    char *argv[] = {"baseline", NULL};
    struct runner_baseline what = {{0}, {0}, {0}};
    if (!take_left(p, false, name)) start(p, name, argv, false);
    if (!realpath(task, what.task)) die(KP_MACHINE, "%s: %s", task, strerror(errno));
    snprintf(what.math, sizeof what.math, "%s", math);
    snprintf(what.choices, sizeof what.choices, "%s", choices ? choices : "");
    process_tell(p, &what, sizeof what);
    process_setup(p, setup, shared);
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

void process_send(struct kp_process *p, const struct runner_request *q) {
    put(p->to, q, sizeof *q);
}

enum runner_status process_ask(struct kp_process *p, const struct runner_request *q, double seconds,
                               double *left, struct runner_reply *reply) {
    double began = seconds_now();
    const char *before = phase("replays");
    process_send(p, q);
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
