/* transcript.h: the record of all tries of one attempt, one JSON object a line.
 *
 * A line is a try: {"schema":1, "call":1, "try":1, "date":"2026-11-21T10:00:00Z", "api":"chat",
 * "host":"api.openai.com", "model":"...", "request_sha256":"...", "request":{...},
 * "status":200, "headers":{...}, "sse":true, "response":"raw body", "error":"", "seconds":1.5,
 * "outcome":"complete", "why":"", "usage":{...} or null, "cost_usd":0.01 or null}.  Bytes of a
 * body that are not UTF-8 become U+FFFD.  Request headers are never stored; a key that a server
 * echoes is replaced by ***. */
#ifndef KP_TRANSCRIPT_H
#define KP_TRANSCRIPT_H

#include "llm/llm.h"

struct transcript {
    struct llm_answer *answer; /* the newest (any outcome but failed), with the usage of its call;
                                * NULL if there is none */
    cJSON *request;            /* that was answered; NULL */
    enum llm_api api;
    char request_sha256[65], date[32], model[128]; /* of that request */
    double cost, seconds; /* of all tries: in USD (NAN if any is unknown), and of calls */
    double calls;
};

/* Read PATH, which may be absent; a torn last line is skipped.  The answer is parsed again by
 * llm_read.  Ends the program with KP_INPUT if a line is not one of a transcript, or if the request
 * or the answer was edited. */
struct transcript transcript_read(const char *path);

void transcript_free(struct transcript *t);

/* Lock PATH for appending until this process ends; another process that wants it waits.  Call it
 * before any money is spent: it ends the program with KP_IO if PATH cannot be written, and with
 * KP_INPUT if it is not a transcript. */
void transcript_hold(const char *path);

/* Reserve disk space for one try in the held transcript: `request` bytes for the request, and for
 * the answer 512 bytes per token, the worst case for SSE (one event a token, stored as JSON), but
 * no more than 4/3 of the largest body that the client accepts.  Call it before each try;
 * transcript_append and the end of the program release what is left.  Ends the program with KP_IO
 * if there is no space.  If the process is killed, the transcript reads as before, and the next
 * holder releases the space. */
void transcript_reserve(size_t request, double tokens);

/* Append a try to the held transcript, in the place of a torn last line, and flush it to the disk.
 * `a` is the answer of this try alone, with its number (from 1) as `tries`; cost_usd NAN: unknown.
 * Ends the program with KP_IO on failure, because a call that cannot be recorded must not be
 * followed by another. */
struct http_reply;
void transcript_append(const struct llm_config *c, const char *request,
                       const struct http_reply *reply, const struct llm_answer *a, double cost_usd);

#endif
