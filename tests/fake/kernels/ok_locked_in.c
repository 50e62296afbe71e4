// expect: ok
// task: relu64
/* Correct as long as the sandbox refuses everything that it should. */
#define _GNU_SOURCE
#include "kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

/* Whether every thread of this process has a filter of system calls. */
static int all_filtered(void) {
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    int all = tasks != NULL, threads = 0;
    while (all && (entry = readdir(tasks))) {
        char path[300], line[200];
        if (*entry->d_name == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *f = fopen(path, "r");
        int filtered = 0;
        while (f && fgets(line, sizeof line, f)) filtered |= !strcmp(line, "Seccomp:\t2\n");
        if (f) fclose(f);
        all = filtered, threads++;
    }
    return all && threads > 1;
}

LAUNCH {
    if (!all_filtered()) abort();
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) abort();
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0) abort();
    if (open("/etc/passwd", O_RDONLY) >= 0 || open("Makefile", O_RDONLY) >= 0) abort();
    if (open("/tmp/written", O_WRONLY | O_CREAT, 0600) >= 0) abort();
    const pid_t other = getppid();
    siginfo_t info = {.si_code = SI_QUEUE};
    struct rlimit limit;
    int ends[2];
    if (kill(other, 0) == 0 || syscall(SYS_tkill, other, 0) == 0) abort();
    if (syscall(SYS_tgkill, other, other, 0) == 0) abort();
    if (syscall(SYS_rt_sigqueueinfo, other, 0, &info) == 0) abort();
    if (syscall(SYS_rt_tgsigqueueinfo, other, other, 0, &info) == 0) abort();
    if (syscall(SYS_prlimit64, other, RLIMIT_CPU, NULL, &limit) == 0) abort();
    if (pipe(ends) || fcntl(ends[0], F_SETOWN, other) == 0) abort();
    if (ioctl(0, FIOSETOWN, &other) == 0 || ioctl(0, SIOCSPGRP, &other) == 0) abort();
    const long wide = 1L << 32; /* Linux looks at the lower half of a command alone */
    if (syscall(SYS_fcntl, ends[0], wide | F_SETOWN, other) == 0) abort();
    if (syscall(SYS_ioctl, 0, wide | FIOSETOWN, &other) == 0) abort();
    if (pthread_kill(pthread_self(), 0)) abort(); /* to itself it may send some */
    execl("/bin/true", "true", (char *)NULL);
    start_usual(&relu, in, out, stream);
}
