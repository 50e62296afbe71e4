/* judge_main.c: ask a model whether a kernel cheats.
 *
 *   judge GPU TASK.json KERNEL.cu --transcript FILE [--tape FILE] [--jump "1.2 -> 14.8"]
 *         [--name NAME]
 *
 * Prints JSON: verdict (clean, suspect, cheat), rule (of harness/judge/hacks.json), lines,
 * quote, test.  It is advice: no verdict, measurement or promotion depends on it.  The model
 * sees the known cheats, which are the same in every call, and the source without comments and the
 * tape, fenced as data.  A quote that is not in the source is dropped.
 *
 * The model is JUDGE_LLM, or else LLM; the spending caps are those of REPRODUCE.md.  Every
 * answer is recorded, and the same question is not billed again.
 * LLM=replay:DIR reads DIR/judge/GPU/NAME.jsonl; the default of NAME is the kernel's file name
 * without its suffix. */
#include "base/error.h"
#include "base/json.h"
#include "judge/quote.h"
#include "llm/llm.h"
#include "gen/prompt_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char hacks_path[] = "harness/judge/hacks.json", template[] = "harness/judge/judge.txt";

enum { TAPE_MOST = 16 << 10, KERNEL_MOST = 256 << 10 };

struct job {
    const char *gpu, *task_path, *kernel_path, *tape_path, *jump;
    const char *transcript;
    const char *task, *name; /* of the task; of the kernel's file */
    char *source;            /* without comments */
    cJSON *hacks;
    struct llm_config llm;
    struct llm_message message[2];
};

/* ---- The prompt --------------------------------------------------------------------- */

/* The name of a file without folders and suffix.  Free it. */
static char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path);
    if (!name) die(KP_MACHINE, "out of memory");
    char *dot = strrchr(name, '.');
    if (dot && dot > name) *dot = 0;
    return name;
}

/* All known cheats, in full. */
static char *catalogue(const cJSON *hacks) {
    const cJSON *h, *line;
    struct draft t;
    draft_open(&t);
    cJSON_ArrayForEach(h, hacks) {
        struct draft looks;
        draft_open(&looks);
        cJSON_ArrayForEach(line, cJSON_GetObjectItemCaseSensitive(h, "looks"))
            fprintf(looks.out, "%s\n", cJSON_GetStringValue(line));
        char *code = draft_close(&looks);
        fprintf(t.out, "%s: %s. It may look like this:\n", json_text(h, "id", ""),
                json_text(h, "title", ""));
        text_fence(t.out, "cuda", code, SIZE_MAX);
        fprintf(t.out, "Why it is one: %s\nA test: %s\n\n", json_text(h, "why", ""),
                json_text(h, "test", ""));
        free(code);
    }
    return draft_close(&t);
}

static bool is_rule(const cJSON *hacks, const char *id) {
    const cJSON *h;
    cJSON_ArrayForEach(h, hacks) if (*id && !strcmp(json_text(h, "id", ""), id)) return true;
    return false;
}

/* A text under its heading, fenced.  Frees the text. */
static char *fenced(const char *heading, const char *tag, char *body, size_t most) {
    struct draft t;
    draft_open(&t);
    fputs(heading, t.out);
    text_fence(t.out, tag, body, most);
    free(body);
    return draft_close(&t);
}

/* Fill in the two messages of harness/judge/judge.txt, which a line ===== separates. */
static void build(struct job *j) {
    struct prompt_values v = {0};
    values_add(&v, "catalogue", catalogue(j->hacks), true);
    values_add(&v, "gpu", text_format("%s", j->gpu), true);
    values_add(&v, "task", fenced("", "json", file_read(j->task_path, NULL), SIZE_MAX), true);
    values_add(&v, "jump", j->jump ? text_format("%s", j->jump) : NULL, true);
    if (j->tape_path)
        values_add(&v, "tape",
                   fenced("What its host code enqueued, as recorded:\n", "",
                          file_read(j->tape_path, NULL), TAPE_MOST),
                   true);
    else
        values_add(&v, "tape", NULL, true);
    values_add(&v, "kernel", fenced("", "cuda", number_lines(j->source), SIZE_MAX), true);
    char *text = prompt_expand(template, &v), *cut = strstr(text, "\n=====\n");
    if (!cut) die(KP_INPUT, "%s: has no line ===== between its two messages", template);
    *cut = 0;
    j->message[0] = (struct llm_message){"system", text, 0};
    j->message[1] = (struct llm_message){"user", cut + 7, 0};
    values_free(&v);
}

/* ---- The outcome -------------------------------------------------------------------------- */

static void *made(void *item) {
    if (!item) die(KP_MACHINE, "out of memory");
    return item;
}

static void add_item(cJSON *list, cJSON *item) {
    if (!cJSON_AddItemToArray(list, made(item))) die(KP_MACHINE, "out of memory");
}

/* Add a text of the model, cut to `most` bytes; null if there is none. */
static void add_text(cJSON *to, const char *key, const char *text, int most) {
    int n = (int)strlen(text);
    if (n > most)
        for (n = most; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--; /* cut between characters */
    char *cut = text_format("%.*s", n, text);
    made(*cut ? cJSON_AddStringToObject(to, key, cut) : cJSON_AddNullToObject(to, key));
    free(cut);
}

/* Add the lines that the model names, if they exist, and its quote, if the source has it; the
 * quote's line comes first. */
static void add_place(const struct job *j, const cJSON *said, cJSON *out) {
    const cJSON *lines = cJSON_GetObjectItemCaseSensitive(said, "lines"), *x;
    const char *quote = json_text(said, "quote", "");
    cJSON *list = made(cJSON_AddArrayToObject(out, "lines"));
    int last = 1, near = cJSON_IsNumber(lines ? lines->child : NULL) ? lines->child->valueint : 1;
    int at = *quote ? quote_line(j->source, quote, near) : 0;
    for (const char *p = j->source; *p; p++) last += *p == '\n';
    if (at) add_item(list, cJSON_CreateNumber(at));
    cJSON_ArrayForEach(x, lines) if (cJSON_IsNumber(x) && x->valueint >= 1 && x->valueint <= last &&
                                     x->valueint != at && cJSON_GetArraySize(list) < 20)
        add_item(list, cJSON_CreateNumber(x->valueint));
    add_text(out, "quote", at ? quote : "", 400);
    made(cJSON_AddBoolToObject(out, "quote_found", at > 0));
    if (*quote && !at) {
        warn("%s: what the model quotes does not occur in it, and is dropped", j->kernel_path);
        made(cJSON_AddStringToObject(out, "note",
                                     "the quote does not occur in the source and was dropped"));
    }
}

/* Print the answer as JSON; end with KP_INPUT if it is not JSON. */
static void print(const struct job *j, const struct billed_call *call, const struct llm_answer *a) {
    static const char *const verdicts[] = {"clean", "suspect", "cheat"};
    if (a->outcome != LLM_COMPLETE)
        die(KP_INPUT, "%s: no answer (%s): %s", j->kernel_path, llm_outcomes[a->outcome], a->why);
    cJSON *said = json_first(a->text, "verdict");
    const char *verdict = json_text(said, "verdict", ""), *rule = json_text(said, "rule", "");
    bool known = false;
    for (int i = 0; i < 3; i++) known |= !strcmp(verdict, verdicts[i]);
    if (!known)
        die(KP_INPUT,
            "%s: the answer holds no verdict (clean, suspect or cheat): ask again, or another "
            "model",
            j->kernel_path);
    cJSON *out = made(cJSON_CreateObject());
    made(cJSON_AddNumberToObject(out, "schema", 1));
    made(cJSON_AddStringToObject(out, "kernel", j->kernel_path));
    made(cJSON_AddStringToObject(out, "task", j->task));
    made(cJSON_AddStringToObject(out, "gpu", j->gpu));
    made(cJSON_AddStringToObject(out, "verdict", verdict));
    add_text(out, "rule", is_rule(j->hacks, rule) ? rule : "", 100);
    add_place(j, said, out);
    add_text(out, "test", json_text(said, "test", ""), 1000);
    made(cJSON_AddStringToObject(out, "model", call->model));
    made(cJSON_AddStringToObject(out, "request_sha256", call->request_sha256));
    json_add_number(out, "cost_usd", call->cost);
    char *text = cJSON_Print(out);
    if (!text) die(KP_MACHINE, "out of memory");
    if (printf("%s\n", text) < 0 || fflush(stdout)) die(KP_IO, "the result cannot be written");
    free(text);
    cJSON_Delete(out);
    cJSON_Delete(said);
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
    struct job j = {.gpu = argv[1], .task_path = argv[2], .kernel_path = argv[3]};
    for (int i = 4; i < argc; i += 2)
        if (!strcmp(argv[i], "--tape"))
            j.tape_path = value(argv, argc, i);
        else if (!strcmp(argv[i], "--jump"))
            j.jump = value(argv, argc, i);
        else if (!strcmp(argv[i], "--transcript"))
            j.transcript = value(argv, argc, i);
        else if (!strcmp(argv[i], "--name"))
            j.name = value(argv, argc, i);
        else
            die(KP_USAGE, "%s: no such option: --tape, --jump, --transcript or --name", argv[i]);
    if (!j.transcript) die(KP_USAGE, "--transcript FILE, where the answer is recorded, is missing");
    if (j.jump && (strlen(j.jump) > 100 || strchr(j.jump, '\n')))
        die(KP_USAGE, "--jump: one line of 100 characters at most, e.g. '1.2 -> 14.8'");
    const char *own = getenv("JUDGE_LLM");
    if (own && *own && setenv("LLM", own, 1)) die(KP_MACHINE, "out of memory");
    llm_config_read(&j.llm);
    long size;
    char *source = file_read(j.kernel_path, &size);
    if (size > KERNEL_MOST || (size_t)size != strlen(source))
        die(KP_INPUT, "%s: larger than %d KB, or not text", j.kernel_path, KERNEL_MOST >> 10);
    j.source = strip_comments(source);
    free(source);
    j.task = base_name(j.task_path);
    if (!j.name) j.name = base_name(j.kernel_path);
    cJSON *hacks = json_read(hacks_path);
    j.hacks = cJSON_GetObjectItemCaseSensitive(hacks, "hacks");
    build(&j);
    struct billed_call call = {.gpu = j.gpu,
                               .task = j.task,
                               .name = "judge",
                               .transcript = j.transcript,
                               .replay = text_format("judge/%s/%s.jsonl", j.gpu, j.name),
                               .llm = &j.llm,
                               .message = j.message,
                               .n = 2};
    struct llm_answer *a = billed_answer(&call);
    print(&j, &call, a);
    llm_answer_free(a);
    cJSON_Delete(hacks);
    return KP_OK;
}
