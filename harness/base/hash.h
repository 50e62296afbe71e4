/* hash.h: SHA-256 in hexadecimal, by coreutils' sha256sum. */
#ifndef KP_HASH_H
#define KP_HASH_H

#include <stddef.h>

/* Of a file's contents, of a text's bytes.  Both end the program with KP_IO where the file cannot
 * be read, or KP_MACHINE where sha256sum cannot be run. */
void file_sha256(const char *path, char hex[65]);
void text_sha256(const void *text, size_t size, char hex[65]);

#endif
