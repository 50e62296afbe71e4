/* object.c: see object.h. */
#include "gen/object.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <unistd.h>

void object_add(cJSON *to, const char *key, cJSON *item) {
    if (!cJSON_AddItemToObject(to, key, item ? item : cJSON_CreateNull()))
        die(KP_MACHINE, "out of memory");
}

void object_text(cJSON *to, const char *key, const char *text) {
    object_add(to, key, text ? cJSON_CreateString(text) : NULL);
}

void object_file(cJSON *to, const char *key, const char *path) {
    char *text = access(path, R_OK) ? NULL : file_read(path, NULL);
    object_text(to, key, text);
    free(text);
}
