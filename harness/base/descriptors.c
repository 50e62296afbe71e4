/* descriptors.c: see descriptors.h. */
#define _GNU_SOURCE
#include "base/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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
    struct cmsghdr *found = k == 1 ? CMSG_FIRSTHDR(&m) : NULL;
    if (!found || found->cmsg_type != SCM_RIGHTS || found->cmsg_len != CMSG_LEN(bytes))
        return false;
    memcpy(fd, CMSG_DATA(found), bytes);
    return true;
}
