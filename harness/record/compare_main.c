/* compare_main.c: compares what was measured with what was recorded.
 *
 *   compare BUILD_DIR RESULTS_DIR GPU [TASK...]
 *
 * compare judges each BUILD_DIR/GPU/TASK.time.json (all of them, or those named) by the recorded
 * result of the cell (recorded.h).  It writes no file.  A difference is an answer: the exit code
 * is 0, or 3 if a result cannot be used. */
#include "record/compare.h"
#include "record/recorded.h"
#include "base/error.h"
#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_RECORDED = JUDGMENTS, NOT_MEASURED, UNREADABLE, OUTCOMES };

/* scandir filter: results of the step `time`. */
static int is_timed(const struct dirent *e) {
    const char *step = strchr(e->d_name, '.');
    return step && !strcmp(step, ".time.json");
}

/* Judge one cell and print a line about it.  Returns its outcome.  A cell that was not measured, or
 * not recorded, has no line. */
static int judge(const char *build, struct recorded *results, const struct boards *known,
                 const char *gpu, const char *task) {
    char *path = text_format("%s/%s/%s.time.json", build, gpu, task);
    struct result fresh = {0}, recorded = {0};
    char why[600];
    int outcome = UNREADABLE;
    if (access(path, F_OK)) {
        outcome = NOT_MEASURED;
    } else if (!result_load(path, &fresh, why, sizeof why)) {
        warn("%s %s; remove it and run make again", path, why);
    } else {
        enum found found = recorded_find(results, task, &recorded);
        if (found == FOUND_NONE) outcome = NOT_RECORDED;
        if (found == FOUND_USABLE) {
            outcome = (int)compare_results(&fresh, &recorded, known, why, sizeof why);
            printf("%s/%s %s: %s\n", gpu, task, judgment_name[outcome], why);
        }
    }
    result_free(&fresh);
    result_free(&recorded);
    free(path);
    return outcome;
}

/* Print how many cells had each outcome. */
static void print_counts(const char *gpu, const int *count) {
    int cells = 0;
    for (int i = 0; i < OUTCOMES; i++) cells += count[i];
    printf("%s: %d cell%s", gpu, cells, cells == 1 ? "" : "s");
    for (int i = 0; i < JUDGMENTS; i++)
        if (count[i]) printf(", %d %s", count[i], judgment_name[i]);
    if (count[NOT_RECORDED]) printf(", %d not recorded", count[NOT_RECORDED]);
    if (count[NOT_MEASURED]) printf(", %d not measured here", count[NOT_MEASURED]);
    if (count[UNREADABLE]) printf(", %d unreadable", count[UNREADABLE]);
    putchar('\n');
}

int main(int argc, char **argv) {
    int count[OUTCOMES] = {0};
    struct dirent **file = NULL;
    struct recorded results;
    struct boards known;
    kp_program("compare");
    if (argc < 4) die(KP_USAGE, "usage: compare BUILD_DIR RESULTS_DIR GPU [TASK...]");
    const char *build = argv[1], *gpu = argv[3];
    recorded_open(&results, argv[2], gpu);
    boards_load(&known, argv[2]);
    for (int i = 4; i < argc; i++) count[judge(build, &results, &known, gpu, argv[i])]++;
    if (argc == 4) {
        char *folder = text_format("%s/%s", build, gpu);
        int n = scandir(folder, &file, is_timed, alphasort);
        for (int i = 0; i < n; i++) {
            *strchr(file[i]->d_name, '.') = '\0';
            count[judge(build, &results, &known, gpu, file[i]->d_name)]++;
            free(file[i]);
        }
        if (n >= 0) free(file);
        free(folder);
    }
    recorded_close(&results);
    boards_free(&known);
    print_counts(gpu, count);
    output_end();
    return count[UNREADABLE] ? KP_INPUT : KP_OK;
}
