/* lex.c: tokens, names, line numbers and the error message of the task reader. */
#include "task/parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only the first error is kept: what follows it is usually its consequence. */
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

int parse_line_at(const struct kp_source *s, const char *at) {
    int line = 1;
    for (const char *p = s->text; p < at && *p; p++) line += *p == '\n';
    return line;
}

/* The character after the string that begins at p (an opening quote). */
static const char *after_string(const char *p) {
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : p;
}

static const char *after_space(const char *p) {
    while (isspace((unsigned char)*p)) p++;
    return p;
}

/* cJSON keeps no positions, so walk the text again.  It is valid JSON by now.
 * Depth 1 is the task object: its keys are the strings before a colon.  The
 * array that follows is depth 2: its elements begin after '[' and ','. */
int parse_line_of(const struct kp_source *s, const char *key, int index) {
    size_t length = strlen(key);
    const char *found = NULL;
    int depth = 0, element = 0;
    for (const char *p = s->text; *p;) {
        if (*p == '"') {
            const char *end = after_string(p);
            bool is_key = depth == 1 && *after_space(end) == ':';
            if (is_key && found) break;
            if (is_key && (size_t)(end - p) == length + 2 && !strncmp(p + 1, key, length))
                found = p;
            if (found && index < 0) return parse_line_at(s, p);
            p = end;
            continue;
        }
        depth += *p == '[' || *p == '{';
        depth -= *p == ']' || *p == '}';
        bool starts = found && depth == 2 && (*p == '[' || *p == ',');
        p++;
        if (starts && element++ == index) return parse_line_at(s, after_space(p));
    }
    return found ? parse_line_at(s, found) : 1;
}

static void blanks(const char **p) {
    while (**p == ' ' || **p == '\t') (*p)++;
}

bool scan_char(const char **p, char c) {
    blanks(p);
    if (**p != c) return false;
    (*p)++;
    return true;
}

bool scan_end(const char **p) {
    blanks(p);
    return **p == '\0';
}

bool scan_name(const char **p, char *out, size_t size) {
    blanks(p);
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

/* Decimal only: strtod alone would also take hexadecimal, inf and nan. */
bool scan_number(const char **p, double *out, bool *integer) {
    blanks(p);
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

bool scan_dims(const char **p, int *n, int64_t dim[KP_MAX_DIMS]) {
    *n = 0;
    if (!scan_char(p, '[')) return false;
    if (scan_char(p, ']')) return true;
    do {
        double number;
        bool integer;
        const char *at = *p;
        if (*n == KP_MAX_DIMS || !scan_number(p, &number, &integer)) return false;
        if (!integer) {
            *p = at;
            return false;
        }
        dim[(*n)++] = (int64_t)number;
    } while (scan_char(p, ','));
    return scan_char(p, ']');
}

bool word_in(const char *words, const char *word) {
    size_t n = strlen(word);
    if (n == 0 || strchr(word, ' ')) return false;
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

bool name_is_usable(const char *name) {
    static const char *const reserved[] = {
        "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char",
        "class", "compl", "const", "constexpr", "continue", "decltype", "default", "delete", "do",
        "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend",
        "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not",
        "nullptr", "operator", "or", "private", "protected", "public", "register", "restrict",
        "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this",
        "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned",
        "using", "virtual", "void", "volatile", "while", "xor",
        /* the generated header names outputs so */
        "out", "out0", "out1", "out2", "out3"};
    const char *p = name;
    char copy[48];
    if (!scan_name(&p, copy, sizeof copy) || *p || name[0] == '_') return false;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(name, reserved[i])) return false;
    return true;
}

const char *shape_text(const struct kp_shape *s, char out[KP_SHAPE_TEXT]) {
    int n = snprintf(out, KP_SHAPE_TEXT, "[");
    for (int i = 0; i < s->n; i++)
        n += snprintf(out + n, KP_SHAPE_TEXT - n, "%s%lld", i ? "," : "", (long long)s->dim[i]);
    snprintf(out + n, KP_SHAPE_TEXT - n, "]");
    return out;
}

int64_t kp_shape_count(const struct kp_shape *s) {
    int64_t count = 1;
    for (int i = 0; i < s->n; i++) count *= s->dim[i];
    return count;
}

bool shape_fits(const struct kp_shape *s) {
    int64_t bytes = 8;
    for (int i = 0; i < s->n; i++)
        if (__builtin_mul_overflow(bytes, s->dim[i], &bytes)) return false;
    return true;
}

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [KP_F64] = {"f64", 8}, [KP_F32] = {"f32", 4}, [KP_F16] = {"f16", 2},  [KP_BF16] = {"bf16", 2},
    [KP_I64] = {"i64", 8}, [KP_I32] = {"i32", 4}, [KP_BOOL] = {"bool", 1}};

size_t kp_dtype_size(enum kp_dtype t) {
    return dtypes[t].size;
}

const char *kp_dtype_name(enum kp_dtype t) {
    return dtypes[t].name;
}

bool dtype_parse(const char *name, enum kp_dtype *out) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(name, dtypes[i].name)) {
            *out = (enum kp_dtype)i;
            return true;
        }
    return false;
}
