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
        if (flag_is_listed(r, i)) fprintf(out, "%s%s", i ? ", " : " [", r->flags[i]);
    fputs(r->nflags ? "]\n" : "\n", out);
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

/* Give a result what another says under `key`. */
static void take_word(cJSON *to, const cJSON *from, const char *key) {
    cJSON_DeleteItemFromObjectCaseSensitive(to, key);
    cJSON_AddStringToObject(to, key, json_text(from, key, ""));
}

/* What the last step that a cell reached says of it; a verify.json does not say of which cell it
 * is, so it is the build.json with that verdict.  `path` is the file.  NULL, and why in `why`, if
 * one cannot be read. */
static cJSON *load_furthest(const char *cell, char **path, char *why, size_t size) {
    *path = text_format("%s.time.json", cell);
    if (access(*path, F_OK) == 0) return json_load(*path, why, size);
    free(*path);
    *path = text_format("%s.build.json", cell);
    cJSON *built = json_load(*path, why, size);
    char *next = text_format("%s.verify.json", cell);
    if (!built || access(next, F_OK)) return free(next), built;
    free(*path);
    *path = next;
    cJSON *verified = json_load(next, why, size);
    if (!verified) return cJSON_Delete(built), NULL;
    take_word(built, verified, "verdict"), take_word(built, verified, "reason");
    cJSON_Delete(verified);
    return built;
}

/* Say what failed in a cell, in one line; the file that cannot be used on stderr.  Returns whether
 * it failed. */
static bool report_failure(const char *cell, const struct boards *known, FILE *out) {
    struct result r;
    bool failed = false;
    char why[256], *path;
    cJSON *json = load_furthest(cell, &path, why, sizeof why);
    if (!json || !result_take(json, path, &r, why, sizeof why))
        warn("%s %s; remove it and run make again", path, why);
    else {
        failed = !result_ok(&r);
        if (failed) report_cell(&r, known, out);
        result_free(&r);
    }
    free(path);
    return failed;
}

int report_failed(const char *build, const struct report *r, FILE *out) {
    struct dirent **gpu = NULL, **cell = NULL;
    int failed = 0, ngpu = scandir(build, &gpu, is_folder, alphasort);
    for (int i = 0; i < ngpu; i++) {
        char *folder = text_format("%s/%s", build, gpu[i]->d_name);
        int ncell = scandir(folder, &cell, is_built, alphasort);
        for (int j = 0; j < ncell; j++) {
            *strchr(cell[j]->d_name, '.') = '\0';
            char *path = text_format("%s/%s", folder, cell[j]->d_name);
            bool gone = r->rows_known && report_row(r, cell[j]->d_name) < 0;
            if (!gone) failed += report_failure(path, &r->boards, out);
            free(path);
            free(cell[j]);
        }
        if (ncell >= 0) free(cell);
        free(folder);
        free(gpu[i]);
    }
    if (ngpu >= 0) free(gpu);
    return failed;
}
