/* judge_text.c: see judge_text.h. */
#define _GNU_SOURCE
#include "judge/judge_text.h"
#include "base/error.h"
#include "base/json.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t n) {
    void *p = malloc(n);
    if (!p) die(KP_MACHINE, "out of memory");
    return p;
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- Comments -------------------------------------------------------------------- */

/* The end of the raw string whose opening quotation mark is at p: R"tag( ... )tag". */
static const char *raw_end(const char *p) {
    const char *open = strchr(p, '(');
    if (!open || open - p > 17) return p + 1;
    char *close = text_format(")%.*s\"", (int)(open - p - 1), p + 1);
    const char *end = strstr(open, close);
    end = end ? end + strlen(close) : p + strlen(p);
    free(close);
    return end;
}

/* The end of the string or character literal at p; the end of its line if it is unclosed there. */
static const char *literal_end(const char *p) {
    char mark = *p++;
    while (*p && *p != mark && *p != '\n')
        if (*p++ == '\\' && *p) p++;
    return *p == mark ? p + 1 : p;
}

/* Whether the quotation mark at p opens a raw string: an R, with or without an encoding prefix,
 * stands directly before it and does not end a longer name. */
static bool is_raw(const char *from, const char *p) {
    const char *word = p;
    while (word > from && in_word(word[-1])) word--;
    size_t n = (size_t)(p - word);
    static const char *const prefix[] = {"R", "LR", "uR", "UR", "u8R"};
    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        if (strlen(prefix[i]) == n && !memcmp(prefix[i], word, n)) return true;
    return false;
}

/* The end of the comment at p, without its newline; a backslash continues a line.  A lone CR
 * ends it, as it does for some compilers, so that the code behind it stays visible. */
static const char *comment_end(const char *p) {
    if (p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    for (; *p && *p != '\n' && (*p != '\r' || p[1] == '\n'); p++)
        if (*p == '\\' && p[1] == '\n')
            p++;
        else if (*p == '\\' && p[1] == '\r' && p[2] == '\n')
            p += 2;
    return p;
}

char *strip_comments(const char *source) {
    char *out = room(strlen(source) + 2), *to = out;
    for (const char *p = source, *end; *p; p = end) {
        /* 1'000 is a number: its quote opens nothing. */
        bool digit = *p == '\'' && p > source && isalnum((unsigned char)p[-1]) &&
                     isalnum((unsigned char)p[1]) && p[2] != '\'';
        end = p + 1;
        if (*p == '/' && (p[1] == '/' || p[1] == '*')) {
            end = comment_end(p);
            bool last = *end == '\n' || *end == '\r' || !*end;
            while (last && to > out && (to[-1] == ' ' || to[-1] == '\t')) to--;
            const char *before = to;
            for (; p < end; p++)
                if (*p == '\n') *to++ = '\n';
            if (!last && to == before) *to++ = ' '; /* keep the words on both sides apart */
            continue;
        }
        if (*p == '"' && is_raw(source, p)) end = raw_end(p);
        if ((*p == '"' && end == p + 1) || (*p == '\'' && !digit)) end = literal_end(p);
        memcpy(to, p, (size_t)(end - p));
        to += end - p;
    }
    *to = 0;
    return out;
}

/* ---- Into the prompt --------------------------------------------------------------- */

char *number_lines(const char *text) {
    char *out = NULL;
    size_t size = 0;
    int line = 1;
    FILE *f = open_memstream(&out, &size);
    if (!f) die(KP_MACHINE, "out of memory");
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        fprintf(f, "%4d  %.*s\n", line++, (int)n, p);
        p += n + (p[n] == '\n');
    }
    if (fclose(f)) die(KP_MACHINE, "out of memory");
    return out;
}

/* ---- Out of the answer -------------------------------------------------------------- */

/* The end of the balanced {...} at p, or NULL; braces in strings do not count. */
static const char *balanced_end(const char *p) {
    int depth = 0;
    bool string = false;
    for (; *p; p++) {
        if (string && *p == '\\' && p[1])
            p++;
        else if (*p == '"')
            string = !string;
        else if (!string && *p == '{')
            depth++;
        else if (!string && *p == '}' && --depth == 0)
            return p + 1;
    }
    return NULL;
}

cJSON *json_first(const char *answer, const char *key) {
    enum { TRIES = 1000 }; /* bounds the time for an answer of braces alone */
    const char *p = strchr(answer, '{');
    for (int i = 0; p && i < TRIES; i++, p = strchr(p + 1, '{')) {
        const char *end = balanced_end(p);
        cJSON *json = end ? cJSON_ParseWithLength(p, (size_t)(end - p)) : NULL;
        if (cJSON_IsObject(json) && cJSON_GetObjectItemCaseSensitive(json, key)) return json;
        cJSON_Delete(json);
    }
    return NULL;
}

/* Whether `quote` is at p.  Any run of white space matches any other.  White space in only one of
 * the two is ignored, unless it separates two words. */
static bool stands_at(const char *from, const char *p, const char *quote) {
    while (*quote) {
        if (isspace((unsigned char)*quote) || isspace((unsigned char)*p)) {
            bool both = isspace((unsigned char)*quote) && isspace((unsigned char)*p);
            while (isspace((unsigned char)*quote)) quote++;
            const char *before = p;
            while (isspace((unsigned char)*p)) p++;
            if (!both && before > from && in_word(before[-1]) && in_word(*p)) return false;
            if (!*quote) return true;
        }
        if (*p != *quote) return false;
        p++, quote++;
    }
    return true;
}

int quote_line(const char *source, const char *quote, int near) {
    int line = 1, found = 0, letters = 0;
    while (isspace((unsigned char)*quote)) quote++;
    for (const char *q = quote; *q; q++) letters += !isspace((unsigned char)*q);
    if (letters < 3) return 0;
    for (const char *p = source; *p; line += *p++ == '\n') {
        if (isspace((unsigned char)*p) || !stands_at(source, p, quote)) continue;
        if (!found || abs(line - near) < abs(found - near)) found = line;
    }
    return found;
}
