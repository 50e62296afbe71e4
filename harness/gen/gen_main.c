/* gen_main.c: make one attempt at a kernel.
 *
 *   gen attempt GPU ARCH TASK.json MODE ROUND INDEX [KERNEL.cu]   make it; see attempt.h
 *   gen prompt GPU ARCH TASK.json MODE ROUND INDEX [KERNEL.cu]    print its prompt
 *
 *   gen extract < ANSWER                                          print the kernel in an answer
 *
 * KERNEL.cu is the cell's current kernel.  The steps are: build the prompt, look for a recorded
 * answer, reserve disk space, reserve budget, call, record the transcript, write the kernel, and
 * last .gen.json.  So a run that is interrupted anywhere never pays for an answer twice.  The
 * question is recorded before it is sent (.asked.json), because the prompt may change before the
 * answer is used.  The environment configures the model (llm.h), the caps (wire.h) and the search
 * (search.h). */
#include "gen/attempt.h"
#include "base/code_normal.h"
#include "gen/code.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "record/recorded.h"
#include "llm/llm.h"
#include "gen/prompt_parts.h"
#include "gen/search.h"

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
    char name[64];
    struct kp_task *task;
    struct llm_config llm;
    struct search_options options;
    struct attempts past;
    struct prompt_cell cell;
    struct attempt current;
    struct prompt_turn turn;
    struct llm_message message[PROMPT_MESSAGES];
    struct billed_call call; /* and what came of it */
};

/* ---- The question ---- */

/* The attempts of this mode that the question may depend on: earlier rounds, and this round's
 * ideas. */
static struct attempts past_of(const struct job *j) {
    struct attempts all = attempts_load(root, j->gpu, j->task->name, j->mode), past = {0, all.a};
    for (int i = 0; i < all.n; i++)
        if (all.a[i].round < j->round ||
            (all.a[i].round == j->round && j->index > 0 && all.a[i].index == 0))
            past.a[past.n++] = all.a[i];
    return past;
}

/* Load the cell's current kernel, and its result if it is of this very file: the result measured
 * here, else the recorded one. */
static void load_current(struct job *j, const char *kernel) {
    char *built = text_format("build/%s/%s.time.json", j->gpu, j->task->name), sha[65], why[400];
    struct recorded recorded;
    struct result r = {0};
    j->cell.kernel = file_read(kernel, NULL);
    file_sha256(kernel, sha);
    recorded_open(&recorded, "results", j->gpu);
    if (attempt_current(&j->current, built, sha, why, sizeof why) ||
        (recorded_find(&recorded, j->task->name, &r) == FOUND_USABLE &&
         attempt_of_kernel(&j->current, &r, sha)))
        j->cell.current = &j->current;
    result_free(&r);
    recorded_close(&recorded);
    free(built);
}

/* Whether the call may draw its progress into the last line of a terminal: not where make runs
 * others beside it, which would draw into the same line. */
static bool alone(void) {
    const char *flags = getenv("MAKEFLAGS");
    return isatty(2) && !(flags && strstr(flags, "--jobserver"));
}

/* Prepare everything up to the messages.  Printing a prompt needs no model. */
static void prepare(struct job *j, char **argv, bool ask) {
    j->gpu = argv[2];
    j->mode = argv[5];
    char *name = text_format("%s.r%sa%s", j->mode, argv[6], argv[7]), mode[24];
    if (strlen(name) >= sizeof j->name || !attempt_parse(name, mode, &j->round, &j->index))
        die(KP_USAGE,
            "%.80s is no attempt: MODE is one_shot, best_of_n, repair, contrastive or branching, "
            "ROUND and INDEX are numbers",
            name);
    strcpy(j->name, name);
    free(name);
    j->task = task_load(argv[4]);
    search_options_read(&j->options);
    if (ask) llm_config_read(&j->llm);
    j->cell = (struct prompt_cell){.task = j->task, .gpu = j->gpu, .arch = argv[3], .root = root};
    if (argv[8] && *argv[8]) load_current(j, argv[8]);
    j->past = past_of(j);
    j->turn.attempt = j->name;
    search_turn(&j->options, j->mode, j->round, j->index, &j->past, &j->cell, &j->turn);
    prompt_build(&j->cell, &j->turn, j->message);
    j->call = (struct billed_call){
        .gpu = j->gpu,
        .task = j->task->name,
        .name = j->name,
        .transcript = attempt_path(root, j->name, j->gpu, j->task->name, ".jsonl"),
        .replay = text_format("%s/%s/%s.jsonl", j->name, j->gpu, j->task->name),
        .llm = &j->llm,
        .message = j->message,
        .n = PROMPT_MESSAGES,
        .any = true,
        .progress = alone()};
}

/* ---- JSON ---- */

static void *made(void *item) {
    if (!item) die(KP_MACHINE, "out of memory");
    return item;
}

static void add_text(cJSON *json, const char *key, const char *text) {
    made(cJSON_AddStringToObject(json, key, text));
}

static void add_number(cJSON *json, const char *key, double x) {
    made(cJSON_AddNumberToObject(json, key, x));
}

/* Describe this attempt and its question. */
static cJSON *describe(const struct job *j) {
    cJSON *json = made(cJSON_CreateObject()), *shown;
    add_number(json, "schema", 1);
    add_text(json, "task", j->task->name);
    add_text(json, "gpu", j->gpu);
    add_text(json, "attempt", j->name);
    add_text(json, "mode", j->mode);
    add_number(json, "round", j->round);
    add_number(json, "index", j->index);
    add_text(json, "api", llm_apis[j->llm.api]);
    add_text(json, "ask", j->turn.ask);
    shown = made(cJSON_AddArrayToObject(json, "shown"));
    for (int i = 0; i < j->turn.nshown; i++)
        if (!cJSON_AddItemToArray(shown, made(cJSON_CreateString(j->turn.shown[i]->name))))
            die(KP_MACHINE, "out of memory");
    if (j->turn.idea) add_text(json, "idea_text", j->turn.idea);
    add_number(json, "idea", j->turn.idea ? j->turn.idea_index : -1);
    return json;
}

/* ---- The answer ---- */

/* The answer, and in *json the description of its question, which the prompt of today may no longer
 * be. */
static struct llm_answer *answer(struct job *j, cJSON **json) {
    char *asked = attempt_path(root, j->name, j->gpu, j->task->name, ".asked.json"), why[200];
    *json = describe(j);
    char *text = made(cJSON_Print(*json));
    j->call.asked_path = asked;
    j->call.asked = text;
    struct llm_answer *a = billed_answer(&j->call);
    cJSON *then = j->call.other && j->llm.api != LLM_REPLAY && access(asked, F_OK) == 0
                      ? json_load(asked, why, sizeof why)
                      : NULL;
    if (then) cJSON_Delete(*json), *json = then;
    free(asked);
    free(text);
    return a;
}

/* ---- The outcome ---- */

/* The first attempt of this cell and mode with the same kernel: this one, or the name of an
 * earlier one.  An index of hard links decides between attempts that run in parallel.  Other
 * modes do not count, because no mode may depend on the progress of another. */
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
    free(folder);
    free(path);
    free(own);
    return first;
}

static void add_tokens(cJSON *json, const struct llm_usage *u) {
    cJSON *tokens = made(u->known ? cJSON_AddObjectToObject(json, "tokens")
                                  : cJSON_AddNullToObject(json, "tokens"));
    if (!u->known) return;
    add_number(tokens, "input", u->input);
    add_number(tokens, "cached", u->cached);
    add_number(tokens, "output", u->output);
    add_number(tokens, "reasoning", u->reasoning);
}

/* Add the section of an answer under one of two headings. */
static void add_section(cJSON *json, const char *key, const char *answer, const char *heading,
                        const char *otherwise) {
    char *text = code_section(answer, heading);
    if (!*text && otherwise) {
        free(text);
        text = code_section(answer, otherwise);
    }
    made(*text ? cJSON_AddStringToObject(json, key, text) : cJSON_AddNullToObject(json, key));
    free(text);
}

/* Extract the kernel from the answer and write it.  Returns the outcome; the kernel's hash and
 * the reason are added to json. */
static const char *take_kernel(struct job *j, const struct llm_answer *a, cJSON *json) {
    char why[200] = "", sha[65];
    char *kernel = code_extract(a->text, why);
    if (!kernel) {
        add_text(json, "reason", why);
        return "no-code";
    }
    char *normal = code_normal(kernel);
    text_sha256(normal, strlen(normal), sha);
    free(normal);
    add_text(json, "code_sha256", sha);
    char *headers = prompt_header_names(kernel); /* one may nearly be the answer */
    add_text(json, "headers", headers);
    free(headers);
    char *first = first_with(j, sha),
         *path = attempt_path(root, j->name, j->gpu, j->task->name, ".cu");
    char *file = code_file(kernel, j->call.model, j->name, j->call.date, j->call.request_sha256,
                           j->call.replay);
    file_replace(path, file);
    bool same = strcmp(first, j->name) != 0;
    if (same) {
        add_text(json, "same_as", first);
        char *reason = text_format("the same kernel as %s", first);
        add_text(json, "reason", reason);
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
static void conclude(struct job *j, const struct llm_answer *a, cJSON *json) {
    static const char *const outcomes[] = {[LLM_CUT] = "cut",
                                           [LLM_EMPTY] = "empty",
                                           [LLM_REFUSED] = "refused",
                                           [LLM_INVALID] = "invalid"};
    const char *outcome = a->outcome == LLM_COMPLETE ? "ideas" : outcomes[a->outcome];
    add_text(json, "request_sha256", j->call.request_sha256);
    add_text(json, "model", j->call.model);
    add_text(json, "date", j->call.date);
    if (a->outcome != LLM_COMPLETE) {
        add_text(json, "reason", a->why);
    } else if (j->index > 0) {
        outcome = take_kernel(j, a, json);
    } else {
        cJSON *ideas = search_ideas(a->text);
        if (!cJSON_AddItemToObject(json, "ideas", ideas)) die(KP_MACHINE, "out of memory");
        if (!cJSON_GetArraySize(ideas))
            add_text(json, "reason", "the answer holds no list of ideas");
    }
    add_text(json, "outcome", outcome);
    add_section(json, "analysis", a->text, "Performance Analysis", "Analysis");
    add_section(json, "design", a->text, "Algorithm Design", NULL);
    add_tokens(json, &a->usage);
    json_add_number(json, "cost_usd", j->call.cost);
    add_number(json, "seconds", j->call.seconds);
    char *path = attempt_path(root, j->name, j->gpu, j->task->name, ".gen.json");
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

int main(int argc, char **argv) {
    static struct job j; /* zeroed */
    kp_program("gen");
    if (argc == 2 && !strcmp(argv[1], "extract")) return extract();
    if ((argc != 8 && argc != 9) || (strcmp(argv[1], "attempt") && strcmp(argv[1], "prompt")))
        die(KP_USAGE, "usage: gen attempt|prompt GPU ARCH TASK.json MODE ROUND INDEX [KERNEL.cu]");
    bool prompt = !strcmp(argv[1], "prompt");
    prepare(&j, argv, !prompt);
    if (prompt) return print_prompt(&j);
    cJSON *json;
    struct llm_answer *a = answer(&j, &json);
    conclude(&j, a, json);
    llm_answer_free(a);
    return KP_OK;
}
