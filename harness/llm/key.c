/* key.c: the only file that holds the key. */
#define _GNU_SOURCE
#include "llm/wire.h"

#include <unistd.h>

enum { KEYS = 16, SECRET = 8 };

static struct { char *name, *value; } keys[KEYS];
static int nkeys;

/* The place of a variable's key, or of the next one. */
static int place_of(const char *name) {
    int i = 0;
    while (i < nkeys && strcmp(keys[i].name, name) != 0) i++;
    return i;
}

static const char *key_of(const char *name) {
    int i = place_of(name);
    return i < nkeys ? keys[i].value : NULL;
}

/* Move one variable here.  Overwrite the memory that the environment started with, because
 * /proc/PID/environ shows it. */
static void take(const char *name) {
    const char *value = getenv(name);
    size_t n = strlen(name);
    int i = place_of(name);
    if (!value) return;
    if (*value) {
        if (i == KEYS) die(KP_USAGE, "%s: more than %d keys in one run", name, KEYS);
        if (i == nkeys)
            keys[nkeys++].name = text_format("%s", name);
        else
            explicit_bzero(keys[i].value, strlen(keys[i].value)), free(keys[i].value);
        keys[i].value = text_format("%s", value);
    }
    for (char **e = environ; *e; e++)
        if (!strncmp(*e, name, n) && (*e)[n] == '=') explicit_bzero(*e + n + 1, strlen(*e + n + 1));
    unsetenv(name);
}

void key_take(const char *name) {
    static const char *const usual[] = {
        "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENROUTER_API_KEY",
        "GEMINI_API_KEY", "DEEPSEEK_API_KEY",  "TOGETHER_API_KEY"};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) take(usual[i]);
    take(name);
    const char *key = key_of(name);
    for (size_t i = 0; key && key[i]; i++)
        if (key[i] <= ' ' || key[i] > '~')
            die(KP_USAGE, "%s: byte %zu of it is none that a key has (a line end, a blank?)", name,
                i + 1);
}

bool key_held(const char *name) {
    return key_of(name) != NULL;
}

char *key_header(const struct wire *wire, const char *name) {
    const char *key = key_of(name), *token = wire->token_variable;
    bool bearer = !wire->key_header || (token && !strcmp(name, token));
    return key ? text_format("%s%s", bearer ? "authorization: Bearer " : wire->key_header, key)
               : NULL;
}

/* The number of bytes at s that spell the key, each character plain, after backslashes or as
 * \uXXXX; 0 if they do not. */
static size_t match(const char *s, size_t n, const char *key) {
    size_t i = 0;
    for (; *key; key++) {
        size_t from = i;
        while (i < n && s[i] == '\\') i++;
        if (*key == '\\' && i > from) continue;
        if (i > from && n - i >= 5 && json_unit(s + i - 1) == *key)
            i += 5;
        else if (i < n && s[i] == *key)
            i++;
        else
            return 0;
    }
    return i;
}

/* The first occurrence of a key in s; n with *length 0 if there is none. */
static size_t find(const char *s, size_t n, size_t *length) {
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < nkeys; k++) {
            const char *key = keys[k].value;
            if ((s[i] != key[0] && s[i] != '\\') || strlen(key) < SECRET) continue;
            /* match() reads a run of backslashes to its end: starting at each of them would take
             * quadratic time. */
            if (i && s[i] == '\\' && s[i - 1] == '\\') continue;
            if ((*length = match(s + i, n - i, key))) return i;
        }
    *length = 0;
    return n;
}

bool key_within(const char *s, size_t n) {
    size_t length;
    find(s, n, &length);
    return length > 0;
}

size_t key_redact(char *s, size_t n) {
    size_t used = 0, at = 0, length;
    do {
        size_t k = find(s + at, n - at, &length);
        memmove(s + used, s + at, k);
        used += k;
        at += k + length;
        if (length) memcpy(s + used, "***", 3), used += 3;
    } while (length);
    if (used < n) s[used] = 0;
    return used;
}
