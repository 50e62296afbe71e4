/* request.h: what a process that stays is asked, and by whom (measure/stay.h).
 *
 * The two meet at an abstract socket, whose name says what both must have in common.  Who asks
 * sends its arguments, its folder and its variables KP_..., with its standard output and error; the
 * answer is KP_STAY_READY, then the exit status as an int32_t. */
#ifndef KP_REQUEST_H
#define KP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An argument of the process that stays; then the seconds. */
#define KP_STAY_WORD "--stay"

enum { KP_STAY_READY = 'r', KP_MOST_TEXT = 1 << 16, KP_MOST_STRINGS = 256 };

/* Strings that end with 0: first the folder, then the arguments, then variables. */
struct request {
    uint32_t size, narguments;
    char text[KP_MOST_TEXT];
};

/* Read or write n bytes.  False at the end of the connection. */
bool request_take(int fd, void *to, size_t n);
bool request_give(int fd, const void *from, size_t n);

/* Whether the other end is a process of this user: others can take any name. */
bool request_is_ours(int fd);

#endif
