/* gate_main.c: `gate OBJECT CUBIN...` checks whether a compiled kernel keeps to the contract.
 *
 * If it does: exit 0, and no output.  If not: exit 1, and one line on stdout with all reasons.  If
 * a file cannot be read, or is not ELF and so not a compiler's: exit 3. */
#include "base/elf.h"
#include "base/error.h"
#include "compile/gate.h"

#include <stdio.h>

enum { MAX_CUBINS = 16, REFUSED = 1, MOST_REASONS = 1000 };

/* Read one file.  Ends the program if it cannot be read. */
static struct elf *must_read(const char *path) {
    char message[512];
    struct elf *e = elf_read(path, message, sizeof message);
    if (!e) die(KP_INPUT, "%s: compile it again", message);
    return e;
}

int main(int argc, char **argv) {
    struct elf *object, *cubins[MAX_CUBINS];
    size_t n = 0;
    char reason[MOST_REASONS];
    bool pass;

    kp_program("gate");
    if (argc < 3 || argc - 2 > MAX_CUBINS)
        die(KP_USAGE, "usage: gate OBJECT CUBIN... (at most %d)", MAX_CUBINS);
    object = must_read(argv[1]);
    for (int i = 2; i < argc; i++) cubins[n++] = must_read(argv[i]);
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
    if (fflush(stdout) != 0) die(KP_IO, "cannot write the reason");
    return pass ? KP_OK : REFUSED;
}
