/* judge_main.c: ask a model whether a kernel cheats.
 *
 *   judge GPU TASK.json KERNEL.cu --transcript FILE [--tape FILE] [--jump "1.2 -> 14.8"]
 *         [--name NAME]
 *
 * Prints JSON: verdict (clean, suspect, cheat), rule (of harness/judge/hacks.json), lines,
 * quote, test.  It is advice: no verdict, measurement or promotion depends on it.  The model
 * sees the known cheats, which are the same in every call, and the source without comments and the
 * tape, fenced as data (judge.jq).  A quote that is not in the source is dropped.
 *
 * The model is JUDGE_LLM, or else LLM; the spending caps are those of REPRODUCE.md.  Every
 * answer is recorded, and the same question is not billed again.
 * LLM=replay:DIR reads DIR/judge/GPU/NAME.jsonl; the default of NAME is the kernel's file name
 * without its suffix. */
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "gen/object.h"
#include "gen/prompt.h"
#include "judge/judge.h"
#include "llm/llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_MOST = 256 << 10 };

struct options {
    const char *gpu, *task, *kernel, *tape, *jump;
    const char *transcript; /* where the answer is recorded */
    const char *name;       /* of the kernel's file */
};

/* The name of a file without folders and suffix.  Free it. */
static char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = text_format("%s", slash ? slash + 1 : path), *dot = strrchr(name, '.');
    if (dot && dot > name) *dot = 0;
    return name;
}

/* Add the text of a file, which must be there. */
static void add_file(cJSON *to, const char *key, const char *path) {
    char *text = file_read(path, NULL);
    object_text(to, key, text);
    free(text);
}

/* What judge.jq says of a kernel. */
static cJSON *data_of(const struct options *o, const char *task_name) {
    cJSON *data = cJSON_CreateObject(), *hacks = json_read("harness/judge/hacks.json");
    long size;
    char *source = file_read(o->kernel, &size);
    if (size > KERNEL_MOST || (size_t)size != strlen(source))
        die(KP_INPUT, "%s: larger than %d KB, or not text", o->kernel, KERNEL_MOST >> 10);
    char *plain = strip_comments(source);
    object_text(data, "source", plain);
    object_text(data, "kernel", o->kernel);
    object_text(data, "task_name", task_name);
    object_text(data, "gpu", o->gpu);
    object_text(data, "jump", o->jump);
    add_file(data, "task", o->task);
    add_file(data, "template", "harness/judge/judge.txt");
    object_add(data, "hacks", cJSON_DetachItemFromObject(hacks, "hacks"));
    if (o->tape) add_file(data, "tape", o->tape);
    cJSON_Delete(hacks);
    free(source);
    free(plain);
    return data;
}

/* Print the outcome; ends with KP_INPUT if the answer holds no verdict. */
static void print(cJSON *data, const struct billed_call *call, const struct llm_answer *a) {
    const char *kernel = json_text(data, "kernel", "");
    if (a->outcome != LLM_COMPLETE)
        die(KP_INPUT, "%s: no answer (%s): %s; remove %s to ask again", kernel,
            llm_outcomes[a->outcome], a->why, call->transcript);
    cJSON *said = json_first(a->text, "verdict");
    object_add(data, "answer", said);
    object_text(data, "transcript", call->transcript);
    cJSON *out = prompt_jq("judge", "outcome", data);
    if (cJSON_GetObjectItem(out, "note"))
        warn("%s: what the model quotes does not occur in it, and is dropped", kernel);
    object_text(out, "model", call->model);
    object_text(out, "request_sha256", call->request_sha256);
    json_add_number(out, "cost_usd", call->cost);
    char *text = cJSON_Print(out);
    if (!text) die(KP_MACHINE, "out of memory");
    if (printf("%s\n", text) < 0 || fflush(stdout)) die(KP_IO, "the result cannot be written");
    free(text);
    cJSON_Delete(out);
}

/* The value of option i, which must follow it. */
static const char *value(char **argv, int argc, int i) {
    if (i + 1 >= argc) die(KP_USAGE, "%s needs a value", argv[i]);
    return argv[i + 1];
}

int main(int argc, char **argv) {
    kp_program("judge");
    if (argc < 4)
        die(KP_USAGE,
            "usage: judge GPU TASK.json KERNEL.cu --transcript FILE [--tape FILE] [--jump TEXT] "
            "[--name NAME]");
    struct options o = {.gpu = argv[1], .task = argv[2], .kernel = argv[3]};
    for (int i = 4; i < argc; i += 2)
        if (!strcmp(argv[i], "--tape"))
            o.tape = value(argv, argc, i);
        else if (!strcmp(argv[i], "--jump"))
            o.jump = value(argv, argc, i);
        else if (!strcmp(argv[i], "--transcript"))
            o.transcript = value(argv, argc, i);
        else if (!strcmp(argv[i], "--name"))
            o.name = value(argv, argc, i);
        else
            die(KP_USAGE, "%s: no such option: --tape, --jump, --transcript or --name", argv[i]);
    if (!o.transcript) die(KP_USAGE, "--transcript FILE, where the answer is recorded, is missing");
    if (o.jump && (strlen(o.jump) > 100 || strchr(o.jump, '\n')))
        die(KP_USAGE, "--jump: one line of 100 characters at most, e.g. '1.2 -> 14.8'");
    struct llm_config llm;
    llm_config_read_of(&llm, "JUDGE_LLM"); /* before other programs run: it takes the key away */
    char *task_name = base_name(o.task), *kernel_name = base_name(o.kernel);
    cJSON *data = data_of(&o, task_name);
    cJSON *messages = prompt_jq("judge", "messages", data);
    struct llm_message message[] = {
        {"system", text_format("%s", json_text(messages, "system", "")), 0},
        {"user", text_format("%s", json_text(messages, "user", "")), 0}};
    struct billed_call call = {
        .gpu = o.gpu,
        .task = task_name,
        .name = "judge",
        .transcript = o.transcript,
        .replay = text_format("judge/%s/%s.jsonl", o.gpu, o.name ? o.name : kernel_name),
        .llm = &llm,
        .message = message,
        .n = 2};
    struct llm_answer *a = billed_answer(&call);
    print(data, &call, a);
    llm_answer_free(a);
    cJSON_Delete(messages);
    cJSON_Delete(data);
    return KP_OK;
}
