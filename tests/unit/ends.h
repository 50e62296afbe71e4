/* ends.h: a check of how a program ends. */
#ifndef KP_ENDS_H
#define KP_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run `what` in a process of its own; it should end with this code and these words, in one line (or
 * none, if the code is 0). */
static inline void ends(void (*what)(void), int code, const char *words) {
    int pipe_ends[2], status;
    char line[1024] = "";
    size_t n = 0;
    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipe_ends[1], 2);
        what();
        _exit(0);
    }
    close(pipe_ends[1]);
    for (ssize_t k;
         n < sizeof line - 1 && (k = read(pipe_ends[0], line + n, sizeof line - 1 - n)) > 0;)
        n += (size_t)k;
    close(pipe_ends[0]);
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != code) fail_msg("exit %d: %s", WEXITSTATUS(status), line);
    if (!strstr(line, words)) fail_msg("'%s' is not in '%s'", words, line);
    if (code) assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

#endif
