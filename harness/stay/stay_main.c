/* stay_main.c: `stay PROGRAM ARGUMENT...` has the process of PROGRAM that has stayed do a cell
 * (measure/stay.h), or starts one; KP_STAY says for how many seconds it stays without work. Without
 * KP_STAY, or with 0, this process becomes PROGRAM.  It has no library of CUDA's: loading those
 * takes a tenth of a second, which is spent while the GPU is ours. */
#define _GNU_SOURCE
#include "stay/request.h"
#include "base/descriptors.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/json.h"
#include "gpu/values.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    TRIES = 5,             /* one that stayed may end just when it is asked */
    MOST_SECONDS = 1000000 /* milliseconds of more are no int */
};

/* ---- What is sent ------------------------------------------------------------------------- */

/* Append a string. */
static void add(struct request *q, const char *s) {
    size_t n = strlen(s) + 1;
    if (q->size + n > KP_MOST_TEXT) die(KP_USAGE, "arguments and variables KP_... are too long");
    memcpy(q->text + q->size, s, n);
    q->size += (uint32_t)n;
}

/* Send the arguments, the folder, the variables KP_... and where to say things. */
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
           request_give(fd, &q, offsetof(struct request, text) + q.size);
}

/* ---- Who may meet whom ------------------------------------------------------------------- */

/* A text, and where it ends. */
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
static socklen_t address(const char *program, struct sockaddr_un *a) {
    int folder = (int)(strrchr(program, '/') - program);
    char *baseline = text_format("%.*s/baseline", folder, program);
    const char *kind = getenv("KP_GPU");
    char mounts[64] = ""; /* a container has its own files and may have our sockets */
    uint64_t h[2];
    if (readlink("/proc/self/ns/mnt", mounts, sizeof mounts - 1) < 0) *mounts = 0;
    for (uint64_t i = 0; i < 2; i++) {
        h[i] = mix_file(mix_file(kp_mix(i, getuid()), program), baseline);
        h[i] = mix_text(mix_text(h[i], kind ? kind : ""), mounts);
        for (char **e = cuda_environment(); *e; e++) h[i] = mix_text(h[i], *e);
    }
    free(baseline);
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX; /* sun_path begins with 0: no file */
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "kernelproof-%016llx%016llx",
                     (unsigned long long)h[0], (unsigned long long)h[1]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- Asking -------------------------------------------------------------------------------- */

/* Start the process that stays, which accepts at descriptor 0.  It gets no other descriptor of
 * ours, no secret, and no signal of the terminal's. */
static void start(const char *program, const char *seconds, int listening) {
    char *argv[] = {(char *)program, KP_STAY_WORD, (char *)seconds, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t as;
    pid_t pid;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, listening, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&as);
    posix_spawnattr_setflags(&as, POSIX_SPAWN_SETSID);
    int e = posix_spawn(&pid, program, &fa, &as, argv, cuda_environment());
    if (e) die(KP_MACHINE, "%s: cannot be started: %s", program, strerror(e));
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&as);
}

/* A connection to the process that stays, which is started if there is none. */
static int connection(const char *program, const char *seconds) {
    struct sockaddr_un a;
    socklen_t n = address(program, &a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || listening < 0) die(KP_MACHINE, "socket: %s", strerror(errno));
    /* Whoever binds the name starts the process. */
    if (!bind(listening, (struct sockaddr *)&a, n)) {
        if (listen(listening, SOMAXCONN)) die(KP_MACHINE, "listen: %s", strerror(errno));
        start(program, seconds, listening);
    }
    close(listening);
    if (connect(fd, (struct sockaddr *)&a, n)) return close(fd), -1;
    if (!request_is_ours(fd))
        die(KP_MACHINE, "another user has taken the name of our process: set KP_STAY=0");
    return fd;
}

/* Have the cell done.  Returns the exit status. */
static int ask(const char *program, int argc, char **argv, const char *seconds) {
    for (int i = 0; i < TRIES; i++) {
        char ready;
        int32_t status;
        int fd = connection(program, seconds);
        if (fd >= 0 && give_request(fd, argc, argv) && request_take(fd, &ready, 1)) {
            if (request_take(fd, &status, sizeof status)) return status;
            die(KP_MACHINE, "the process that stays ended without an answer: run make again");
        }
        if (fd >= 0) close(fd);
    }
    die(KP_MACHINE, "the process that stays does not answer: set KP_STAY=0");
}

/* The seconds that KP_STAY says, as text; NULL for none. */
static const char *stay_seconds(void) {
    const char *seconds = getenv("KP_STAY");
    if (!seconds || !*seconds) return NULL;
    size_t digits = strspn(seconds, "0123456789");
    if (seconds[digits] || digits > 8)
        die(KP_USAGE, "KP_STAY=%.40s: a whole number of seconds is expected", seconds);
    return atoi(seconds) ? seconds : NULL;
}

/* A cell's limits are numbers, if they are given: of anything else a program would make its
 * default. */
static void check_limits(void) {
    static const char *const name[] = {"KP_CELL_SECONDS", "KP_DEADLINE"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *text = getenv(name[i]);
        if (!text || !*text) continue;
        char *end;
        double seconds = strtod(text, &end);
        if (*end || !(seconds > 0 && seconds <= MOST_SECONDS))
            die(KP_USAGE, "%s=%.40s: a positive number of seconds is expected", name[i], text);
    }
}

int main(int argc, char **argv) {
    char program[PATH_MAX];
    kp_program("stay");
    const char *seconds = stay_seconds();
    check_limits();
    if (argc < 2) die(KP_USAGE, "usage: stay PROGRAM ARGUMENT...");
    if (!realpath(argv[1], program)) die(KP_IO, "%s: %s", argv[1], strerror(errno));
    if (seconds) return ask(program, argc - 1, argv + 1, seconds);
    execv(program, argv + 1);
    die(KP_MACHINE, "%s: cannot be started: %s", program, strerror(errno));
}
