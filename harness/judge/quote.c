/* quote.c: see quote.h. */
#include "judge/quote.h"
#include "base/code_lex.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

char *strip_comments(const char *source) {
    char *text = lex_lines(source);
    struct text out = {0};
    struct lex l;
    text_add(&out, "", 0);
    for (const char *p = text; l = lex_at(p), l.kind != LEX_END; p += l.n) {
        if (l.kind != LEX_COMMENT) {
            text_add(&out, l.at, l.n);
            continue;
        }
        bool ends_line = l.at[l.n] == '\n' || !l.at[l.n], joined = true;
        while (ends_line && out.n && strchr(" \t", out.s[out.n - 1])) out.s[--out.n] = 0;
        for (size_t i = 0; i < l.n; i++)
            if (l.at[i] == '\n') text_add(&out, "\n", 1), joined = false;
        if (!ends_line && joined) text_add(&out, " ", 1); /* keep the words on both sides apart */
    }
    free(text);
    return out.s;
}

char *number_lines(const char *text) {
    struct text out = {0};
    int line = 1;
    text_add(&out, "", 0);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        char *numbered = text_format("%4d  %.*s\n", line++, (int)n, p);
        text_add(&out, numbered, strlen(numbered));
        free(numbered);
        p += n + (p[n] == '\n');
    }
    return out.s;
}

cJSON *json_first(const char *answer, const char *key) {
    enum { TRIES = 1000 }; /* bounds the time for an answer of braces alone */
    const char *p = strchr(answer, '{');
    for (int i = 0; p && i < TRIES; i++, p = strchr(p + 1, '{')) {
        cJSON *json = cJSON_ParseWithOpts(p, NULL, 0);
        if (cJSON_GetObjectItemCaseSensitive(json, key)) return json;
        cJSON_Delete(json);
    }
    return NULL;
}

/* The text without white space; line[i] is the line of byte i, unless line is NULL.  Free it. */
static char *squeezed(const char *text, int *line) {
    char *out = malloc(strlen(text) + 1), *to = out;
    int number = 1;
    if (!out) die(KP_MACHINE, "out of memory");
    for (const char *p = text; *p; number += *p++ == '\n')
        if (!isspace((unsigned char)*p)) {
            if (line) line[to - out] = number;
            *to++ = *p;
        }
    *to = 0;
    return out;
}

int quote_line(const char *source, const char *quote, int near) {
    int *line = malloc((strlen(source) + 1) * sizeof *line), found = 0;
    if (!line) die(KP_MACHINE, "out of memory");
    char *text = squeezed(source, line), *piece = squeezed(quote, NULL);
    for (const char *p = text; strlen(piece) > 2 && (p = strstr(p, piece)); p++)
        if (!found || abs(line[p - text] - near) < abs(found - near)) found = line[p - text];
    free(line);
    free(text);
    free(piece);
    return found;
}
