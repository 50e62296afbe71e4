/* stub.c: every program of build/, without a GPU and without meaning.
 *
 * The end-to-end tests of the Makefile link it in place of each: it does what its
 * argv[0] names just far enough for Make to go on, and leaves a line in steps.log.  A
 * program pretend/NAME of the tree takes its place.
 * A file fault/GPU/TASK makes a GPU step of that cell fail as a machine would; slow/
 * makes it take a second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Append "STEP WHAT" to steps.log. */
static void leave(const char *step, const char *what) {
    FILE *f = fopen("steps.log", "a");
    if (!f || fprintf(f, "%s %s\n", step, what) < 0 || fclose(f)) exit(5);
}

/* The whole of a file, or "" if there is none. */
static const char *contents(const char *path) {
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return text;
}

/* Write `text` to `path` beside it first, as the real programs do. */
static void put(const char *path, const char *text) {
    char temporary[512];
    snprintf(temporary, sizeof temporary, "%s+", path);
    FILE *f = fopen(temporary, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || rename(temporary, path)) exit(5);
}

/* verify and time: copy the earlier verdict on. */
static int step(const char *name, const char *from, const char *out) {
    char path[512], text[256];
    const char *cell = strchr(out, '/') + 1;
    snprintf(path, sizeof path, "fault/%s", cell);
    if (access(path, F_OK) == 0) {
        fprintf(stderr, "%s: the GPU is lost\n", name);
        return 4;
    }
    leave(name, cell);
    if (access("slow", F_OK) == 0) sleep(1);
    snprintf(path, sizeof path, "%s.%s.json", out, from);
    const char *verdict = strstr(contents(path), "\"verdict\"");
    if (!verdict) return 3;
    snprintf(text, sizeof text, "{%.*s}\n", (int)strcspn(verdict, ",}\n"), verdict);
    snprintf(path, sizeof path, "%s.%s.json", out, name);
    put(path, text);
    return 0;
}

/* confine: run what follows "--". */
static int confine(char **argv) {
    for (; *argv; argv++) {
        if (strcmp(*argv, "-s") == 0) put(argv[1], "none: stub\n");
        if (strcmp(*argv, "--") == 0) return execvp(argv[1], argv + 1), 127;
    }
    return 2;
}

/* inputs --uses FOLDER LIST: of every task the same, the programs that measure without comments,
 * and the flags on standard input. */
static int uses(char **argv) {
    execlp("sh", "sh", "-ec",
           "now=$({ sed '/^\\/\\*/d' harness/measure/*_main.c harness/replay/*_main.c && cat; } | "
           "sha256sum)\n"
           "for t in $(cat \"$2\"); do\n"
           "    f=$1/${t#*/} was=\n"
           "    if [ ! -e \"$f\" ] || read -r was < \"$f\" && [ \"$was\" != \"$now\" ]; then echo "
           "\"$now\" > \"$f\"; fi\n"
           "done",
           "uses", argv[2], argv[3], NULL);
    return 127;
}

int main(int argc, char **argv) {
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    char pretend[512];
    snprintf(pretend, sizeof pretend, "pretend/%s", name);
    if (access(pretend, X_OK) == 0) return execv(pretend, argv), 127;
    if (strcmp(name, "stay") == 0) return execv(argv[1], argv + 1), 127;
    if (strcmp(name, "task") == 0) return puts("#pragma once") < 0;
    if (strcmp(name, "inputs") == 0) return argc == 4 ? uses(argv) : puts("{}") < 0;
    if (strcmp(name, "confine") == 0) return confine(argv);
    if (strcmp(name, "gate") == 0) {
        int bad = access("gate.refuses", F_OK) == 0;
        if (bad) puts("object: dlopen is referenced");
        return bad;
    }
    if (strcmp(name, "verify") == 0) return step("verify", "build", argv[2]);
    if (strcmp(name, "time") == 0) return step("time", "verify", argv[2]);
    if (strcmp(name, "peaks") == 0) return put(argv[1], "{}\n"), leave("peaks", argv[1]), 0;
    if (strcmp(name, "report") == 0 && argc > 2 && strcmp(argv[1], "--cell") == 0)
        return printf("%s 1.00x\n", argv[2]) < 0;
    if (strcmp(name, "report") == 0 && argc > 1 && strcmp(argv[1], "--tasks-of") == 0)
        return execlp("sed", "sed", "s/^ *//", NULL), 127;
    leave(name, argc > 1 ? argv[1] : "-");
    return 0;
}
