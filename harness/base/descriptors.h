/* descriptors.h: open files that one process passes to another through a Unix socket. */
#ifndef KP_DESCRIPTORS_H
#define KP_DESCRIPTORS_H

#include <stdbool.h>

/* How many go at once; Linux takes up to 253. */
enum { KP_MOST_DESCRIPTORS = 128 };

/* Pass on `count` descriptors, with one byte.  False, with errno set, if the other end is gone. */
bool descriptors_give(int socket, const int *fd, int count);

/* Take as many as were passed on.  They close on exec.  False if there are not so many, or more,
 * which are closed then, or if the other end is gone. */
bool descriptors_take(int socket, int *fd, int count);

#endif
