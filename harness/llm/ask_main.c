/* ask_main.c: read a prompt from stdin, print the model's answer to stdout.
 *
 *   ask [-s SYSTEM] [-t TRANSCRIPT.jsonl] < PROMPT    ask the model named by LLM (llm.h)
 *   ask --read chat|responses|anthropic FILE          print the answer in a stored response body
 *
 * Exit status: 0 if the answer is complete; 3 if it is cut, empty, refused or not valid source
 * text; another code of error.h if there is no answer. */
#include "base/error.h"
#include "base/json.h"
#include "llm/wire.h"
#include "llm/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT_MAX = 8 << 20 };

struct asked {
    const struct llm_config *c;
    const char *transcript; /* NULL: write none */
    double next;            /* seconds at which progress is shown next */
    bool shown;
};

/* Read all of stdin and make it valid UTF-8.  Free it. */
static char *read_prompt(void) {
    struct text t = {0};
    char some[16384];
    size_t n;
    while ((n = fread(some, 1, sizeof some, stdin)) > 0) {
        if (t.n + n > PROMPT_MAX) die(KP_INPUT, "the prompt is larger than 8 MB");
        text_add(&t, some, n);
    }
    if (ferror(stdin)) die(KP_IO, "the prompt cannot be read from stdin");
    if (text_blank(&t)) die(KP_USAGE, "no prompt on stdin");
    char *clean = utf8_clean(t.s, t.n);
    text_free(&t);
    return clean;
}

static void keep(void *context, const struct llm_try *t) {
    const struct asked *a = context;
    if (!a->transcript) return;
    transcript_append(a->transcript, a->c, t, t->answer->usage.cost);
    if (t->answer->will_retry)
        transcript_reserve(strlen(t->request), t->next_cap * (double)a->c->max_tokens);
}

/* On a terminal, overwrite one line; otherwise print a line a minute. */
static void show(void *context, double seconds, size_t bytes) {
    struct asked *a = context;
    bool terminal = isatty(2);
    if (!terminal && seconds < a->next) return;
    a->next = seconds + 60;
    fprintf(stderr, "%sask: %s at %s: about %zu tokens, %.0f s%s", terminal ? "\r" : "",
            a->c->model, a->c->host, bytes / 4, seconds, terminal ? "\033[K" : "\n");
    a->shown = terminal;
}

/* Print an answer and a summary line; return the exit code. */
static int finish(const char *model, const struct llm_answer *a) {
    char in[32] = "?", out[32] = "?";
    size_t n = strlen(a->text);
    /* End the last line if the answer does not. */
    if (fwrite(a->text, 1, n, stdout) != n ||
        (n && a->text[n - 1] != '\n' && putchar('\n') == EOF) || fflush(stdout))
        die(KP_IO, "the answer cannot be written to stdout");
    if (a->usage.known) {
        snprintf(in, sizeof in, "%.0f", a->usage.input);
        snprintf(out, sizeof out, "%.0f", a->usage.output);
    }
    fprintf(stderr, "ask: %s %s, %s in, %s out tokens, %.1f s, %d %s%s%s\n", model,
            llm_outcome_name(a->outcome), in, out, a->seconds, a->tries,
            a->tries == 1 ? "try" : "tries", *a->why ? ": " : "", a->why);
    if (a->outcome == LLM_FAILED) return a->exit_code;
    return a->outcome == LLM_COMPLETE ? KP_OK : KP_INPUT;
}

static int read_kept(const char *api_name, const char *path) {
    int api = LLM_CHAT;
    long n;
    while (api < LLM_REPLAY && strcmp(api_name, llm_api_name((enum llm_api)api)) != 0) api++;
    if (api == LLM_REPLAY)
        die(KP_USAGE, "--read %s: chat, responses or anthropic is expected", api_name);
    char *body = file_read(path, &n);
    bool sse = body[strspn(body, " \t\r\n")] != '{';
    struct llm_answer *a = llm_read((enum llm_api)api, body, (size_t)n, sse);
    int code = finish(*a->model ? a->model : path, a);
    llm_answer_free(a);
    free(body);
    return code;
}

static int ask(const char *system, const char *transcript) {
    struct llm_config c;
    struct llm_message m[2];
    int n = 0;
    llm_config_read(&c);
    if (c.api == LLM_REPLAY)
        die(KP_USAGE, "LLM=replay:%s holds answers to attempts, not to questions", c.model);
    llm_need_key(&c);
    if (transcript) transcript_hold(transcript);
    struct asked asked = {.c = &c, .transcript = transcript, .next = 60};
    char *prompt = read_prompt();
    if (system) m[n++] = (struct llm_message){"system", (char *)system, 0};
    m[n++] = (struct llm_message){"user", prompt, 0};
    char *request = llm_request(&c, m, n, 1);
    if (transcript) transcript_reserve(strlen(request), (double)c.max_tokens);
    struct llm_answer *a = llm_call(&c, request, keep, show, &asked);
    if (asked.shown) fprintf(stderr, "\r\033[K");
    int code = finish(c.model, a);
    llm_answer_free(a);
    free(request);
    free(prompt);
    return code;
}

int main(int argc, char **argv) {
    static const char usage[] = "usage: ask [-s SYSTEM] [-t TRANSCRIPT.jsonl] < PROMPT\n"
                                "       ask --read chat|responses|anthropic FILE";
    const char *system = NULL, *transcript = NULL;
    kp_program("ask");
    if (argc == 4 && !strcmp(argv[1], "--read")) return read_kept(argv[2], argv[3]);
    for (int option; (option = getopt(argc, argv, "s:t:")) != -1;) {
        if (option == 's')
            system = optarg;
        else if (option == 't')
            transcript = optarg;
        else
            die(KP_USAGE, "%s", usage);
    }
    if (optind < argc) die(KP_USAGE, "%s", usage);
    return ask(system, transcript);
}
