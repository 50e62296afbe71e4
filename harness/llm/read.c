/* read.c: turn the bytes of a response into an answer, for every wire format. */
#include "llm/wire.h"

#include <ctype.h>

const struct wire *llm_wire(enum llm_api api) {
    static const struct wire *const wires[] = {[LLM_CHAT] = &wire_chat,
                                               [LLM_RESPONSES] = &wire_responses,
                                               [LLM_ANTHROPIC] = &wire_anthropic};
    return api < LLM_REPLAY ? wires[api] : NULL;
}

const char *const llm_apis[] = {"chat", "responses", "anthropic", "replay"};

/* ---- Values ---- */

static const struct field usage_fields[] = {
    {NULL, "prompt_tokens|input_tokens", IS_COUNT + N_IN},
    {NULL, "prompt_tokens_details|input_tokens_details.cached_tokens", IS_COUNT + N_READ},
    {NULL, "prompt_tokens_details|input_tokens_details.cache_write_tokens", IS_COUNT + N_NEW},
    {NULL, "cache_read_input_tokens", IS_COUNT + N_READ_APART},
    {NULL, "cache_creation_input_tokens", IS_COUNT + N_NEW_APART},
    {NULL, "cache_creation.ephemeral_1h_input_tokens", IS_COUNT + N_HOUR},
    {NULL, "completion_tokens|output_tokens", IS_COUNT + N_OUT},
    {NULL, "completion_tokens_details|output_tokens_details.reasoning_tokens|thinking_tokens",
     IS_COUNT + N_THOUGHT},
    {NULL, "total_tokens", IS_COUNT + N_ALL},
    {NULL, "cost", IS_COUNT + N_COST},
    {0}};

static const char *const stop_words[] = {
    [STOP_NONE] = "queued in_progress",
    [STOP_END] = "stop eos eos_token end_turn completed",
    [STOP_CAP] = "length max_tokens max_output_tokens",
    [STOP_CONTEXT] = "model_context_window_exceeded",
    [STOP_FILTER] = "content_filter refusal",
    [STOP_BROKEN] = "error abort insufficient_system_resource failed cancelled"};

static void read_fields(struct llm_reader *r, const struct field *fields, const char *event,
                        const cJSON *json);

/* Look for the key, which may have come in pieces. */
static void scan(struct llm_reader *r) {
    for (int i = 0; i < TEXTS; i++) r->leaked |= key_within(r->said[i].s, r->said[i].n);
}

/* Add a piece of a text.  What an item says starts on a new line, so that a code fence stays at the
 * start of a line. */
static void add(struct llm_reader *r, struct text *t, const char *s) {
    if (*s && r->item != r->last_item && t->n && t->s[t->n - 1] != '\n') text_add(t, "\n", 1);
    if (*s) r->last_item = r->item;
    text_add(t, s, strlen(s));
}

/* Usage may come several times, each replacing the counts before it.  Those before the model has
 * stopped are running counts. */
static void take_usage(struct llm_reader *r, const cJSON *usage) {
    r->count[N_OUT] = NAN;
    read_fields(r, usage_fields, "", usage);
    r->counted = r->stop != STOP_NONE && !isnan(r->count[N_IN]) && !isnan(r->count[N_OUT]);
}

static void take_whole(struct llm_reader *r, const cJSON *json) {
    struct text before[TEXTS];
    scan(r);
    memcpy(before, r->said, sizeof before);
    memset(r->said, 0, sizeof r->said);
    read_fields(r, r->wire->fields, "", json);
    bool says = r->said[IS_TEXT].n || r->said[IS_REFUSAL].n;
    for (int i = 0; i < TEXTS; i++) {
        if (!says) text_add(&r->said[i], before[i].s, before[i].n);
        text_free(&before[i]);
    }
    r->ended = r->stop != STOP_NONE;
}

/* Take a value as what it is.  One of another type is left alone. */
static void take(struct llm_reader *r, enum meaning is, const cJSON *value) {
    const char *s = cJSON_IsString(value) ? value->valuestring : "";
    size_t n = strlen(s);
    r->begun |= is < IS_FAULT;
    switch (is) {
    case IS_TEXT:
    case IS_REASONING:
    case IS_REFUSAL: add(r, &r->said[is], s); break;
    case IS_BEGUN: break;
    case IS_STOP:
        if (!n) break;
        r->stop = STOP_NONE;
        while (r->stop < STOP_OTHER && !text_listed(stop_words[r->stop], s)) r->stop++;
        text_excerpt(r->stop_word, sizeof r->stop_word, s, n);
        break;
    case IS_USAGE: take_usage(r, value); break;
    case IS_END: r->ended = true; break;
    case IS_FAULT: /* false, "" or a number says that there is none */
        if (cJSON_IsObject(value) || cJSON_IsTrue(value) || n) fault_read(&r->fault, value);
        break;
    case IS_WHOLE: take_whole(r, value); break;
    default:
        if (cJSON_IsNumber(value)) r->count[is - IS_COUNT] = value->valuedouble;
    }
}

/* Take each value at a path (struct field) below `at`. */
static void walk(struct llm_reader *r, const cJSON *at, const char *path, enum meaning is) {
    size_t n = strcspn(path, ".");
    const char *rest = path + n + (path[n] == '.');
    const cJSON *item, *value = NULL;
    char name[64];
    if (!n) {
        take(r, is, at);
    } else if (*path == '*') {
        long number = 0;
        snprintf(name, sizeof name, "%.*s", (int)n - 1, path + 1);
        cJSON_ArrayForEach(item, at) {
            if (*name) r->item = number++;
            if (!*name || !strcmp(name + 1, json_text(item, "type", ""))) walk(r, item, rest, is);
        }
    } else {
        for (size_t i = 0, k; i < n && !value; i += k + 1) {
            k = strcspn(path + i, ".|");
            snprintf(name, sizeof name, "%.*s", (int)k, path + i);
            value = cJSON_IsObject(at) ? cJSON_GetObjectItemCaseSensitive(at, name)
                    : isdigit(*name)   ? cJSON_GetArrayItem(at, atoi(name))
                                       : NULL;
            if (cJSON_IsNull(value)) value = NULL;
        }
        if (value) walk(r, value, rest, is);
    }
}

static void read_fields(struct llm_reader *r, const struct field *fields, const char *event,
                        const cJSON *json) {
    for (const struct field *f = fields; f->path; f++)
        if (!f->event || !strcmp(f->event, event)) walk(r, json, f->path, f->is);
}

/* ---- Bytes ---- */

void reader_start(struct llm_reader *r, enum llm_api api) {
    *r = (struct llm_reader){.wire = llm_wire(api)};
    r->count[N_IN] = r->count[N_COST] = NAN;
}

static void broke(struct llm_reader *r, const char *what, bool again) {
    r->broken = what;
    r->again = again;
}

/* Whether nothing more is to be read. */
static bool over(const struct llm_reader *r) {
    return r->ended || r->broken || r->fault.any;
}

/* Take the gathered event, if it has data.  `last`: the stream ended in it, so it may be cut short.
 * Stop at the terminal marker and at an error. */
static void take_event(struct llm_reader *r, bool last) {
    while (r->data.n && r->data.s[r->data.n - 1] == ' ') r->data.n--;
    if (r->data.n == 6 && !memcmp(r->data.s, "[DONE]", 6)) {
        r->ended |= r->wire->done;
    } else if (r->data.n) {
        cJSON *json = json_foreign(r->data.s, r->data.n);
        walk(r, json, "error", IS_FAULT);
        r->item = (long)json_number(json, "output_index", 0);
        if (json && !r->fault.any)
            read_fields(r, r->wire->fields, json_text(json, "type", r->event), json);
        if (!json && !last) broke(r, "the stream holds an event that is not JSON", true);
        cJSON_Delete(json);
    }
    text_clear(&r->data);
    r->event[0] = 0;
    r->has_data = false;
}

/* Take one line, without its end: a field with a value, a field alone, a comment, or nothing, which
 * ends an event. */
static void take_line(struct llm_reader *r) {
    const char *line = r->line.s, *end = line + r->line.n;
    const char *colon = r->line.n ? memchr(line, ':', r->line.n) : NULL;
    const char *value = colon ? colon + 1 : end;
    size_t name = (size_t)((colon ? colon : end) - line);
    if (value < end && *value == ' ') value++;
    if (!r->line.n) {
        take_event(r, false);
    } else if (name == 4 && !memcmp(line, "data", 4)) {
        if (r->has_data) text_add(&r->data, "\n", 1);
        text_add(&r->data, value, (size_t)(end - value));
        r->has_data = true;
    } else if (name == 5 && !memcmp(line, "event", 5)) {
        snprintf(r->event, sizeof r->event, "%.*s", (int)(end - value), value);
    }
    text_clear(&r->line);
}

bool reader_feed(struct llm_reader *r, const char *bytes, size_t n) {
    for (const char *p = bytes, *end = bytes + n; p < end && !over(r); p++) {
        const char *from = p;
        bool rest = r->after_cr && *p == '\n'; /* of a line end */
        r->after_cr = false;
        if (rest) continue;
        while (p < end && *p != '\n' && *p != '\r') p++;
        text_add(&r->line, from, (size_t)(p - from));
        if (r->line.n > LLM_LINE_MAX || r->data.n > LLM_LINE_MAX)
            broke(r, "the stream holds a line larger than 1 MB", false);
        if (p == end || r->broken) break;
        r->after_cr = *p == '\r';
        take_line(r);
    }
    return !over(r);
}

void reader_whole(struct llm_reader *r, const char *body, size_t n) {
    cJSON *json = json_foreign(body, n);
    walk(r, json, "error", IS_FAULT);
    if (!cJSON_IsObject(json))
        broke(r, "the answer is JSON that breaks off", true);
    else if (!r->fault.any)
        take(r, IS_WHOLE, json);
    if (!over(r)) broke(r, "the answer is JSON, but not of this API", false);
    cJSON_Delete(json);
}

/* ---- Answers ---- */

/* The answer of a call that failed or broke before the model ended. */
static struct llm_answer *no_answer(const struct llm_reader *r) {
    if (r->fault.any) return fault_answer(&r->fault);
    const char *what = r->broken  ? r->broken
                       : r->ended ? "the server gave up on its answer"
                                  : "the stream ended before the answer did";
    struct llm_answer *a = answer_new(
        LLM_FAILED, KP_MACHINE, "%s: check the base URL and the server, or try again later", what);
    a->again = r->again || !r->broken;
    return a;
}

/* Judge an answer that the model ended.  `bad` names what makes its text invalid; NULL: nothing. */
static struct llm_answer *weigh(const struct llm_reader *r, const char *bad) {
    bool blank = text_blank(&r->said[IS_TEXT]), refused = !text_blank(&r->said[IS_REFUSAL]);
    char says[256] = "";
    if (refused || r->stop == STOP_FILTER) {
        if (refused) text_excerpt(says, sizeof says, r->said[IS_REFUSAL].s, r->said[IS_REFUSAL].n);
        return answer_new(LLM_REFUSED, KP_OK, "the %s refused%s%s", refused ? "model" : "provider",
                          *says ? ": " : "", says);
    }
    if (r->stop == STOP_CAP)
        return answer_new(LLM_CUT, KP_OK, "cut at the token cap%s: raise LLM_MAX_TOKENS",
                          blank ? ", all of which went into reasoning" : "");
    if (r->stop == STOP_CONTEXT)
        return answer_new(LLM_CUT, KP_OK, "cut at the end of the model's context");
    if (blank) return answer_new(LLM_EMPTY, KP_OK, "the model ended without a word");
    if (r->stop != STOP_END)
        return answer_new(LLM_CUT, KP_OK,
                          "the model stopped for \"%s\", not at the end of its answer",
                          *r->stop_word ? r->stop_word : "no stated reason");
    if (bad) return answer_new(LLM_INVALID, KP_OK, "the answer holds %s", bad);
    return answer_new(LLM_COMPLETE, KP_OK, "%s", "");
}

/* The usage; unknown where counts are not final or impossible. */
static struct llm_usage usage_of(const struct llm_reader *r) {
    const double *n = r->count;
    struct llm_usage u = {.known = r->counted,
                          .input = n[N_IN] + n[N_READ_APART] + n[N_NEW_APART],
                          .cached = n[N_READ] + n[N_READ_APART],
                          .cache_write = n[N_NEW] + fmax(n[N_NEW_APART] - n[N_HOUR], 0),
                          .cache_write_1h = n[N_HOUR],
                          .output = n[N_OUT],
                          .reasoning = n[N_THOUGHT],
                          .cost = n[N_COST] >= 0 && isfinite(n[N_COST]) ? n[N_COST] : NAN};
    /* Some servers count reasoning in the total only; it is billed all the same. */
    if (n[N_ALL] - u.input > u.output) u.output = n[N_ALL] - u.input;
    for (int i = 0; i < N_ALL; i++) u.known &= isfinite(n[i]) && n[i] >= 0;
    u.known &= u.input + u.output > 0 || !isnan(u.cost); /* no call takes nothing */
    return u;
}

struct llm_answer *reader_end(struct llm_reader *r) {
    struct llm_answer *a;
    if (!over(r) && r->line.n) take_line(r);
    if (!over(r)) take_event(r, true);
    /* Some servers of Chat Completions send no [DONE]. */
    r->ended |= r->wire->done && r->stop != STOP_NONE && !r->torn;
    scan(r);
    if (r->fault.any || r->broken || !r->ended || !r->begun || r->stop == STOP_BROKEN) {
        a = no_answer(r);
        a->maybe_billed = r->begun;
    } else {
        text_unthink(&r->said[IS_TEXT]);
        const char *bad = text_settle(&r->said[IS_TEXT]);
        text_settle(&r->said[IS_REFUSAL]);
        a = weigh(r, bad);
        free(a->text);
        a->text = r->said[IS_TEXT].s;
        r->said[IS_TEXT].s = NULL;
    }
    a->usage = usage_of(r);
    for (int i = 0; i < TEXTS; i++) text_free(&r->said[i]);
    text_free(&r->line);
    text_free(&r->data);
    return a;
}

struct llm_answer *llm_read(enum llm_api api, const char *body, size_t size, bool sse) {
    struct llm_reader r;
    reader_start(&r, api);
    if (sse)
        reader_feed(&r, body, size);
    else
        reader_whole(&r, body, size);
    return reader_end(&r);
}
