/* code_lex.h: split CUDA C++ source into tokens, enough to handle comments and literals and to
 * know which tokens would merge. */
#ifndef KP_CODE_LEX_H
#define KP_CODE_LEX_H

#include <stdbool.h>
#include <stddef.h>

enum lex_kind {
    LEX_END,
    LEX_SPACE,   /* blanks, without a newline */
    LEX_NEWLINE, /* one newline */
    LEX_JOIN,    /* a line continuation between tokens */
    LEX_COMMENT, /* without its newline; an unclosed one extends to the end of the text */
    LEX_WORD,    /* identifier or keyword */
    LEX_NUMBER,  /* with digit separators */
    LEX_TEXT,    /* string or character, with its prefix; an unclosed one extends to the end of
                  * the line */
    LEX_RAW,     /* raw string; an unclosed one extends to the end of the text */
    LEX_SIGN     /* operator or punctuation */
};

struct lex {
    enum lex_kind kind;
    const char *at;
    size_t n;
};

/* A copy with LF line ends in place of CRLF or CR: a line end that ends a comment for one
 * compiler must end it for every reader.  Free it. */
char *lex_lines(const char *text);

/* The token at `p`, in a NUL-terminated text with LF line ends. */
struct lex lex_at(const char *p);

/* Whether token `l` is exactly this text. */
bool lex_is(struct lex l, const char *text);

/* Whether two tokens would be read differently without a space between them. */
bool lex_merge(struct lex a, struct lex b);

/* Whether a string or character has its closing quote. */
bool lex_closed(struct lex text);

#endif
