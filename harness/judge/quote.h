/* quote.h: the source that a judge reads, and what its answer says of it. */
#ifndef KP_QUOTE_H
#define KP_QUOTE_H

#include <cjson/cJSON.h>

/* The source without its comments, with every line in its place.  Literals stay.  Free it. */
char *strip_comments(const char *source);

/* Number every line, so that an answer can refer to it.  Free it. */
char *number_lines(const char *text);

/* The first JSON object in an answer with a member `key`; prose, fences and other braces may
 * surround it.  NULL if there is none.  Delete it. */
cJSON *json_first(const char *answer, const char *key);

/* The line, from 1, on which `quote` begins in the source; the one nearest to line `near` if
 * there are several.  White space does not count.  0 if it does not occur or has at most two
 * characters. */
int quote_line(const char *source, const char *quote, int near);

#endif
