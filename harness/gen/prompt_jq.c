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
#include <sys/mman.h>
#include <unistd.h>

cJSON *prompt_jq(const char *module, const char *expression, const cJSON *data) {
    int fd = memfd_create("prompt", 0);
    char *input = cJSON_PrintUnformatted(data), some[16384];
    struct text out = {0};
    if (!input) die(KP_MACHINE, "out of memory");
    size_t n = strlen(input), got = 0;
    if (fd < 0 || write(fd, input, n) != (ssize_t)n)
        die(KP_MACHINE, "no memory file: %s", strerror(errno));
    char *command = text_format(
        "exec jq -c -L " PROMPT_FOLDER " -L harness/judge 'include \"%s\"; try (%s) catch {error: "
        "(if type == \"object\" then . else {code: 70, text: .} end)}' /proc/self/fd/%d",
        module, expression, fd);
    FILE *pipe = popen(command, "re");
    while (pipe && (got = fread(some, 1, sizeof some, pipe)) > 0) text_add(&out, some, got);
    if (!pipe || pclose(pipe) || !out.s)
        die(KP_INPUT, PROMPT_FOLDER ": jq fails: is it installed?  Restore the folder");
    cJSON *found = cJSON_Parse(out.s);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(found, "error");
    if (error) die((int)json_number(error, "code", KP_BUG), "%s", json_text(error, "text", "?"));
    if (!found) die(KP_BUG, PROMPT_FOLDER ": what jq prints is no JSON");
    close(fd);
    free(command);
    free(input);
    text_free(&out);
    return found;
}
