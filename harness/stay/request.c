/* request.c: see request.h. */
#define _GNU_SOURCE
#include "stay/request.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

bool request_take(int fd, void *to, size_t n) {
    for (char *p = to; n;) {
        ssize_t k = read(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k, n -= (size_t)k;
    }
    return true;
}

bool request_give(int fd, const void *from, size_t n) {
    for (const char *p = from; n;) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k, n -= (size_t)k;
    }
    return true;
}

bool request_is_ours(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.uid == getuid();
}
