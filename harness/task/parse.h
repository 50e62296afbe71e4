/* parse.h: what the parts of the task reader share: where we are, how to fail,
 * and the few tokens that fills and op lines are made of. */
#ifndef KP_PARSE_H
#define KP_PARSE_H

#include "task/taskfile.h"

struct kp_source {
    const char *path; /* as given, for messages */
    const char *text; /* the whole file, NUL-terminated */
    char *message;    /* receives the first error */
    size_t size;      /* of message */
};

/* Store "PATH:LINE: ..." as the error (line 0: "PATH: ...").  Returns false, so that a reader can
 * `return parse_fail(...)`. */
bool parse_fail(struct kp_source *s, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Line (from 1) on which the text at `at` begins. */
int parse_line_at(const struct kp_source *s, const char *at);

/* Line of element `index` of the top-level array `key`; of the key itself if
 * index is -1; 1 if there is none. */
int parse_line_of(const struct kp_source *s, const char *key, int index);

/* Tokens.  Each skips leading blanks, moves *p past what it took and returns
 * true, or leaves *p at what it could not take and returns false. */
bool scan_char(const char **p, char c);
bool scan_name(const char **p, char *out, size_t size); /* a C identifier that fits */
bool scan_number(const char **p, double *out, bool *integer);
bool scan_dims(const char **p, int *n, int64_t dim[KP_MAX_DIMS]); /* [2,-1,3] or [] */
bool scan_end(const char **p);

/* Whether `word` is one of the space-separated `words`. */
bool word_in(const char *words, const char *word);

/* Whether `name` can be used in a C and in a CUDA header. */
bool name_is_usable(const char *name);

/* "f32" and so on; false if it is none of them. */
bool dtype_parse(const char *name, enum kp_dtype *out);

/* "[2,3]" in a buffer of the caller's; returns the buffer. */
enum { KP_SHAPE_TEXT = 160 };
const char *shape_text(const struct kp_shape *s, char out[KP_SHAPE_TEXT]);

/* True unless the count, in bytes of the largest type, overflows an int64. */
bool shape_fits(const struct kp_shape *s);

/* Index of the value called `name`, or -1. */
int value_find(const struct kp_task *t, const char *name);

/* Fill in tensor i's fill from its text, tensors 0..i-1 being known. */
bool fill_parse(struct kp_source *s, int line, struct kp_task *t, int i, const char *text);

/* Fill in tensor i's domain; text NULL stands for the default. */
bool domain_parse(struct kp_source *s, int line, struct kp_tensor *tensor, const char *text);

/* Read one op line, append its results to t->values and fill in *op. */
bool op_parse(struct kp_source *s, int line, struct kp_task *t, const char *text, struct kp_op *op);

/* Mark the values that some output needs.  live has t->nvalues entries. */
void task_live(const struct kp_task *t, bool *live);

#endif
