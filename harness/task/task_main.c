/* task_main.c: look at task files, and generate the header a kernel includes.
 *
 *   task show FILE      what the task is, for people
 *   task header FILE    task.h on standard output
 *   task meaning FILE   what it computes, the same for tasks that are the same problem
 *   task expand TEMPLATE NAME   a task of a family, as JSON (taskfile.h)
 *   task list FILE...   one line a task: suite, name, flops, bytes, title
 *   task check FILE...  read all strictly; say how many there are */
#include "task/taskfile.h"
#include "task/task_text.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read every file, which checks it; with `list`, print a line for each. */
static void check(int n, char **path, bool list) {
    char bytes[TASK_TEXT_BYTES];
    for (int i = 0; i < n; i++) {
        struct kp_task *t = task_load(path[i]);
        struct kp_cost c = task_cost(t);
        if (list)
            printf("%-8s %-44s %9.3g flops %11s  %s\n", t->suite, t->name, c.flops,
                   task_text_bytes(c.bytes_in + c.bytes_out, bytes), t->title);
        task_free(t);
    }
    if (!list) printf("%d task%s\n", n, n == 1 ? "" : "s");
}

/* See the top. */
int main(int argc, char **argv) {
    kp_program("task");
    static const char usage[] =
        "usage: task show|header|meaning FILE, task expand TEMPLATE NAME, task list|check FILE...";
    if (argc < 3) die(KP_USAGE, "%s", usage);
    if (!strcmp(argv[1], "list") || !strcmp(argv[1], "check")) {
        check(argc - 2, argv + 2, argv[1][0] == 'l');
    } else if (!strcmp(argv[1], "expand")) {
        if (argc != 4) die(KP_USAGE, "%s", usage);
        char *text = family_expand(argv[2], argv[3]);
        puts(text);
        free(text);
    } else {
        static const struct {
            const char *word;
            void (*print)(const struct kp_task *, FILE *);
        } view[] = {
            {"show", task_text_show}, {"header", task_text_header}, {"meaning", task_text_meaning}};
        size_t v = 0, views = sizeof view / sizeof *view;
        while (v < views && strcmp(argv[1], view[v].word)) v++;
        if (argc != 3 || v == views) die(KP_USAGE, "%s", usage);
        struct kp_task *t = task_load(argv[2]);
        view[v].print(t, stdout);
        task_free(t);
    }
    output_end();
    return KP_OK;
}
