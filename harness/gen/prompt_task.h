/* prompt_task.h: the description of a task in a prompt. */
#ifndef KP_PROMPT_TASK_H
#define KP_PROMPT_TASK_H

#include "task/taskfile.h"

#include <cjson/cJSON.h>

/* title, name, notes, ops (names, each once), tensors, graph, written and header as texts, the
 * outputs with their shapes, the cost, and half: the 16-bit type of one of its tensors, or null.
 * Delete it. */
cJSON *prompt_task(const struct kp_task *t);

#endif
