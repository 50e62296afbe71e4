/* read.c: turn the bytes of a response into an answer, for every wire format. */
#include "base/error.h"
#include "llm/wire.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct wire *llm_wire(enum llm_api api) {
    static const struct wire *const wires[] = {[LLM_CHAT] = &wire_chat,
                                               [LLM_RESPONSES] = &wire_responses,
                                               [LLM_ANTHROPIC] = &wire_anthropic};
    return api < LLM_REPLAY ? wires[api] : NULL;
}

const char *llm_outcome_name(enum llm_outcome outcome) {
    static const char *const names[] = {
        [LLM_COMPLETE] = "complete", [LLM_CUT] = "cut",         [LLM_EMPTY] = "empty",
        [LLM_REFUSED] = "refused",   [LLM_INVALID] = "invalid", [LLM_FAILED] = "failed"};
    return names[outcome];
}

const char *llm_api_name(enum llm_api api) {
    return api == LLM_REPLAY ? "replay" : llm_wire(api)->name;
}

/* ---- Bytes ---- */

void reader_start(struct llm_reader *r, enum llm_api api) {
    *r = (struct llm_reader){.wire = llm_wire(api), .usage.cost = NAN};
}

static void broke(struct llm_reader *r, const char *what, bool again) {
    r->broken = what;
    r->again = again;
}

/* Read an "error" member, unless it says that there is no error. */
static bool has_error(struct llm_reader *r, const cJSON *json) {
    const cJSON *error = wire_get(json, "error");
    bool any = cJSON_IsObject(error) || cJSON_IsTrue(error) ||
               (cJSON_IsString(error) && *error->valuestring);
    if (any) fault_read(&r->fault, error);
    return any;
}

/* sse_event: take one event's data.  Stop at the terminal marker and at an error. */
static bool take_event(void *context, const char *event, const char *data, size_t n, bool last) {
    struct llm_reader *r = context;
    while (n && data[n - 1] == ' ') n--;
    if (n == 0) return true;
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        r->ended |= r->wire == &wire_chat;
        return !r->ended;
    }
    cJSON *json = wire_parse(data, n);
    if (json && !has_error(r, json)) r->wire->event(r, event, json);
    if (!json && !last) broke(r, "the stream holds an event that is not JSON", true);
    cJSON_Delete(json);
    return !r->ended && !r->broken && !r->fault.any;
}

bool reader_feed(struct llm_reader *r, const char *bytes, size_t n) {
    enum sse_state state = sse_feed(&r->sse, bytes, n, take_event, r);
    if (state == SSE_TOO_LONG) broke(r, "the stream holds a line larger than 1 MB", false);
    return state == SSE_MORE;
}

void reader_whole(struct llm_reader *r, const char *body, size_t n) {
    cJSON *json = wire_parse(body, n);
    if (!cJSON_IsObject(json)) {
        broke(r, "the answer is JSON that breaks off", true);
    } else if (!has_error(r, json)) {
        r->wire->whole(r, json);
        if (!r->ended) broke(r, "the answer is JSON, but not of this API", false);
    }
    cJSON_Delete(json);
}

/* ---- Answers ---- */

struct llm_answer *answer_failed(int exit_code, const char *format, ...) {
    struct llm_answer *a = calloc(1, sizeof *a);
    va_list ap;
    if (!a) die(KP_MACHINE, "out of memory");
    a->outcome = LLM_FAILED;
    a->exit_code = exit_code;
    a->usage.cost = NAN;
    a->text = utf8_clean("", 0);
    a->reasoning = utf8_clean("", 0);
    va_start(ap, format);
    vsnprintf(a->why, sizeof a->why, format, ap);
    va_end(ap);
    return a;
}

void llm_answer_free(struct llm_answer *a) {
    if (!a) return;
    free(a->text);
    free(a->reasoning);
    free(a);
}

struct llm_answer *fault_answer(const struct fault *f) {
    char says[360];
    fault_text(f, says, sizeof says);
    struct llm_answer *a = answer_failed(fault_exit(f), "%s: %s", says, fault_advice(f));
    a->for_all = f->status == 401 || f->status == 402 || f->status == 404;
    return a;
}

/* The answer of a call that failed or broke before the model ended. */
static struct llm_answer *no_answer(struct llm_reader *r) {
    if (r->fault.any) {
        r->again = fault_retry(&r->fault);
        return fault_answer(&r->fault);
    }
    if (r->broken)
        return answer_failed(KP_MACHINE, "%s: %s", r->broken,
                             r->again ? "try again later" : "check the base URL and the server");
    r->again = true;
    if (!r->ended)
        return answer_failed(KP_MACHINE, "the stream ended before the answer did: try again later");
    return answer_failed(KP_MACHINE, "the server gave up on its answer: try again later");
}

/* Judge an answer that the model ended.  `bad` names what makes its text invalid; NULL: nothing. */
static void weigh(const struct llm_reader *r, const char *bad, struct llm_answer *a) {
    bool blank = text_blank(&r->text), refused = !text_blank(&r->refusal);
    char says[256] = "";
    a->outcome = LLM_COMPLETE;
    a->why[0] = 0;
    if (refused || r->stop == STOP_FILTER) {
        const char *from = *r->stop_detail ? r->stop_detail : refused ? r->refusal.s : "";
        text_excerpt(says, sizeof says, from, strlen(from));
        a->outcome = LLM_REFUSED;
        snprintf(a->why, sizeof a->why, "the %s refused%s%s", refused ? "model" : "provider",
                 *says ? ": " : "", says);
    } else if (r->stop == STOP_CAP) {
        a->outcome = LLM_CUT;
        snprintf(a->why, sizeof a->why, "cut at the token cap%s: raise LLM_MAX_TOKENS",
                 blank ? ", all of which went into reasoning" : "");
    } else if (r->stop == STOP_CONTEXT) {
        a->outcome = LLM_CUT;
        snprintf(a->why, sizeof a->why, "cut at the end of the model's context");
    } else if (blank) {
        a->outcome = LLM_EMPTY;
        snprintf(a->why, sizeof a->why, "the model ended without a word");
    } else if (r->stop != STOP_END) {
        a->outcome = LLM_CUT;
        snprintf(a->why, sizeof a->why,
                 "the model stopped for \"%s\", not at the end of its answer",
                 *r->stop_word ? r->stop_word : "no stated reason");
    } else if (bad) {
        a->outcome = LLM_INVALID;
        snprintf(a->why, sizeof a->why, "the answer holds %s", bad);
    }
}

/* Treat impossible counts as unknown. */
static void check_usage(struct llm_usage *u) {
    const double counts[] = {u->input,          u->cached, u->cache_write,
                             u->cache_write_1h, u->output, u->reasoning};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!isfinite(counts[i]) || counts[i] < 0) u->known = false;
    if (!(isfinite(u->cost) && u->cost >= 0)) u->cost = NAN;
    if (u->input + u->output == 0 && isnan(u->cost)) u->known = false; /* no call takes nothing */
}

void usage_add(struct llm_usage *sum, const struct llm_usage *u) {
    if (!u->known) return;
    double cost = sum->known ? sum->cost + u->cost : u->cost;
    *sum = (struct llm_usage){true,
                              sum->input + u->input,
                              sum->cached + u->cached,
                              sum->cache_write + u->cache_write,
                              sum->cache_write_1h + u->cache_write_1h,
                              sum->output + u->output,
                              sum->reasoning + u->reasoning,
                              cost};
}

struct llm_answer *reader_end(struct llm_reader *r) {
    struct llm_answer *a;
    if (!r->ended && !r->broken && !r->fault.any) sse_end(&r->sse, take_event, r);
    /* Some servers of Chat Completions send no [DONE]. */
    r->ended |= r->wire == &wire_chat && r->stop != STOP_NONE && !r->torn;
    wire_scan(r);
    if (r->fault.any || r->broken || !r->ended || !r->begun || r->stop == STOP_BROKEN) {
        a = no_answer(r);
        a->maybe_billed = r->begun;
    } else {
        a = answer_failed(KP_OK, "%s", "");
        text_unthink(&r->text, &r->reasoning);
        const char *bad = text_settle(&r->text);
        text_settle(&r->reasoning);
        text_settle(&r->refusal);
        weigh(r, bad, a);
        free(a->text);
        free(a->reasoning);
        a->text = r->text.s;
        a->reasoning = r->reasoning.s;
        r->text = r->reasoning = (struct text){0};
    }
    check_usage(&r->usage);
    a->usage = r->usage;
    memcpy(a->model, r->model, sizeof a->model);
    text_free(&r->text);
    text_free(&r->reasoning);
    text_free(&r->refusal);
    sse_free(&r->sse);
    return a;
}

struct llm_answer *llm_read(enum llm_api api, const char *body, size_t size, bool sse) {
    struct llm_reader r;
    reader_start(&r, api);
    if (!r.wire) return answer_failed(KP_USAGE, "a replay has no format of its own");
    if (sse)
        reader_feed(&r, body, size);
    else
        reader_whole(&r, body, size);
    return reader_end(&r);
}
