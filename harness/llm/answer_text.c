/* answer_text.c: make the text of a server safe to store and to print. */
#include "base/error.h"
#include "llm/wire.h"

#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static bool blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The value of the \uXXXX at s; -1 if there is none. */
static int escape_at(const char *s, const char *end) {
    int x = 0;
    if (end - s < 6 || s[0] != '\\' || s[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef", *at = s[i] ? strchr(digits, s[i] | 0x20) : NULL;
        if (!at || s[i] < '0' || (s[i] > '9' && s[i] < 'A')) return -1;
        x = x * 16 + (int)(at - digits);
    }
    return x;
}

static void add_three(struct text *out, int x) {
    const char bytes[] = {(char)(0xE0 | x >> 12), (char)(0x80 | (x >> 6 & 0x3F)),
                          (char)(0x80 | (x & 0x3F))};
    text_add(out, bytes, 3);
}

char *json_armour(const char *s, size_t n) {
    struct text out = {0};
    const char *end = s + n;
    text_add(&out, "", 0);
    while (s < end) {
        const char *from = s;
        while (s < end && *s && *s != '\\') s++;
        text_add(&out, from, (size_t)(s - from));
        if (s == end) break;
        int x = escape_at(s, end), next = x < 0 ? -1 : escape_at(s + 6, end);
        bool high = x >= 0xD800 && x < 0xDC00, low = x >= 0xDC00 && x < 0xE000;
        size_t k = *s == 0 ? 1 : x >= 0 ? 6 : end - s > 1 ? 2 : 1;
        if (high && next >= 0xDC00 && next < 0xE000)
            text_add(&out, s, k = 12);
        else if (*s == 0 || x == 0)
            text_add(&out, "\xC0\x80", 2);
        else if (high || low)
            add_three(&out, x);
        else if (k == 2 && s[1] == 0)
            text_add(&out, s, k = 1);
        else if (x < 0 && k == 2 && s[1] == 'u') /* invalid hex digits: cJSON would read a NUL */
            text_add(&out, "\\!", 2);
        else
            text_add(&out, s, k);
        s += k;
    }
    return out.s;
}

/* The surrogate half at s, as json_armour encodes it; -1 if there is none. */
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
        if ((k = utf8_length(s, n))) {
            text_add(&out, s, k);
            continue;
        }
        int high = half_at(s, n), low = n > 3 ? half_at(s + 3, n - 3) : -1;
        if (high >= 0xD800 && high < 0xDC00 && low >= 0xDC00) {
            int x = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            const char bytes[] = {(char)(0xF0 | x >> 18), (char)(0x80 | (x >> 12 & 0x3F)),
                                  (char)(0x80 | (x >> 6 & 0x3F)), (char)(0x80 | (x & 0x3F))};
            text_add(&out, bytes, 4);
            k = 6;
            continue;
        }
        bool nul = n > 1 && !memcmp(s, "\xC0\x80", 2);
        if (!found)
            found = nul         ? "a NUL"
                    : high >= 0 ? "half of a surrogate pair"
                                : "bytes that are not UTF-8";
        text_add(&out, replacement, 3);
        k = nul ? 2 : high >= 0 ? 3 : 1;
    }
    text_free(t);
    *t = out;
    return found;
}

void text_unthink(struct text *answer, struct text *reasoning) {
    static const char open[] = "<think>", shut[] = "</think>";
    if (!answer->s) return;
    char *rest = answer->s;
    for (char *s = rest;;) {
        while (blank(*s)) s++;
        if (strncmp(s, open, strlen(open)) != 0) break;
        s += strlen(open);
        char *end = strstr(s, shut);
        rest = end ? end + strlen(shut) : s + strlen(s);
        text_add(reasoning, s, (size_t)((end ? end : rest) - s));
        while (blank(*rest)) rest++;
        s = rest;
    }
    answer->n -= (size_t)(rest - answer->s);
    memmove(answer->s, rest, answer->n + 1);
}

void text_excerpt(char *out, size_t room, const char *s, size_t n) {
    char *clean = utf8_clean(s, n < 2048 ? n : 2048);
    size_t used = 0;
    bool gap = false;
    for (const char *p = clean; *p;) {
        bool tag = *p == '<' &&
                   (p[1] == '/' || p[1] == '!' || ((p[1] | 0x20) >= 'a' && (p[1] | 0x20) <= 'z'));
        if (tag) {
            p += strcspn(p, ">");
            p += *p == '>';
            gap = true;
            continue;
        }
        size_t k = utf8_length(p, strlen(p));
        /* C1 control characters are C2 80 to C2 9F. */
        bool control = (unsigned char)*p <= ' ' || *p == 0x7F ||
                       ((unsigned char)*p == 0xC2 && (unsigned char)p[1] < 0xA0);
        if (control) {
            gap = true;
        } else {
            bool space = gap && used > 0;
            if (used + space + k >= room) break;
            if (space) out[used++] = ' ';
            memcpy(out + used, p, k);
            used += k;
            gap = false;
        }
        p += k;
    }
    out[used] = 0;
    free(clean);
}
