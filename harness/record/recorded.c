/* recorded.c: see recorded.h. */
#include "record/recorded.h"
#include "base/error.h"
#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_end[] = ".json", family_end[] = ".jsonl";

struct line {      /* a result of a family */
    cJSON *json;   /* with its shared parts; NULL if it is no JSON, or was given away */
    char task[64]; /* "" if it names none */
    int number;    /* counted from 1 */
    char why[96];  /* why it cannot be used; "" if it can */
};

struct family {
    char *suite, *path;
    bool loaded;
    int nlines;
    struct line *line;
    cJSON *shared; /* an object: number of a part -> the part */
};

/* ---- the file of a family ---- */

/* Add to an object what only `part` has, in members of members as well.  A member that both have
 * is the object's own. */
static void merge(cJSON *object, const cJSON *part) {
    const cJSON *theirs;
    cJSON_ArrayForEach(theirs, part) {
        cJSON *own = cJSON_GetObjectItemCaseSensitive(object, theirs->string);
        if (own && cJSON_IsObject(own) && cJSON_IsObject(theirs))
            merge(own, theirs);
        else if (!own && !cJSON_AddItemToObject(object, theirs->string, cJSON_Duplicate(theirs, 1)))
            die(KP_MACHINE, "out of memory");
    }
}

/* Complete a line by the parts that it names in `like`.  Says in line->why if the file lacks one.
 */
static void complete(const struct family *f, struct line *line) {
    cJSON *like = cJSON_DetachItemFromObjectCaseSensitive(line->json, "like");
    const cJSON *name;
    cJSON_ArrayForEach(name, like) {
        char number[32];
        snprintf(number, sizeof number, "%.17g", cJSON_IsNumber(name) ? name->valuedouble : -1);
        const cJSON *part = cJSON_GetObjectItemCaseSensitive(f->shared, number);
        if (part)
            merge(line->json, part);
        else
            snprintf(line->why, sizeof line->why, "is like part %s, which the file lacks", number);
    }
    cJSON_Delete(like);
}

/* Whether a task can be of a suite that is a family: SUITE_WORD. */
static bool in_family(const char *task, const char *suite) {
    size_t n = strlen(suite);
    return is_name(task) && !strncmp(task, suite, n) && task[n] == '_' && task[n + 1];
}

/* Take one line of the file: a shared part, or a cell.  Keeps a line that is neither, to say so. */
static void take_line(struct family *f, const char *text, int number) {
    cJSON *json = cJSON_ParseWithOpts(text, NULL, 1);
    const cJSON *shared = cJSON_GetObjectItemCaseSensitive(json, "shared");
    if (cJSON_IsNumber(shared)) {
        char key[32];
        snprintf(key, sizeof key, "%.17g", shared->valuedouble);
        cJSON *of = cJSON_DetachItemFromObjectCaseSensitive(json, "of");
        if (cJSON_IsObject(of))
            cJSON_AddItemToObject(f->shared, key, of);
        else
            cJSON_Delete(of);
        cJSON_Delete(json);
        return;
    }
    f->line = realloc(f->line, ((size_t)f->nlines + 1) * sizeof *f->line);
    if (!f->line) die(KP_MACHINE, "out of memory");
    struct line *line = &f->line[f->nlines++];
    *line = (struct line){.json = json, .number = number};
    const char *task = json_text(json, "task", "");
    if (!cJSON_IsObject(json))
        snprintf(line->why, sizeof line->why, "is no JSON object (cut short?)");
    else if (!in_family(task, f->suite))
        snprintf(line->why, sizeof line->why, "is of no task %s_...", f->suite);
    snprintf(line->task, sizeof line->task, "%s", task);
}

/* Read the file of a family, once.  Warns of each line that is no cell of it. */
static void family_load(struct family *f) {
    struct stat st;
    if (f->loaded) return;
    f->loaded = true;
    f->shared = cJSON_CreateObject();
    if (stat(f->path, &st) || !S_ISREG(st.st_mode) || access(f->path, R_OK)) {
        warn("%s cannot be read; its cells are left out", f->path);
        return;
    }
    char *text = file_read(f->path, NULL);
    int number = 0;
    for (char *p = text, *end; *p; p = end) {
        size_t n = strcspn(p, "\n");
        end = p + n + (p[n] == '\n');
        p[n] = 0;
        number++;
        if (n) take_line(f, p, number);
    }
    free(text);
    for (int i = 0; i < f->nlines; i++) {
        struct line *line = &f->line[i];
        if (!*line->why) complete(f, line);
        if (*line->why) warn("%s:%d %s; it is left out", f->path, line->number, line->why);
    }
}

/* The path of a cell, as if it had a file of its own.  Free it. */
static char *path_of(const struct recorded *from, const char *task) {
    return text_format("%s/%s%s", from->folder, task, file_end);
}

/* Find a task's line.  Returns NULL if there is none. */
static struct line *find_line(struct family *f, const char *task) {
    for (int i = 0; i < f->nlines; i++)
        if (!strcmp(f->line[i].task, task)) return &f->line[i];
    return NULL;
}

/* ---- a GPU ---- */

/* Whether the name of a visible file ends in this, after at least one character. */
static bool ends(const char *name, const char *end) {
    size_t n = strlen(name), e = strlen(end);
    return n > e && *name != '.' && !strcmp(name + n - e, end);
}

/* scandir filter: a result. */
static int is_file(const struct dirent *e) {
    return ends(e->d_name, file_end);
}

/* scandir filter: the results of a family. */
static int is_family(const struct dirent *e) {
    return ends(e->d_name, family_end);
}

void recorded_open(struct recorded *from, const char *results, const char *gpu) {
    struct dirent **list = NULL;
    memset(from, 0, sizeof *from);
    from->folder = text_format("%s/%s", results, gpu);
    int n = scandir(from->folder, &list, is_family, alphasort);
    if (n <= 0) {
        if (n == 0) free(list);
        return;
    }
    from->family = calloc((size_t)n, sizeof *from->family);
    if (!from->family) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < n; i++) {
        struct family *f = &from->family[from->nfamilies++];
        int length = (int)(strlen(list[i]->d_name) - strlen(family_end));
        f->suite = text_format("%.*s", length, list[i]->d_name);
        f->path = text_format("%s/%s", from->folder, list[i]->d_name);
        free(list[i]);
    }
    free(list);
}

void recorded_close(struct recorded *from) {
    for (int i = 0; i < from->nfamilies; i++) {
        struct family *f = &from->family[i];
        for (int k = 0; k < f->nlines; k++) cJSON_Delete(f->line[k].json);
        cJSON_Delete(f->shared);
        free(f->line);
        free(f->suite);
        free(f->path);
    }
    free(from->family);
    free(from->folder);
    memset(from, 0, sizeof *from);
}

enum found recorded_find(struct recorded *from, const char *task, struct result *r) {
    char *path = path_of(from, task), *where = NULL, why[256] = "";
    cJSON *json = NULL;
    if (access(path, F_OK) == 0) {
        where = text_format("%s", path);
        json = json_load(path, why, sizeof why);
    }
    for (int i = 0; i < from->nfamilies && !where; i++) {
        struct family *f = &from->family[i];
        if (!in_family(task, f->suite)) continue;
        family_load(f);
        const struct line *line = find_line(f, task);
        if (!line) continue;
        where = text_format("%s:%d", f->path, line->number);
        if (!*line->why) json = cJSON_Duplicate(line->json, 1);
    }
    bool usable = json && result_take(json, path, r, why, sizeof why);
    if (*why && !usable) warn("%s %s", where, why);
    enum found found = usable ? FOUND_USABLE : where ? FOUND_BROKEN : FOUND_NONE;
    free(where);
    free(path);
    return found;
}

/* Use the lines of a family.  Returns whether to go on. */
static bool use_family(struct recorded *from, struct family *f, recorded_use *use, void *state) {
    bool more = true;
    family_load(f);
    for (int i = 0; i < f->nlines && more; i++) {
        struct line *line = &f->line[i];
        char *where = text_format("%s:%d", f->path, line->number);
        char *as = path_of(from, line->task);
        cJSON *json = *line->why ? NULL : line->json;
        if (json) line->json = NULL;
        more = use(state, where, as, json);
        free(where);
        free(as);
    }
    return more;
}

void recorded_each(struct recorded *from, recorded_use *use, void *state) {
    struct dirent **list = NULL;
    char why[256];
    bool more = true;
    int n = scandir(from->folder, &list, is_file, alphasort);
    for (int i = 0; i < n; i++) {
        char *path = text_format("%s/%s", from->folder, list[i]->d_name);
        cJSON *json = more ? json_load(path, why, sizeof why) : NULL;
        if (more && !json) warn("%s %s; it is left out", path, why);
        more = more && use(state, path, path, json);
        free(path);
        free(list[i]);
    }
    if (n >= 0) free(list);
    for (int i = 0; i < from->nfamilies && more; i++)
        more = use_family(from, &from->family[i], use, state);
}
