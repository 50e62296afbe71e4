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

/* Append a try to PATH and flush it to the disk, after cutting off a torn last line.  cost_usd
 * NAN: unknown.  Ends the program with KP_IO on failure, because a call that cannot be recorded
 * must not be followed by another; with KP_USAGE if the request holds a key. */
void transcript_append(const char *path, const struct llm_config *c, const struct llm_try *t,
                       double cost_usd);

/* The newest try of PATH with an answer (any outcome but failed), parsed again by llm_read; NULL
 * if PATH is absent or has none.  Its usage is that of its whole call.  A torn last line is
 * skipped.  Fills in request_sha256 (65 bytes), date (32) and model (128).  Ends the program
 * with KP_INPUT if a line is not one of a transcript, or if its request or answer was edited. */
struct llm_answer *transcript_answer(const char *path, char request_sha256[65], char date[32],
                                     char model[128]);

/* The same, and the request in *asked, unless that is NULL.  Delete it. */
struct llm_answer *transcript_read(const char *path, char request_sha256[65], char date[32],
                                   char model[128], cJSON **asked);

/* Whether the newest answered request of PATH contains this message. */
bool transcript_asked(const char *path, const struct llm_message *m);

/* Sums over all tries of PATH: cost in USD (NAN if any is unknown) and seconds of calls. */
void transcript_sums(const char *path, double *cost_usd, double *seconds);

#endif
