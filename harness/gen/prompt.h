/* prompt.h: the messages that a model gets.
 *
 * C gathers what may be said, as JSON: the task, the GPU, recorded results, headers, attempts. What
 * is said is up to jq and to data, in harness/gen/prompts/:
 *
 *   search.jq                 what to ask
 *   facts.jq, feedback.jq     texts about the task and the GPU; about earlier attempts
 *   text.jq                   numbers, blocks, templates
 *   prompt.jq                 the messages
 *   *.txt                     their templates
 *   ops, arch, meanings.json  what each op means; limits and instructions of each architecture;
 *                             what verdicts mean */
#ifndef KP_PROMPT_H
#define KP_PROMPT_H

#include "task/taskfile.h"

#include <cjson/cJSON.h>

enum { PROMPT_MESSAGES = 2, PROMPT_MAX_BYTES = 327680 }; /* both messages together */

/* Folders of a prompt's parts, from the root of the tree. */
#define PROMPT_FOLDER  "harness/gen/prompts"
#define PROMPT_HEADERS "optimized/include"

/* What is the same in each attempt at a cell; `arch` is as the compiler gets it: 90a, 86. prompt.jq
 * says what the members are.  KP_USAGE for a malformed GPU or architecture.  Delete it. */
cJSON *prompt_data(const struct kp_task *t, const char *gpu, const char *arch);

/* Add the files of an attempt, whose paths begin with `stem`, that a prompt may show: code, log,
 * tape and profile, each as text or null.  `kernel`: where the code is, if not beside them; NULL.
 */
void prompt_add_files(cJSON *attempt, const char *stem, const char *kernel);

/* Four numbers from 0 to 1, equal for equal texts.  Delete it. */
cJSON *prompt_draws(const char *text);

/* Names of the project's headers that a source includes and that those include, separated by
 * blanks. Free it. */
char *prompt_header_names(const char *source);

/* The value of a jq expression on `data`; it may use what MODULE.jq of PROMPT_FOLDER or
 * harness/judge defines.  Ends the program with the error that was raised, {"code": 3, "text":
 * "..."}.  Delete it. */
cJSON *prompt_jq(const char *module, const char *expression, const cJSON *data);

#endif
