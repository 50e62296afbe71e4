/* stay.c: see stay.h. */
#define _GNU_SOURCE
#include "measure/stay.h"
#include "base/descriptors.h"
#include "stay/request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Then a new process: what a cell leaks on the host is not much, but some. */
enum { MOST_CELLS = 200 };

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

char *stay_family(const struct kp_task *task, const cJSON *build) {
    const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(build, "kernel");
    const char *path = json_text(kernel, "path", ""), *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t n = strlen(task->suite);
    if (!stays() || strncmp(name, task->suite, n) || strcmp(name + n, ".cu")) return NULL;
    return text_format("%s %s %s", path, json_text(kernel, "sha256", ""),
                       json_text(kernel, "headers_sha256", ""));
}

/* The process ends in the middle of a cell: die() has said why, and here it says the status. */
static void last_words(int status, void *unused) {
    int32_t s = status;
    (void)unused;
    if (client >= 0 && write(client, &s, sizeof s) < 0) return;
}

/* ---- One cell ----------------------------------------------------------------------------- */

/* Take a request; standard output and error become those of who asked. */
static bool take_request(int fd, struct request *q) {
    int streams[2];
    if (!descriptors_take(fd, streams, 2)) return false;
    for (int i = 0; i < 2; i++) {
        dup2(streams[i], 1 + i);
        close(streams[i]);
    }
    return request_take(fd, q, offsetof(struct request, text)) && q->size > 0 &&
           q->size <= KP_MOST_TEXT && q->narguments < KP_MOST_STRINGS &&
           request_take(fd, q->text, q->size) && !q->text[q->size - 1];
}

/* ---- Staying ------------------------------------------------------------------------------- */

/* Have the folder and the variables KP_... of who asked.  Returns its arguments, valid until the
 * next request. */
static char **adopt(struct request *q) {
    static char *argv[KP_MOST_STRINGS];
    char *p = q->text, *end = q->text + q->size;
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
    const char ready = KP_STAY_READY;
    if (!request_is_ours(fd) || !take_request(fd, &q) || !request_give(fd, &ready, 1)) return;
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
    request_give(fd, &status, sizeof status);
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
    if (argc == 3 && !strcmp(argv[1], KP_STAY_WORD))
        serve_all(atoi(argv[2]), cell);
    else
        cell(argc, argv);
    return KP_OK;
}
