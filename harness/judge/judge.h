/* judge.h: the source that a judge reads, and what its answer says of it. */
#ifndef KP_JUDGE_H
#define KP_JUDGE_H

#include <cjson/cJSON.h>

/* The source without its comments, with every line in its place.  Literals stay.  Free it. */
char *strip_comments(const char *source);

/* The first JSON object in an answer with a member `key`; prose, fences and other braces may
 * surround it.  NULL if there is none.  Delete it. */
cJSON *json_first(const char *answer, const char *key);

#endif
