/* code.c: see code.h; code_fence.c finds the code in an answer. */
#define _GNU_SOURCE
#include "gen/code.h"
#include "gen/code_lex.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- The normal form ---- */

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

/* ---- Whether launch is defined ---- */

/* The declaration that the walk over the tokens outside of directives is in. */
struct walk {
    int depth, linkage;   /* open braces; the number of them that belong to extern "C" { */
    bool is_extern, is_c; /* the declaration begins with extern "C" */
    bool is_other;        /* static, a template, or for the device */
    struct lex before;
    int parens;      /* open ones, in launch's parameters; -1: outside */
    bool was_launch; /* its parameters are closed */
};

/* Start another declaration. */
static void declare(struct walk *w) {
    w->is_extern = w->is_c = w->is_other = w->was_launch = false;
}

/* Take a token; true if it opens the body of launch. */
static bool walk_token(struct walk *w, struct lex l) {
    static const char *const other[] = {"static",     "template", "__global__",
                                        "__device__", "struct",   "class"};
    struct lex before = w->before;
    w->before = l;
    if (w->parens >= 0) {
        w->parens += lex_is(l, "(") - lex_is(l, ")");
        if (w->parens == 0) w->parens = -1, w->was_launch = true;
        return false;
    }
    if (lex_is(l, "{")) {
        bool linkage = w->is_c && lex_is(before, "\"C\"");
        if (w->was_launch && !w->is_other && (w->is_c || w->depth == w->linkage)) return true;
        w->depth++;
        w->linkage += linkage;
        declare(w);
    } else if (lex_is(l, "}")) {
        if (w->depth > 0) w->depth--;
        if (w->linkage > w->depth) w->linkage = w->depth;
        declare(w);
    } else if (lex_is(l, ";")) {
        declare(w);
    } else if (w->was_launch && !lex_is(l, "noexcept") && !lex_is(l, "->") && !lex_is(l, "void")) {
        w->was_launch = false;
    } else if (lex_is(l, "(") && lex_is(before, "launch")) {
        w->parens = 1;
    } else if (lex_is(l, "launch") && !w->is_c && !lex_is(before, "void")) {
        w->is_other = true; /* a call */
    }
    w->is_extern |= lex_is(l, "extern");
    w->is_c |= w->is_extern && lex_is(l, "\"C\"");
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) w->is_other |= lex_is(l, other[i]);
    return false;
}

bool code_defines_launch(const char *source) {
    struct walk w = {.parens = -1};
    struct lex l;
    bool at_start = true, directive = false;
    for (const char *p = source; l = lex_at(p), l.kind != LEX_END; p += l.n) {
        if (l.kind == LEX_NEWLINE) at_start = true, directive = false;
        if (l.kind <= LEX_COMMENT) continue;
        directive |= at_start && lex_is(l, "#");
        at_start = false;
        if (!directive && walk_token(&w, l)) return true;
    }
    return false;
}

/* ---- The file of an attempt ---- */

static const char first_line[] = "// provenance: ", second_line[] = "// prompt sha256 ",
                  third_line[] = "// kernel sha256 ";

/* At most `most` characters, as printable ASCII without backslashes, because a backslash could
 * continue the comment's line.  Free it. */
static char *plain(const char *text, size_t most) {
    char *copy = strndup(text, most);
    if (!copy) die(KP_MACHINE, "out of memory");
    for (char *p = copy; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '\\') *p = '_';
    return copy;
}

char *code_file(const char *kernel, const char *model, const char *attempt, const char *date,
                const char *request_sha256, const char *transcript) {
    size_t n = strlen(kernel);
    char hash[65];
    while (n && isspace((unsigned char)kernel[n - 1])) n--;
    char *body = text_format("%.*s\n", (int)n, kernel);
    text_sha256(body, strlen(body), hash);
    char *who = plain(model, 100), *name = plain(attempt, 100), *when = plain(date, 100);
    char *asked = plain(request_sha256, 64), *where = plain(transcript, 300);
    char *file = text_format(
        "%s%s, attempt %s, %s\n%s%s; transcript %s\n%s%s (of all that follows this line)\n%s",
        first_line, who, name, when, second_line, asked, where, third_line, hash, body);
    free(body);
    free(who);
    free(name);
    free(when);
    free(asked);
    free(where);
    return file;
}

int code_untouched(const char *source) {
    const char *const lines[] = {first_line, second_line, third_line};
    const char *stated = NULL;
    char hash[65];
    for (int i = 0; i < 3; i++) {
        if (strncmp(source, lines[i], strlen(lines[i]))) return -1;
        stated = source + strlen(lines[i]);
        source = strchr(source, '\n');
        if (!source++) return -1;
    }
    if (strspn(stated, "0123456789abcdef") != 64) return -1;
    text_sha256(source, strlen(source), hash);
    return !memcmp(stated, hash, 64);
}
