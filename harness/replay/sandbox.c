/* sandbox.c: see sandbox.h. */
#define _GNU_SOURCE
#include "replay/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Enough for any kernel's host code with a CUDA driver in its process, and an end for a loop. */
enum { CPU_SECONDS = 120, OPEN_FILES = 256 };
static const rlim_t file_bytes = (rlim_t)1 << 30; /* the driver's own shared memory */
static const rlim_t data_bytes = (rlim_t)64 << 30;

/* Set the limits.  This and the next two return NULL, or why it could not be done. */
static const char *limits(void) {
    const struct {
        int what;
        rlim_t most;
    } list[] = {{RLIMIT_CORE, 0},
                {RLIMIT_FSIZE, file_bytes},
                {RLIMIT_CPU, CPU_SECONDS},
                {RLIMIT_DATA, data_bytes},
                {RLIMIT_NOFILE, OPEN_FILES}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct rlimit r = {list[i].most, list[i].most};
        if (setrlimit((__rlimit_resource_t)list[i].what, &r)) return strerror(errno);
    }
    return NULL;
}

/* What a kernel's host code never needs.  The rest is allowed: CUDA drivers differ in what they
 * call. */
static const int refused_calls[] = {SCMP_SYS(execve),
                                    SCMP_SYS(execveat),
                                    SCMP_SYS(fork),
                                    SCMP_SYS(vfork),
                                    SCMP_SYS(socket),
                                    SCMP_SYS(socketpair),
                                    SCMP_SYS(connect),
                                    SCMP_SYS(bind),
                                    SCMP_SYS(listen),
                                    SCMP_SYS(accept),
                                    SCMP_SYS(accept4),
                                    SCMP_SYS(sendto),
                                    SCMP_SYS(ptrace),
                                    SCMP_SYS(process_vm_readv),
                                    SCMP_SYS(process_vm_writev),
                                    SCMP_SYS(kill),
                                    SCMP_SYS(tkill),
                                    SCMP_SYS(pidfd_open),
                                    SCMP_SYS(pidfd_getfd),
                                    SCMP_SYS(pidfd_send_signal),
                                    SCMP_SYS(mount),
                                    SCMP_SYS(umount2),
                                    SCMP_SYS(unshare),
                                    SCMP_SYS(setns),
                                    SCMP_SYS(bpf),
                                    SCMP_SYS(perf_event_open),
                                    SCMP_SYS(userfaultfd),
                                    SCMP_SYS(io_uring_setup),
                                    SCMP_SYS(open_by_handle_at),
                                    SCMP_SYS(keyctl),
                                    SCMP_SYS(add_key),
                                    SCMP_SYS(init_module),
                                    SCMP_SYS(finit_module),
                                    SCMP_SYS(kexec_load),
                                    SCMP_SYS(reboot),
                                    SCMP_SYS(shmget),
                                    SCMP_SYS(msgget),
                                    SCMP_SYS(memfd_secret)};

/* Refuse a call whose argument is so; returns 0, or a negative error. */
static int refuse_if(scmp_filter_ctx filter, int call, struct scmp_arg_cmp when) {
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, 1, &when);
}

static const char *system_calls(void) {
    /* Those that may be for this process alone: a signal, and (by 0) a limit. */
    const struct {
        int call;
        uint64_t self;
    } own[] = {{SCMP_SYS(tgkill), (uint64_t)getpid()},
               {SCMP_SYS(rt_sigqueueinfo), (uint64_t)getpid()},
               {SCMP_SYS(rt_tgsigqueueinfo), (uint64_t)getpid()},
               {SCMP_SYS(prlimit64), 0}};
    /* Who gets a file's signals.  Linux looks at the lower half of a command alone. */
    const struct {
        int call;
        uint32_t command;
    } owner[] = {{SCMP_SYS(fcntl), F_SETOWN},
                 {SCMP_SYS(fcntl), F_SETOWN_EX},
                 {SCMP_SYS(ioctl), FIOSETOWN},
                 {SCMP_SYS(ioctl), SIOCSPGRP}};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter) return "libseccomp cannot make a filter";
    /* The driver has started threads before this. */
    int bad = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    for (size_t i = 0; i < sizeof refused_calls / sizeof *refused_calls && !bad; i++)
        if (refused_calls[i] >= 0)
            bad = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused_calls[i], 0);
    for (size_t i = 0; i < sizeof own / sizeof *own && !bad; i++)
        bad = refuse_if(filter, own[i].call, SCMP_A0(SCMP_CMP_NE, own[i].self, 0));
    for (size_t i = 0; i < sizeof owner / sizeof *owner && !bad; i++)
        bad = refuse_if(filter, owner[i].call,
                        SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, owner[i].command));
    /* clone may make threads only.  A filter cannot see clone3's arguments; without clone3, libc
     * uses clone. */
    if (!bad)
        bad = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    if (!bad) bad = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (!bad) bad = seccomp_load(filter);
    seccomp_release(filter);
    return bad ? strerror(-bad) : NULL;
}

static int rule(int set, const char *path, uint64_t access) {
    struct landlock_path_beneath_attr attr = {.allowed_access = access};
    attr.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (attr.parent_fd < 0) return errno == ENOENT ? 0 : -1; /* not on this system */
    int e = (int)syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
    close(attr.parent_fd);
    return e;
}

static const char *files(const char *library) {
    const uint64_t file = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
    const uint64_t read = file | LANDLOCK_ACCESS_FS_READ_DIR;
    static const char *const system[] = {
        "/usr", "/lib",  "/lib64",           "/opt",
        "/sys", "/proc", "/etc/ld.so.cache", "/run/nvidia-persistenced"};
    struct landlock_ruleset_attr all = {.handled_access_fs =
                                            (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return "this kernel has no Landlock";
    int set = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (set < 0) return strerror(errno);
    int bad = 0;
    for (size_t i = 0; i < sizeof system / sizeof *system && !bad; i++)
        bad = rule(set, system[i],
                   strncmp(system[i], "/etc", 4) ? read : file & ~LANDLOCK_ACCESS_FS_EXECUTE);
    if (!bad) bad = rule(set, "/dev", read | LANDLOCK_ACCESS_FS_WRITE_FILE);
    if (!bad) bad = rule(set, library, file);
    if (!bad) bad = (int)syscall(SYS_landlock_restrict_self, set, 0);
    const char *why = bad ? strerror(errno) : NULL;
    close(set);
    return why;
}

static void say(char *level, size_t size, const char *key, const char *why, const char *end) {
    size_t n = strlen(level);
    snprintf(level + n, size - n, why ? "\"%s\":\"%s\"%s" : "\"%s\":true%s%s", key, why ? why : "",
             end);
}

void sandbox_enter(const char *library, char *level, size_t size) {
    snprintf(level, size, "{");
    say(level, size, "no_new_privs",
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? strerror(errno) : NULL, ",");
    say(level, size, "landlock", files(library), ",");
    say(level, size, "limits", limits(), ",");
    say(level, size, "seccomp", system_calls(), "}");
}
