/* code_lex.c: see code_lex.h. */
#define _GNU_SOURCE
#include "base/code_lex.h"
#include "base/error.h"

#include <string.h>

/* Operators of more than one character, and the openers of comments, so that '/' is kept apart from
 * a character that would make it one. */
static const char *const signs[] = {
    "%:%:", "...", "<<=", ">>=", "->*", "<=>", "//", "/*", "::", ".*", "->", "++",
    "--",   "<<",  ">>",  "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=", "*=",
    "/=",   "%=",  "&=",  "|=",  "^=",  "##",  "<:", ":>", "<%", "%>", "%:"};

char *lex_lines(const char *text) {
    char *copy = strdup(text), *to = copy;
    if (!copy) die(KP_MACHINE, "out of memory");
    for (const char *p = copy; *p; p++)
        if (p[0] != '\r' || p[1] != '\n') *to++ = *p == '\r' ? '\n' : *p;
    *to = 0;
    return copy;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

/* Skip line continuations. */
static const char *past_joins(const char *p) {
    while (p[0] == '\\' && p[1] == '\n') p += 2;
    return p;
}

static const char *end_of_comment(const char *p) {
    if (p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    for (; *p && *p != '\n'; p++)
        if (p[0] == '\\' && p[1] == '\n') p++;
    return p;
}

/* From the opening quote to past the closing one, or to the end of the line if it is unclosed. */
static const char *end_of_text(const char *p, bool *closed) {
    char quote = *p++;
    *closed = true;
    for (; *p && *p != '\n'; p++) {
        if (*p == quote) return p + 1;
        if (*p == '\\' && p[1]) p++;
    }
    *closed = false;
    return p;
}

/* From the opening quote of R"x( to past )x"; NULL if it is not a raw string. */
static const char *end_of_raw(const char *p) {
    char close[20] = ")";
    size_t n = strcspn(p + 1, "( )\\\t\n\"");
    if (n > 16 || p[1 + n] != '(') return NULL;
    memcpy(close + 1, p + 1, n);
    memcpy(close + 1 + n, "\"", 2);
    const char *end = strstr(p + 2 + n, close);
    return end ? end + n + 2 : p + strlen(p);
}

/* Preprocessor numbers: 0x1.8p-3f, 1'000, 1e+5. */
static const char *end_of_number(const char *p) {
    for (;;) {
        const char *q = past_joins(p + 1);
        if (strchr("eEpP", *p) && (*q == '+' || *q == '-'))
            p = q;
        else if (is_word(*q) || *q == '.')
            p = q;
        else if (*q == '\'' && is_word(q[1]))
            p = q + 1;
        else
            return p + 1;
    }
}

/* Prefixes of literals; the first five make a raw string. */
static const char *const prefixes[] = {"R", "LR", "uR", "UR", "u8R", "L", "u", "U", "u8"};
enum { RAW_PREFIXES = 5, PREFIXES = 9 };

/* A word, or the literal that it is the prefix of. */
static struct lex word(const char *p) {
    const char *end = p + 1, *q;
    bool closed;
    while (q = past_joins(end), is_word(*q)) end = q + 1;
    struct lex l = {LEX_WORD, p, (size_t)(end - p)};
    for (int i = 0; i < PREFIXES && (*end == '"' || *end == '\''); i++) {
        if (!lex_is(l, prefixes[i])) continue;
        const char *raw = i < RAW_PREFIXES && *end == '"' ? end_of_raw(end) : NULL;
        if (i < RAW_PREFIXES && !raw) break;
        return (struct lex){raw ? LEX_RAW : LEX_TEXT, p,
                            (size_t)((raw ? raw : end_of_text(end, &closed)) - p)};
    }
    return l;
}

struct lex lex_at(const char *p) {
    enum lex_kind kind = LEX_SIGN;
    bool closed;
    const char *end = p + 1;
    if (!*p) return (struct lex){LEX_END, p, 0};
    if (*p == '\n') {
        kind = LEX_NEWLINE;
    } else if (strchr(" \t\r\v\f", *p)) {
        kind = LEX_SPACE;
        end = p + strspn(p, " \t\r\v\f");
    } else if (p[0] == '\\' && p[1] == '\n') {
        kind = LEX_JOIN;
        end = p + 2;
    } else if (p[0] == '/' && (p[1] == '/' || p[1] == '*')) {
        kind = LEX_COMMENT;
        end = end_of_comment(p);
    } else if (*p == '"' || *p == '\'') {
        kind = LEX_TEXT;
        end = end_of_text(p, &closed);
    } else if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) {
        kind = LEX_NUMBER;
        end = end_of_number(p);
    } else if (is_word(*p)) {
        return word(p);
    } else {
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (*p == *signs[i] && !strncmp(p, signs[i], strlen(signs[i]))) {
                end = p + strlen(signs[i]);
                break;
            }
    }
    return (struct lex){kind, p, (size_t)(end - p)};
}

bool lex_is(struct lex l, const char *text) {
    return l.n == strlen(text) && !memcmp(l.at, text, l.n);
}

/* Whether `a` followed by the character c begins a longer operator. */
static bool is_longer_sign(struct lex a, char c) {
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strlen(signs[i]) > a.n && !memcmp(signs[i], a.at, a.n) && signs[i][a.n] == c)
            return true;
    return false;
}

/* Whether the word could become the prefix of a literal. */
static bool is_prefix(struct lex a) {
    for (int i = 0; i < PREFIXES; i++)
        if (lex_is(a, prefixes[i])) return true;
    return false;
}

bool lex_merge(struct lex a, struct lex b) {
    char first = b.at[0], last = a.at[a.n - 1];
    bool b_wordy = is_word(first); /* also a literal with a prefix */
    switch (a.kind) {
    case LEX_WORD: return b_wordy || ((first == '"' || first == '\'') && is_prefix(a));
    case LEX_NUMBER:
        return b_wordy || first == '.' || first == '\'' ||
               (strchr("eEpP", last) && (first == '+' || first == '-'));
    case LEX_TEXT:
    case LEX_RAW: return b_wordy; /* a suffix of a literal */
    default: return is_longer_sign(a, first) || (last == '.' && is_digit(first)) || last == '\\';
    }
}

bool lex_closed(struct lex text) {
    bool closed;
    end_of_text(text.at + strcspn(text.at, "\"'"), &closed);
    return closed;
}
