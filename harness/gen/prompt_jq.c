/* prompt_jq.c: run jq; see prompt.h.
 *
 * jq gets a module and those that it includes as one program: jq 1.6 needs half as long again to
 * bind modules to each other. */
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

/* The text of MODULE.jq. */
static char *module_text(const char *module) {
    char *path = text_format(PROMPT_FOLDER "/%s.jq", module);
    if (access(path, F_OK)) {
        free(path);
        path = text_format("harness/judge/%s.jq", module);
    }
    char *text = file_read(path, NULL);
    free(path);
    return text;
}

/* Add a module to a program, after the modules that it includes; each once: `names` holds those
 * that were added. */
static void add_module(struct text *program, struct text *names, const char *module) {
    char *name = text_format("(%s)", module), include[64];
    bool added = names->s && strstr(names->s, name);
    if (!added) text_add(names, name, strlen(name));
    free(name);
    if (added) return;
    char *text = module_text(module);
    for (const char *line = text, *next; *line; line = next) {
        next = strchrnul(line, '\n');
        next += *next == '\n';
        if (sscanf(line, "include \"%63[a-z]\";", include) == 1)
            add_module(program, names, include);
        else
            text_add(program, line, (size_t)(next - line));
    }
    free(text);
}

cJSON *prompt_jq(const char *module, const char *expression, const cJSON *data) {
    int program_fd, fd;
    char *input = cJSON_PrintUnformatted(data), some[16384];
    struct text program = {0}, names = {0}, out = {0};
    if (!input) die(KP_MACHINE, "out of memory");
    add_module(&program, &names, module);
    char *use = text_format("try (%s) catch {error: (if type == \"object\" then . else {code: 70, "
                            "text: .} end)}",
                            expression);
    text_add(&program, use, strlen(use));
    pid_t writers[] = {start_writer(program.s, &program_fd), start_writer(input, &fd)};
    char *command = text_format("exec jq -c -f /proc/self/fd/%d /proc/self/fd/%d", program_fd, fd);
    FILE *pipe = popen(command, "re");
    close(program_fd);
    close(fd);
    for (size_t n; pipe && (n = fread(some, 1, sizeof some, pipe)) > 0;) text_add(&out, some, n);
    if (!pipe || pclose(pipe) || waitpid(writers[0], NULL, 0) < 0 ||
        waitpid(writers[1], NULL, 0) < 0 || !out.s)
        die(KP_INPUT, PROMPT_FOLDER ": jq fails: is it installed?  Restore the folder");
    cJSON *found = cJSON_Parse(out.s);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(found, "error");
    if (error) die((int)json_number(error, "code", KP_BUG), "%s", json_text(error, "text", "?"));
    if (!found) die(KP_BUG, PROMPT_FOLDER ": what jq prints is no JSON");
    free(command);
    free(use);
    free(input);
    text_free(&program);
    text_free(&names);
    text_free(&out);
    return found;
}
