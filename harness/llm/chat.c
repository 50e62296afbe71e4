/* chat.c: OpenAI Chat Completions, also spoken by every server that calls itself compatible; and
 * messages as other formats have them, too. */
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

static void chat_messages(cJSON *body, const struct llm_message *m, int n) {
    message_list(body, "messages", m, n, true);
}

/* A stream has deltas, a whole answer a message.  Servers may send reasoning under both names, with
 * the same text. */
static const struct field chat_fields[] = {
    {NULL, "choices.0", IS_BEGUN},
    {NULL, "choices.0.delta|message.content", IS_TEXT},
    {NULL, "choices.0.delta|message.content.*.text", IS_TEXT},
    {NULL, "choices.0.delta|message.reasoning_content|reasoning", IS_REASONING},
    {NULL, "choices.0.delta|message.refusal", IS_REFUSAL},
    {NULL, "choices.0.finish_reason", IS_STOP},
    {NULL, "usage", IS_USAGE},
    {0}};

const struct wire wire_chat = {.word = "openai",
                               .base_variable = "OPENAI_BASE_URL",
                               .base = "https://api.openai.com/v1",
                               .path = "/chat/completions",
                               .key_variable = "OPENAI_API_KEY",
                               .messages = chat_messages,
                               .cap = "max_completion_tokens",
                               .effort = "reasoning_effort",
                               .seed = "seed",
                               .fixed = "\"stream\":true",
                               .usage = ",\"stream_options\":{\"include_usage\":true}",
                               .fields = chat_fields,
                               .done = true};
