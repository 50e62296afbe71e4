/* json.h: reading and writing JSON files through cJSON, with the one error path.
 *
 * In a program that is linked with json.c, no function of cJSON fails for want of memory: that ends
 * the program (KP_MACHINE). */
#ifndef KP_JSON_H
#define KP_JSON_H

#include <cjson/cJSON.h>

/* Parse the file, or end the program: KP_IO if it cannot be read, KP_INPUT with
 * the line where parsing stopped if it is not JSON.  The caller deletes it. */
cJSON *json_read(const char *path);

/* Write `text` (or JSON) beside `path` and rename it to `path`, so that a reader sees the old file
 * or the new one, never half of one.  If the disk is full or the folder not writable, the old file
 * stays as it was, and the program ends with KP_IO. */
void file_replace(const char *path, const char *text);
void json_write(const char *path, const cJSON *json);

/* The same, but a file that holds this text already is left as it is, with its time. */
void file_update(const char *path, const char *text);

/* Read a whole file into memory (NUL-terminated; *size may be NULL).  KP_IO on failure. */
char *file_read(const char *path, long *size);

/* A member's value, or the default if it is absent or of another type. */
const char *json_text(const cJSON *object, const char *key, const char *otherwise);
double json_number(const cJSON *object, const char *key, double otherwise);

/* Add a number, or null if it is NaN or infinite (JSON has neither). */
void json_add_number(cJSON *object, const char *key, double x);

/* printf into a new heap string. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
