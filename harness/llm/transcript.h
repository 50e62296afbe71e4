/* transcript.h: everything that was said in one attempt, one JSON object a line.
 *
 * A line is a try: {"schema":1, "call":1, "try":1, "date":"2026-11-21T10:00:00Z", "api":"chat",
 * "host":"api.openai.com", "model":"...", "request_sha256":"...", "request":{...},
 * "status":200, "headers":{...}, "sse":true, "response":"raw body", "error":"", "seconds":1.5,
 * "outcome":"complete", "why":"", "usage":{...} or null, "cost_usd":0.01 or null}.  Bytes of a
 * body that are not UTF-8 are kept as "response_base64" instead.  Request headers are never in
 * it; a key that a server echoes is replaced by ***. */
#ifndef KP_TRANSCRIPT_H
#define KP_TRANSCRIPT_H

#include "llm/llm.h"

/* Make PATH this process's to append to, until it ends: another that wants it waits.  To be called
 * before anything is spent: ends the program with KP_IO where PATH cannot be written, and with
 * KP_INPUT where it is no transcript. */
void transcript_hold(const char *path);

/* Reserve room for one try on the disk of the transcript that is held: for a request of so many
 * bytes, and 512 for each of `tokens`, which is what a stream of one token an event takes as JSON
 * (a third more than the largest body that the client takes, if that is less).  To be called before
 * a try is sent; transcript_append and the program's end give back what is left.  Ends the program
 * with KP_IO where there is no room.  A process that is killed leaves a transcript that reads as it
 * did before; the next one that holds it gives back what was left reserved. */
void transcript_reserve(size_t request, double tokens);

/* Append a try to PATH and flush it to the disk, after taking off a last line that a crash cut
 * short.  Ends the program with KP_IO if that fails: what cannot be kept must not go on costing;
 * with KP_USAGE if the request holds a key.  cost_usd NAN: unknown. */
void transcript_append(const char *path, const struct llm_config *c, const struct llm_try *t,
                       double cost_usd);

/* The newest try of PATH that ended with an answer (any outcome but failed), read again by
 * llm_read; NULL if PATH is absent or has none.  Its usage is that of its whole call.  A last
 * line that a crash cut short is skipped.  request_sha256 (65 bytes), date (32) and model (128)
 * are filled in.  Ends the program with KP_INPUT on a line that is not a transcript's, or whose
 * request or answer was edited. */
struct llm_answer *transcript_answer(const char *path, char request_sha256[65], char date[32],
                                     char model[128]);

/* Whether the newest answered request of PATH holds `text`, as a JSON string would. */
bool transcript_asked(const char *path, const char *text);

/* Sums over all tries of PATH: cost in USD (NAN if any is unknown), seconds of calling. */
void transcript_sums(const char *path, double *cost_usd, double *seconds);

#endif
