/* compare_main.c: judges what was measured against what was recorded.
 *
 *   compare BUILD_DIR RESULTS_DIR GPU [TASK...]
 *
 * Every BUILD_DIR/GPU/TASK.time.json (all of them, or those named) is held against
 * RESULTS_DIR/GPU/TASK.json, and nothing is written.  A difference is an answer, so
 * the exit code is 0; it is 3 only if a file cannot be used. */
#include "report/compare.h"
#include "base/error.h"
#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_RECORDED = JUDGMENTS, NOT_MEASURED, UNREADABLE, OUTCOMES };

static int is_timed(const struct dirent *e) {
    const char *step = strchr(e->d_name, '.');
    return step && !strcmp(step, ".time.json");
}

/* Load a result; on failure one line on stderr. */
static bool load(const char *path, struct result *r) {
    char why[256];
    if (result_load(path, r, why, sizeof why)) return true;
    warn("%s %s", path, why);
    return false;
}

/* Judge one cell.  Returns what it was, after a line about it; a cell that has only
 * one of the two results is counted, and not named. */
static int judge(const char *build, const char *results, const char *gpu, const char *task) {
    char *fresh_path = text_format("%s/%s/%s.time.json", build, gpu, task);
    char *recorded_path = text_format("%s/%s/%s.json", results, gpu, task);
    struct result fresh = {0}, recorded = {0};
    char why[600];
    int outcome = UNREADABLE;
    if (access(fresh_path, F_OK)) {
        outcome = NOT_MEASURED;
    } else if (access(recorded_path, F_OK)) {
        outcome = NOT_RECORDED;
    } else if (load(fresh_path, &fresh) && load(recorded_path, &recorded)) {
        outcome = (int)compare_results(&fresh, &recorded, why, sizeof why);
        printf("%s/%s %s: %s\n", gpu, task, judgment_name[outcome], why);
    }
    result_free(&fresh);
    result_free(&recorded);
    free(fresh_path);
    free(recorded_path);
    return outcome;
}

int main(int argc, char **argv) {
    int count[OUTCOMES] = {0}, cells = 0;
    struct dirent **file = NULL;
    kp_program("compare");
    if (argc < 4) die(KP_USAGE, "usage: compare BUILD_DIR RESULTS_DIR GPU [TASK...]");
    for (int i = 4; i < argc; i++, cells++) count[judge(argv[1], argv[2], argv[3], argv[i])]++;
    if (argc == 4) {
        char *folder = text_format("%s/%s", argv[1], argv[3]);
        int n = scandir(folder, &file, is_timed, alphasort);
        for (int i = 0; i < n; i++, cells++) {
            *strchr(file[i]->d_name, '.') = '\0';
            count[judge(argv[1], argv[2], argv[3], file[i]->d_name)]++;
            free(file[i]);
        }
        if (n >= 0) free(file);
        free(folder);
    }
    printf("%s: %d cell%s", argv[3], cells, cells == 1 ? "" : "s");
    for (int i = 0; i < JUDGMENTS; i++)
        if (count[i]) printf(", %d %s", count[i], judgment_name[i]);
    if (count[NOT_RECORDED]) printf(", %d not recorded", count[NOT_RECORDED]);
    if (count[NOT_MEASURED]) printf(", %d not measured here", count[NOT_MEASURED]);
    if (count[UNREADABLE]) printf(", %d unreadable", count[UNREADABLE]);
    putchar('\n');
    return count[UNREADABLE] ? KP_INPUT : KP_OK;
}
