/* mock.h: a scripted HTTP server for tests of clients of language models.
 *
 * README.md describes the script.  script.c reads it, answer.c writes a text in the stream
 * format of an API, server.c serves clients and writes the journal. */
#ifndef KP_MOCK_H
#define KP_MOCK_H

#include <stdbool.h>
#include <stddef.h>

struct text { /* bytes that grow, with a NUL after the last */
    char *p;
    size_t n, room;
};
void text_add(struct text *t, const void *bytes, size_t n);
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append the bytes as a JSON string with its quotes; bytes above 127 stay. */
void text_json(struct text *t, const char *bytes, size_t n);

enum { CONDITIONS = 8 };

struct step {
    enum { SEND, REPEAT, ANSWER, WAIT, PACE, LIMIT, CUT, RESET, HANG } kind;
    char *text; /* SEND, REPEAT: bytes; ANSWER: the text that the model says */
    size_t size;
    long a, b; /* REPEAT: times; WAIT: ms; PACE: bytes, ms; LIMIT: bytes */
};

struct rule {
    char *path[CONDITIONS], *body[CONDITIONS];
    int paths, bodies;
    long times, used; /* times 0: always */
    int status;       /* 0: no status line, headers or framing */
    char *reason, *headers;
    bool has_type; /* the headers include a content type */
    long filler;   /* number of header lines of 1 KB */
    enum { CHUNKED, LENGTH, CLOSE } framing;
    bool plain;      /* answer with one JSON object even if a stream was requested */
    char finish[16]; /* of an answer: stop, length, filter, refusal */
    char *reasoning;
    long delta; /* bytes of text in each event */
    bool has_usage;
    double input, cached, output, thought;
    struct step *steps;
    int nsteps;
};

struct script {
    const char *path;
    struct rule **rules;
    int n;
    long read; /* bytes of the file read so far */
    int line;
};
/* Read the lines appended to the script since the last call.  Ends the program at an invalid
 * line. */
void script_read(struct script *s);
/* The rule for a request, counted as used; NULL if none matches. */
struct rule *script_rule(struct script *s, const char *path, const char *body);

enum api { CHAT, RESPONSES, ANTHROPIC, NO_API };
enum api answer_api(const char *path);
/* What the real API would reject in a request; NULL if nothing. */
const char *answer_objection(enum api api, const char *headers, const char *body);
bool answer_streams(const struct rule *r, const char *body);
/* Pass each event of the answer (or the one object) to `emit`, until it returns false. */
typedef bool emitter(void *context, const char *bytes, size_t n);
bool answer_emit(const struct rule *r, const struct step *s, enum api api, const char *body,
                 emitter *emit, void *context);

#endif
