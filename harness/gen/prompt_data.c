/* prompt_data.c: what a prompt says of the GPU, of measurements and of earlier attempts: gathered
 * as JSON, from which prompts/values.jq makes texts; see prompt_parts.h.
 *
 *   slug, arch, machine, peaks     the GPU; machine and peaks null if unknown
 *   cost, half, outputs, vendor    the task: its cost, 16-bit type, outputs, recorded result
 *   limits                         of errors, in spreads, from measure/tolerance.h
 *   shown, failed                  attempts: gen, result, code, ...
 *   file, ledger, idea, most       the kernel's file name; texts; bytes to show of a kernel */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"
#include "record/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void add(cJSON *to, const char *key, cJSON *item) {
    if (!cJSON_AddItemToObject(to, key, item ? item : cJSON_CreateNull()))
        die(KP_MACHINE, "out of memory");
}

static void add_text(cJSON *to, const char *key, const char *text) {
    add(to, key, text ? cJSON_CreateString(text) : NULL);
}

/* Load JSON; NULL, and a warning unless the file is absent, if there is none. */
static cJSON *load(const char *path) {
    char why[256];
    if (access(path, F_OK)) return NULL;
    cJSON *json = json_load(path, why, sizeof why);
    if (!json) warn("%s %s", path, why);
    return json;
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

/* Add the machine that is recorded of this kind of GPU, or else the peaks in build/GPU. */
static void add_gpu(cJSON *to, const char *gpu, const char *arch) {
    struct search_machine s = {arch, NULL};
    struct recorded recorded;
    if (!is_name(gpu) || arch_number(arch) < 10 ||
        arch[strspn(arch, "abcdefghijklmnopqrstuvwxyz0123456789")])
        die(KP_USAGE, "GPU '%s' of architecture '%s': expected names such as h200 and 90a", gpu,
            arch);
    add_text(to, "slug", gpu);
    add_text(to, "arch", arch);
    recorded_open(&recorded, "results", gpu);
    recorded_each(&recorded, use_recorded, &s);
    recorded_close(&recorded);
    char *path = text_format("build/%s/peaks.json", gpu);
    add(to, "peaks",
        s.machine ? cJSON_DetachItemFromObjectCaseSensitive(s.machine, "peaks") : load(path));
    add(to, "machine", s.machine);
    free(path);
}

/* ---- The task ---- */

/* The limits of errors, in spreads: the numbers of harness/measure/tolerance.h. */
static void add_limits(cJSON *to) {
    static const char path[] = "harness/measure/tolerance.h";
    static const char *const names[][2] = {{"rms", "KP_RMS_LIMIT = "},
                                           {"part", "KP_PART_LIMIT = "},
                                           {"element", "KP_ELEMENT_LIMIT = "},
                                           {"bias", "KP_BIAS_LIMIT = "}};
    char *text = file_read(path, NULL);
    cJSON *limits = cJSON_CreateObject();
    add(to, "limits", limits);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(text, names[i][1]);
        if (!at) die(KP_INPUT, "%s: lacks %s", path, names[i][1]);
        json_add_number(limits, names[i][0], atof(at + strlen(names[i][1])));
    }
    free(text);
}

static void add_task(cJSON *to, const struct kp_task *t, const char *gpu) {
    struct kp_cost c = task_cost(t);
    cJSON *cost = cJSON_CreateObject(), *outputs = cJSON_CreateArray();
    struct recorded from;
    struct result r = {0};
    json_add_number(cost, "bytes_in", c.bytes_in);
    json_add_number(cost, "bytes_out", c.bytes_out);
    json_add_number(cost, "mm_flops", c.mm_flops);
    add(to, "cost", cost);
    const char *half = NULL;
    for (int i = 0; i < t->ntensors && !half; i++)
        if (t->tensors[i].dtype == KP_F16 || t->tensors[i].dtype == KP_BF16)
            half = kp_dtype_name(t->tensors[i].dtype);
    add_text(to, "half", half);
    add(to, "outputs", outputs);
    for (int i = 0; i < t->noutputs; i++) {
        const struct kp_value *v = &t->values[t->outputs[i]];
        cJSON *output = cJSON_CreateObject(), *shape = cJSON_CreateArray();
        add_text(output, "name", v->name);
        add(output, "shape", shape);
        for (int d = 0; d < v->shape.n; d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)v->shape.dim[d]));
        cJSON_AddItemToArray(outputs, output);
    }
    recorded_open(&from, "results", gpu);
    bool found = recorded_find(&from, t->name, &r) == FOUND_USABLE;
    add(to, "vendor", found ? r.json : NULL);
    if (found) r.json = NULL;
    result_free(&r);
    recorded_close(&from);
}

/* ---- Attempts ---- */

bool attempt_is_current(const struct prompt_cell *c, const struct attempt *a) {
    return a == c->current || !strcmp(a->name, "current");
}

/* Whether a line is one of the provenance. */
static bool is_origin(const char *line) {
    static const char *const begins[] = {"// provenance:", "// prompt sha256", "// kernel sha256"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(line, begins[i], strlen(begins[i]))) return true;
    return false;
}

/* A file of an attempt, or of the cell for its current kernel; NULL if it is not there.  Free it.
 */
static char *file_of(const struct prompt_cell *c, const struct attempt *a, const char *suffix) {
    char *path = attempt_is_current(c, a)
                     ? text_format("build/%s/%s%s", c->gpu, c->task->name, suffix)
                     : attempt_path(c->root, a->name, c->gpu, c->task->name, suffix);
    char *text = access(path, R_OK) ? NULL : file_read(path, NULL);
    free(path);
    return text;
}

char *attempt_code(const struct prompt_cell *c, const struct attempt *a, int *skipped) {
    bool current = attempt_is_current(c, a);
    char *text = !current ? file_of(c, a, ".cu") : c->kernel ? text_format("%s", c->kernel) : NULL;
    *skipped = 0;
    if (!text) return NULL;
    char *p = text;
    for (; is_origin(p) && strchr(p, '\n'); (*skipped)++) p = strchr(p, '\n') + 1;
    memmove(text, p, strlen(p) + 1);
    return text;
}

/* The outcome or verdict that ended an attempt. */
static const char *fate(const struct attempt *a) {
    if (*a->outcome && strcmp(a->outcome, "code") && strcmp(a->outcome, "ideas")) return a->outcome;
    return *a->verdict ? a->verdict : "not measured";
}

static cJSON *attempt_json(const struct prompt_cell *c, const struct attempt *a) {
    cJSON *json = cJSON_CreateObject();
    int skipped;
    char *code = attempt_code(c, a, &skipped), *log = file_of(c, a, ".log"),
         *tape = file_of(c, a, ".tape"), *profile = file_of(c, a, ".profile.json");
    add_text(json, "name", a->name);
    add(json, "current", cJSON_CreateBool(attempt_is_current(c, a)));
    add_text(json, "fate", fate(a));
    add_text(json, "reason", a->reason);
    add_text(json, "same_as", a->same_as);
    add_text(json, "class", a->class);
    json_add_number(json, "ratio", a->ratio);
    json_add_number(json, "low", a->low);
    json_add_number(json, "high", a->high);
    json_add_number(json, "us", a->us);
    json_add_number(json, "against_us", a->against_us);
    json_add_number(json, "skipped", skipped);
    add_text(json, "idea", json_text(a->gen, "idea_text", ""));
    add(json, "result", a->result ? cJSON_Duplicate(a->result, 1) : NULL);
    add(json, "profile", profile ? cJSON_Parse(profile) : NULL);
    add_text(json, "code", code);
    add_text(json, "log", log);
    add_text(json, "tape", tape);
    free(code), free(log), free(tape), free(profile);
    return json;
}

/* ---- Values ---- */

/* Run jq's program on a JSON text.  Free the output. */
static char *run_jq(const char *input) {
    int fd = memfd_create("prompt", 0);
    size_t n = strlen(input), got = 0;
    struct draft out;
    char some[16384];
    if (fd < 0 || write(fd, input, n) != (ssize_t)n)
        die(KP_MACHINE, "no memory file: %s", strerror(errno));
    char *command = text_format("exec jq -c --slurpfile arch " PROMPT_FOLDER
                                "/arch.json --slurpfile words " PROMPT_FOLDER
                                "/meanings.json -f " PROMPT_FOLDER "/values.jq /proc/self/fd/%d",
                                fd);
    FILE *pipe = popen(command, "re");
    draft_open(&out);
    while (pipe && (got = fread(some, 1, sizeof some, pipe)) > 0) fwrite(some, 1, got, out.out);
    if (!pipe || pclose(pipe))
        die(KP_INPUT, PROMPT_FOLDER "/values.jq fails: is jq installed?  Restore the folder");
    close(fd);
    free(command);
    return draft_close(&out);
}

void prompt_data_values(const struct prompt_cell *c, const struct prompt_turn *t, size_t most,
                        struct prompt_values *v) {
    static const char *const parts[] = {"arch.json", "meanings.json"};
    cJSON *data = cJSON_CreateObject(), *shown = cJSON_CreateArray(), *value;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *path = text_format(PROMPT_FOLDER "/%s", parts[i]);
        if (access(path, R_OK)) die(KP_INPUT, "%s: cannot read it: restore it", path);
        free(path);
    }
    add_gpu(data, c->gpu, c->arch);
    add_task(data, c->task, c->gpu);
    add_limits(data);
    for (int i = 0; i < t->nshown; i++) cJSON_AddItemToArray(shown, attempt_json(c, t->shown[i]));
    add(data, "shown", shown);
    add(data, "failed", t->failed ? attempt_json(c, t->failed) : NULL);
    char *file = text_format("%s.cu", c->task->name);
    add_text(data, "file", file);
    add_text(data, "ledger", t->ledger);
    add_text(data, "idea", t->idea);
    json_add_number(data, "most", (double)most);
    char *text = cJSON_PrintUnformatted(data);
    if (!text) die(KP_MACHINE, "out of memory");
    char *out = run_jq(text);
    cJSON *values = cJSON_Parse(out);
    if (!cJSON_IsObject(values)) die(KP_INPUT, PROMPT_FOLDER "/values.jq makes no object");
    cJSON_ArrayForEach(value, values) {
        bool must = strstr("|shown|failed|ledger|idea|", value->string) != NULL;
        values_add(v, value->string,
                   cJSON_IsString(value) ? text_format("%s", value->valuestring) : NULL, must);
    }
    v->json = values; /* owns the names */
    cJSON_Delete(data);
    free(file), free(text), free(out);
}
