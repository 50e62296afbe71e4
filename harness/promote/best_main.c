/* best_main.c: print the attempts of cells as JSON, one object a line, by task as given, mode,
 * round and index; unknown values are null.
 *
 *   best GPU TASK...                    each attempt in build/attempts, and what came of it;
 *                                       harness/promote/table.jq makes a table of it
 *   best --answers ROOT GPU TASK...     the same for export: with the result, the request and the
 *                                       answer, and whether the kernel is as the model wrote it */
#include "gen/attempt.h"
#include "gen/code.h"
#include "base/error.h"
#include "base/json.h"
#include "llm/llm.h"
#include "record/result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(cJSON *json, const char *key, cJSON *item) {
    if (!item || !cJSON_AddItemToObject(json, key, item)) die(KP_MACHINE, "out of memory");
}

/* "" is null. */
static void add_text(cJSON *json, const char *key, const char *text) {
    add(json, key, *text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

/* Nine digits; 0 or NAN is null. */
static void add_number(cJSON *json, const char *key, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);
    add(json, key, isfinite(x) && x != 0 ? cJSON_CreateRaw(text) : cJSON_CreateNull());
}

/* Whether the file of a kernel is as code_file wrote it. */
static bool untouched(const char *path) {
    char *source = access(path, R_OK) ? NULL : file_read(path, NULL);
    bool same = source && code_untouched(source) == 1;
    free(source);
    return same;
}

static void add_answer(cJSON *json, const char *root, const struct attempt *a, const char *gpu,
                       const char *task) {
    char *path = attempt_path(root, a->name, gpu, task, ".jsonl"),
         *kernel = attempt_path(root, a->name, gpu, task, ".cu");
    struct transcript t = transcript_read(path);
    add_text(json, "answer", t.answer ? t.answer->text : "");
    cJSON *request = cJSON_DetachItemFromObject(t.line, "request");
    add(json, "request", request ? request : cJSON_CreateNull());
    add(json, "untouched", cJSON_CreateBool(untouched(kernel)));
    add(json, "result", a->result ? cJSON_Duplicate(a->result, 1) : cJSON_CreateNull());
    transcript_free(&t);
    free(path);
    free(kernel);
}

static void print_one(const char *root, const struct attempt *a, const char *gpu, const char *task,
                      bool answers) {
    cJSON *json = cJSON_CreateObject();
    bool ok = attempt_ok(a);
    add_text(json, "gpu", gpu);
    add_text(json, "task", task);
    add_text(json, "mode", a->mode);
    add_number(json, "round", a->round);
    add(json, "index", cJSON_CreateNumber(a->index));
    add_text(json, "attempt", a->name);
    add_text(json, "model", a->model);
    add_text(json, "outcome", a->outcome);
    add_text(json, "verdict", a->verdict);
    add_text(json, "class", a->class);
    add_number(json, "ratio", ok ? a->ratio : NAN);
    add_number(json, "low", ok ? a->low : NAN);
    add_number(json, "high", ok ? a->high : NAN);
    add_number(json, "us", ok ? a->us : NAN);
    add_number(json, "input_tokens", a->input_tokens);
    add_number(json, "output_tokens", a->output_tokens);
    json_add_number(json, "cost_usd", a->cost);
    json_add_number(json, "seconds", a->seconds);
    add_text(json, "same_as", a->same_as);
    add_text(json, "date", a->date);
    add_text(json, "code_sha256", a->code_hash);
    add(json, "rank", cJSON_CreateNumber(class_rank(a->class)));
    if (answers) add_answer(json, root, a, gpu, task);
    char *line = cJSON_PrintUnformatted(json);
    if (!line) die(KP_MACHINE, "out of memory");
    puts(line);
    free(line);
    cJSON_Delete(json);
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
        struct attempts l = attempts_load(root, gpu, argv[t], NULL);
        for (int i = 0; i < l.n; i++) print_one(root, &l.a[i], gpu, argv[t], answers);
        attempts_free(&l);
    }
    if (fflush(stdout) || ferror(stdout))
        die(KP_IO, "cannot write to standard output: %s", strerror(errno));
    return KP_OK;
}
