/* features.h: tokens of a source, and lists of features; used by hacks alone. */
#ifndef KP_FEATURES_H
#define KP_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

struct feature {
    char *name;
    double weight;
};
struct features { /* sorted by name, each once */
    int n;
    struct feature *f;
};

/* Add a feature, with a character before it unless that is 0. */
void feature_add(struct features *v, char mark, const char *text, size_t n);

void features_free(struct features *v);

enum token_kind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_INCLUDE, TOKEN_MARK };

struct token { /* a stretch of the text; marks are one character each */
    enum token_kind kind;
    const char *text;
    size_t n;
};
struct tokens {
    int n;
    struct token *t;
};

/* The tokens of a text, which they point into.  Free t. */
struct tokens tokens_of(const char *text);

bool token_is(const struct token *t, const char *text);

#endif
