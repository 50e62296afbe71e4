/* gate_main.c: `gate OBJECT CUBIN...` checks whether a compiled kernel keeps to the contract, and
 * `gate LIBRARY` whether what was linked of the object does.
 *
 * If it does: exit 0, and no output.  If not: exit 1, and one line on stdout with all reasons, of
 * which a malformed file is the only one: what a kernel tells the assembler can make one.  If a
 * file cannot be read: exit 3. */
#include "base/elf.h"
#include "base/error.h"
#include "compile/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CUBINS = 16, REFUSED = 1, MOST_REASONS = 1000, LONGEST_PATH = 4096 };

/* Write out what was printed, and end with `status`. */
static int finish(int status) {
    if (fflush(stdout) != 0) die(KP_IO, "cannot write the reason");
    return status;
}

/* Read the file of a kernel's `part`, or end the program: with the reason if it is malformed. */
static struct elf *must_read(const char *part, const char *path) {
    char message[LONGEST_PATH + 512];
    bool malformed;
    struct elf *e = elf_read(path, &malformed, message, sizeof message);
    if (e) return e;
    if (!malformed) die(KP_INPUT, "%s: compile it again", message);
    for (char *p = message; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e) *p = '?';
    printf("%s: malformed: %s\n", part, message + strlen(path) + strlen(": "));
    exit(finish(REFUSED));
}

/* Check the library.  Returns how the program ends. */
static int library(const char *path) {
    char reason[MOST_REASONS];
    struct elf *e = must_read("library", path);
    bool pass = gate_library(e, reason, sizeof reason);
    if (!pass) puts(reason);
    elf_free(e);
    return finish(pass ? KP_OK : REFUSED);
}

int main(int argc, char **argv) {
    struct elf *object, *cubins[MAX_CUBINS];
    size_t n = 0;
    char reason[MOST_REASONS];
    bool pass;

    kp_program("gate");
    if (argc < 2 || argc - 2 > MAX_CUBINS)
        die(KP_USAGE, "usage: gate OBJECT CUBIN... (at most %d), or gate LIBRARY", MAX_CUBINS);
    if (argc == 2) return library(argv[1]);
    object = must_read("object", argv[1]);
    for (int i = 2; i < argc; i++) cubins[n++] = must_read("cubin", argv[i]);
    pass = gate_object(object, cubins, n, reason, sizeof reason);
    if (!pass) printf("%s", reason);
    for (size_t i = 0; i < n; i++) {
        if (gate_cubin(cubins[i], reason, sizeof reason)) continue;
        printf("%s%s", pass ? "" : "; ", reason);
        pass = false;
    }
    if (!pass) putchar('\n');
    elf_free(object);
    for (size_t i = 0; i < n; i++) elf_free(cubins[i]);
    return finish(pass ? KP_OK : REFUSED);
}
