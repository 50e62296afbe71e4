// expect: ok
// task: relu64
/* Correct as long as the sandbox refuses everything that it should. */
#include "kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) abort();
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0) abort();
    if (open("/etc/passwd", O_RDONLY) >= 0 || open("Makefile", O_RDONLY) >= 0) abort();
    if (open("/tmp/written", O_WRONLY | O_CREAT, 0600) >= 0) abort();
    if (kill(getppid(), 0) == 0) abort();
    execl("/bin/true", "true", (char *)NULL);
    start_usual(&relu, in, out, stream);
}
