/* descriptors.c: see descriptors.h. */
#define _GNU_SOURCE
#include "base/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(KP_MOST_DESCRIPTORS * sizeof(int))];
};

bool descriptors_give(int socket, const int *fd, int count) {
    size_t bytes = (size_t)count * sizeof *fd;
    union control c;
    struct iovec one = {"", 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &c};
    memset(&c, 0, sizeof c);
    m.msg_controllen = CMSG_SPACE(bytes);
    c.header = (struct cmsghdr){CMSG_LEN(bytes), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&c.header), fd, bytes);
    ssize_t k;
    while ((k = sendmsg(socket, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return k == 1;
}

/* Close all descriptors that came with a message. */
static void close_all(struct msghdr *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            close(fd);
        }
    }
}

bool descriptors_take(int socket, int *fd, int count) {
    size_t bytes = (size_t)count * sizeof *fd;
    union control c;
    char mark;
    struct iovec one = {&mark, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &c};
    m.msg_controllen = sizeof c;
    ssize_t k;
    while ((k = recvmsg(socket, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (k != 1) return false;
    struct cmsghdr *found = CMSG_FIRSTHDR(&m);
    if (!found || found->cmsg_type != SCM_RIGHTS || found->cmsg_len != CMSG_LEN(bytes) ||
        (m.msg_flags & MSG_CTRUNC)) {
        close_all(&m);
        return false;
    }
    memcpy(fd, CMSG_DATA(found), bytes);
    return true;
}
