/* script.c: read a script; see mock.h.  README.md describes the commands. */
#define _GNU_SOURCE
#include "mock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

void text_add(struct text *t, const void *bytes, size_t n) {
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n) + 64;
        t->p = realloc(t->p, t->room);
        if (!t->p) die(KP_MACHINE, "out of memory");
    }
    if (n) memcpy(t->p + t->n, bytes, n);
    t->n += n;
    t->p[t->n] = 0;
}

void text_printf(struct text *t, const char *format, ...) {
    va_list ap;
    char *s = NULL;
    va_start(ap, format);
    int n = vasprintf(&s, format, ap);
    va_end(ap);
    if (n < 0) die(KP_MACHINE, "out of memory");
    text_add(t, s, n);
    free(s);
}

void text_json(struct text *t, const char *bytes, size_t n) {
    text_add(t, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = bytes[i];
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else if (c < 32 || c == 127)
            text_printf(t, "\\u%04x", c);
        else
            text_add(t, &c, 1);
    }
    text_add(t, "\"", 1);
}

/* The rest of a line, with the escapes \n \r \t \\ and \xHH replaced by their bytes. */
static struct text unescape(const struct script *s, const char *from) {
    struct text t = {0};
    text_add(&t, "", 0);
    for (; *from; from++) {
        const char *known = "n\nr\rt\t\\\\", *at;
        char c = *from;
        if (c == '\\' && from[1] == 'x') {
            unsigned byte;
            if (sscanf(from + 2, "%2x", &byte) != 1)
                die(KP_INPUT, "%s:%d: \\x needs two hexadecimal digits", s->path, s->line);
            c = (char)byte;
            from += 3;
        } else if (c == '\\') {
            at = from[1] ? strchr(known, from[1]) : NULL;
            if (!at || (at - known) % 2)
                die(KP_INPUT, "%s:%d: unknown escape \\%c", s->path, s->line, from[1]);
            c = at[1];
            from++;
        }
        text_add(&t, &c, 1);
    }
    return t;
}

static char *copy(const char *s) {
    char *c = strdup(s);
    if (!c) die(KP_MACHINE, "out of memory");
    return c;
}

static struct text contents(const struct script *s, const char *path) {
    struct text t = {0};
    char piece[4096];
    FILE *f = fopen(path, "rb");
    if (!f) die(KP_IO, "%s:%d: %s: cannot read: %s", s->path, s->line, path, strerror(errno));
    text_add(&t, "", 0);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) text_add(&t, piece, n);
    fclose(f);
    return t;
}

static struct step *add_step(struct rule *r, int kind) {
    r->steps = realloc(r->steps, (r->nsteps + 1) * sizeof *r->steps);
    if (!r->steps) die(KP_MACHINE, "out of memory");
    struct step *s = &r->steps[r->nsteps++];
    *s = (struct step){.kind = kind};
    return s;
}

static void add_text(struct rule *r, int kind, struct text t) {
    struct step *s = add_step(r, kind);
    s->text = t.p;
    s->size = t.n;
}

/* Read n numbers from 0 to 1e9, at most two; returns the rest of the line. */
static const char *numbers(const struct script *s, const char *rest, int n, long *a, long *b) {
    for (int i = 0; i < n; i++) {
        char *end;
        long x = strtol(rest, &end, 10);
        if (end == rest || x < 0 || x > 1000000000)
            die(KP_INPUT, "%s:%d: %d numbers from 0 to 1e9 expected, '%s' found", s->path, s->line,
                n, rest);
        *(i ? b : a) = x;
        rest = end;
    }
    return *rest == ' ' ? rest + 1 : rest;
}

static void add_condition(const struct script *s, char **list, int *n, const char *rest) {
    if (*n == CONDITIONS)
        die(KP_INPUT, "%s:%d: more than %d conditions", s->path, s->line, CONDITIONS);
    list[(*n)++] = copy(rest);
}

/* Commands that set how a rule answers; false if `word` is none of them. */
static bool setting(const struct script *s, struct rule *r, const char *word, const char *rest) {
    long a = 0, b = 0;
    struct text t = {0};
    if (!strcmp(word, "path"))
        add_condition(s, r->path, &r->paths, rest);
    else if (!strcmp(word, "body"))
        add_condition(s, r->body, &r->bodies, rest);
    else if (!strcmp(word, "times"))
        numbers(s, rest, 1, &r->times, &b);
    else if (!strcmp(word, "status")) {
        const char *reason = numbers(s, rest, 1, &a, &b);
        r->status = (int)a;
        r->reason = copy(*reason ? reason : "Scripted");
    } else if (!strcmp(word, "header")) {
        if (r->headers) text_printf(&t, "%s", r->headers);
        text_printf(&t, "%s\r\n", rest);
        r->headers = t.p;
        r->has_type |= !strncasecmp(rest, "content-type:", 13);
    } else if (!strcmp(word, "headers"))
        numbers(s, rest, 1, &r->filler, &b);
    else if (!strcmp(word, "framing")) {
        const char *known[] = {"chunked", "length", "close"};
        for (int i = 0; i < 3; i++)
            if (!strcmp(rest, known[i])) return r->framing = i, true;
        die(KP_INPUT, "%s:%d: framing is chunked, length or close, not '%s'", s->path, s->line,
            rest);
    } else if (!strcmp(word, "plain"))
        r->plain = true;
    else if (!strcmp(word, "finish"))
        snprintf(r->finish, sizeof r->finish, "%s", rest);
    else if (!strcmp(word, "reasoning"))
        r->reasoning = copy(rest);
    else if (!strcmp(word, "delta"))
        numbers(s, rest, 1, &r->delta, &b);
    else if (!strcmp(word, "usage")) {
        r->has_usage = true;
        if (sscanf(rest, "%lf %lf %lf %lf", &r->input, &r->cached, &r->output, &r->thought) != 4)
            die(KP_INPUT, "%s:%d: usage INPUT CACHED OUTPUT REASONING", s->path, s->line);
    } else
        return false;
    return true;
}

/* Commands that a rule plays in order; false if `word` is none of them. */
static bool action(const struct script *s, struct rule *r, const char *word, const char *rest) {
    struct text t = {0};
    long a = 0, b = 0;
    if (!strcmp(word, "send"))
        add_text(r, SEND, unescape(s, rest));
    else if (!strcmp(word, "file"))
        add_text(r, SEND, contents(s, rest));
    else if (!strcmp(word, "answer"))
        add_text(r, ANSWER, contents(s, rest));
    else if (!strcmp(word, "says"))
        add_text(r, ANSWER, unescape(s, rest));
    else if (!strcmp(word, "data")) {
        text_printf(&t, "data: %s\n\n", rest);
        add_text(r, SEND, t);
    } else if (!strcmp(word, "event")) {
        const char *space = strchrnul(rest, ' ');
        text_printf(&t, "event: %.*s\ndata: %s\n\n", (int)(space - rest), rest,
                    *space ? space + 1 : "");
        add_text(r, SEND, t);
    } else if (!strcmp(word, "repeat")) {
        const char *text = numbers(s, rest, 1, &a, &b);
        add_text(r, REPEAT, unescape(s, text));
        r->steps[r->nsteps - 1].a = a;
    } else if (!strcmp(word, "wait"))
        numbers(s, rest, 1, &add_step(r, WAIT)->a, &b);
    else if (!strcmp(word, "limit"))
        numbers(s, rest, 1, &add_step(r, LIMIT)->a, &b);
    else if (!strcmp(word, "pace")) {
        struct step *pace = add_step(r, PACE);
        numbers(s, rest, 2, &pace->a, &pace->b);
    } else if (!strcmp(word, "cut"))
        add_step(r, CUT);
    else if (!strcmp(word, "reset"))
        add_step(r, RESET);
    else if (!strcmp(word, "hang"))
        add_step(r, HANG);
    else
        return false;
    return true;
}

static struct rule *add_rule(struct script *s) {
    struct rule *r = calloc(1, sizeof *r);
    s->rules = realloc(s->rules, (s->n + 1) * sizeof *s->rules);
    if (!r || !s->rules) die(KP_MACHINE, "out of memory");
    *r = (struct rule){.status = 200, .reason = "OK", .finish = "stop", .delta = 48};
    return s->rules[s->n++] = r;
}

/* Take one line.  A rule is complete when the next one begins, so scripts grow by whole rules. */
static void read_line(struct script *s, char *line) {
    while (*line == ' ') line++;
    if (!*line || *line == '#') return;
    char *rest = strchrnul(line, ' ');
    if (*rest) *rest++ = 0;
    if (!strcmp(line, "on")) {
        add_rule(s);
        return;
    }
    if (!s->n) die(KP_INPUT, "%s:%d: a rule begins with `on`", s->path, s->line);
    struct rule *r = s->rules[s->n - 1];
    if (!setting(s, r, line, rest) && !action(s, r, line, rest))
        die(KP_INPUT, "%s:%d: unknown command '%s'; see tests/mock/README.md", s->path, s->line,
            line);
}

void script_read(struct script *s) {
    FILE *f = fopen(s->path, "r");
    if (!f || fseek(f, s->read, SEEK_SET) != 0)
        die(KP_IO, "%s: cannot read: %s", s->path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n';) {
        s->read += n;
        s->line++;
        line[n - 1] = 0;
        read_line(s, line);
    }
    free(line);
    fclose(f);
}

struct rule *script_rule(struct script *s, const char *path, const char *body) {
    for (int i = 0; i < s->n; i++) {
        struct rule *r = s->rules[i];
        bool fits = !r->times || r->used < r->times;
        for (int k = 0; k < r->paths && fits; k++) fits = strstr(path, r->path[k]);
        for (int k = 0; k < r->bodies && fits; k++) fits = strstr(body, r->body[k]);
        if (fits) return r->used++, r;
    }
    return NULL;
}
