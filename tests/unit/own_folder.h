/* own_folder.h: a test in a folder of its own below /tmp, which is removed after it. */
#ifndef KP_OWN_FOLDER_H
#define KP_OWN_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder, and the root of the tree, where the test was started. */
static char folder[] = "/tmp/kernelproof-XXXXXX", root[4096];

/* Makes the folder and enters it; `make` is a command that makes what lies in it. */
static inline int enter_with(const char *make) {
    return !getcwd(root, sizeof root) || !mkdtemp(folder) || chdir(folder) || system(make);
}

/* Removes it. */
static inline int leave(void **state) {
    (void)state;
    char *gone = text_format("rm -r %s", folder);
    int failed = chdir(root) || system(gone);
    free(gone);
    return failed;
}

/* Checks that a text has a part. */
static inline void holds(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("not there: %s\nin: %s", part, text);
}

#endif
