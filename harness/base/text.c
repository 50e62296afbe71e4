/* text.c: see text.h. */
#include "base/text.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

void text_add(struct text *t, const char *s, size_t n) {
    if (t->n + n + 1 > t->room) {
        size_t room = t->room ? t->room : 256;
        while (room < t->n + n + 1) room *= 2;
        char *more = realloc(t->s, room);
        if (!more) die(KP_MACHINE, "out of memory");
        t->s = more;
        t->room = room;
    }
    if (n) memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

void text_clear(struct text *t) {
    t->n = 0;
    if (t->s) *t->s = 0;
}

void text_free(struct text *t) {
    free(t->s);
    *t = (struct text){0};
}

static bool blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool text_blank(const struct text *t) {
    for (size_t i = 0; i < t->n; i++)
        if (!blank(t->s[i])) return false;
    return true;
}

size_t utf8_length(const char *s, size_t n) {
    const unsigned char *b = (const unsigned char *)s;
    if (n == 0 || b[0] == 0) return 0;
    if (b[0] < 0x80) return 1;
    size_t length = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    if (b[0] < 0xC2 || b[0] > 0xF4 || n < length) return 0;
    /* The second byte rules out long forms, surrogates and what lies beyond U+10FFFF. */
    unsigned low = b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF;
    if (b[1] < low || b[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((b[i] & 0xC0) != 0x80) return 0;
    return length;
}

char *utf8_clean(const char *s, size_t n) {
    struct text out = {0};
    bool bad = false;
    text_add(&out, "", 0);
    for (size_t i = 0; i < n;) {
        size_t k = utf8_length(s + i, n - i);
        if (k)
            text_add(&out, s + i, k);
        else if (s[i] == 0 || !bad)
            text_add(&out, replacement, 3);
        bad = k == 0 && s[i] != 0;
        i += k ? k : 1;
    }
    return out.s;
}

int json_unit(const char *s) {
    char digits[5] = "";
    if (s[0] != '\\' || s[1] != 'u' || strspn(s + 2, "0123456789abcdefABCDEF") < 4) return -1;
    memcpy(digits, s + 2, 4);
    return (int)strtol(digits, NULL, 16);
}
