/* code.c: see code.h; code_fence.c finds the code in an answer. */
#define _GNU_SOURCE
#include "gen/code.h"
#include "base/code_lex.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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
