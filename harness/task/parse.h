/* parse.h: what the parts of the task reader share: the source text, its errors, the tokens of
 * fills and op lines (lex.c), and the parsers of fills (fill.c) and op lines (graph.c). */
#ifndef KP_PARSE_H
#define KP_PARSE_H

#include "task/taskfile.h"

struct kp_source {
    const char *path; /* as given, for messages */
    bool no_file;     /* the text does not come from there */
    const char *text; /* the whole file, NUL-terminated */
    char *message;    /* receives the first error */
    size_t size;      /* of message */
    struct {          /* the element that parse_line_of found last */
        const char *key, *at;
        int index, line;
    } last;
};

/* Store "PATH:LINE: ..." as the error (line 0: "PATH: ...").  Only the first error is kept.
 * Returns false, so that a reader can `return parse_fail(...)`. */
bool parse_fail(struct kp_source *s, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Line (from 1) on which the text at `at` begins. */
int parse_line_at(const struct kp_source *s, const char *at);

/* Line of element `index` of the top-level array `key`, or of the key if index is -1.  Returns 1
 * if there is no such key. */
int parse_line_of(struct kp_source *s, const char *key, int index);

/* The lexer.  Each function skips blanks and reads one token: it moves *p past the token and
 * returns true.  Otherwise it leaves *p at the text that is no such token and returns false. */
bool lex_char(const char **p, char c);
bool lex_name(const char **p, char *out, size_t size); /* a C identifier that fits */
bool lex_number(const char **p, double *out, bool *integer);
bool lex_dims(const char **p, int *n, int64_t dim[KP_MAX_DIMS]); /* [2,-1,3] or [] */
bool lex_end(const char **p);

/* Whether `word` is one of the space-separated `words`. */
bool word_in(const char *words, const char *word);

/* Whether `name` can be used in a C and in a CUDA header. */
bool name_is_usable(const char *name);

/* Parse the text of tensor i's fill; it may refer to tensors 0..i-1. */
bool fill_parse(struct kp_source *s, int line, struct kp_task *t, int i, const char *text);

/* Parse the text of a tensor's domain; NULL stands for the default. */
bool domain_parse(struct kp_source *s, int line, struct kp_tensor *tensor, const char *text);

/* Parse one op line, append its results to t->values and fill in *op. */
bool op_parse(struct kp_source *s, int line, struct kp_task *t, const char *text, struct kp_op *op);

#endif
