/* error.c: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *program = "kernelproof";

void kp_program(const char *name) {
    program = name;
}

/* Print the message as one line, whatever text of a file it holds: '?' replaces control characters.
 */
static void line(const char *format, va_list ap) {
    char text[8192] = "";
    fflush(stdout);
    vsnprintf(text, sizeof text, format, ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    fprintf(stderr, "%s: %s\n", program, text);
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
