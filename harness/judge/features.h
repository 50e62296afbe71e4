/* features.h: tokens of a source, and lists of features; only hacks*.c and hack_rules.c use it. */
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

/* Add a feature; prefix it with the character `mark` unless that is 0. */
void feature_add(struct features *v, char mark, const char *text, size_t n);

void features_free(struct features *v);

enum token_kind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_INCLUDE, TOKEN_MARK };

struct token { /* a piece of the text; punctuation tokens are one character each */
    enum token_kind kind;
    const char *text;
    size_t n;
};
struct tokens {
    int n;
    struct token *t;
};

/* Split a text into tokens that point into it.  Free t. */
struct tokens tokens_of(const char *text);

bool token_is(const struct token *t, const char *text);

#endif
