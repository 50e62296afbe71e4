/* responses.c: OpenAI Responses. */
#include "llm/wire.h"

static void responses_messages(cJSON *body, const struct llm_message *m, int n) {
    struct text system = {0};
    for (int i = 0; i < n; i++) {
        if (strcmp(m[i].role, "system") != 0) continue;
        if (system.n) text_add(&system, "\n\n", 2);
        text_add(&system, m[i].text, strlen(m[i].text));
    }
    if (system.s) message_text(body, "instructions", system.s, system.n);
    text_free(&system);
    message_list(body, "input", m, n, false);
}

static const struct field responses_fields[] = {
    {"response.output_item.added", "", IS_BEGUN},
    {"response.output_text.delta", "delta", IS_TEXT},
    {"response.refusal.delta", "delta", IS_REFUSAL},
    {"response.reasoning_summary_text.delta", "delta", IS_REASONING},
    {"response.reasoning_text.delta", "delta", IS_REASONING},
    {"response.completed", "response", IS_WHOLE},
    {"response.incomplete", "response", IS_WHOLE},
    {"response.failed", "response", IS_WHOLE},
    {"error", "", IS_FAULT},
    {"", "output.*:reasoning.summary.*.text", IS_REASONING},
    {"", "output.*:reasoning.content.*.text", IS_REASONING},
    {"", "output.*:message.content.*.text", IS_TEXT},
    {"", "output.*:message.content.*.refusal", IS_REFUSAL},
    {"", "status", IS_STOP},
    {"", "incomplete_details.reason", IS_STOP},
    {"", "usage", IS_USAGE},
    {"", "error", IS_FAULT},
    {0}};

const struct wire wire_responses = {.word = "responses",
                                    .base_variable = "OPENAI_BASE_URL",
                                    .base = "https://api.openai.com/v1",
                                    .path = "/responses",
                                    .key_variable = "OPENAI_API_KEY",
                                    .messages = responses_messages,
                                    .cap = "max_output_tokens",
                                    .effort = "reasoning.effort",
                                    .fixed = "\"store\":false,\"stream\":true",
                                    .fields = responses_fields};
