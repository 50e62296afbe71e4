/* prompt_code.c: the source of an attempt, as a prompt shows it: see prompt_parts.h. */
#include "gen/prompt_parts.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool attempt_is_current(const struct prompt_cell *c, const struct attempt *a) {
    return a == c->current || !strcmp(a->name, "current");
}

/* Whether a line is one of those that say where a kernel comes from. */
static bool is_origin(const char *line) {
    static const char *const begins[] = {"// provenance:", "// prompt sha256", "// kernel sha256"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(line, begins[i], strlen(begins[i]))) return true;
    return false;
}

char *attempt_code(const struct prompt_cell *c, const struct attempt *a, int *skipped) {
    char *text = NULL;
    *skipped = 0;
    if (attempt_is_current(c, a)) {
        text = c->kernel ? text_format("%s", c->kernel) : NULL;
    } else {
        char *path = attempt_path(c->root, a->name, c->gpu, c->task->name, ".cu");
        if (access(path, F_OK) == 0) text = file_read(path, NULL);
        free(path);
    }
    if (!text) return NULL;
    char *p = text;
    for (; is_origin(p) && strchr(p, '\n'); (*skipped)++) p = strchr(p, '\n') + 1;
    memmove(text, p, strlen(p) + 1);
    return text;
}
