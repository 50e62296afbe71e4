/* error.c: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *program = "kernelproof";

void kp_program(const char *name) {
    program = name;
}

static void line(const char *format, va_list ap) {
    fflush(stdout);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
}

void warn(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    line(format, ap);
    va_end(ap);
}

void die(int code, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    line(format, ap);
    va_end(ap);
    exit(code);
}

void output_end(void) {
    if (fflush(stdout) || ferror(stdout))
        die(KP_IO, "cannot write standard output; is the disk full?");
}
