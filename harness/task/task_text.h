/* task_text.h: a task as text: for people, for a language model, and as the header that a kernel
 * includes. */
#ifndef KP_HARNESS_TASK_TEXT_H
#define KP_HARNESS_TASK_TEXT_H

#include "task/taskfile.h"

#include <stdio.h>

enum { TASK_TEXT_BYTES = 32, TASK_TEXT_OUTPUT = 8 };

/* "64 MiB" and the like, in a buffer of the caller's; returns the buffer. */
const char *task_text_bytes(double bytes, char text[TASK_TEXT_BYTES]);

/* The whole task: tensors, graph, outputs, cost, notes, flags. */
void task_text_show(const struct kp_task *t, FILE *out);

/* A fill as it would stand in a task file: "scaled(uniform(0,1))". */
void task_text_fill(const struct kp_task *t, const struct kp_fill *f, FILE *out);

/* An op on one line, with the shapes and types of its results; no end of line. */
void task_text_op(const struct kp_task *t, const struct kp_op *op, FILE *out);

/* What is computed, and nothing else: tensors without their names and fills, in order of their
 * first use, ops, outputs.  Tasks of which this is the same are the same problem. */
void task_text_meaning(const struct kp_task *t, FILE *out);

/* The member of struct Outputs for output i: one is called out; several out0, out1, ... */
void task_text_output(const struct kp_task *t, int i, char name[TASK_TEXT_OUTPUT]);

/* task.h: see the contract of a kernel in optimized/. */
void task_text_header(const struct kp_task *t, FILE *out);

#endif
