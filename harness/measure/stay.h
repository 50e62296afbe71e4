/* stay.h: a program of the referee's that stays, to do one cell after another.
 *
 * Starting and ending a process costs CUDA a third of a second, and libraries as much again; the
 * driver does that for one process of the machine at a time.  `stay PROGRAM ARGUMENT...`
 * (harness/stay) hands a cell to a process of PROGRAM that has stayed, or starts one.  That has the
 * same user, the same programs and the same GPU; it ends when nobody asks for so many seconds, and
 * at once when the one who asked is gone.  Whatever runs a candidate is started for its cell all
 * the same, or for the shapes of one kernel. */
#ifndef KP_STAY_H
#define KP_STAY_H

#include "base/error.h"
#include "base/json.h"
#include "task/taskfile.h"

#include <stdbool.h>

/* Do a cell, or, started by `stay`, one after another.  Returns the program's exit status.  `cell`
 * gives back all device memory before it ends, which it may do on any depth by stay_end(); die()
 * ends the process. */
int stay(int argc, char **argv, void (*cell)(int argc, char **argv));
KP_NORETURN void stay_end(int status);

/* Whether this process stays after the cell. */
bool stays(void);

/* What a cell shares with those whose processes it may take over: the kernel, where one file is
 * that of a whole suite, as of a family of tasks.  NULL if that is not so, or if this process does
 * not stay.  New string.  `build`: what PREFIX.build.json holds. */
char *stay_family(const struct kp_task *task, const cJSON *build);

#endif
