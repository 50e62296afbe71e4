/* confine_main.c: `confine -r PATH... -w PATH... [-s FILE] -- COMMAND...` runs a compiler on source
 * that nobody has checked.
 *
 * With Landlock, COMMAND and its children may read and execute only what is under the -r paths, and
 * read and write only what is under the -w paths: `#include "/etc/passwd"` and `.incbin` fail as if
 * the file could not be opened.  A path that does not exist is ignored.  /dev/null is always there.
 *
 * Limits on time, memory, files and processes always hold.  If the kernel has no Landlock, COMMAND
 * runs without it, after one line of warning.  FILE gets one line: "landlock N" (its version) or
 * "none: why".  The exit status is COMMAND's; 126 or 127 if it cannot be run. */
#define _GNU_SOURCE
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The interface of the Linux kernel, for systems whose headers lack it.  Its numbers are the same
 * on every architecture. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { GET_VERSION = 1, RULE_PATH_BENEATH = 1 };
enum { /* rights */
       EXECUTE = 1 << 0,
       WRITE_FILE = 1 << 1,
       READ_FILE = 1 << 2,
       READ_DIR = 1 << 3,
       ALL_V1 = (1 << 13) - 1,
       REFER = 1 << 13,    /* since version 2 */
       TRUNCATE = 1 << 14, /* 3 */
       IOCTL_DEV = 1 << 15 /* 5 */
};
enum { CONNECT_AND_BIND_TCP = 3, SIGNALS_AND_ABSTRACT_SOCKETS = 3 };

struct ruleset { /* older kernels take a shorter one */
    uint64_t fs;
    uint64_t net;   /* since version 4 */
    uint64_t scope; /* 6 */
};
struct path_beneath {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

enum { MAX_PATHS = 256 };

struct options {
    const char *read[MAX_PATHS], *write[MAX_PATHS];
    int nread, nwrite;
    const char *status;
    char **command;
};

/* Parse the command line.  Ends the program if it is wrong. */
static struct options parse(int argc, char **argv) {
    static const char usage[] = "usage: confine -r PATH... -w PATH... [-s FILE] -- COMMAND...";
    struct options o = {0};
    char mode = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            o.command = argv + i + 1;
            break;
        } else if (strcmp(argv[i], "-r") == 0 || strcmp(argv[i], "-w") == 0) {
            mode = argv[i][1];
        } else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
            o.status = argv[++i];
            mode = 0;
        } else if (mode == 'r' && o.nread < MAX_PATHS) {
            o.read[o.nread++] = argv[i];
        } else if (mode == 'w' && o.nwrite < MAX_PATHS) {
            o.write[o.nwrite++] = argv[i];
        } else {
            die(KP_USAGE, "unexpected argument '%s'; %s", argv[i], usage);
        }
    }
    if (!o.command || !*o.command) die(KP_USAGE, "%s", usage);
    return o;
}

/* Lower one limit.  A hard limit that is lower already stays. */
static void limit(int what, rlim_t value) {
    struct rlimit r;
    if (getrlimit(what, &r) != 0) die(KP_MACHINE, "getrlimit: %s", strerror(errno));
    if (value > r.rlim_max) value = r.rlim_max;
    r.rlim_cur = r.rlim_max = value;
    if (setrlimit(what, &r) != 0) die(KP_MACHINE, "setrlimit: %s", strerror(errno));
}

/* No compiler process needs more.  Processes are counted over all that the user runs, so their
 * number is generous. */
enum { CPU_SECONDS = 600, PROCESSES = 4096 };
static const rlim_t memory_bytes = (rlim_t)16 << 30, file_bytes = (rlim_t)512 << 20;

static void set_limits(void) {
    limit(RLIMIT_CPU, CPU_SECONDS);
    limit(RLIMIT_AS, memory_bytes);
    limit(RLIMIT_FSIZE, file_bytes);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NPROC, PROCESSES);
}

/* All rights that this version of Landlock can withhold. */
static uint64_t all_rights(int version) {
    return ALL_V1 | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) |
           (version >= 5 ? IOCTL_DEV : 0);
}

/* Grant `rights` under a path.  It may be a file, and it may be absent. */
static void grant(int ruleset, const char *path, uint64_t rights) {
    struct path_beneath rule = {.rights = rights};
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return;
    if (fd < 0 || fstat(fd, &st) != 0) die(KP_INPUT, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) rule.rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;
    rule.fd = fd;
    if (syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) != 0)
        die(KP_MACHINE, "Landlock rule for %s: %s", path, strerror(errno));
    close(fd);
}

/* Build the ruleset; returns its descriptor. */
static int make_ruleset(const struct options *o, int version) {
    uint64_t all = all_rights(version), read = EXECUTE | READ_FILE | READ_DIR;
    struct ruleset r = {
        .fs = all, .net = CONNECT_AND_BIND_TCP, .scope = SIGNALS_AND_ABSTRACT_SOCKETS};
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int fd = (int)syscall(CREATE_RULESET, &r, size, 0);
    if (fd < 0) die(KP_MACHINE, "Landlock ruleset: %s", strerror(errno));
    for (int i = 0; i < o->nread; i++) grant(fd, o->read[i], read);
    for (int i = 0; i < o->nwrite; i++) grant(fd, o->write[i], all & ~(uint64_t)EXECUTE);
    grant(fd, "/dev/null", READ_FILE | (WRITE_FILE | (all & TRUNCATE)));
    return fd;
}

/* Write to FILE how COMMAND is confined. */
static void write_status(const char *path, const char *line) {
    FILE *f;
    if (!path) return;
    f = fopen(path, "w");
    if (!f || fprintf(f, "%s\n", line) < 0 || fclose(f) != 0)
        die(KP_IO, "%s: %s", path, strerror(errno));
}

int main(int argc, char **argv) {
    struct options o;
    char line[128];
    int version, status, ruleset = -1;

    kp_program("confine");
    o = parse(argc, argv);
    set_limits();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        die(KP_MACHINE, "no_new_privs: %s", strerror(errno));
    version = (int)syscall(CREATE_RULESET, NULL, (size_t)0, GET_VERSION);
    if (version >= 1) {
        ruleset = make_ruleset(&o, version);
        snprintf(line, sizeof line, "landlock %d", version);
    } else {
        snprintf(line, sizeof line, "none: Landlock: %s", strerror(errno));
        warn("%s; the compiler can read any file: enable Landlock in the kernel", line);
    }
    write_status(o.status, line);
    if (ruleset >= 0 && syscall(RESTRICT_SELF, ruleset, 0) != 0)
        die(KP_MACHINE, "Landlock: %s", strerror(errno));
    if (ruleset >= 0) close(ruleset);
    execvp(o.command[0], o.command);
    status = errno == ENOENT ? 127 : 126;
    warn("%s: %s", o.command[0], strerror(errno));
    return status;
}
