/* knobs.c: what a test may turn on the pretend GPU; see fake.h. */
#define _GNU_SOURCE
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *fake_word(const char *name) {
    static char value[256];
    const char *p = getenv("CUDA_VISIBLE_DEVICES");
    for (size_t n = strlen(name); p && *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, " ");
        if (length > n && !strncmp(p, name, n) && p[n] == '=') {
            snprintf(value, sizeof value, "%.*s", (int)(length - n - 1), p + n + 1);
            return value;
        }
        p += length;
    }
    return NULL;
}

double fake_number(const char *name, double otherwise) {
    const char *text = fake_word(name);
    return text ? atof(text) : otherwise;
}

void fake_log(const char *format, ...) {
    char line[256];
    const char *path = fake_word("log");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    int n = snprintf(line, sizeof line, "%s ", program_invocation_short_name);
    va_list ap;
    va_start(ap, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
    va_end(ap);
    line[n++] = '\n';
    if (write(fd, line, (size_t)n) != n) abort();
    close(fd);
}
