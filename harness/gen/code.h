/* code.h: a kernel's source, sections and ideas of a model's answer. */
#ifndef KP_CODE_H
#define KP_CODE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* The kernel in an answer: the last closed fenced block tagged cuda, cu, cpp, c++, c or nothing
 * that defines `launch`.  <file name="..."> ... </file> counts as a block; its name is ignored.
 * NULL, and one sentence in `why` (200 bytes), if there is none: no block, an unclosed one, none
 * with launch, larger than 256 KB, not UTF-8.  Free it. */
char *code_extract(const char *answer, char why[200]);

/* Whether a source defines launch, outside of comments, literals and directives.  A declaration
 * or a call does not count. */
bool code_defines_launch(const char *source);

/* The text under a heading "## NAME" (any level, any case) up to the next heading of the same or
 * a higher level outside of fences; "" if there is none.  Free it. */
char *code_section(const char *answer, const char *name);

/* The ideas in an answer: a JSON array of {"idea": TEXT, ...} or of strings, fenced or bare.  Of
 * several the last; objects, which are asked for, win over strings.  An array of texts, empty if
 * there is none.  Tries at most 1000 positions, so that an answer of brackets alone takes little
 * time.  Delete it. */
cJSON *code_ideas(const char *answer);

/* The source of an attempt's file: three comment lines (model, attempt and date; the prompt's
 * hash and the transcript; the hash of what follows), then the kernel.  Free it. */
char *code_file(const char *kernel, const char *model, const char *attempt, const char *date,
                const char *request_sha256, const char *transcript);

/* Whether a file is as code_file wrote it: 1 yes, 0 edited since, -1 not written by code_file. */
int code_untouched(const char *source);

#endif
