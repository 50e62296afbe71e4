/* prompt_jq.c: run jq; see prompt.h. */
#define _GNU_SOURCE
#include "gen/prompt.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Start a process that writes a text; *fd is where to read it.  (A file would count against limits
 * on files.) */
static pid_t start_writer(const char *text, int *fd) {
    int ends[2];
    pid_t writer = pipe(ends) ? -1 : fork();
    if (writer < 0) die(KP_MACHINE, "no process for jq's input: %s", strerror(errno));
    if (writer == 0) {
        ssize_t n = 1;
        close(ends[0]);
        for (size_t left = strlen(text); left && n > 0; text += n, left -= (size_t)n)
            n = write(ends[1], text, left);
        _exit(n > 0 ? 0 : KP_IO);
    }
    close(ends[1]);
    *fd = ends[0];
    return writer;
}

cJSON *prompt_jq(const char *module, const char *expression, const cJSON *data) {
    int fd;
    char *input = cJSON_PrintUnformatted(data), some[16384];
    struct text out = {0};
    if (!input) die(KP_MACHINE, "out of memory");
    pid_t writer = start_writer(input, &fd);
    char *command = text_format(
        "exec jq -c -L " PROMPT_FOLDER " -L harness/judge 'include \"%s\"; try (%s) catch {error: "
        "(if type == \"object\" then . else {code: 70, text: .} end)}' /proc/self/fd/%d",
        module, expression, fd);
    FILE *pipe = popen(command, "re");
    close(fd);
    for (size_t n; pipe && (n = fread(some, 1, sizeof some, pipe)) > 0;) text_add(&out, some, n);
    if (!pipe || pclose(pipe) || waitpid(writer, NULL, 0) < 0 || !out.s)
        die(KP_INPUT, PROMPT_FOLDER ": jq fails: is it installed?  Restore the folder");
    cJSON *found = cJSON_Parse(out.s);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(found, "error");
    if (error) die((int)json_number(error, "code", KP_BUG), "%s", json_text(error, "text", "?"));
    if (!found) die(KP_BUG, PROMPT_FOLDER ": what jq prints is no JSON");
    free(command);
    free(input);
    text_free(&out);
    return found;
}
