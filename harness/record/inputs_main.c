/* inputs_main.c: what a cell is measured of, as hashes of sources (inputs.h).
 *
 *   inputs TASK.json [KERNEL.cu]       one line of JSON, which make hands to `time`
 *   inputs --uses FOLDER LIST          for each SUITE/TASK of LIST the file FOLDER/TASK: hashes of
 *                                      reference, harness and standard input, which is flags
 *   inputs --missing-uses FOLDER LIST  of these only files that are not there
 *
 * A file that says so already is left as it is: make sees by its time that nothing has changed
 * (make/stamps.mk). */
#include "record/inputs.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Print the hashes of a cell. */
static void print_cell(struct sources *s, const char *path, const char *kernel) {
    struct inputs in;
    char *task = file_read(path, NULL);
    inputs_of(s, task, kernel, &in);
    cJSON *json = inputs_json(&in);
    char *line = cJSON_PrintUnformatted(json);
    puts(line);
    free(line);
    cJSON_Delete(json);
    free(task);
}

/* The text of a task's file, or of the template of its family, which has the same graph.  Free it.
 */
static char *task_text(const char *task) {
    char *path = text_format("tasks/%s.json", task);
    if (access(path, F_OK)) {
        free(path);
        path = text_format("tasks/%.*s/template.json", (int)strcspn(task, "/"), task);
    }
    char *text = file_read(path, NULL);
    free(path);
    return text;
}

/* Hash what standard input holds; if that is nothing, make forgot the flags. */
static void hash_flags(char hash[65]) {
    struct text flags = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, stdin));) text_add(&flags, part, n);
    if (!flags.n) die(KP_IO, "standard input: no flags: make hands them to inputs --uses");
    text_sha256(flags.s, flags.n, hash);
    text_free(&flags);
}

/* Bring the file of each task up to date, or only make those that are missing. */
static void update_uses(struct sources *s, const char *folder, const char *list, bool missing) {
    char flags[65], *tasks = file_read(list, NULL), *rest = tasks, *task;
    hash_flags(flags);
    while ((task = strsep(&rest, " \n"))) {
        if (!*task) continue;
        struct inputs in;
        char *text = task_text(task);
        inputs_of_programs(s, text, &in);
        free(text);
        text = text_format("%s %s %s\n", in.hash[INPUT_REFERENCE], in.hash[INPUT_HARNESS], flags);
        char *path = text_format("%s/%s", folder, task + strcspn(task, "/") + 1);
        if (!missing || access(path, F_OK)) file_update(path, text);
        free(path);
        free(text);
    }
    free(tasks);
}

int main(int argc, char **argv) {
    kp_program("inputs");
    bool missing = argc == 4 && !strcmp(argv[1], "--missing-uses");
    bool uses = missing || (argc == 4 && !strcmp(argv[1], "--uses"));
    if (!uses && argc != 2 && argc != 3)
        die(KP_USAGE,
            "usage: inputs TASK.json [KERNEL.cu] | inputs --[missing-]uses FOLDER LIST < FLAGS");
    struct sources *s = sources_open();
    if (uses)
        update_uses(s, argv[2], argv[3], missing);
    else
        print_cell(s, argv[1], argc == 3 ? argv[2] : NULL);
    sources_close(s);
    output_end();
    return KP_OK;
}
