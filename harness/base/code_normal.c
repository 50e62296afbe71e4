/* code_normal.c: see code_normal.h. */
#include "base/code_normal.h"
#include "base/code_lex.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct normal {
    char *out;
    size_t n;
    struct lex before; /* the last token written */
    bool apart;        /* blanks or comments came since */
    size_t joins;      /* line continuations since */
    bool at_start;     /* only blanks and comments so far on this line */
    int directive;     /* tokens of the current directive; 0: outside of one */
    bool is_define, is_include;
};

static void put(struct normal *s, const char *text, size_t n) {
    memcpy(s->out + s->n, text, n);
    s->n += n;
}

/* End the line. */
static void put_newline(struct normal *s) {
    if (s->n && s->out[s->n - 1] == '\\') put(s, " ", 1); /* do not make it a continuation */
    put(s, "\n", 1);
    s->before = (struct lex){0};
    s->apart = false;
    s->joins = 0;
}

/* Start a new line, unless this one is empty.  (Only an unclosed raw string ends with a
 * newline.) */
static void put_line(struct normal *s) {
    if (s->before.n && s->out[s->n - 1] != '\n') put_newline(s);
    s->joins = 0;
}

/* Whether the blank before `l` must stay: without it tokens would merge, or a '(' after the name
 * of a macro would begin its parameters. */
static bool needs_blank(const struct normal *s, struct lex l) {
    if (!s->apart || !s->before.n) return false;
    return lex_merge(s->before, l) || (s->is_define && s->directive == 3);
}

/* Write a token, and the separator it needs before it. */
static void put_token(struct normal *s, struct lex l) {
    bool begins = s->at_start && (lex_is(l, "#") || lex_is(l, "%:"));
    if (begins) {
        put_line(s);
        s->directive = 0;
        s->is_define = s->is_include = false;
    }
    if (needs_blank(s, l)) put(s, " ", 1);
    for (; s->joins; s->joins--) put(s, "\\\n", 2);
    put(s, l.at, l.n);
    s->before = l;
    s->apart = s->at_start = false;
    if (begins || s->directive) s->directive++;
    if (s->directive == 2) {
        s->is_define = lex_is(l, "define");
        s->is_include = lex_is(l, "include") || lex_is(l, "include_next");
    }
}

/* The <name> of an #include, which contains no comments; n is 0 if there is none. */
static struct lex header_name(const struct normal *s, const char *p) {
    struct lex none = {0};
    if (!s->is_include || s->directive != 2 || *p != '<') return none;
    size_t n = strcspn(p, ">\n");
    return p[n] == '>' ? (struct lex){LEX_SIGN, p, n + 1} : none;
}

/* The end of a line ends a directive; elsewhere it is a blank. */
static void end_line(struct normal *s) {
    if (s->directive) put_line(s);
    s->directive = 0;
    s->apart = s->at_start = true;
}

char *code_normal(const char *source) {
    char *text = lex_lines(source);
    /* A token adds at most a blank and two newlines. */
    struct normal s = {.out = malloc(4 * strlen(text) + 4), .at_start = true};
    if (!s.out) die(KP_MACHINE, "out of memory");
    struct lex l;
    for (const char *p = text; l = lex_at(p), l.kind != LEX_END; p += l.n) {
        struct lex header = header_name(&s, p);
        if (header.n) l = header;
        switch (l.kind) {
        case LEX_SPACE:
        case LEX_COMMENT: s.apart = true; break;
        case LEX_JOIN: s.joins++; break;
        case LEX_NEWLINE: end_line(&s); break;
        default:
            put_token(&s, l);
            /* An unclosed literal must not swallow the next line. */
            if (l.kind == LEX_TEXT && !lex_closed(l)) put_newline(&s);
        }
    }
    end_line(&s);
    s.out[s.n] = 0;
    free(text);
    return s.out;
}

/* The first token at `p` or behind that says anything. */
static struct lex next_token(const char *p) {
    struct lex l;
    while (l = lex_at(p), l.kind == LEX_SPACE || l.kind == LEX_NEWLINE || l.kind == LEX_JOIN ||
                              l.kind == LEX_COMMENT)
        p += l.n;
    return l;
}

/* The end of what follows the word static_assert, with its semicolon; NULL if it is no such
 * declaration.  None holds another: to look no further than that keeps the time in proportion. */
static const char *end_of_assert(const char *p) {
    struct lex l = next_token(p);
    int depth = lex_is(l, "(");
    while (depth && (l = next_token(l.at + l.n)).kind != LEX_END && !lex_is(l, "static_assert"))
        depth += lex_is(l, "(") - lex_is(l, ")");
    if (!lex_is(l, ")")) return NULL;
    l = next_token(l.at + l.n);
    return lex_is(l, ";") ? l.at + l.n : NULL;
}

char *code_unasserted(const char *source) {
    char *text = lex_lines(source), *to = text;
    struct lex l;
    for (const char *p = text, *end; l = lex_at(p), l.kind != LEX_END; p += l.n) {
        if (l.kind == LEX_WORD && lex_is(l, "static_assert") && (end = end_of_assert(p + l.n)))
            l.n = (size_t)(end - p);
        else
            memmove(to, p, l.n), to += l.n;
    }
    *to = 0;
    return text;
}
