/* task_text.h: make a task from text, for tests.  A task file's name and folder
 * must be those inside it, so each text is written to DIR/unit/NAME.json. */
#ifndef KP_TASK_TEXT_H
#define KP_TASK_TEXT_H

#include "task/taskfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Load a task called "t" from the text of its file.  On error returns NULL and
 * leaves what follows the path in message. */
static struct kp_task *load_text(const char *text, char message[1024]) {
    char dir[] = "/tmp/kp_task_XXXXXX", folder[64], path[96];
    if (!mkdtemp(dir)) abort();
    snprintf(folder, sizeof folder, "%s/unit", dir);
    snprintf(path, sizeof path, "%s/t.json", folder);
    if (mkdir(folder, 0700)) abort();
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) abort();
    struct kp_task *t = task_load_error(path, message, 1024);
    size_t n = strlen(path);
    if (!t && !strncmp(message, path, n)) memmove(message, message + n, strlen(message + n) + 1);
    unlink(path);
    rmdir(folder);
    rmdir(dir);
    return t;
}

/* A task with these tensors ("x f32 [2,3]; i i64 [4] integers(0,9)") and op lines (one a line);
 * its output is the first result of the last line. */
static inline struct kp_task *load_graph(const char *tensors, const char *graph,
                                         char message[1024]) {
    static char text[8192];
    char part[2048], *save, *tensor, *line, last[32] = "";
    size_t n =
        (size_t)sprintf(text, "{\"schema\":1,\"task\":\"t\",\"suite\":\"unit\",\"inputs\":[");
    snprintf(part, sizeof part, "%s", tensors);
    for (tensor = strtok_r(part, ";", &save); tensor; tensor = strtok_r(NULL, ";", &save)) {
        char name[48], dtype[8], shape[96], given[96];
        int words = sscanf(tensor, " %47s %7s %95s %95s", name, dtype, shape, given);
        if (words < 3) abort();
        const char *fill = words > 3                            ? given
                           : dtype[0] == 'i'                    ? "integers(0,2)"
                           : dtype[0] == 'b' && dtype[1] == 'o' ? "bernoulli(0.5)"
                                                                : "normal(0,1)";
        n += (size_t)sprintf(text + n,
                             "%s{\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,\"fill\":\"%s\"}",
                             tensor == part ? "" : ",", name, dtype, shape, fill);
    }
    n += (size_t)sprintf(text + n, "],\"graph\":[");
    snprintf(part, sizeof part, "%s", graph);
    for (line = strtok_r(part, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        n += (size_t)sprintf(text + n, "%s\"%s\"", line == part ? "" : ",\n", line);
        snprintf(last, sizeof last, "%.*s",
                 (int)strcspn(line, "[") > 31 ? 31 : (int)strcspn(line, "["), line);
    }
    sprintf(text + n, "],\"outputs\":[\"%s\"]}", last);
    return load_text(text, message);
}

#endif
