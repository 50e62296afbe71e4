/* features.c: see features.h. */
#include "judge/features.h"
#include "base/error.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void *grow(void *p, size_t n, size_t size) {
    p = realloc(p, n * size);
    if (!p) die(KP_MACHINE, "out of memory");
    return p;
}

void feature_add(struct features *v, char mark, const char *text, size_t n) {
    if (!(v->n & (v->n + 1))) v->f = grow(v->f, 2 * (size_t)v->n + 2, sizeof *v->f);
    char *name = grow(NULL, n + 2, 1);
    name[0] = mark;
    memcpy(name + (mark != 0), text, n);
    name[n + (mark != 0)] = 0;
    v->f[v->n++] = (struct feature){name, 1};
}

void features_free(struct features *v) {
    for (int i = 0; i < v->n; i++) free(v->f[i].name);
    free(v->f);
    *v = (struct features){0, NULL};
}

/* ---- Tokens ------------------------------------------------------------------------- */

/* The end of the token at p, and its kind. */
static const char *token_end(const char *p, enum token_kind *kind) {
    const char *end = p;
    if (isalpha((unsigned char)*p) || *p == '_') {
        while (isalnum((unsigned char)*end) || *end == '_') end++;
        *kind = TOKEN_WORD;
    } else if (isdigit((unsigned char)*p)) {
        while (isalnum((unsigned char)*end) || *end == '.' ||
               (*end == '\'' && isalnum((unsigned char)end[1])) ||
               ((*end == '-' || *end == '+') && strchr("eEpP", end[-1]) &&
                !(p[0] == '0' && (p[1] | 32) == 'x')))
            end++;
        *kind = TOKEN_NUMBER;
    } else if (*p == '"' || *p == '\'') {
        for (end++; *end && *end != *p && *end != '\n'; end++)
            if (*end == '\\' && end[1]) end++;
        end += *end == *p;
        *kind = TOKEN_STRING;
    } else {
        end++;
        *kind = TOKEN_MARK;
    }
    return end;
}

struct tokens tokens_of(const char *text) {
    struct tokens t = {0, NULL};
    for (const char *p = text; *p;) {
        if (isspace((unsigned char)*p)) {
            p++;
            continue;
        }
        enum token_kind kind;
        const char *end = token_end(p, &kind);
        bool named = t.n > 1 && token_is(&t.t[t.n - 1], "include") && token_is(&t.t[t.n - 2], "#");
        if (named && (*p == '<' || *p == '"')) {
            kind = TOKEN_INCLUDE;
            end = p + 1 + strcspn(p + 1, *p == '<' ? ">\n" : "\"\n");
            end += *end == '>' || *end == '"';
        }
        if (!(t.n & (t.n + 1))) t.t = grow(t.t, 2 * (size_t)t.n + 2, sizeof *t.t);
        t.t[t.n++] = (struct token){kind, p, (size_t)(end - p)};
        p = end;
    }
    return t;
}

bool token_is(const struct token *t, const char *text) {
    return strlen(text) == t->n && !memcmp(t->text, text, t->n);
}
