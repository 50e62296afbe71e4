/* disk_reserve.c: see disk_reserve.h. */
#define _GNU_SOURCE
#include "llm/disk_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int disk_reserve(int fd, off_t end, off_t bytes) {
    struct rlimit most;
    /* Some file systems do not enforce the limit here, because the size stays; others send a
     * signal. */
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
        (rlim_t)(end + bytes) > most.rlim_cur)
        return EFBIG;
    int bad;
    while ((bad = fallocate(fd, FALLOC_FL_KEEP_SIZE, end, bytes)) && errno == EINTR) continue;
    if (!bad) return 0;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : EOPNOTSUPP;
}

void disk_release(int fd, off_t end) {
    /* On failure some blocks stay allocated; the file itself is unharmed. */
    if (ftruncate(fd, end)) return;
}
