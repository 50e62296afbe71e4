/* gen_main.c: make one attempt at a kernel.
 *
 *   gen attempt GPU ARCH TASK.json MODE ROUND INDEX [KERNEL.cu]   make it; see attempt.h
 *   gen prompt GPU ARCH TASK.json MODE ROUND INDEX [KERNEL.cu]    print its prompt
 *   gen ready                                                     see whether it can be asked
 *   gen extract < ANSWER                                          print the kernel in an answer
 *
 * KERNEL.cu is the cell's current kernel.  The steps are: build the prompt, look for a recorded
 * answer, reserve disk space, reserve budget, call, record the transcript, write the kernel, and
 * last .gen.json.  So a run that is interrupted anywhere never pays for an answer twice.  The
 * question is recorded before it is sent (.asked.json), because the prompt may change before the
 * answer is used.  The environment configures the model (llm.h), the caps (wire.h) and the search
 * (prompts/search.jq). */
#include "gen/attempt.h"
#include "gen/code.h"
#include "gen/object.h"
#include "gen/prompt.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/llm.h"
#include "record/recorded.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char root[] = "build/attempts";

struct job {
    const char *gpu, *mode;
    int round, index;
    char *name;
    struct kp_task *task;
    struct llm_config llm;
    cJSON *asked; /* what .asked.json and .gen.json say of the question */
    struct llm_message message[PROMPT_MESSAGES];
    struct billed_call call; /* and what came of it */
};

/* A path of this attempt.  Free it. */
static char *path_of(const struct job *j, const char *suffix) {
    return attempt_path(root, j->name, j->gpu, j->task->name, suffix);
}

/* ---- The question ---- */

/* Choose the question, and set the messages.  `kernel`: the cell's present one, or NULL. */
static void choose(struct job *j, const char *arch, const char *kernel) {
    cJSON *data = prompt_data(j->task, j->gpu, arch), *current = NULL, *a;
    cJSON *past = attempts_load(root, j->gpu, j->task->name, j->mode);
    cJSON_ArrayForEach(a, past) {
        char *stem = attempt_path(root, json_text(a, "attempt", ""), j->gpu, j->task->name, "");
        prompt_add_files(a, stem, NULL);
        free(stem);
    }
    if (kernel) {
        char *stem = text_format("build/%s/%s", j->gpu, j->task->name);
        current = attempt_current(j->gpu, j->task->name, kernel);
        prompt_add_files(current, stem, kernel);
        free(stem);
    }
    const char *seed = getenv("SEARCH_SEED");
    char *seeded =
        text_format("%s %s/%s %s", seed && *seed ? seed : "0", j->gpu, j->task->name, j->name);
    object_text(data, "mode", j->mode);
    json_add_number(data, "round", j->round);
    json_add_number(data, "index", j->index);
    object_text(data, "attempt", j->name);
    object_text(data, "api", llm_apis[j->llm.api]);
    object_add(data, "attempts", past);
    object_add(data, "current", current);
    object_add(data, "draws", prompt_draws(seeded));
    free(seeded);
    cJSON *question = prompt_jq("prompt", "question", data);
    cJSON *messages = cJSON_GetObjectItem(question, "messages");
    for (int i = 0; i < PROMPT_MESSAGES; i++) {
        const cJSON *m = cJSON_GetArrayItem(messages, i);
        j->message[i] = (struct llm_message){
            strcmp(json_text(m, "role", ""), "user") ? "system" : "user",
            text_format("%s", json_text(m, "text", "")), (size_t)json_number(m, "stable", 0)};
    }
    j->asked = cJSON_DetachItemFromObject(question, "asked");
    cJSON_Delete(question);
    cJSON_Delete(data);
}

/* Whether the call may draw its progress into the last line of a terminal: not where make runs
 * others beside it, which would draw into the same line. */
static bool alone(void) {
    const char *flags = getenv("MAKEFLAGS");
    return isatty(2) && !(flags && strstr(flags, "--jobserver"));
}

/* Prepare everything up to the messages.  Printing a prompt needs no model. */
static void prepare(struct job *j, char **argv, bool ask) {
    char mode[24];
    j->gpu = argv[2];
    j->mode = argv[5];
    j->name = text_format("%s.r%sa%s", j->mode, argv[6], argv[7]);
    if (!attempt_parse(j->name, mode, &j->round, &j->index))
        die(KP_USAGE,
            "%.80s is no attempt: MODE is one_shot, best_of_n, repair, contrastive or branching, "
            "ROUND and INDEX are numbers",
            j->name);
    j->task = task_load(argv[4]);
    if (ask) llm_config_read(&j->llm); /* before other programs run: it takes the key away */
    choose(j, argv[3], argv[8] && *argv[8] ? argv[8] : NULL);
    j->call = (struct billed_call){
        .gpu = j->gpu,
        .task = j->task->name,
        .name = j->name,
        .transcript = path_of(j, ".jsonl"),
        .replay = text_format("%s/%s/%s.jsonl", j->name, j->gpu, j->task->name),
        .llm = &j->llm,
        .message = j->message,
        .n = PROMPT_MESSAGES,
        .any = true,
        .progress = alone()};
}

/* ---- The answer ---- */

/* The answer.  If it is one to an earlier question, j->asked becomes that one. */
static struct llm_answer *answer(struct job *j) {
    char *path = path_of(j, ".asked.json"), *text = cJSON_Print(j->asked), why[200];
    if (!text) die(KP_MACHINE, "out of memory");
    j->call.asked_path = path;
    j->call.asked = text;
    struct llm_answer *a = billed_answer(&j->call);
    cJSON *then =
        j->call.other && j->llm.api != LLM_REPLAY ? json_load(path, why, sizeof why) : NULL;
    if (then) cJSON_Delete(j->asked), j->asked = then;
    free(path);
    free(text);
    return a;
}

/* Whether an attempt of this cell has this kernel.  One that was removed has none. */
static bool has_kernel(const struct job *j, const char *name, const char *code_sha) {
    char *path = attempt_path(root, name, j->gpu, j->task->name, ".cu"), sha[65] = "";
    char *kernel = access(path, R_OK) ? NULL : file_read(path, NULL);
    if (kernel) attempt_code_hash(kernel, sha);
    free(kernel);
    free(path);
    return !strcmp(sha, code_sha);
}

/* The first attempt of this cell and mode with the same kernel: this one, whose file is written, or
 * the name of an earlier one.  An index of hard links decides between attempts that run in
 * parallel.  Other modes do not count, because no mode may depend on the progress of another. */
static char *first_with(const struct job *j, const char *code_sha) {
    char *folder = text_format("%s/codes/%s/%s/%s", root, j->mode, j->gpu, j->task->name);
    char *path = text_format("%s/%s", folder, code_sha),
         *own = text_format("%s/%s+", folder, j->name);
    for (char *p = folder; (p = strchr(p + 1, '/'));) {
        *p = 0;
        mkdir(folder, 0777);
        *p = '/';
    }
    mkdir(folder, 0777);
    file_replace(own, j->name);
    if (link(own, path) && errno != EEXIST)
        die(KP_IO, "%s: cannot write: %s", path, strerror(errno));
    unlink(own);
    char *first = file_read(path, NULL);
    if (!has_kernel(j, first, code_sha)) {
        file_replace(path, j->name);
        free(first);
        first = text_format("%s", j->name);
    }
    free(folder);
    free(path);
    free(own);
    return first;
}

static void add_tokens(cJSON *json, const struct llm_usage *u) {
    cJSON *tokens = u->known ? cJSON_CreateObject() : NULL;
    object_add(json, "tokens", tokens);
    if (!u->known) return;
    json_add_number(tokens, "input", u->input);
    json_add_number(tokens, "cached", u->cached);
    json_add_number(tokens, "output", u->output);
    json_add_number(tokens, "reasoning", u->reasoning);
}

/* Add the section of an answer under one of two headings. */
static void add_section(cJSON *json, const char *key, const char *answer, const char *heading,
                        const char *otherwise) {
    char *text = code_section(answer, heading);
    if (!*text && otherwise) {
        free(text);
        text = code_section(answer, otherwise);
    }
    object_text(json, key, *text ? text : NULL);
    free(text);
}

/* Extract the kernel from the answer and write it.  Returns the outcome; the kernel's hash and
 * the reason are added to json. */
static const char *take_kernel(struct job *j, const struct llm_answer *a, cJSON *json) {
    char why[200] = "", sha[65];
    char *kernel = code_extract(a->text, why);
    if (!kernel) {
        object_text(json, "reason", why);
        return "no-code";
    }
    attempt_code_hash(kernel, sha);
    object_text(json, "code_sha256", sha);
    char *headers = prompt_header_names(kernel); /* one may nearly be the answer */
    object_text(json, "headers", headers);
    free(headers);
    char *path = path_of(j, ".cu");
    char *file = code_file(kernel, j->call.model, j->name, j->call.date, j->call.request_sha256,
                           j->call.replay);
    file_replace(path, file);
    char *first = first_with(j, sha);
    bool same = strcmp(first, j->name) != 0;
    if (same) {
        object_text(json, "same_as", first);
        char *reason = text_format("the same kernel as %s", first);
        object_text(json, "reason", reason);
        free(reason);
    }
    free(first);
    free(path);
    free(file);
    free(kernel);
    return same ? "duplicate" : "code";
}

/* Print a line about the attempt. */
static void say(const struct job *j, const cJSON *json, const struct llm_usage *u) {
    char cost[32] = "", in[32] = "?", out[32] = "?";
    const char *reason = json_text(json, "reason", ""), *with = json_text(json, "headers", "");
    if (!isnan(j->call.cost)) snprintf(cost, sizeof cost, ", %.3f USD", j->call.cost);
    if (u->known) {
        snprintf(in, sizeof in, "%.0f", u->input);
        snprintf(out, sizeof out, "%.0f", u->output);
    }
    printf("gen: %s/%s %s: %s%s%s%s%s, %s + %s tokens%s, %.0f s\n", j->gpu, j->task->name, j->name,
           json_text(json, "outcome", ""), *reason ? ": " : "", reason, *with ? " with " : "", with,
           in, out, cost, j->call.seconds);
}

/* Write .gen.json, which completes the attempt, and print a line about it. */
static void conclude(struct job *j, const struct llm_answer *a) {
    static const char *const outcomes[] = {[LLM_CUT] = "cut",
                                           [LLM_EMPTY] = "empty",
                                           [LLM_REFUSED] = "refused",
                                           [LLM_INVALID] = "invalid"};
    cJSON *json = j->asked;
    const char *outcome = a->outcome == LLM_COMPLETE ? "ideas" : outcomes[a->outcome];
    object_text(json, "request_sha256", j->call.request_sha256);
    object_text(json, "model", j->call.model);
    object_text(json, "date", j->call.date);
    if (a->outcome != LLM_COMPLETE) {
        object_text(json, "reason", a->why);
    } else if (j->index > 0) {
        outcome = take_kernel(j, a, json);
    } else {
        cJSON *ideas = code_ideas(a->text);
        object_add(json, "ideas", ideas);
        if (!cJSON_GetArraySize(ideas))
            object_text(json, "reason", "the answer holds no list of ideas");
    }
    object_text(json, "outcome", outcome);
    add_section(json, "analysis", a->text, "Performance Analysis", "Analysis");
    add_section(json, "design", a->text, "Algorithm Design", NULL);
    add_tokens(json, &a->usage);
    json_add_number(json, "cost_usd", j->call.cost);
    json_add_number(json, "seconds", j->call.seconds);
    char *path = path_of(j, ".gen.json");
    json_write(path, json);
    free(path);
    say(j, json, &a->usage);
    cJSON_Delete(json);
}

/* Print the messages; returns the exit code. */
static int print_prompt(const struct job *j) {
    for (int i = 0; i < PROMPT_MESSAGES; i++)
        printf("[%s]\n%s\n", j->message[i].role, j->message[i].text);
    if (fflush(stdout) || ferror(stdout)) die(KP_IO, "the prompt cannot be written to stdout");
    return KP_OK;
}

/* Print the kernel of the answer on standard input; KP_INPUT and the reason if it has none. */
static int extract(void) {
    struct text answer = {0};
    char some[16384], why[200];
    for (size_t n; (n = fread(some, 1, sizeof some, stdin)) > 0;) text_add(&answer, some, n);
    char *kernel = code_extract(answer.s ? answer.s : "", why);
    if (!kernel) die(KP_INPUT, "%s", why);
    if (fputs(kernel, stdout) == EOF || fflush(stdout)) die(KP_IO, "the kernel cannot be written");
    return KP_OK;
}

/* Whether nothing is wrong that would end all attempts: the model's settings, caps, the search. */
static int ready(struct llm_config *llm) {
    cJSON *none = cJSON_CreateObject();
    llm_config_read(llm);
    llm_ready(llm);
    cJSON_Delete(prompt_jq("search", "options_checked", none));
    cJSON_Delete(none);
    return KP_OK;
}

int main(int argc, char **argv) {
    static struct job j; /* zeroed */
    kp_program("gen");
    if (argc == 2 && !strcmp(argv[1], "ready")) return ready(&j.llm);
    if (argc == 2 && !strcmp(argv[1], "extract")) return extract();
    if ((argc != 8 && argc != 9) || (strcmp(argv[1], "attempt") && strcmp(argv[1], "prompt")))
        die(KP_USAGE, "usage: gen attempt|prompt GPU ARCH TASK.json MODE ROUND INDEX [KERNEL.cu]");
    bool prompt = !strcmp(argv[1], "prompt");
    prepare(&j, argv, !prompt);
    if (prompt) return print_prompt(&j);
    struct llm_answer *a = answer(&j);
    conclude(&j, a);
    llm_answer_free(a);
    return KP_OK;
}
