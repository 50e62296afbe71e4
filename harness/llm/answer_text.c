/* answer_text.c: make the text of a server safe to store and to print. */
#define _GNU_SOURCE
#include "llm/wire.h"

#include <ctype.h>
#include <regex.h>
#include <stdarg.h>

/* ---- Invalid characters ---- */

enum { HIGH = 0x36, LOW = 0x37 }; /* halves of a surrogate pair are units from HIGH << 10 on */

/* Add a character in three bytes of UTF-8, or above U+FFFF in four. */
static void add_utf8(struct text *out, int x) {
    const char bytes[] = {(char)(0xF0 | x >> 18), (char)(0x80 | (x >> 12 & 0x3F)),
                          (char)(0x80 | (x >> 6 & 0x3F)), (char)(0x80 | (x & 0x3F))};
    const char first = (char)(0xE0 | x >> 12);
    text_add(out, x > 0xFFFF ? bytes : &first, 1);
    text_add(out, bytes + (x > 0xFFFF ? 1 : 2), x > 0xFFFF ? 3 : 2);
}

/* JSON in which no string has what cJSON cannot keep: it ends a string at \u0000 and rejects an
 * unpaired surrogate.  Both become invalid UTF-8 (C0 80, and ED A0 80 to ED BF BF), which cJSON
 * passes through and text_settle finds again. */
static char *armour(const char *s, size_t n) {
    struct text out = {0};
    text_add(&out, "", 0);
    for (const char *end = s + n; s < end;) {
        int unit = json_unit(s), next = unit < 0 ? -1 : json_unit(s + 6);
        size_t k = unit >= 0 ? 6 : *s == '\\' && end - s > 1 && s[1] ? 2 : 1;
        if (unit >> 10 == HIGH && next >> 10 == LOW)
            text_add(&out, s, k = 12);
        else if (unit >> 10 == HIGH || unit >> 10 == LOW)
            add_utf8(&out, unit);
        else if (unit == 0 || *s == 0)
            text_add(&out, "\xC0\x80", 2);
        else if (unit < 0 && k == 2 && s[1] == 'u') /* cJSON would read a NUL */
            text_add(&out, "\\!", 2);
        else
            text_add(&out, s, k);
        s += k;
    }
    return out.s;
}

cJSON *json_foreign(const char *s, size_t n) {
    char *safe = armour(s, n);
    key_redact(safe, strlen(safe));
    cJSON *json = cJSON_ParseWithOpts(safe, NULL, 1);
    free(safe);
    return json;
}

/* The surrogate half in the n bytes at s, as armour writes it; -1 if there is none. */
static int half_at(const char *s, size_t n) {
    const unsigned char *b = (const unsigned char *)s;
    if (n < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || (b[2] & 0xC0) != 0x80) return -1;
    return 0xD000 | (b[1] & 0x3F) << 6 | (b[2] & 0x3F);
}

const char *text_settle(struct text *t) {
    struct text out = {0};
    const char *found = NULL;
    text_add(&out, "", 0);
    for (size_t i = 0, k; i < t->n; i += k) {
        const char *s = t->s + i;
        size_t n = t->n - i;
        int half = half_at(s, n), low = half < 0 ? -1 : half_at(s + 3, n - 3);
        if ((k = utf8_length(s, n))) {
            text_add(&out, s, k);
        } else if (half >> 10 == HIGH && low >> 10 == LOW) {
            add_utf8(&out, 0x10000 + ((half - 0xD800) << 10) + (low - 0xDC00));
            k = 6;
        } else {
            bool nul = n > 1 && !memcmp(s, "\xC0\x80", 2);
            const char *what = nul         ? "a NUL"
                               : half >= 0 ? "half of a surrogate pair"
                                           : "bytes that are not UTF-8";
            if (!found) found = what;
            add_utf8(&out, 0xFFFD);
            k = nul ? 2 : half >= 0 ? 3 : 1;
        }
    }
    text_free(t);
    *t = out;
    return found;
}

/* ---- Texts ---- */

void text_unthink(struct text *answer) {
    static const char open[] = "<think>", shut[] = "</think>";
    char *rest = answer->s;
    for (char *s = rest; s; s = rest) {
        s += strspn(s, " \t\n\v\f\r");
        if (strncmp(s, open, strlen(open)) != 0) break;
        char *end = strstr(s, shut);
        rest = end ? end + strlen(shut) : s + strlen(s);
        rest += strspn(rest, " \t\n\v\f\r");
    }
    if (rest == answer->s) return;
    answer->n -= (size_t)(rest - answer->s);
    memmove(answer->s, rest, answer->n + 1);
}

void text_excerpt(char *out, size_t room, const char *s, size_t n) {
    char *clean = utf8_clean(s, n < 2048 ? n : 2048);
    size_t used = 0;
    bool gap = false;
    for (const char *p = clean; *p;) {
        size_t k = utf8_length(p, strlen(p));
        bool tag = *p == '<' && (isalpha((unsigned char)p[1]) || p[1] == '/' || p[1] == '!');
        /* Some control characters are C2 80 to C2 9F. */
        bool control = (unsigned char)*p <= ' ' || *p == 0x7F ||
                       ((unsigned char)*p == 0xC2 && (unsigned char)p[1] < 0xA0);
        if (tag) k = strcspn(p, ">") + (strchr(p, '>') != NULL);
        if (tag || control) {
            gap = used > 0;
        } else if (used + gap + k < room) {
            if (gap) out[used++] = ' ';
            memcpy(out + used, p, k);
            used += k;
            gap = false;
        } else {
            break;
        }
        p += k;
    }
    out[used] = 0;
    free(clean);
}

bool text_listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; n && (at = strcasestr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

bool text_matches(const char *s, const char *pattern) {
    regex_t r;
    if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB)) die(KP_MACHINE, "out of memory");
    bool match = regexec(&r, s, 0, NULL, 0) == 0;
    regfree(&r);
    return match;
}

/* ---- Answers ---- */

const char *const llm_outcomes[] = {"complete", "cut", "empty", "refused", "invalid", "failed"};

struct llm_answer *answer_new(enum llm_outcome outcome, int exit_code, const char *why, ...) {
    struct llm_answer *a = calloc(1, sizeof *a);
    va_list ap;
    if (!a) die(KP_MACHINE, "out of memory");
    *a = (struct llm_answer){.outcome = outcome, .exit_code = exit_code, .usage.cost = NAN};
    a->text = utf8_clean("", 0);
    va_start(ap, why);
    vsnprintf(a->why, sizeof a->why, why, ap);
    va_end(ap);
    return a;
}

void llm_answer_free(struct llm_answer *a) {
    if (!a) return;
    free(a->text);
    free(a);
}
