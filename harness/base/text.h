/* text.h: a text that grows, and UTF-8. */
#ifndef KP_TEXT_H
#define KP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text { /* it grows; NUL-terminated unless s is NULL */
    char *s;
    size_t n, room;
};
void text_add(struct text *t, const char *s, size_t n);
void text_clear(struct text *t); /* keeps the room */
void text_free(struct text *t);

/* How many of the n bytes at `s` make the first well-formed UTF-8 character; 0 if it is none. */
size_t utf8_length(const char *s, size_t n);

/* The text, with U+FFFD in place of each NUL and of each run of bytes that is no character.  Free
 * it. */
char *utf8_clean(const char *s, size_t n);

/* The UTF-16 unit of JSON's \uXXXX at `s`, which ends in a NUL; -1 if there is none. */
int json_unit(const char *s);

/* Whether it holds nothing but white space. */
bool text_blank(const struct text *t);

#endif
