/* lex.c: the lexer of the task reader: tokens, names, line numbers and the error message. */
#include "task/parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* See parse.h.  Later errors usually follow from the first one. */
bool parse_fail(struct kp_source *s, int line, const char *format, ...) {
    if (s->size == 0 || s->message[0]) return false;
    int n = line > 0 ? snprintf(s->message, s->size, "%s:%d: ", s->path, line)
                     : snprintf(s->message, s->size, "%s: ", s->path);
    if (n < 0 || (size_t)n >= s->size) return false;
    va_list ap;
    va_start(ap, format);
    vsnprintf(s->message + n, s->size - n, format, ap);
    va_end(ap);
    return false;
}

/* How many lines begin after `from` and not after `at`. */
static int lines_between(const char *from, const char *at) {
    int lines = 0;
    for (; from < at && *from; from++) lines += *from == '\n';
    return lines;
}

/* See parse.h. */
int parse_line_at(const struct kp_source *s, const char *at) {
    return 1 + lines_between(s->text, at);
}

/* The end of the string whose opening quote is at p: the character after the closing quote, or
 * the end of the text. */
static const char *after_string(const char *p) {
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : p;
}

/* The first character from p on that is no white space. */
static const char *after_space(const char *p) {
    while (isspace((unsigned char)*p)) p++;
    return p;
}

/* See parse.h.  cJSON keeps no positions, so this walks the text again; it is valid JSON here.
 * The task object is at depth 1; its keys are the strings before a colon.  The array after the
 * key is at depth 2; its elements begin after '[' and ','.  Elements are asked for one after the
 * other, and graphs are long, so the walk goes on from the last one. */
int parse_line_of(struct kp_source *s, const char *key, int index) {
    size_t length = strlen(key);
    const char *found = NULL, *p = s->text;
    int depth = 0, element = 0;
    bool later = s->last.key && index > s->last.index && !strncmp(s->last.key, key, length) &&
                 s->last.key[length] == '"';
    if (later) found = s->last.key, p = s->last.at, depth = 2, element = s->last.index + 1;
    while (*p) {
        if (*p == '"') {
            const char *end = after_string(p);
            bool is_key = depth == 1 && *after_space(end) == ':';
            if (is_key && found) break;
            if (is_key && (size_t)(end - p) == length + 2 && !strncmp(p + 1, key, length))
                found = p + 1;
            if (found && index < 0) return parse_line_at(s, p);
            p = end;
            continue;
        }
        depth += *p == '[' || *p == '{';
        depth -= *p == ']' || *p == '}';
        bool starts = found && depth == 2 && (*p == '[' || *p == ',');
        p++;
        if (!starts || element++ != index) continue;
        const char *at = after_space(p);
        int line = later ? s->last.line + lines_between(s->last.at, at) : parse_line_at(s, at);
        s->last.key = found, s->last.at = at, s->last.index = index, s->last.line = line;
        return line;
    }
    return found ? parse_line_at(s, found) : 1;
}

/* Skip spaces and tabs. */
static void skip_blanks(const char **p) {
    while (**p == ' ' || **p == '\t') (*p)++;
}

/* The character c. */
bool lex_char(const char **p, char c) {
    skip_blanks(p);
    if (**p != c) return false;
    (*p)++;
    return true;
}

/* The end of the text. */
bool lex_end(const char **p) {
    skip_blanks(p);
    return **p == '\0';
}

/* A C identifier of fewer than `size` characters, copied to out. */
bool lex_name(const char **p, char *out, size_t size) {
    skip_blanks(p);
    size_t n = 0;
    const char *q = *p;
    if (!isalpha((unsigned char)q[0]) && q[0] != '_') return false;
    while (isalnum((unsigned char)q[n]) || q[n] == '_') n++;
    if (n >= size) return false;
    memcpy(out, q, n);
    out[n] = '\0';
    *p = q + n;
    return true;
}

/* A decimal number; *integer: it has only digits.  strtod alone would also take hexadecimal, inf
 * and nan.  Integers beyond 2^53 are refused: a double does not hold them. */
bool lex_number(const char **p, double *out, bool *integer) {
    skip_blanks(p);
    const char *q = *p;
    if (*q == '-' || *q == '+') q++;
    if (!isdigit((unsigned char)*q) || (q[0] == '0' && (q[1] == 'x' || q[1] == 'X'))) return false;
    char *end;
    *out = strtod(*p, &end);
    *integer = true;
    for (; q < end; q++)
        if (!isdigit((unsigned char)*q)) *integer = false;
    if (*integer && (*out > 9007199254740992.0 || *out < -9007199254740992.0)) return false;
    if (*out > 1e300 || *out < -1e300) return false;
    *p = end;
    return true;
}

/* A list of at most KP_MAX_DIMS integers. */
bool lex_dims(const char **p, int *n, int64_t dim[KP_MAX_DIMS]) {
    *n = 0;
    if (!lex_char(p, '[')) return false;
    if (lex_char(p, ']')) return true;
    do {
        double number;
        bool integer;
        const char *at = *p;
        if (*n == KP_MAX_DIMS || !lex_number(p, &number, &integer)) return false;
        if (!integer) {
            *p = at;
            return false;
        }
        dim[(*n)++] = (int64_t)number;
    } while (lex_char(p, ','));
    return lex_char(p, ']');
}

/* See parse.h.  A word with a space is in no list. */
bool word_in(const char *words, const char *word) {
    size_t n = strlen(word);
    if (n == 0 || strchr(word, ' ')) return false;
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

/* See parse.h.  In the header names are members of a struct, which is C++: keywords up to C++20 are
 * reserved, with those of C.  It also makes macros and output members of names. */
bool name_is_usable(const char *name) {
    _Static_assert(KP_MAX_OUTPUTS == 4, "reserve the names of the other outputs, too");
    static const char *const reserved[] = {
        "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
        "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await",
        "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
        "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
        "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
        "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept",
        "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public",
        "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed",
        "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
        "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union",
        "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
        /* the names of outputs in the generated header */
        "out", "out0", "out1", "out2", "out3"};
    const char *p = name;
    char copy[KP_NAME];
    if (!lex_name(&p, copy, sizeof copy) || *p || name[0] == '_') return false;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(name, reserved[i])) return false;
    return true;
}
