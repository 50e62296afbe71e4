/* hash.c: see hash.h. */
#define _GNU_SOURCE
#include "base/hash.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Hash what follows the present position of `fd`, and close it. */
static void sha256_of(int fd, const char *what, char hex[65]) {
    /* sha256sum needs nothing of the environment. */
    char *argv[] = {"sha256sum", NULL}, *environment[] = {NULL};
    int up[2], status = 1;
    size_t got = 0;
    pid_t pid;
    posix_spawn_file_actions_t fa;
    if (pipe2(up, O_CLOEXEC)) die(KP_MACHINE, "no pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, fd, 0);
    posix_spawn_file_actions_adddup2(&fa, up[1], 1);
    int e = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&fa);
    close(up[1]);
    close(fd);
    if (e) die(KP_MACHINE, "sha256sum cannot be run: %s: install coreutils", strerror(e));
    while (got < 64) {
        ssize_t n = read(up[0], hex + got, 64 - got);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    close(up[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (got != 64 || status) die(KP_IO, "%s: sha256sum cannot read it", what);
    hex[64] = 0;
}

void file_sha256(const char *path, char hex[65]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
    sha256_of(fd, path, hex);
}

void text_sha256(const void *text, size_t size, char hex[65]) {
    int fd = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0) die(KP_MACHINE, "no memory file: %s", strerror(errno));
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)text + done, size - done);
        if (n < 0 && errno != EINTR) die(KP_MACHINE, "no memory: %s", strerror(errno));
        if (n > 0) done += (size_t)n;
    }
    if (lseek(fd, 0, SEEK_SET)) die(KP_MACHINE, "no memory: %s", strerror(errno));
    sha256_of(fd, "a text", hex);
}
