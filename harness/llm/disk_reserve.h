/* disk_reserve.h: reserve disk space before a call, so that a billed answer can be stored. */
#ifndef KP_DISK_RESERVE_H
#define KP_DISK_RESERVE_H

#include <sys/types.h>

/* Reserve `bytes` from `end`, the end of the file.  The file's size does not change, so readers
 * see no difference.  Returns 0; or the errno that says why there is no space (ENOSPC, EDQUOT,
 * EFBIG); or EOPNOTSUPP if the file system cannot reserve, which says nothing about free space. */
int disk_reserve(int fd, off_t end, off_t bytes);

/* Cut the file to `end` bytes and release the space reserved beyond. */
void disk_release(int fd, off_t end);

#endif
