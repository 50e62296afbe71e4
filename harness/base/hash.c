/* hash.c: see hash.h. */
#include "base/hash.h"
#include "base/error.h"

#include <errno.h>
#include <sha2.h>
#include <string.h>

void file_sha256(const char *path, char hex[65]) {
    if (!SHA256File(path, hex)) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
}

void text_sha256(const void *text, size_t size, char hex[65]) {
    SHA256Data(text, size, hex);
}
