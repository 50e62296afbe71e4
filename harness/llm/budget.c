/* budget.c: prices, the ledger and the caps; see wire.h.
 *
 * The ledger has a line of fixed length for each call, written when it is reserved and rewritten in
 * place, so that settling needs no room on the disk:
 *
 *   open|done  usd tokens (at most)  usd tokens (so far)  seconds  epoch  gpu task attempt
 *
 * An unknown amount is nan.  The process that made a reservation keeps its line locked until it
 * settles or dies: an open call whose line is free was left by a killed process, and counts what it
 * noted last.  A writer locks the file from reading the sums to writing its line, so no two spend
 * the same remainder of a cap.  A line that a crash cut short granted nothing, and is cut off. */
#define _GNU_SOURCE
#include "llm/wire.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* ---- Prices ---- */

/* The number in an environment variable; NAN if it is unset or empty. */
static double number_of(const char *name) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return NAN;
    double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x) || x < 0)
        die(KP_USAGE, "%s=%s is not a number of 0 or more", name, text);
    return x;
}

/* What follows a listed name in the name of a dated version of that model. */
#define DAY(dash) "(0[1-9]|1[0-2])" dash "(0[1-9]|[12][0-9]|3[01])"
static const char version[] = "^([-:@]([0-9]{4}-" DAY("-") "|([0-9]{4})?" DAY("") "|latest))?$";

/* A rate of an entry.  If it is absent or null: `otherwise`, or an error if that is NAN. */
static double rate(const char *path, const cJSON *entry, const char *key, double otherwise) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, key);
    if ((!v || cJSON_IsNull(v)) && !isnan(otherwise)) return otherwise;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || !isfinite(v->valuedouble))
        die(KP_INPUT, "%s: %s: \"%s\" is not a price", path, json_text(entry, "model", "?"), key);
    return v->valuedouble;
}

/* Take an entry's prices if it is for this model, is valid, and beats what `p` holds: its name
 * is longer, or the same and the entry is newer. */
static void consider(struct price *p, size_t *length, const char *path, const cJSON *entry,
                     const char *today) {
    const char *name = json_text(entry, "model", NULL), *from = json_text(entry, "valid_from", "");
    if (!name || !*name || strlen(from) != strlen("2026-01-31"))
        die(KP_INPUT, "%s: an entry has no \"model\" or no date in \"valid_from\"", path);
    size_t n = strlen(name);
    if (strncmp(p->model, name, n) || !text_matches(p->model + n, version) ||
        strcmp(from, today) > 0)
        return;
    if (n < *length || (n == *length && strcmp(from, p->valid_from) <= 0)) return;
    *length = n;
    p->known = true;
    p->input = rate(path, entry, "input", NAN);
    p->output = rate(path, entry, "output", NAN);
    p->cached = rate(path, entry, "cached", p->input);
    p->cache_write = rate(path, entry, "cache_write", p->input);
    p->cache_write_1h = rate(path, entry, "cache_write_1h", p->cache_write);
    p->up_to = rate(path, entry, "up_to", 0);
    snprintf(p->valid_from, sizeof p->valid_from, "%s", from);
}

struct price price_find(const char *prices_path, const struct llm_config *c) {
    struct price p = {0};
    size_t length = 0;
    bool capped = !isnan(number_of("BUDGET_USD")) || !isnan(number_of("TASK_USD"));
    char today[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &tm));
    const char *maker = c->loopback ? strrchr(c->model, '/') : NULL; /* as proxies have it before */
    snprintf(p.model, sizeof p.model, "%s", maker ? maker + 1 : c->model);
    p.known = c->loopback;
    if (c->loopback && !capped) return p;
    cJSON *json = json_read(prices_path);
    const cJSON *models = cJSON_GetObjectItemCaseSensitive(json, "models"), *entry;
    if (json_number(json, "schema", 0) != 1 || json_number(json, "unit", 0) != 1e6 ||
        strcmp(json_text(json, "currency", ""), "USD") || !cJSON_IsArray(models))
        die(KP_INPUT, "%s: not a list of prices in USD for a million tokens (schema 1)",
            prices_path);
    cJSON_ArrayForEach(entry, models) consider(&p, &length, prices_path, entry, today);
    cJSON_Delete(json);
    return p;
}

double price_cost(const struct price *p, const struct llm_usage *u) {
    if (isfinite(u->cost) && u->cost >= 0) return u->cost;
    if (!p->known || !u->known || (p->up_to > 0 && u->input > p->up_to)) return NAN;
    double plain = u->input - u->cached - u->cache_write - u->cache_write_1h;
    return (fmax(plain, 0) * p->input + u->cached * p->cached + u->cache_write * p->cache_write +
            u->cache_write_1h * p->cache_write_1h + u->output * p->output) /
           1e6;
}

/* ---- The ledger ---- */

enum { LINE = 512 }; /* a block of a disk holds whole lines, so a line is never half written */

struct line {
    char state[8], gpu[64], task[64], attempt[64];
    double most_usd, most_tokens, usd, tokens, seconds;
    long long epoch;
};

/* Lock a line (F_OFD_SETLK), or ask whether another process has it (F_OFD_GETLK: F_UNLCK if not).
 */
static short line_lock(int fd, int command, long number) {
    struct flock f = {.l_type = F_WRLCK, .l_start = (off_t)number * LINE, .l_len = LINE};
    if (fcntl(fd, command, &f))
        die(KP_IO, "call %ld of the ledger cannot be locked: %s", number + 1, strerror(errno));
    return f.l_type;
}

static bool line_read(const char *text, struct line *l) {
    int n = sscanf(text, "%7s %lf %lf %lf %lf %lf %lld %63s %63s %63s", l->state, &l->most_usd,
                   &l->most_tokens, &l->usd, &l->tokens, &l->seconds, &l->epoch, l->gpu, l->task,
                   l->attempt);
    return n == 10 && (!strcmp(l->state, "open") || !strcmp(l->state, "done")) &&
           !(l->most_usd < 0) && l->most_tokens >= 0 && !(l->usd < 0) && l->tokens >= 0 &&
           l->seconds >= 0 && isfinite(l->tokens) && isfinite(l->most_tokens);
}

/* Write a line in place.  Returns 0 or errno. */
static int line_write(int fd, long number, const struct line *l) {
    char text[LINE + 1];
    int n = snprintf(text, sizeof text, "%s\t%.12g\t%.12g\t%.12g\t%.12g\t%.3f\t%lld\t%s\t%s\t%s",
                     l->state, l->most_usd, l->most_tokens, l->usd, l->tokens, l->seconds, l->epoch,
                     l->gpu, l->task, l->attempt);
    memset(text + n, ' ', (size_t)(LINE - n));
    text[LINE - 1] = '\n';
    ssize_t k = pwrite(fd, text, LINE, (off_t)number * LINE);
    return k == LINE ? 0 : k < 0 ? errno : ENOSPC;
}

/* budget_spent of an open ledger, locked.  A call is settled before its line is free, so whether a
 * line is free is asked before it is read. */
static struct spent sum(const char *path, int fd, const char *gpu, const char *task) {
    struct spent s = {0};
    struct line l;
    char text[LINE];
    ssize_t k;
    for (long i = 0;; i++) {
        bool held = line_lock(fd, F_OFD_GETLK, i) != F_UNLCK;
        if ((k = pread(fd, text, LINE, i * LINE)) != LINE) break;
        bool whole = text[LINE - 1] == '\n';
        text[LINE - 1] = 0;
        if (!whole || !line_read(text, &l))
            die(KP_INPUT, "%s:%ld: not a line of the ledger: put it right or move the file away",
                path, i + 1);
        if ((gpu && strcmp(gpu, l.gpu)) || (task && strcmp(task, l.task))) continue;
        /* While a call is open it counts what it may cost; if its process died what it noted. */
        bool open = *l.state == 'o' && held;
        double usd = open ? l.most_usd : l.usd, tokens = open ? l.most_tokens : l.tokens;
        s.calls++;
        s.unpriced += isnan(usd);
        if (isnan(usd)) usd = 0;
        s.usd += usd;
        s.tokens += tokens;
        s.seconds += l.seconds;
        if (open) s.open++, s.open_usd += usd, s.open_tokens += tokens;
    }
    if (k < 0) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
    return s; /* half a line at the end is no call */
}

struct spent budget_spent(const char *path, const char *gpu, const char *task) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return (struct spent){0};
    if (fd < 0 || flock(fd, LOCK_SH))
        die(KP_IO, "%s: cannot read the ledger: %s", path, strerror(errno));
    struct spent s = sum(path, fd, gpu, task);
    close(fd);
    return s;
}

/* ---- Caps ---- */

/* Format an amount for messages: four decimals, or two significant digits below 0.01. */
static const char *shown(double x, char text[32]) {
    snprintf(text, 32, x < 0.01 ? "%.2g" : "%.12g", x < 0.01 ? x : round(x * 1e4) / 1e4);
    return text;
}

/* A cap in hours stops the next call once it is reached, because a call's duration is not known
 * beforehand. */
static void hold_hours(const char *name, double hours, const char *what) {
    double cap = number_of(name);
    if (isnan(hours) && !isnan(cap))
        die(KP_USAGE, "%s needs KP_RUN_STARTED, the run's start in seconds since 1970", name);
    if (hours >= cap)
        die(KP_BUDGET, "%s=%s is reached: %.4g hours %s: raise it, or stop here", name,
            getenv(name), hours, what);
}

/* A cap in money holds only where every call has a price. */
static void need_prices(const char *kind, const char *name, const struct spent *s,
                        const struct price *p, double usd, const char *ledger) {
    char longer[64] = "";
    if (p->known) snprintf(longer, sizeof longer, " with prompts above %.12g tokens", p->up_to);
    if (isnan(usd))
        die(KP_BUDGET,
            "no price for %s%s in harness/llm/prices.json: add it, or cap tokens (%s_TOKENS) "
            "instead of money",
            p->model, longer, kind);
    if (s->unpriced)
        die(KP_BUDGET,
            "%s=%s cannot be held: %ld calls in %s have no known cost: cap tokens (%s_TOKENS) "
            "instead of money, or move the ledger away",
            name, getenv(name), s->unpriced, ledger, kind);
}

/* Hold the caps of one kind, BUDGET or TASK, against what is spent and one call more.  Ends the
 * program if they exceed one; returns whether they do with what open calls may take. */
static bool hold(const char *kind, const struct spent *s, const struct price *p, double usd,
                 double tokens, const char *ledger) {
    const struct {
        const char *name, *was, *is;
        double used, open, more;
    } caps[] = {{"USD", "spent", "may cost", s->usd, s->open_usd, usd},
                {"TOKENS", "spent", "may take", s->tokens, s->open_tokens, tokens},
                {"CALLS", "made", "is", (double)s->calls, 0, 1}};
    char name[32], a[32], b[32];
    bool wait = false;
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        snprintf(name, sizeof name, "%s_%s", kind, caps[i].name);
        double cap = number_of(name) * (1 + 1e-9), settled = caps[i].used - caps[i].open;
        if (i == 0 && !isnan(cap)) need_prices(kind, name, s, p, usd, ledger);
        if (settled + caps[i].more > cap)
            die(KP_BUDGET,
                "%s=%s would be exceeded: %s %s, this call %s %s: raise it, or stop here", name,
                getenv(name), shown(settled, a), caps[i].was, caps[i].is, shown(caps[i].more, b));
        wait |= caps[i].used + caps[i].more > cap;
    }
    return wait;
}

/* ---- Calls ---- */

/* The highest possible cost: the whole prompt is uncached, or written to the more expensive
 * cache. */
static double worst_usd(const struct price *p, double prompt_tokens, double answer_tokens) {
    if (!p->known || (p->up_to > 0 && prompt_tokens > p->up_to)) return NAN;
    double in = fmax(p->input, fmax(p->cache_write, p->cache_write_1h));
    return (prompt_tokens * in + answer_tokens * p->output) / 1e6;
}

static struct { /* this process's newest open call; its line is locked through fd */
    int fd;
    long number; /* of its line, from 0 */
    double prompt_tokens;
    const struct price *price;
    struct line line;
} mine = {.fd = -1};

void budget_note(double answer_tokens) {
    mine.line.tokens = mine.prompt_tokens + answer_tokens;
    mine.line.usd = worst_usd(mine.price, mine.prompt_tokens, answer_tokens);
    line_write(mine.fd, mine.number, &mine.line); /* where that fails, the last note stands */
}

static void set_name(char out[64], const char *name) {
    if (snprintf(out, 64, "%s", name) >= 64 || !*name || strpbrk(name, " \t\n"))
        die(KP_BUG, "a name for the ledger is too long, or holds a blank");
}

/* Whether budget_stop has stopped this run. */
static bool stopped(const char *ledger) {
    const char *run = getenv("KP_RUN");
    char *path = text_format("%s.stop", ledger);
    char *text = access(path, R_OK) ? NULL : file_read(path, NULL);
    bool same = run && *run && text && !strcmp(text, run);
    free(text);
    free(path);
    return same;
}

void budget_reserve(const char *path, const char *gpu, const char *task, const char *attempt,
                    const struct price *p, double prompt_tokens, double answer_tokens) {
    const struct timespec pause = {.tv_nsec = 300000000};
    double usd = worst_usd(p, prompt_tokens, answer_tokens), tokens = prompt_tokens + answer_tokens;
    mine.line = (struct line){.state = "open", .most_usd = usd, .most_tokens = tokens};
    mine.line.epoch = time(NULL);
    mine.prompt_tokens = prompt_tokens;
    mine.price = p;
    set_name(mine.line.gpu, gpu);
    set_name(mine.line.task, task);
    set_name(mine.line.attempt, attempt);
    for (;; close(mine.fd), nanosleep(&pause, NULL)) {
        mine.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (mine.fd < 0 || flock(mine.fd, LOCK_EX))
            die(KP_IO, "%s: cannot write the ledger: %s", path, strerror(errno));
        if (stopped(path)) exit(KP_MACHINE); /* the failed call has said why */
        struct spent all = sum(path, mine.fd, NULL, NULL), cell = sum(path, mine.fd, gpu, task);
        bool wait = hold("BUDGET", &all, p, usd, tokens, path);
        hold_hours("BUDGET_HOURS", ((double)time(NULL) - number_of("KP_RUN_STARTED")) / 3600,
                   "since the run began");
        wait |= hold("TASK", &cell, p, usd, tokens, path);
        hold_hours("TASK_HOURS", cell.seconds / 3600, "of calls for this task on this GPU");
        mine.number = all.calls;
        if (!wait) break;
    }
    line_lock(mine.fd, F_OFD_SETLK, mine.number);
    mine.line.tokens = prompt_tokens;
    mine.line.usd = worst_usd(p, prompt_tokens, 0);
    off_t end = (off_t)mine.number * LINE;
    int why = ftruncate(mine.fd, end) ? errno : line_write(mine.fd, mine.number, &mine.line);
    if (!why && fdatasync(mine.fd)) why = errno;
    if (why && ftruncate(mine.fd, end)) warn("%s: half a line is left", path);
    if (why)
        die(KP_IO, "%s: no room for a call: %s: free some on that disk; no request is sent", path,
            strerror(why));
    flock(mine.fd, LOCK_UN);
}

void budget_ready(const struct price *p) {
    const struct spent none = {.calls = -1};
    double usd = worst_usd(p, 0, 0);
    number_of("BUDGET_HOURS");
    number_of("TASK_HOURS");
    hold("BUDGET", &none, p, usd, 0, "");
    hold("TASK", &none, p, usd, 0, "");
}

void budget_settle(const char *path, const struct llm_usage *u, double cost, double seconds) {
    double tokens = u->known ? u->input + u->output : NAN;
    struct line *l = &mine.line;
    if (mine.fd < 0) die(KP_BUG, "%s: no call is open", path);
    strcpy(l->state, "done");
    l->usd = isfinite(cost) && cost >= 0 ? cost : l->most_usd;
    l->tokens = isfinite(tokens) && tokens >= 0 ? tokens : l->most_tokens;
    l->seconds = fmax(seconds, 0);
    int why = line_write(mine.fd, mine.number, l);
    if (why) die(KP_IO, "%s: cannot write the ledger: %s", path, strerror(why));
    close(mine.fd); /* also frees the line */
    mine.fd = -1;
}

void budget_stop(const char *path) {
    const char *run = getenv("KP_RUN");
    char *stop = text_format("%s.stop", path);
    if (run && *run) file_replace(stop, run);
    free(stop);
}
