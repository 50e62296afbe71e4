/* anthropic.c: Anthropic Messages. */
#include "llm/wire.h"

/* A block of text.  `cached`: what ends here is the same in many calls, so a cache breakpoint is at
 * its end. */
static void add_block(cJSON *content, const char *text, size_t n, bool cached) {
    cJSON *block = cJSON_CreateObject();
    cJSON_AddItemToArray(content, block);
    cJSON_AddStringToObject(block, "type", "text");
    message_text(block, "text", text, n);
    if (!cached) return;
    cJSON_AddStringToObject(cJSON_AddObjectToObject(block, "cache_control"), "type", "ephemeral");
}

/* The last block of the system and the stable front of each message are marked for the cache. */
static void anthropic_messages(cJSON *body, const struct llm_message *m, int n) {
    int last = -1; /* of the system's */
    for (int i = 0; i < n; i++)
        if (!strcmp(m[i].role, "system")) last = i;
    cJSON *system = last < 0 ? NULL : cJSON_AddArrayToObject(body, "system");
    cJSON *messages = cJSON_AddArrayToObject(body, "messages");
    for (int i = 0; i < n; i++) {
        size_t size = strlen(m[i].text);
        if (!strcmp(m[i].role, "system")) {
            add_block(system, m[i].text, size, i == last);
            continue;
        }
        cJSON *message = message_start(messages, m[i].role);
        if (!m[i].stable) {
            message_text(message, "content", m[i].text, size);
            continue;
        }
        cJSON *content = cJSON_AddArrayToObject(message, "content");
        add_block(content, m[i].text, m[i].stable, true);
        add_block(content, m[i].text + m[i].stable, size - m[i].stable, false);
    }
}

/* message_start holds an answer without its end. */
static const struct field anthropic_fields[] = {
    {"message_start", "message", IS_WHOLE},
    {"content_block_start", "content_block.text", IS_TEXT},
    {"content_block_start", "content_block.thinking", IS_REASONING},
    {"content_block_delta", "delta.text", IS_TEXT},
    {"content_block_delta", "delta.thinking", IS_REASONING},
    {"message_delta", "delta.stop_reason", IS_STOP},
    {"message_delta", "delta.stop_details.explanation|category", IS_REFUSAL},
    {"message_delta", "usage", IS_USAGE},
    {"message_stop", "", IS_END},
    {"", "content.*.text", IS_TEXT},
    {"", "content.*.thinking", IS_REASONING},
    {"", "stop_reason", IS_STOP},
    {"", "stop_details.explanation|category", IS_REFUSAL},
    {"", "usage", IS_USAGE},
    {0}};

const struct wire wire_anthropic = {.word = "anthropic",
                                    .base_variable = "ANTHROPIC_BASE_URL",
                                    .base = "https://api.anthropic.com",
                                    .path = "/v1/messages",
                                    .key_variable = "ANTHROPIC_API_KEY",
                                    .token_variable = "ANTHROPIC_AUTH_TOKEN",
                                    .key_header = "x-api-key: ",
                                    .header = "anthropic-version: 2023-06-01",
                                    .messages = anthropic_messages,
                                    .cap = "max_tokens",
                                    .effort = "output_config.effort",
                                    .fixed = "\"stream\":true",
                                    .fields = anthropic_fields};
