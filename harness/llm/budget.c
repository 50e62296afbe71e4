/* budget.c: the ledger and the caps; see budget.h.
 *
 * A line of the ledger has fields separated by tabs; "-" is an unknown amount:
 *
 *   R ticket epoch gpu task attempt usd tokens    reservation
 *   S ticket usd tokens seconds                   settlement
 *   X run                                         no more calls in this run (KP_RUN)
 *
 * LEDGER.open has a slot of fixed size for each ticket: what the call is known to have used so far.
 * The process that made a reservation locks its slot until it settles or dies.  So an open call
 * whose slot is free was left by a killed process, and counts what its slot says.
 *
 * Ticket numbers increase.  A writer locks the file from reading the sums to writing its line, so
 * two writers never spend the same remainder of a cap.  A line that a crash cut short granted
 * nothing: the next writer marks it as torn and ends it, and readers skip it. */
#define _GNU_SOURCE
#include "llm/budget.h"
#include "base/error.h"
#include "base/json.h"
#include "llm/disk_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TORN "\t(torn)"

/* ---- The ledger ---- */

struct call { /* one reservation and its settlement */
    long ticket;
    bool mine, settled; /* mine: of the requested cell; settled: or left by a dead process */
    double usd, tokens, seconds;
};

struct ledger {
    const char *path;
    int fd;
    char *text;
    long size;
    bool torn; /* the last line has no newline */
    bool stopped;
    int n, room;
    struct call *call;
};

/* Open and lock the ledger; create it to append.  fd is -1 if there is none to read. */
static struct ledger ledger_open(const char *path, bool append) {
    struct ledger l = {.path = path};
    l.fd =
        open(path, append ? O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0666);
    if (l.fd < 0 && !append && errno == ENOENT) return l;
    if (l.fd < 0)
        die(KP_IO, "%s: cannot %s the ledger: %s", path, append ? "write" : "read",
            strerror(errno));
    while (flock(l.fd, append ? LOCK_EX : LOCK_SH) != 0)
        if (errno != EINTR) die(KP_IO, "%s: cannot lock: %s", path, strerror(errno));
    return l;
}

/* Closing also releases the lock. */
static void ledger_close(struct ledger *l) {
    if (l->fd >= 0) close(l->fd);
    free(l->text);
    free(l->call);
}

static void ledger_load(struct ledger *l) {
    struct stat s;
    if (fstat(l->fd, &s) != 0) die(KP_IO, "%s: cannot read: %s", l->path, strerror(errno));
    l->text = malloc((size_t)s.st_size + 1);
    if (!l->text) die(KP_MACHINE, "out of memory");
    while (l->size < s.st_size) {
        ssize_t k = pread(l->fd, l->text + l->size, (size_t)(s.st_size - l->size), l->size);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) die(KP_IO, "%s: cannot read: %s", l->path, k ? strerror(errno) : "cut short");
        l->size += k;
    }
    l->text[l->size] = 0;
}

/* Read an amount; NAN for "-".  False if the field is neither.  The fast path is exact: up to 15
 * digits, which is nearly every amount, are a whole number divided by a power of ten. */
static bool amount(const char *field, double *x) {
    long long whole = 0, scale = 0;
    const char *p = field;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !scale); p++) {
        if (*p == '.')
            scale = 1;
        else
            whole = 10 * whole + (*p - '0'), scale *= 10;
        if (p - field > 15) break;
    }
    if (!*p && p > field && p[-1] != '.') {
        *x = scale ? (double)whole / (double)scale : (double)whole;
        return true;
    }
    char *end;
    *x = NAN;
    if (!strcmp(field, "-")) return true;
    *x = strtod(field, &end);
    return end != field && !*end && isfinite(*x) && *x >= 0;
}

static struct call *find(const struct ledger *l, long ticket) {
    int low = 0, high = l->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (l->call[middle].ticket < ticket)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->n && l->call[low].ticket == ticket ? &l->call[low] : NULL;
}

/* Read the fields of a reservation.  False if it is malformed. */
static bool take_reserved(struct ledger *l, char *field[8], const char *gpu, const char *task) {
    double ticket, epoch, usd, tokens;
    if (!amount(field[1], &ticket) || !amount(field[2], &epoch) || !amount(field[6], &usd) ||
        !amount(field[7], &tokens) || isnan(tokens) || !(ticket > 0))
        return false;
    if (l->n && (long)ticket <= l->call[l->n - 1].ticket) return false;
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        l->call = realloc(l->call, (size_t)l->room * sizeof *l->call);
        if (!l->call) die(KP_MACHINE, "out of memory");
    }
    bool mine = (!gpu || !strcmp(gpu, field[3])) && (!task || !strcmp(task, field[4]));
    l->call[l->n++] =
        (struct call){.ticket = (long)ticket, .mine = mine, .usd = usd, .tokens = tokens};
    return true;
}

/* An unknown amount keeps its reserved value.  A second settlement overrides the first. */
static bool take_settled(struct ledger *l, char *field[8]) {
    double ticket, usd, tokens, seconds;
    if (!amount(field[1], &ticket) || !amount(field[2], &usd) || !amount(field[3], &tokens) ||
        !amount(field[4], &seconds) || isnan(ticket) || isnan(seconds))
        return false;
    struct call *c = find(l, (long)ticket);
    if (!c) return false;
    c->settled = true;
    c->seconds = seconds;
    if (!isnan(usd)) c->usd = usd;
    if (!isnan(tokens)) c->tokens = tokens;
    return true;
}

/* Read one line, without its newline.  False if it is malformed. */
static bool take_line(struct ledger *l, char *line, const char *gpu, const char *task) {
    char *field[8];
    int n = 0;
    for (char *f = line; f; n++) {
        char *tab = strchr(f, '\t');
        if (tab) *tab++ = 0;
        if (n < 8) field[n] = f;
        f = tab;
    }
    if (n == 8 && !strcmp(field[0], "R")) return take_reserved(l, field, gpu, task);
    if (n == 2 && !strcmp(field[0], "X")) {
        const char *run = getenv("KP_RUN");
        l->stopped |= run && !strcmp(run, field[1]);
        return true;
    }
    return n == 5 && !strcmp(field[0], "S") && take_settled(l, field);
}

/* Read all calls.  Ends the program with KP_INPUT if a line is malformed. */
static void ledger_read(struct ledger *l, const char *gpu, const char *task) {
    const size_t mark = strlen(TORN);
    int line = 1;
    if (l->fd < 0) return;
    ledger_load(l);
    for (char *p = l->text, *end; p < l->text + l->size; p = end + 1, line++) {
        end = memchr(p, '\n', (size_t)(l->text + l->size - p));
        l->torn = !end;
        if (l->torn) return;
        *end = 0;
        if ((size_t)(end - p) >= mark && !memcmp(end - mark, TORN, mark)) continue;
        if (strlen(p) != (size_t)(end - p) || !take_line(l, p, gpu, task))
            die(KP_INPUT, "%s:%d: not a line of the ledger: put it right or move the file away",
                l->path, line);
    }
}

/* Append a line in one write, after marking a torn one, and flush it to the disk. */
static void ledger_append(const struct ledger *l, char *line) {
    char *text = text_format("%s%s", l->torn ? TORN "\n" : "", line);
    size_t n = strlen(text), done = 0;
    while (done < n) {
        ssize_t k = write(l->fd, text + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) die(KP_IO, "%s: cannot write the ledger: %s", l->path, strerror(errno));
        done += (size_t)k;
    }
    if (fdatasync(l->fd) != 0 && errno != EINVAL)
        die(KP_IO, "%s: cannot write the ledger: %s", l->path, strerror(errno));
    free(text);
    free(line);
}

/* Reserve disk space for a line and for the settlement of every call that will then be open.
 * Every reservation does this under the lock, so no other line can use the space of a
 * settlement.  The space is small and is never released.  If the file system cannot reserve and
 * a settlement fails, no answer is lost: the transcript has it, and the reservation counts. */
static void ledger_reserve(const struct ledger *l, const char *line, long open) {
    enum { SETTLED = 128 }; /* four numbers of about 20 digits, and the mark of a torn line */
    off_t bytes = (off_t)strlen(line) + (off_t)strlen(TORN "\n") + open * SETTLED;
    int why = disk_reserve(l->fd, l->size, bytes);
    if (why && why != EOPNOTSUPP)
        die(KP_IO,
            "%s: no room for a call: %lld bytes are needed: %s: free some on that disk; no request "
            "is sent",
            l->path, (long long)bytes, strerror(why));
}

static struct spent sum(const struct ledger *l, bool only_mine) {
    struct spent s = {0};
    for (int i = 0; i < l->n; i++) {
        const struct call *c = &l->call[i];
        if (only_mine && !c->mine) continue;
        double usd = isnan(c->usd) ? 0 : c->usd;
        s.calls++;
        s.unpriced += isnan(c->usd);
        s.usd += usd;
        s.tokens += c->tokens;
        if (!c->settled) s.open++, s.open_usd += usd, s.open_tokens += c->tokens;
        s.seconds += c->seconds;
    }
    return s;
}

/* ---- What open calls have used ---- */

enum { SLOT = 64 };

/* Open LEDGER.open; -1 if there is none to read. */
static int slots_open(const char *path, int flags) {
    char *name = text_format("%s.open", path);
    int fd = open(name, flags | O_CLOEXEC, 0666);
    if (fd < 0 && errno != ENOENT) die(KP_IO, "%s: cannot open: %s", name, strerror(errno));
    free(name);
    return fd;
}

/* Lock a slot (F_OFD_SETLK), or ask whether another process has it (F_OFD_GETLK: F_UNLCK if not).
 */
static short slot_lock(int fd, int command, long ticket) {
    struct flock f = {.l_type = F_WRLCK, .l_start = (off_t)ticket * SLOT, .l_len = SLOT};
    if (fcntl(fd, command, &f))
        die(KP_IO, "call %ld of the ledger cannot be locked: %s: was it moved away during a call?",
            ticket, strerror(errno));
    return f.l_type;
}

/* Count what dead processes left as far as it is known.  An unreadable slot counts in full. */
static void take_left(struct ledger *l) {
    int fd = slots_open(l->path, O_RDONLY);
    for (int i = 0; i < l->n; i++) {
        struct call *c = &l->call[i];
        char slot[SLOT + 1] = "", usd[SLOT], tokens[SLOT];
        double x, y;
        if (c->settled) continue;
        if (fd >= 0 && slot_lock(fd, F_OFD_GETLK, c->ticket) != F_UNLCK) continue;
        c->settled = true;
        if (fd < 0 || pread(fd, slot, SLOT, (off_t)c->ticket * SLOT) != SLOT ||
            sscanf(slot, "%63s %63s", usd, tokens) != 2 || !amount(usd, &x) || !amount(tokens, &y))
            continue;
        if (!isnan(x)) c->usd = x;
        if (!isnan(y)) c->tokens = y;
    }
    if (fd >= 0) close(fd);
}

struct spent budget_spent(const char *path, const char *gpu, const char *task) {
    struct ledger l = ledger_open(path, false);
    ledger_read(&l, gpu, task);
    take_left(&l);
    struct spent s = sum(&l, true);
    ledger_close(&l);
    return s;
}

/* ---- Caps ---- */

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

/* The worst case of one call. */
struct asked {
    const struct price *price;
    double usd, tokens; /* usd NAN: unknown */
    const char *ledger;
};

/* Format an amount for messages: four decimals, or two significant digits below 0.01. */
static const char *shown(double x, char text[32]) {
    snprintf(text, 32, x < 0.01 ? "%.2g" : "%.12g", x < 0.01 ? x : round(x * 1e4) / 1e4);
    return text;
}

/* Whether `used` plus `more` exceeds the cap `name` only until the `open` calls have settled.  Ends
 * the program if it does without them. */
static bool hold(const char *name, double used, double open, const char *was, double more,
                 const char *is) {
    double cap = number_of(name) * (1 + 1e-9);
    char a[32], b[32];
    if (used - open + more > cap)
        die(KP_BUDGET, "%s=%s would be exceeded: %s %s, this call %s %s: raise it, or stop here",
            name, getenv(name), shown(used - open, a), was, is, shown(more, b));
    return used + more > cap;
}

/* A cap in hours stops the next call once it is reached, because a call's duration is not known
 * beforehand. */
static void hold_hours(const char *name, double hours, const char *what) {
    double cap = number_of(name);
    if (!isnan(cap) && hours >= cap)
        die(KP_BUDGET, "%s=%s is reached: %.4g hours %s: raise it, or stop here", name,
            getenv(name), hours, what);
}

/* Check all caps of one kind, BUDGET or TASK.  Returns whether to wait for open calls. */
static bool hold_all(const char *kind, const struct spent *s, const struct asked *a) {
    char name[32];
    bool wait = false;
    snprintf(name, sizeof name, "%s_USD", kind);
    if (!isnan(number_of(name))) {
        const char *model = a->price->model[0] ? a->price->model : "this model";
        if (!a->price->known)
            die(KP_BUDGET,
                "no price for %s in harness/llm/prices.json: add it, or cap tokens (%s_TOKENS) "
                "instead of money",
                model, kind);
        if (isnan(a->usd))
            die(KP_BUDGET,
                "no price for %s with prompts above %.12g tokens in harness/llm/prices.json: "
                "add it, or cap tokens (%s_TOKENS) instead of money",
                model, a->price->up_to, kind);
        if (s->unpriced)
            die(KP_BUDGET,
                "%s=%s cannot be held: %ld calls in %s have no known cost: cap tokens (%s_TOKENS) "
                "instead of money, or move the ledger away",
                name, getenv(name), s->unpriced, a->ledger, kind);
        wait = hold(name, s->usd, s->open_usd, "spent", a->usd, "may cost");
    }
    snprintf(name, sizeof name, "%s_TOKENS", kind);
    wait |= hold(name, s->tokens, s->open_tokens, "spent", a->tokens, "may take");
    snprintf(name, sizeof name, "%s_CALLS", kind);
    return hold(name, (double)s->calls, 0, "made", 1, "is") || wait;
}

/* Hours since KP_RUN_STARTED (seconds since 1970); 0 if no cap needs them. */
static double run_hours(void) {
    if (isnan(number_of("BUDGET_HOURS"))) return 0;
    double started = number_of("KP_RUN_STARTED");
    if (isnan(started))
        die(KP_USAGE, "BUDGET_HOURS needs KP_RUN_STARTED, the run's start in seconds since 1970");
    return ((double)time(NULL) - started) / 3600;
}

/* The highest possible cost: the whole prompt is uncached, or written to the more expensive
 * cache. */
static double worst_usd(const struct price *p, double prompt_tokens, double answer_tokens) {
    if (!p->known || (p->up_to > 0 && prompt_tokens > p->up_to)) return NAN;
    double in = fmax(p->input, fmax(p->cache_write, p->cache_write_1h));
    return (prompt_tokens * in + answer_tokens * p->output) / 1e6;
}

/* Format a number for the ledger; "-" if it is unknown or not valid there.  Free it. */
static char *written(double x) {
    return isfinite(x) && x >= 0 ? text_format("%.12g", x) : text_format("-");
}

/* The slot of this process's newest open call. */
static struct {
    int fd;
    long ticket;
    double prompt_tokens;
    const struct price *price;
} slot = {.fd = -1};

void budget_note(double answer_tokens) {
    double all = slot.prompt_tokens + answer_tokens;
    char *usd = written(worst_usd(slot.price, slot.prompt_tokens, answer_tokens)),
         *tokens = written(all), text[SLOT + 1];
    snprintf(text, sizeof text, "%-31s %-31s\n", usd, tokens);
    if (pwrite(slot.fd, text, SLOT, (off_t)slot.ticket * SLOT) != SLOT && answer_tokens == 0)
        die(KP_IO, "the slot of call %ld in the ledger cannot be written: %s", slot.ticket,
            strerror(errno));
    free(usd);
    free(tokens);
}

/* Take and lock the slot of a ticket: from now on the call counts as open. */
static void slot_take(const char *path, long ticket, const struct price *p, double prompt_tokens) {
    slot.fd = slots_open(path, O_RDWR | O_CREAT);
    slot.ticket = ticket;
    slot.price = p;
    slot.prompt_tokens = prompt_tokens;
    slot_lock(slot.fd, F_OFD_SETLK, ticket);
    budget_note(0);
}

/* Read the ledger and check every cap.  Returns whether to wait for open calls. */
static bool must_wait(struct ledger *l, const char *gpu, const char *task, const struct asked *a,
                      long *open) {
    ledger_read(l, gpu, task);
    if (l->stopped) exit(KP_MACHINE); /* the call that stopped the run has said why */
    take_left(l);
    struct spent all = sum(l, false), cell = sum(l, true);
    *open = all.open;
    bool wait = hold_all("BUDGET", &all, a);
    hold_hours("BUDGET_HOURS", run_hours(), "since the run began");
    wait |= hold_all("TASK", &cell, a);
    hold_hours("TASK_HOURS", cell.seconds / 3600, "of calls for this task on this GPU");
    return wait;
}

long budget_reserve(const char *path, const char *gpu, const char *task, const char *attempt,
                    const struct price *p, double prompt_tokens, double answer_tokens) {
    const struct timespec pause = {.tv_nsec = 300000000};
    if (strpbrk(gpu, "\t\n") || strpbrk(task, "\t\n") || strpbrk(attempt, "\t\n"))
        die(KP_BUG, "a name for the ledger holds a tab or a line's end");
    struct asked a = {p, worst_usd(p, prompt_tokens, answer_tokens), prompt_tokens + answer_tokens,
                      path};
    struct ledger l = ledger_open(path, true);
    long open;
    while (must_wait(&l, gpu, task, &a, &open)) {
        ledger_close(&l);
        nanosleep(&pause, NULL);
        l = ledger_open(path, true);
    }
    long ticket = l.n ? l.call[l.n - 1].ticket + 1 : 1;
    char *usd = written(a.usd), *tokens = written(a.tokens);
    char *line = text_format("R\t%ld\t%lld\t%s\t%s\t%s\t%s\t%s\n", ticket, (long long)time(NULL),
                             gpu, task, attempt, usd, tokens);
    ledger_reserve(&l, line, open + 1);
    slot_take(path, ticket, p, prompt_tokens);
    ledger_append(&l, line);
    free(usd);
    free(tokens);
    ledger_close(&l);
    return ticket;
}

void budget_stop(const char *path) {
    const char *run = getenv("KP_RUN");
    if (!run || !*run || strpbrk(run, "\t\n")) return;
    struct ledger l = ledger_open(path, true);
    ledger_read(&l, NULL, NULL);
    if (!l.stopped) ledger_append(&l, text_format("X\t%s\n", run));
    ledger_close(&l);
}

void budget_settle(const char *path, long ticket, const struct llm_usage *u, double cost,
                   double seconds) {
    struct ledger l = ledger_open(path, true);
    ledger_read(&l, NULL, NULL);
    if (!find(&l, ticket))
        die(KP_INPUT, "%s: call %ld is not in the ledger: was it moved away during the call?", path,
            ticket);
    char *usd = written(cost), *tokens = written(u->known ? u->input + u->output : NAN);
    ledger_append(&l, text_format("S\t%ld\t%s\t%s\t%.3f\n", ticket, usd, tokens, fmax(seconds, 0)));
    free(usd);
    free(tokens);
    ledger_close(&l);
    if (ticket == slot.ticket && slot.fd >= 0) close(slot.fd), slot.fd = -1;
}
