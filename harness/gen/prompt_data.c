/* prompt_data.c: what a prompt may say of the GPU, of headers and of attempts, as JSON; see
 * prompt.h. */
#define _GNU_SOURCE
#include "gen/prompt.h"
#include "gen/object.h"
#include "gen/prompt_task.h"
#include "base/code_lex.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stats.h"
#include "base/text.h"
#include "record/recorded.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void prompt_add_files(cJSON *attempt, const char *stem, const char *kernel) {
    static const char *const files[][2] = {
        {"code", ".cu"}, {"log", ".log"}, {"tape", ".tape"}, {"profile", ".profile.json"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = text_format("%s%s", stem, files[i][1]);
        object_file(attempt, files[i][0], kernel && i == 0 ? kernel : path);
        free(path);
    }
}

cJSON *prompt_draws(const char *text) {
    uint64_t state = 0xcbf29ce484222325u; /* FNV-1a; stat_random() mixes it */
    for (const char *p = text; *p; p++) state = (state ^ (unsigned char)*p) * 0x100000001b3u;
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < 4; i++) {
        double x = (double)(stat_random(&state) >> 11) * 0x1p-53;
        cJSON_AddItemToArray(list, cJSON_CreateNumber(x));
    }
    return list;
}

/* ---- The GPU ---- */

/* The number in "90" or "90a"; 0 if there is none. */
static long arch_number(const char *arch) {
    return strtol(arch, NULL, 10);
}

struct search_machine {
    const char *arch;
    cJSON *machine;
};

/* recorded_use: take the first machine of the architecture, so that every task gets the same. */
static bool use_recorded(void *state, const char *where, const char *as, cJSON *json) {
    struct search_machine *s = state;
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(json, "machine");
    int major = 0, minor = 0;
    (void)where, (void)as;
    if (cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(m, "peaks")) &&
        *json_text(m, "gpu_name", "") &&
        sscanf(json_text(m, "compute_capability", ""), "%d.%d", &major, &minor) == 2 &&
        major * 10 + minor == arch_number(s->arch))
        s->machine = cJSON_DetachItemFromObjectCaseSensitive(json, "machine");
    cJSON_Delete(json);
    return !s->machine;
}

/* Add the machine that is recorded of this kind of GPU, else the peaks in build/GPU; and what is
 * recorded of the task on it. */
static void add_recorded(cJSON *to, const char *gpu, const char *arch, const char *task) {
    struct search_machine s = {arch, NULL};
    struct recorded recorded;
    struct result r = {0};
    char *path = text_format("build/%s/peaks.json", gpu), why[256];
    recorded_open(&recorded, "results", gpu);
    bool found = recorded_find(&recorded, task, &r) == FOUND_USABLE;
    object_add(to, "vendor", found ? r.json : NULL);
    if (found) r.json = NULL;
    result_free(&r);
    recorded_each(&recorded, use_recorded, &s);
    recorded_close(&recorded);
    cJSON *peaks = NULL;
    if (s.machine)
        peaks = cJSON_DetachItemFromObjectCaseSensitive(s.machine, "peaks");
    else if (access(path, F_OK) == 0 && !(peaks = json_load(path, why, sizeof why)))
        warn("%s %s", path, why);
    object_add(to, "machine", s.machine);
    object_add(to, "peaks", peaks);
    free(path);
}

/* ---- Headers ---- */

/* Remove what is compiled for racecheck alone: `#ifdef KP_RACECHECK` up to its #else, and its
 * #endif; no other condition stands between these. */
static void drop_racecheck(char *text) {
    char *from, *end;
    while ((from = strstr(text, "\n#ifdef KP_RACECHECK")) && (end = strstr(from, "\n#endif"))) {
        char *other = strstr(from, "\n#else");
        memmove(end, end + 7, strlen(end + 7) + 1);
        if (other && other < end) end = other + 6;
        memmove(from, end, strlen(end) + 1);
    }
}

static cJSON *header(char *source) {
    drop_racecheck(source);
    return cJSON_CreateString(source);
}

/* The declarations of a header with their comments, without bodies, directives and details. */
static cJSON *interface(char *source) {
    struct text out = {0};
    int depth = 0, newlines = 0;
    bool directive = false;
    struct lex l;
    drop_racecheck(source);
    text_add(&out, "", 0);
    for (const char *p = source; l = lex_at(p), l.kind != LEX_END; p += l.n) {
        bool line = l.kind == LEX_NEWLINE;
        directive = line ? false : directive || (newlines && lex_is(l, "#"));
        if (directive) continue;
        if (lex_is(l, "{") && depth++ == 0) text_add(&out, "{...}", 5);
        if (lex_is(l, "}")) depth--;
        if (depth || lex_is(l, "}")) continue;
        newlines = line ? newlines + 1 : l.kind == LEX_SPACE ? newlines : 0;
        if (newlines < 3) text_add(&out, l.at, l.n);
    }
    cJSON *item = cJSON_CreateString(out.s);
    text_free(&out);
    return item;
}

static cJSON *whole(char *text) {
    return cJSON_CreateString(text);
}

/* What `as` makes of the texts of files, by their names. */
static cJSON *texts(const char *pattern, cJSON *as(char *text)) {
    cJSON *all = cJSON_CreateObject();
    glob_t g;
    if (glob(pattern, 0, NULL, &g)) return all;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        char *text = file_read(g.gl_pathv[i], NULL);
        object_add(all, strrchr(g.gl_pathv[i], '/') + 1, as(text));
        free(text);
    }
    globfree(&g);
    return all;
}

char *prompt_header_names(const char *source) {
    if (!strstr(source, ".cuh\"")) return text_format("%s", "");
    cJSON *data = cJSON_CreateObject();
    object_text(data, "source", source);
    object_add(data, "headers", texts(PROMPT_HEADERS "/*.cuh", header));
    cJSON *names = prompt_jq("facts", "{names: header_names}", data);
    char *text = text_format("%s", json_text(names, "names", ""));
    cJSON_Delete(names);
    cJSON_Delete(data);
    return text;
}

cJSON *prompt_data(const struct kp_task *t, const char *gpu, const char *arch) {
    cJSON *data = cJSON_CreateObject();
    if (!is_name(gpu) || arch_number(arch) < 10 ||
        arch[strspn(arch, "abcdefghijklmnopqrstuvwxyz0123456789")])
        die(KP_USAGE, "GPU '%s' of architecture '%s': expected names such as h200 and 90a", gpu,
            arch);
    object_text(data, "gpu", gpu);
    object_text(data, "arch", arch);
    object_add(data, "task", prompt_task(t));
    add_recorded(data, gpu, arch, t->name);
    object_add(data, "headers", texts(PROMPT_HEADERS "/*.cuh", header));
    object_add(data, "offers", texts(PROMPT_HEADERS "/*.cuh", interface));
    object_add(data, "parts", texts(PROMPT_FOLDER "/*[nt]", whole)); /* .json and .txt */
    object_file(data, "tolerance", "harness/measure/tolerance.h");
    object_add(data, "most_bytes", cJSON_CreateNumber(PROMPT_MAX_BYTES));
    return data;
}
