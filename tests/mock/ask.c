/* ask.c: what tests ask a server with: a prompt from stdin, the answer on stdout.
 *
 *   ask [-s SYSTEM] [-t TRANSCRIPT.jsonl] < PROMPT
 *
 * The ledger is below the current folder.  Exit status: 0 if the answer is complete; 3 if it is
 * cut, empty, refused or not valid source text; another code of error.h if there is none. */
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct llm_config config;
    struct llm_message m[2] = {{.role = "system"}, {.role = "user"}};
    struct billed_call call = {.gpu = "gpu", .task = "task", .name = "ask", .llm = &config};
    struct text prompt = {0};
    char some[16384];
    kp_program("ask");
    for (int option; (option = getopt(argc, argv, "s:t:")) != -1;) {
        if (option == 's')
            m[0].text = optarg;
        else if (option == 't')
            call.transcript = optarg;
        else
            die(KP_USAGE, "usage: ask [-s SYSTEM] [-t TRANSCRIPT.jsonl] < PROMPT");
    }
    for (size_t n; (n = fread(some, 1, sizeof some, stdin)) > 0;) text_add(&prompt, some, n);
    m[1].text = prompt.s;
    call.message = m + !m[0].text;
    call.n = m[0].text ? 2 : 1;
    if (!call.transcript) call.transcript = text_format("ask.%ld.jsonl", (long)getpid());
    llm_config_read(&config);
    struct llm_answer *a = billed_answer(&call);
    size_t n = strlen(a->text);
    if (fwrite(a->text, 1, n, stdout) != n ||
        (n && a->text[n - 1] != '\n' && putchar('\n') == EOF) || fflush(stdout))
        die(KP_IO, "the answer cannot be written to stdout");
    warn("%s%s%s", llm_outcomes[a->outcome], *a->why ? ": " : "", a->why);
    return a->outcome == LLM_COMPLETE ? KP_OK : KP_INPUT;
}
