/* hack_rules.h: tokens of a source, and the marks of its structure; used by hacks alone. */
#ifndef KP_HACKS_MARKS_H
#define KP_HACKS_MARKS_H

#include "judge/hacks.h"

#include <stddef.h>

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

/* Add a feature, with a character before it unless that is 0. */
void feature_add(struct features *v, char mark, const char *text, size_t n);

/* Add the marks (@...) that a whole kernel shows. */
void marks_add(struct features *v, const struct tokens *t);

/* Whether marks_add knows a mark, given without its @. */
bool mark_known(const char *name);

#endif
