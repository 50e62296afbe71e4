/* disk_reserve.h: room on the disk for what is yet to be written, so that an answer that was paid
 * for can be kept. */
#ifndef KP_ROOM_H
#define KP_ROOM_H

#include <sys/types.h>

/* Reserve `bytes` from `end` on, which is where the file ends: its size stays as it is, so for
 * readers nothing has changed.  Returns 0; the errno that says why there is no room (ENOSPC,
 * EDQUOT, EFBIG); or EOPNOTSUPP where the file system reserves nothing, which says nothing about
 * the room that there is. */
int room_reserve(int fd, off_t end, off_t bytes);

/* Cut the file to `end` bytes and give back what is reserved beyond. */
void room_give_back(int fd, off_t end);

#endif
