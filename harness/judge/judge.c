/* judge.c: see judge.h. */
#include "judge/judge.h"
#include "base/code_lex.h"
#include "base/text.h"

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
