/* object.h: members of JSON objects.  Each ends the program where there is no memory. */
#ifndef KP_OBJECT_H
#define KP_OBJECT_H

#include <cjson/cJSON.h>

/* Add an item, which belongs to the object then; NULL is null. */
void object_add(cJSON *to, const char *key, cJSON *item);

/* Add a text; NULL is null. */
void object_text(cJSON *to, const char *key, const char *text);

/* Add the text of a file; null if it cannot be read. */
void object_file(cJSON *to, const char *key, const char *path);

#endif
