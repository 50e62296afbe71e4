/* judge_text.h: prepare text for a judge, and check its answer. */
#ifndef KP_JUDGE_TEXT_H
#define KP_JUDGE_TEXT_H

#include <cjson/cJSON.h>

/* The source without its comments, with every line in its place.  Literals stay, whatever they
 * contain; an unclosed comment extends to the end of the text.  Free it. */
char *strip_comments(const char *source);

/* Number every line, so that an answer can refer to it.  Free it. */
char *number_lines(const char *text);

/* The first balanced {...} of an answer that is a JSON object with a member `key`.  Prose,
 * fences and other braces may surround it.  NULL if there is none.  Delete it. */
cJSON *json_first(const char *answer, const char *key);

/* The line, from 1, on which `quote` begins in the source; the one nearest to line `near` if
 * there are several.  All white space is equal.  0 if it does not occur or has at most two
 * characters. */
int quote_line(const char *source, const char *quote, int near);

#endif
