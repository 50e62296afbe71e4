/* message.c: the messages of a request, as the wire formats share them. */
#include "llm/wire.h"

void message_text(cJSON *parent, const char *key, const char *text, size_t n) {
    char *clean = utf8_clean(text, n);
    cJSON_AddStringToObject(parent, key, clean);
    free(clean);
}

cJSON *message_start(cJSON *list, const char *role) {
    cJSON *message = cJSON_CreateObject();
    cJSON_AddItemToArray(list, message);
    cJSON_AddStringToObject(message, "role", role);
    return message;
}

void message_list(cJSON *body, const char *key, const struct llm_message *m, int n, bool system) {
    cJSON *list = cJSON_AddArrayToObject(body, key);
    for (int i = 0; i < n; i++) {
        if (!system && !strcmp(m[i].role, "system")) continue;
        message_text(message_start(list, m[i].role), "content", m[i].text, strlen(m[i].text));
    }
}
