/* call.c: one question to a model; see billed_answer in llm.h. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "llm/wire.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char ledger[] = "build/attempts/ledger", prices[] = "harness/llm/prices.json";

struct call {
    const struct billed_call *p;
    const struct llm_config *c;
    struct price price;
    double began, cost; /* cost: of the tries so far */
    int tries;          /* requests sent */
    int cap;            /* x the token cap: what this request may take */
    bool bare;          /* without the field for usage, which the server refuses */
    bool answered;      /* a try had an answer, if a cut one */
};

/* Beyond ASCII a byte may be a token.  Each message adds a few for its role. */
double tokens_bound(const struct llm_message *m, int n) {
    double bound = 16;
    for (int i = 0; i < n; i++) {
        bound += 16;
        for (const char *p = m[i].text; *p; p++)
            bound += (unsigned char)*p < 0x80 ? 1.0 / BYTES_A_TOKEN : 1;
    }
    return ceil(bound);
}

/* ---- One try ---- */

/* Note what a killed call would have used, and show it.  A model that reasons in secret sends
 * nothing, so time counts, too. */
static void show_progress(void *context, double seconds, size_t bytes) {
    enum { TOKENS_A_SECOND = 100 };
    const struct call *k = context;
    double most = k->cap * k->c->max_tokens;
    budget_note(fmin(fmax((double)bytes / BYTES_A_TOKEN, seconds * TOKENS_A_SECOND), most));
    if (!k->p->progress) return;
    struct llm_usage so_far = {.known = true, .output = (double)bytes / 4, .cost = NAN};
    double cost = price_cost(&k->price, &so_far);
    fprintf(stderr, "\r%s/%s %s: about %.0f tokens, %.0f s", k->p->gpu, k->p->task, k->p->name,
            so_far.output, seconds);
    if (cost >= 0) fprintf(stderr, ", %.3f USD", k->cost + cost);
}

/* Judge one response.  A server may have split the key over several pieces: then its body, which
 * holds them, is dropped. */
static struct llm_answer *judge(struct http_reply *reply, struct llm_reader *r) {
    const char *body = reply->body.s ? reply->body.s : "";
    r->torn = *reply->error;
    if (reply->status >= 400) {
        r->fault.should = json_text(reply->headers, "x-should-retry", "");
        fault_body(&r->fault, reply->status, body, reply->body.n);
    } else if (reply->status / 100 != 2 || reply->kind == BODY_OTHER) {
        r->broken = reply->error;
        r->again = reply->again;
    } else if (reply->kind == BODY_JSON && !r->torn) {
        reader_whole(r, body, reply->body.n);
    }
    bool says = r->fault.any || r->broken; /* why there is no answer */
    struct llm_answer *a = reader_end(r);
    if (a->outcome == LLM_FAILED && !says) {
        /* A model may think for long before its first word, and that is billed. */
        a->maybe_billed = true;
        a->again = !r->torn || reply->again;
        if (r->torn) snprintf(a->why, sizeof a->why, "the answer broke off: %s", reply->error);
    }
    if (reply->status / 100 == 3) a->exit_code = KP_USAGE;
    if (reply->status == 0) a->maybe_billed = reply->sent; /* the model may have started on it */
    key_redact(a->why, strlen(a->why));
    if (!r->leaked) return a;
    text_clear(&reply->body);
    a->outcome = LLM_INVALID;
    snprintf(a->why, sizeof a->why,
             "the answer holds the key: this server is not to be trusted with it");
    return a;
}

/* The seconds to wait before the next try, which double up to 16 times the first, minus up to a
 * quarter; or in the answer that there is none, and why. */
static double plan(const struct call *k, struct llm_answer *a, double asked) {
    char why[128] = "";
    unsigned x = 0;
    if (getrandom(&x, sizeof x, 0) != sizeof x) x = (unsigned)getpid() * 2654435761u;
    double usual = k->c->backoff_ms / 1000 * (1 << (k->tries < 5 ? k->tries - 1 : 4));
    double wait = isnan(asked) ? usual * (1 - 0.25 * (x / 4294967296.0)) : asked;
    if (seconds_now() - k->began + wait >= k->c->call_seconds)
        snprintf(why, sizeof why, " (LLM_SECONDS=%g are over%s)", k->c->call_seconds,
                 isnan(asked) ? "" : ", or would be: it asks to wait");
    else if (asked > 120)
        snprintf(why, sizeof why, " (it asks to wait %.0f s)", asked);
    else if (k->tries >= k->c->tries)
        snprintf(why, sizeof why, " (%d %s)", k->tries, k->tries == 1 ? "try" : "tries");
    size_t n = strlen(a->why);
    if (a->again) snprintf(a->why + n, sizeof a->why - n, "%s", why);
    a->again &= !*why;
    return wait;
}

/* Warn where the server counts far fewer tokens than the request must have: it has cut the prompt.
 */
static void check_prompt(const struct call *k, size_t n, const struct llm_answer *a) {
    enum { SHORT = 8192, BYTES = 8 };
    if (a->outcome != LLM_FAILED && a->usage.known && n > SHORT &&
        a->usage.input * BYTES < (double)n)
        warn("%s counts %.0f tokens in a request of %zu bytes, so it has cut the prompt: raise the "
             "context length of the server",
             k->c->host, a->usage.input, n);
}

static void sleep_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    while (nanosleep(&t, &t)) continue;
}

/* Reserve the worst case of a request, send it, record what came, and settle.  The disk comes
 * first: a failure there leaves no entry in the ledger.  Then prepare for another try (`again`),
 * with another request or after a wait, if one may help. */
static struct llm_answer *try_once(struct call *k) {
    const struct billed_call *p = k->p;
    char *request = llm_request(k->c, p->message, p->n, k->cap, k->bare);
    double cap = k->cap * k->c->max_tokens;
    struct llm_reader r;
    struct http_reply reply;
    if (key_within(request, strlen(request)))
        die(KP_USAGE, "%s/%s %s: the prompt holds the key in %s: take it out", p->gpu, p->task,
            p->name, k->c->key_env);
    transcript_reserve(strlen(request), cap);
    double asked = seconds_now();
    budget_reserve(ledger, p->gpu, p->task, p->name, &k->price, tokens_bound(p->message, p->n),
                   cap);
    k->began += seconds_now() - asked; /* waiting for other calls is no part of this one */
    reader_start(&r, k->c->api);
    http_post(k->c, request, fmax(0.001, k->c->call_seconds - (seconds_now() - k->began)), &r,
              show_progress, k, &reply);
    if (reply.body.s) reply.body.n = key_redact(reply.body.s, reply.body.n);
    struct llm_answer *a = judge(&reply, &r);
    a->tries = ++k->tries;
    double wait = plan(k, a, reply.wait);
    check_prompt(k, strlen(request), a);
    bool unknown = a->maybe_billed || (a->outcome != LLM_FAILED && !a->usage.known);
    double cost = a->usage.known ? price_cost(&k->price, &a->usage) : unknown ? NAN : 0;
    const struct llm_usage none = {.known = !unknown};
    transcript_append(k->c, request, &reply, a, cost);
    budget_settle(ledger, a->usage.known ? &a->usage : &none, cost, reply.seconds);
    k->cost += cost;
    k->answered |= a->outcome != LLM_FAILED;
    bool refused = (reply.status == 400 || reply.status == 422) && reply.body.n && r.wire->usage &&
                   !k->bare && strstr(reply.body.s, "stream_options");
    bool starved = a->outcome == LLM_CUT && r.stop == STOP_CAP && !*a->text && k->cap == 1;
    if (a->again && !refused && !starved) sleep_for(wait);
    if (refused) k->bare = true;
    if (starved) k->cap = 2;
    a->again |= refused || starved;
    cJSON_Delete(reply.headers);
    text_free(&reply.body);
    free(request);
    return a;
}

void llm_ready(const struct llm_config *c) {
    llm_need_key(c);
    if (c->api == LLM_REPLAY) return;
    struct price price = price_find(prices, c);
    budget_ready(&price);
}

/* Call the model; end the program if there is no answer. */
static void call(struct billed_call *p) {
    struct call k = {.p = p, .c = p->llm, .cap = 1, .began = seconds_now()};
    llm_need_key(k.c);
    if ((mkdir("build", 0777) && errno != EEXIST) ||
        (mkdir("build/attempts", 0777) && errno != EEXIST))
        die(KP_IO, "build/attempts: cannot be made: %s", strerror(errno));
    if (p->asked_path) file_replace(p->asked_path, p->asked);
    k.price = price_find(prices, k.c);
    struct llm_answer *a = try_once(&k);
    while (a->again) {
        llm_answer_free(a);
        a = try_once(&k);
    }
    if (p->progress) fprintf(stderr, "\r\033[K");
    if (!k.answered) {
        if (a->for_all) budget_stop(ledger);
        die(a->exit_code, "%s/%s %s: %s: %s", p->gpu, p->task, p->name, k.c->host, a->why);
    }
    llm_answer_free(a);
}

/* ---- Answers ---- */

/* Whether what was asked of this model, or is replayed, are these messages. */
static bool is_same(const struct billed_call *p, const cJSON *line) {
    const cJSON *was = cJSON_GetObjectItemCaseSensitive(line, "request");
    cJSON *asked = cJSON_CreateObject(), *part;
    bool same = p->llm->api == LLM_REPLAY || !strcmp(json_text(line, "model", ""), p->llm->model);
    llm_wire(transcript_api(line))->messages(asked, p->message, p->n);
    cJSON_ArrayForEach(part, asked) same &=
        cJSON_Compare(part, cJSON_GetObjectItemCaseSensitive(was, part->string), 1);
    cJSON_Delete(asked);
    return same;
}

/* The transcript's answer to this question or, with `any`, to another one; NULL if there is none.
 */
static struct llm_answer *recorded(struct billed_call *p, const char *path, bool any) {
    struct transcript t = transcript_find(path, any ? NULL : is_same, p);
    if (!t.answer) return NULL;
    snprintf(p->request_sha256, sizeof p->request_sha256, "%s",
             json_text(t.line, "request_sha256", ""));
    snprintf(p->date, sizeof p->date, "%s", json_text(t.line, "date", ""));
    snprintf(p->model, sizeof p->model, "%s", json_text(t.line, "model", ""));
    p->cost = t.cost;
    p->seconds = t.seconds;
    p->other = !is_same(p, t.line);
    if (p->other) warn("%s answers an earlier prompt; it is used all the same", path);
    cJSON_Delete(t.line);
    return t.answer;
}

/* The answer in a transcript of LLM=replay, which becomes this attempt's.  A different one there is
 * moved aside: its answers were billed. */
static struct llm_answer *replayed(struct billed_call *p) {
    char *from = text_format("%s/%s", p->llm->model, p->replay);
    struct llm_answer *a = recorded(p, from, true);
    if (!a) die(KP_INPUT, "%s: no transcript of this to replay", from);
    char *text = file_read(from, NULL), *there = file_read(p->transcript, NULL);
    char *aside = text_format("%s.before", p->transcript);
    for (int n = 2; !access(aside, F_OK); n++) {
        free(aside);
        aside = text_format("%s.before.%d", p->transcript, n);
    }
    if (*there && strcmp(text, there)) {
        if (rename(p->transcript, aside))
            die(KP_IO, "%s: cannot be kept as %s: %s", p->transcript, aside, strerror(errno));
        warn("%s was of another call: it is %s now", p->transcript, aside);
    }
    file_update(p->transcript, text);
    free(aside);
    free(there);
    free(text);
    free(from);
    return a;
}

struct llm_answer *billed_answer(struct billed_call *p) {
    transcript_hold(p->transcript);
    if (p->llm->api == LLM_REPLAY) return replayed(p);
    struct llm_answer *a = recorded(p, p->transcript, p->any);
    if (a) return a;
    call(p);
    /* Read it from the transcript, as the next run would. */
    if (!(a = recorded(p, p->transcript, p->any)))
        die(KP_BUG, "%s: the answer was not kept", p->transcript);
    return a;
}
