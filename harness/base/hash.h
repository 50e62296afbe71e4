/* hash.h: SHA-256 in hexadecimal, by libmd. */
#ifndef KP_HASH_H
#define KP_HASH_H

#include <stddef.h>

/* The hash of a file's contents, and of a text's bytes.  The first ends the program with KP_IO if
 * the file cannot be read. */
void file_sha256(const char *path, char hex[65]);
void text_sha256(const void *text, size_t size, char hex[65]);

#endif
