/* sse.c: parse server-sent events from pieces of any size. */
#include "llm/wire.h"

/* Deliver the gathered event if it has data, and start the next. */
static bool dispatch(struct sse *s, sse_event *event, void *context, bool last) {
    bool on = true;
    if (s->has_data) on = event(context, s->event, s->data.s, s->data.n, last);
    text_clear(&s->data);
    s->event[0] = 0;
    s->has_data = false;
    return on;
}

/* Take one line, without its newline: a comment, a field with a value, or a field alone. */
static void take_line(struct sse *s) {
    const char *line = s->line.s, *end = line + s->line.n;
    const char *colon = memchr(line, ':', (size_t)(end - line));
    size_t name = (size_t)((colon ? colon : end) - line);
    const char *value = colon ? colon + 1 : end;
    if (value < end && *value == ' ') value++;
    if (name == 4 && !memcmp(line, "data", 4)) {
        if (s->has_data) text_add(&s->data, "\n", 1);
        text_add(&s->data, value, (size_t)(end - value));
        s->has_data = true;
    } else if (name == 5 && !memcmp(line, "event", 5)) {
        snprintf(s->event, sizeof s->event, "%.*s", (int)(end - value), value);
    }
}

enum sse_state sse_feed(struct sse *s, const char *bytes, size_t n, sse_event *event,
                        void *context) {
    for (const char *p = bytes, *end = bytes + n; p < end;) {
        const char *from = p;
        if (s->after_cr && *p == '\n') {
            s->after_cr = false;
            p++;
            continue;
        }
        while (p < end && *p != '\n' && *p != '\r') p++;
        if (s->line.n + (size_t)(p - from) > LLM_LINE_MAX) return SSE_TOO_LONG;
        text_add(&s->line, from, (size_t)(p - from));
        s->after_cr = p < end && *p == '\r';
        if (p == end) break;
        p++;
        if (s->line.n)
            take_line(s);
        else if (!dispatch(s, event, context, false))
            return SSE_STOPPED;
        text_clear(&s->line);
        if (s->data.n > LLM_LINE_MAX) return SSE_TOO_LONG;
    }
    return SSE_MORE;
}

void sse_end(struct sse *s, sse_event *event, void *context) {
    if (s->line.n) take_line(s);
    dispatch(s, event, context, true);
}

void sse_free(struct sse *s) {
    text_free(&s->line);
    text_free(&s->data);
}
