/* prompt_feedback.c: kernels shown to a model, with their measurements; see prompt_parts.h. */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"
#include "record/result.h"
#include "task/task_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_INCLUDED = 32, MOST_LISTED = 8 };

/* ---- Measurements ------------------------------------------------------------------------ */

static const cJSON *member(const cJSON *json, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* Print time, interval, speedup and class of an ok attempt. */
static void print_speed(FILE *out, const struct attempt *a) {
    const cJSON *time = member(member(a->result, "time_us"), "candidate");
    const cJSON *speedup = member(a->result, "speedup");
    double low = json_number(time, "low", 0), high = json_number(time, "high", 0);
    fputs("- time: ", out);
    text_us(out, a->us);
    if (low > 0 && high >= low) {
        fputs(" (95 %: ", out);
        text_us(out, low);
        fputs(" to ", out);
        text_us(out, high);
        fputc(')', out);
    }
    fprintf(out, ", class %s\n- speedup: %.3f (95 %%: %.3f to %.3f)", *a->class ? a->class : "?",
            a->ratio, a->low, a->high);
    if (a->against_us > 0) {
        fprintf(out, " over the %s library, ", json_text(speedup, "against", "vendor"));
        text_us(out, a->against_us);
    }
    fputc('\n', out);
}

/* Print how close it is to the machine's limit. */
static void print_floor(FILE *out, const struct attempt *a) {
    double floor = json_number(a->result, "floor_us", 0),
           bytes = json_number(a->result, "floor_bytes_us", 0),
           flops = json_number(a->result, "floor_flops_us", 0);
    if (!(floor > 0) || !(a->us > 0)) return;
    fputs("- floor: ", out);
    text_us(out, floor);
    fprintf(out, ", set by %s", flops > bytes ? "products (memory " : "memory");
    if (flops > bytes) {
        text_us(out, bytes);
        fputc(')', out);
    }
    fprintf(out, "; the kernel runs at %.0f %% of it\n", 100 * floor / a->us);
}

/* Print the resources of each device function, as the compiler reports them. */
static void print_resources(FILE *out, const cJSON *result) {
    const cJSON *list = member(member(result, "kernel"), "resources"), *r;
    int n = 0;
    cJSON_ArrayForEach(r, list) {
        if (!cJSON_IsObject(r) || n++ >= MOST_LISTED) continue;
        fputs("- compiled: ", out);
        text_line(out, json_text(r, "name", "?"), 160);
        fprintf(
            out,
            ": %.0f registers, %.0f bytes spilled, %.0f of stack, %.0f of static shared memory\n",
            json_number(r, "registers", 0), json_number(r, "spill_bytes", 0),
            json_number(r, "stack_bytes", 0), json_number(r, "shared_bytes", 0));
    }
    if (n > MOST_LISTED) fprintf(out, "- and %d more device functions\n", n - MOST_LISTED);
}

/* Print launches, scratch and flags. */
static void print_circumstances(FILE *out, const cJSON *result) {
    char bytes[TASK_TEXT_BYTES];
    double launches = json_number(result, "launches", 0),
           scratch = json_number(result, "scratch_bytes", 0);
    const cJSON *flag;
    bool any = false;
    if (launches > 0)
        fprintf(out, "- enqueued: %.0f node%s; scratch %s\n", launches, launches == 1 ? "" : "s",
                task_text_bytes(scratch, bytes));
    cJSON_ArrayForEach(flag, member(result, "flags")) {
        if (!cJSON_IsString(flag)) continue;
        fputs(any ? "; " : "- flags: ", out);
        text_line(out, flag->valuestring, 120);
        any = true;
    }
    if (any) fputc('\n', out);
}

/* Print the profiler's findings, if it ran. */
static void print_profile(FILE *out, const struct prompt_cell *c, const struct attempt *a) {
    char why[256];
    char *path = attempt_is_current(c, a)
                     ? text_format("build/%s/%s.profile.json", c->gpu, c->task->name)
                     : attempt_path(c->root, a->name, c->gpu, c->task->name, ".profile.json");
    cJSON *json = access(path, F_OK) ? NULL : json_load(path, why, sizeof why);
    if (!json && access(path, F_OK) == 0) warn("%s %s", path, why);
    const cJSON *sentence;
    int n = 0;
    cJSON_ArrayForEach(sentence, member(json, "sentences")) {
        if (!cJSON_IsString(sentence) || n++ >= MOST_LISTED) continue;
        fputs("- profiler: ", out);
        text_line(out, sentence->valuestring, 600);
        fputc('\n', out);
    }
    cJSON_Delete(json);
    free(path);
}

static void print_one(FILE *out, const struct prompt_cell *c, const struct attempt *a, int number,
                      int of, size_t most) {
    int skipped;
    char *code = attempt_code(c, a, &skipped);
    const char *idea = json_text(a->gen, "idea_text", "");
    fprintf(out, "\n## Kernel %d of %d: %s\n\n", number, of,
            attempt_is_current(c, a) ? "the present one" : a->name);
    if (a->ratio > 0) {
        print_speed(out, a);
        print_floor(out, a);
    } else {
        failure_line(out, c, a, skipped);
    }
    print_resources(out, a->result);
    print_circumstances(out, a->result);
    print_profile(out, c, a);
    if (*idea) {
        fputs("- idea: ", out);
        text_line(out, idea, 1000);
        fputc('\n', out);
    }
    fputc('\n', out);
    if (code)
        text_fence(out, "cuda", code, most);
    else
        fputs("(its source is not kept)\n", out);
    free(code);
}

char *prompt_shown(const struct prompt_cell *c, const struct prompt_turn *t, size_t most) {
    if (!t->nshown) return NULL;
    struct draft x;
    draft_open(&x);
    fprintf(x.out, "# Kernels measured so far%s\n", t->nshown > 1 ? ", slowest first" : "");
    for (int i = 0; i < t->nshown; i++) print_one(x.out, c, t->shown[i], i + 1, t->nshown, most);
    return draft_close(&x);
}

/* ---- Headers ------------------------------------------------------------------------------- */

struct included {
    int n;
    char *name[MOST_INCLUDED];
    char *text[MOST_INCLUDED];
};

/* Whether `path` is a header of the project.  The model chose the name, and "." is a folder. */
static bool is_header(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, R_OK) == 0;
}

/* Collect each header of the project that a source includes, and the headers that those include. */
static void collect(struct included *h, const char *source) {
    for (const char *p = source; p; p = strchr(p, '\n')) {
        char name[64];
        int end = 0; /* stays 0 unless the name has its closing quote */
        p += *p == '\n';
        if (sscanf(p, " # include \"%63[A-Za-z0-9_.]\"%n", name, &end) != 1 || !end) continue;
        bool known = h->n == MOST_INCLUDED;
        for (int i = 0; i < h->n; i++) known |= !strcmp(h->name[i], name);
        char *path = text_format(PROMPT_HEADERS "/%s", name);
        if (!known && is_header(path)) {
            int i = h->n++;
            h->name[i] = text_format("%s", name);
            h->text[i] = file_read(path, NULL);
            collect(h, h->text[i]);
        }
        free(path);
    }
}

static void collect_of(struct included *h, const struct prompt_cell *c, const struct attempt *a) {
    int skipped;
    char *code = attempt_code(c, a, &skipped);
    if (code) collect(h, code);
    free(code);
}

char *prompt_included(const struct prompt_cell *c, const struct prompt_turn *t, size_t most) {
    struct included h = {0};
    struct draft x;
    for (int i = 0; i < t->nshown; i++) collect_of(&h, c, t->shown[i]);
    if (t->failed) collect_of(&h, c, t->failed);
    draft_open(&x);
    if (h.n) fputs("# Headers of the project that these kernels include\n", x.out);
    for (int i = 0; i < h.n; i++) {
        fprintf(x.out, "\n## %s\n\n", h.name[i]);
        text_fence(x.out, "cuda", h.text[i], most);
        free(h.name[i]);
        free(h.text[i]);
    }
    return draft_close(&x);
}
