/* cells.c: one line a cell, for the terminal. */
#include "report/report.h"
#include "base/error.h"
#include "base/json.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void report_cell(const struct result *r, const struct boards *known, FILE *out) {
    fprintf(out, "%s/%s %s", r->gpu, r->task, r->verdict);
    if (r->ratio > 0) {
        struct prediction p = boards_predict(known, r);
        fprintf(out, " %.2fx +-%.1f%%", r->ratio, 50 * (p.high - p.low) / r->ratio);
    } else if (*r->reason)
        fprintf(out, ": %s", r->reason);
    for (int i = 0; i < r->nflags; i++)
        fprintf(out, "%s%s%s", i ? ", " : " [", r->flags[i], i + 1 < r->nflags ? "" : "]");
    fputc('\n', out);
}

/* scandir filter: folders of GPUs. */
static int is_folder(const struct dirent *e) {
    return is_name(e->d_name);
}

/* scandir filter: cells that were built. */
static int is_built(const struct dirent *e) {
    const char *step = strchr(e->d_name, '.');
    return step && !strcmp(step, ".build.json");
}

/* Load the result of the last step that a cell reached.  Returns false after one line on stderr if
 * that file cannot be used. */
static bool load_furthest(const char *folder, const char *task, struct result *r) {
    static const char *const steps[] = {"time", "verify", "build"};
    char *path = NULL, why[256];
    for (int i = 0; i < 3; i++) {
        free(path);
        path = text_format("%s/%s.%s.json", folder, task, steps[i]);
        if (access(path, F_OK) == 0) break;
    }
    bool loaded = result_load(path, r, why, sizeof why);
    if (!loaded) warn("%s %s", path, why);
    free(path);
    return loaded;
}

int report_failed(const char *build, const struct boards *known, FILE *out) {
    struct dirent **gpu = NULL, **cell = NULL;
    int failed = 0, ngpu = scandir(build, &gpu, is_folder, alphasort);
    for (int i = 0; i < ngpu; i++) {
        char *folder = text_format("%s/%s", build, gpu[i]->d_name);
        int ncell = scandir(folder, &cell, is_built, alphasort);
        for (int j = 0; j < ncell; j++) {
            struct result r;
            *strchr(cell[j]->d_name, '.') = '\0';
            if (load_furthest(folder, cell[j]->d_name, &r)) {
                if (!result_ok(&r)) report_cell(&r, known, out), failed++;
                result_free(&r);
            }
            free(cell[j]);
        }
        if (ncell >= 0) free(cell);
        free(folder);
        free(gpu[i]);
    }
    if (ngpu >= 0) free(gpu);
    return failed;
}
