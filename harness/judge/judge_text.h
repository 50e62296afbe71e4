/* judge_text.h: text on its way to a judge and back. */
#ifndef KP_JUDGE_TEXT_H
#define KP_JUDGE_TEXT_H

#include <cjson/cJSON.h>

/* The source without its comments, line for line: what stood on line 7 still does.  String,
 * character and raw string literals stay, whatever they hold; a comment that is never closed
 * ends with the text.  Free it. */
char *strip_comments(const char *source);

/* Every line with its number in front, so that an answer can name it.  Free it. */
char *number_lines(const char *text);

/* The first balanced {...} of an answer that is a JSON object with a member `key`: prose, fences
 * and other braces may stand around it.  NULL if there is none.  Delete it. */
cJSON *json_first(const char *answer, const char *key);

/* The line, from 1, on which `quote` begins in the source, where any white space is like any
 * other and of several places that nearest to line `near` counts; 0 if it occurs nowhere or
 * has no more than two characters. */
int quote_line(const char *source, const char *quote, int near);

#endif
