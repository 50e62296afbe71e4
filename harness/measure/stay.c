/* stay.c: see stay.h.
 *
 * The two meet at an abstract socket, whose name says what both must have in common.  Who asks
 * sends its arguments, its folder and its variables KP_..., with its standard output and error; the
 * answer is READY, then the exit status. */
#define _GNU_SOURCE
#include "measure/stay.h"
#include "base/descriptors.h"
#include "gpu/values.h"
#include "measure/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    MOST_CELLS = 200, /* then a new process: what a cell leaks on the host is not much, but some */
    MOST_TEXT = 1 << 16,
    MOST_STRINGS = 256,
    READY = 'r',
    TRIES = 5 /* one that stayed may end just when it is asked */
};
static const char word[] = "--stay"; /* an argument of the process that stays; then the seconds */

/* ---- Ending a cell ---------------------------------------------------------------------- */

static jmp_buf end_of_cell;
static volatile int client = -1; /* who asked for the cell that is being done */

void stay_end(int status) {
    if (client < 0) exit(status);
    longjmp(end_of_cell, status + 1);
}

bool stays(void) {
    return client >= 0;
}

/* The process ends in the middle of a cell: die() has said why, and here it says the status. */
static void last_words(int status, void *unused) {
    int32_t s = status;
    (void)unused;
    if (client >= 0 && write(client, &s, sizeof s) < 0) return;
}

/* ---- What is sent ------------------------------------------------------------------------- */

/* Read or write n bytes.  False at the end of the connection. */
static bool take(int fd, void *to, size_t n) {
    for (char *p = to; n;) {
        ssize_t k = read(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k, n -= (size_t)k;
    }
    return true;
}
static bool give(int fd, const void *from, size_t n) {
    for (const char *p = from; n;) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k, n -= (size_t)k;
    }
    return true;
}

/* A request: strings that end with 0, first the folder, then the arguments, then variables. */
struct request {
    uint32_t size, narguments;
    char text[MOST_TEXT];
};

static void add(struct request *q, const char *s) {
    size_t n = strlen(s) + 1;
    if (q->size + n > MOST_TEXT) die(KP_USAGE, "arguments and variables KP_... are too long");
    memcpy(q->text + q->size, s, n);
    q->size += (uint32_t)n;
}

static bool give_request(int fd, int argc, char **argv) {
    static struct request q;
    const int streams[2] = {1, 2};
    char *folder = getcwd(NULL, 0);
    if (!folder) die(KP_MACHINE, "getcwd: %s", strerror(errno));
    q.size = 0, q.narguments = (uint32_t)argc;
    add(&q, folder);
    free(folder);
    for (int i = 0; i < argc; i++) add(&q, argv[i]);
    for (char **e = environ; *e; e++)
        if (!strncmp(*e, "KP_", 3)) add(&q, *e);
    return descriptors_give(fd, streams, 2) &&
           give(fd, &q, offsetof(struct request, text) + q.size);
}

/* Take a request; standard output and error become those of who asked. */
static bool take_request(int fd, struct request *q) {
    int streams[2];
    if (!descriptors_take(fd, streams, 2)) return false;
    for (int i = 0; i < 2; i++) {
        dup2(streams[i], 1 + i);
        close(streams[i]);
    }
    return take(fd, q, offsetof(struct request, text)) && q->size <= MOST_TEXT &&
           q->narguments < MOST_STRINGS && take(fd, q->text, q->size);
}

/* ---- Who may meet whom ------------------------------------------------------------------- */

static uint64_t mix_text(uint64_t h, const char *s) {
    for (; *s; s++) h = kp_mix(h, (unsigned char)*s);
    return kp_mix(h, 256);
}

/* A file as it is now: one that is built again is another. */
static uint64_t mix_file(uint64_t h, const char *path) {
    struct stat s;
    if (stat(path, &s)) return h; /* who needs it will say so */
    h = kp_mix(kp_mix(h, (uint64_t)s.st_dev), (uint64_t)s.st_ino);
    return kp_mix(kp_mix(h, (uint64_t)s.st_mtim.tv_sec), (uint64_t)s.st_mtim.tv_nsec);
}

/* The address where those meet that have the user, the programs, the GPU and CUDA's variables in
 * common.  Returns its length. */
static socklen_t address(struct sockaddr_un *a) {
    char *self = process_program(NULL), *baseline = process_program("baseline");
    const char *kind = getenv("KP_GPU");
    char mounts[64] = ""; /* a container has its own files and may have our sockets */
    uint64_t h[2];
    if (readlink("/proc/self/ns/mnt", mounts, sizeof mounts - 1) < 0) *mounts = 0;
    for (uint64_t i = 0; i < 2; i++) {
        h[i] = mix_file(mix_file(kp_mix(i, getuid()), self), baseline);
        h[i] = mix_text(mix_text(h[i], kind ? kind : ""), mounts);
        for (char **e = process_environment(); *e; e++) h[i] = mix_text(h[i], *e);
    }
    free(self);
    free(baseline);
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX; /* sun_path begins with 0: no file */
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "kernelproof-%016llx%016llx",
                     (unsigned long long)h[0], (unsigned long long)h[1]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Whether the other end is a process of this user: others can take any name. */
static bool is_ours(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.uid == getuid();
}

/* ---- Asking -------------------------------------------------------------------------------- */

/* Start the process that stays, which accepts at descriptor 0.  It gets no other descriptor of
 * ours, no secret, and no signal of the terminal's. */
static void start(const char *name, const char *seconds, int listening) {
    char *path = process_program(NULL);
    char *argv[] = {(char *)name, (char *)word, (char *)seconds, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t as;
    pid_t pid;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, listening, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&as);
    posix_spawnattr_setflags(&as, POSIX_SPAWN_SETSID);
    int e = posix_spawn(&pid, path, &fa, &as, argv, process_environment());
    if (e) die(KP_MACHINE, "%s: cannot be started: %s", path, strerror(e));
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&as);
    free(path);
}

/* A connection to the process that stays, which is started if there is none. */
static int connection(const char *name, const char *seconds) {
    struct sockaddr_un a;
    socklen_t n = address(&a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || listening < 0) die(KP_MACHINE, "socket: %s", strerror(errno));
    /* Whoever binds the name starts the process. */
    if (!bind(listening, (struct sockaddr *)&a, n)) {
        if (listen(listening, SOMAXCONN)) die(KP_MACHINE, "listen: %s", strerror(errno));
        start(name, seconds, listening);
    }
    close(listening);
    if (connect(fd, (struct sockaddr *)&a, n)) return close(fd), -1;
    if (!is_ours(fd))
        die(KP_MACHINE, "another user has taken the name of our process: set KP_STAY=0");
    return fd;
}

static int ask(int argc, char **argv, const char *seconds) {
    for (int i = 0; i < TRIES; i++) {
        char ready;
        int32_t status;
        int fd = connection(argv[0], seconds);
        if (fd >= 0 && give_request(fd, argc, argv) && take(fd, &ready, 1)) {
            if (take(fd, &status, sizeof status)) return status;
            die(KP_MACHINE, "the process that stays ended without an answer: run make again");
        }
        if (fd >= 0) close(fd);
    }
    die(KP_MACHINE, "the process that stays does not answer: set KP_STAY=0");
}

/* ---- Staying ------------------------------------------------------------------------------- */

/* Have the folder and the variables KP_... of who asked.  Returns its arguments, valid until the
 * next request. */
static char **adopt(struct request *q) {
    static char *argv[MOST_STRINGS];
    char *p = q->text, *end = q->text + q->size;
    q->text[MOST_TEXT - 1] = 0;
    if (chdir(p)) die(KP_MACHINE, "%s: %s", p, strerror(errno));
    p += strlen(p) + 1;
    for (uint32_t i = 0; i < q->narguments; i++, p += strlen(p) + 1) argv[i] = p < end ? p : "";
    argv[q->narguments] = NULL;
    for (char **e = environ; *e;) {
        char *name = strndup(*e, strcspn(*e, "="));
        if (strncmp(name, "KP_", 3) || unsetenv(name)) e++; /* what follows has moved here */
        free(name);
    }
    for (; p < end; p += strlen(p) + 1) putenv(strdup(p));
    return argv;
}

/* Do one cell for who is connected. */
static void serve(int fd, void (*cell)(int argc, char **argv)) {
    static struct request q;
    const char ready = READY;
    if (!is_ours(fd) || !take_request(fd, &q) || !give(fd, &ready, 1)) return;
    /* When the other end is closed, SIGIO ends this process, whatever it is doing. */
    struct pollfd gone = {fd, POLLRDHUP, 0};
    fcntl(fd, F_SETOWN, getpid());
    fcntl(fd, F_SETFL, O_ASYNC);
    if (poll(&gone, 1, 0)) return;
    client = fd;
    int ended = setjmp(end_of_cell);
    if (!ended) cell((int)q.narguments, adopt(&q));
    int32_t status = ended ? ended - 1 : KP_OK;
    fflush(NULL);
    fcntl(fd, F_SETFL, 0);
    client = -1;
    give(fd, &status, sizeof status);
}

/* Close what who started this process had open: a lock on the GPU, say. */
static void close_others(void) {
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));) {
        int fd = atoi(e->d_name);
        if (fd > 2 && fd != dirfd(d)) close(fd);
    }
    if (d) closedir(d);
}

/* Serve those who ask at descriptor 0, until nobody does for so many seconds. */
static void serve_all(int seconds, void (*cell)(int argc, char **argv)) {
    close_others();
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    on_exit(last_words, NULL);
    for (int i = 0; i < MOST_CELLS; i++) {
        struct pollfd asked = {0, POLLIN, 0};
        if (poll(&asked, 1, seconds * 1000) <= 0) return;
        int fd = accept4(0, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        serve(fd, cell);
        close(fd);
        dup2(nothing, 1);
        dup2(nothing, 2);
    }
}

int stay(int argc, char **argv, void (*cell)(int argc, char **argv)) {
    const char *seconds = getenv("KP_STAY");
    if (argc == 3 && !strcmp(argv[1], word)) return serve_all(atoi(argv[2]), cell), KP_OK;
    if (seconds && atoi(seconds) > 0) return ask(argc, argv, seconds);
    cell(argc, argv);
    return KP_OK;
}
