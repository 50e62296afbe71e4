/* code_lex.h: CUDA C++ source, token by token, as far as comments, literals and merging tokens go.
 */
#ifndef KP_CODE_LEX_H
#define KP_CODE_LEX_H

#include <stdbool.h>
#include <stddef.h>

enum lex_kind {
    LEX_END,
    LEX_SPACE,   /* blanks, no line's end */
    LEX_NEWLINE, /* one */
    LEX_JOIN,    /* a line continuation between tokens */
    LEX_COMMENT, /* without the end of its line; an open one goes to the end of the text */
    LEX_WORD,    /* identifier or keyword */
    LEX_NUMBER,  /* with digit separators */
    LEX_TEXT,    /* string or character, with its prefix; an open one goes to its line's end */
    LEX_RAW,     /* raw string; an open one goes to the end of the text */
    LEX_SIGN     /* operator or punctuation */
};

struct lex {
    enum lex_kind kind;
    const char *at;
    size_t n;
};

/* A copy with LF at the ends of lines, where CRLF or CR was: what ends a comment for one compiler
 * must end it for every reader.  Free it. */
char *lex_lines(const char *text);

/* The token that begins at `p`, inside a NUL-terminated text whose lines end with LF. */
struct lex lex_at(const char *p);

/* Whether `l` is a token of this very text. */
bool lex_is(struct lex l, const char *text);

/* Whether two tokens, written without a space, would be read as something else. */
bool lex_merge(struct lex a, struct lex b);

/* Whether a string or character has its closing quote. */
bool lex_closed(struct lex text);

#endif
