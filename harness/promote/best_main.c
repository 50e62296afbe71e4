/* best_main.c: print the attempts of cells as JSON (gen/attempt.h), one object a line, by task as
 * given, mode, round and index.
 *
 *   best GPU TASK...                    each attempt in build/attempts, without its result;
 *                                       harness/promote/table.jq makes a table of it
 *   best --answers ROOT GPU TASK...     the same for export: with the result, the request and the
 *                                       answer, and whether the kernel is as the model wrote it */
#include "gen/attempt.h"
#include "gen/code.h"
#include "gen/object.h"
#include "base/error.h"
#include "base/json.h"
#include "llm/llm.h"
#include "record/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the file of a kernel is as code_file wrote it. */
static bool untouched(const char *path) {
    char *source = access(path, R_OK) ? NULL : file_read(path, NULL);
    bool same = source && code_untouched(source) == 1;
    free(source);
    return same;
}

static void add_answer(cJSON *json, const char *root, const char *gpu, const char *task) {
    const char *name = json_text(json, "attempt", "");
    char *path = attempt_path(root, name, gpu, task, ".jsonl"),
         *kernel = attempt_path(root, name, gpu, task, ".cu");
    struct transcript t = transcript_read(path);
    const char *answer = t.answer ? t.answer->text : "";
    object_text(json, "answer", *answer ? answer : NULL);
    object_add(json, "request", cJSON_DetachItemFromObject(t.line, "request"));
    object_add(json, "untouched", cJSON_CreateBool(untouched(kernel)));
    transcript_free(&t);
    free(path);
    free(kernel);
}

int main(int argc, char **argv) {
    kp_program("best");
    bool answers = argc > 2 && !strcmp(argv[1], "--answers");
    const char *root = answers ? argv[2] : "build/attempts", *gpu = argv[answers ? 3 : 1];
    int first = answers ? 4 : 2;
    bool usable = argc > first;
    for (int i = first - 1; i < argc && usable; i++) usable = is_name(argv[i]);
    if (!usable) die(KP_USAGE, "usage: best [--answers ROOT] GPU TASK...");
    for (int t = first; t < argc; t++) {
        cJSON *all = attempts_load(root, gpu, argv[t], NULL), *a;
        cJSON_ArrayForEach(a, all) {
            if (answers)
                add_answer(a, root, gpu, argv[t]);
            else
                cJSON_DeleteItemFromObjectCaseSensitive(a, "result");
            char *line = cJSON_PrintUnformatted(a);
            if (!line) die(KP_MACHINE, "out of memory");
            puts(line);
            free(line);
        }
        cJSON_Delete(all);
    }
    if (fflush(stdout) || ferror(stdout))
        die(KP_IO, "cannot write to standard output: %s", strerror(errno));
    return KP_OK;
}
