/* prompt_gpu.c: the description of the GPU; see prompt_parts.h.
 *
 * Limits and instructions come from harness/gen/prompts/arch.json, sizes and rates from
 * measurements.  Unknown values are left out. */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"
#include "record/recorded.h"
#include "task/task_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number in "90" or "90a"; 0 if there is none. */
static long arch_number(const char *arch) {
    return strtol(arch, NULL, 10);
}

static void read_peaks(struct prompt_gpu *g, const cJSON *peaks) {
    g->read_gbs = round_two(json_number(peaks, "read_gbs", 0));
    g->copy_gbs = round_two(json_number(peaks, "copy_gbs", 0));
    g->f16_tflops = round_two(json_number(peaks, "f16_tflops", 0));
    g->tf32_tflops = round_two(json_number(peaks, "tf32_tflops", 0));
    g->fp32_tflops = round_two(json_number(peaks, "fp32_tflops", 0));
    g->f64_tflops = round_two(json_number(peaks, "f64_tflops", 0));
}

/* Read the machine of a result.  False if it has none, or one of another architecture. */
static bool read_machine(struct prompt_gpu *g, const cJSON *result) {
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(result, "machine");
    const cJSON *peaks = cJSON_GetObjectItemCaseSensitive(m, "peaks");
    const char *name = json_text(m, "gpu_name", "");
    int major = 0, minor = 0;
    if (!cJSON_IsObject(peaks) || !*name ||
        sscanf(json_text(m, "compute_capability", ""), "%d.%d", &major, &minor) != 2 ||
        major * 10 + minor != arch_number(g->arch))
        return false;
    char *device = text_one_line(name, sizeof g->device - 8);
    snprintf(g->device, sizeof g->device, "%s", device);
    free(device);
    g->sms = json_number(m, "sm_count", 0);
    g->l2_bytes = json_number(m, "l2_bytes", 0);
    g->memory_bytes = json_number(m, "memory_bytes", 0);
    read_peaks(g, peaks);
    return true;
}

struct search_machine {
    struct prompt_gpu *gpu;
    bool found;
};

/* recorded_use: take the first machine that fits. */
static bool use_recorded(void *state, const char *where, const char *as, cJSON *json) {
    struct search_machine *s = state;
    (void)where, (void)as;
    s->found = json && read_machine(s->gpu, json);
    cJSON_Delete(json);
    return !s->found;
}

/* Read the machine of the first recorded result that describes one, so that every task gets the
 * same block.  False if there is none. */
static bool read_recorded(struct prompt_gpu *g, const char *gpu) {
    struct search_machine s = {g, false};
    struct recorded recorded;
    recorded_open(&recorded, "results", gpu);
    recorded_each(&recorded, use_recorded, &s);
    recorded_close(&recorded);
    return s.found;
}

void prompt_gpu_read(const char *gpu, const char *arch, struct prompt_gpu *g) {
    char why[256];
    memset(g, 0, sizeof *g);
    g->slug = gpu, g->arch = arch;
    if (!is_name(gpu) || arch_number(arch) < 10 ||
        arch[strspn(arch, "abcdefghijklmnopqrstuvwxyz0123456789")])
        die(KP_USAGE, "GPU '%s' of architecture '%s': expected names such as h200 and 90a", gpu,
            arch);
    snprintf(g->device, sizeof g->device, "%s", gpu);
    if (read_recorded(g, gpu)) return;
    char *path = text_format("build/%s/peaks.json", gpu);
    cJSON *json = access(path, F_OK) ? NULL : json_load(path, why, sizeof why);
    if (json) read_peaks(g, json);
    cJSON_Delete(json);
    free(path);
}

/* ---- The block --------------------------------------------------------------------------- */

/* "4.6 TB/s", or NULL. */
static char *rate(double gbs) {
    if (!(gbs > 0)) return NULL;
    return gbs >= 1000 ? text_format("%.2g TB/s", gbs * 1e-3) : text_format("%.0f GB/s", gbs);
}

static char *size(double bytes) {
    char text[TASK_TEXT_BYTES];
    return bytes > 0 ? text_format("%s", task_text_bytes(bytes, text)) : NULL;
}

static char *products(const struct prompt_gpu *g) {
    const struct {
        const char *name;
        double tflops;
    } r[] = {{"f16 with fp32 sums", g->f16_tflops},
             {"tf32", g->tf32_tflops},
             {"fp32 without tensor cores", g->fp32_tflops},
             {"f64", g->f64_tflops}};
    struct draft t;
    bool any = false;
    draft_open(&t);
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
        if (!(r[i].tflops > 0)) continue;
        fprintf(t.out, "%s%s %.*f", any ? ", " : "", r[i].name, r[i].tflops < 10 ? 1 : 0,
                r[i].tflops);
        any = true;
    }
    if (any) fputs(" TFLOP/s", t.out);
    return draft_close(&t);
}

static void add_number(struct prompt_values *v, const cJSON *limits, const char *key,
                       const char *name) {
    double x = json_number(limits, key, 0);
    values_add(v, name, x > 0 ? text_format("%.0f", x) : NULL, false);
}

/* Add the architecture's instructions.  Some exist only for a target with an a ("90a"). */
static void add_instructions(struct prompt_values *v, const struct prompt_gpu *g,
                             const cJSON *limits) {
    const char *has = json_text(limits, "has", ""), *more = json_text(limits, "has_a", ""),
               *lacks = json_text(limits, "lacks", "");
    bool with = *more && strchr(g->arch, 'a'), without = *more && !with;
    values_add(v, "has", text_format("%s%s%s", has, with ? "; " : "", with ? more : ""), false);
    values_add(v, "lacks",
               text_format("%s%s%s%s", lacks, without ? "; for this target also not: " : "",
                           without ? more : "", ""),
               false);
}

char *prompt_gpu_text(const struct prompt_gpu *g) {
    static const char path[] = PROMPT_FOLDER "/arch.json";
    static const char *const numbers[][2] = {
        {"registers_per_sm", "registers_per_sm"}, {"registers_per_thread", "registers_per_thread"},
        {"threads_per_sm", "threads_per_sm"},     {"warps_per_sm", "warps_per_sm"},
        {"blocks_per_sm", "blocks_per_sm"},       {"threads_per_block", "threads_per_block"},
        {"shared_per_sm_kib", "shared_per_sm"},   {"shared_per_block_kib", "shared_per_block"}};
    char number[16];
    struct prompt_values v = {0};
    if (access(path, R_OK)) die(KP_INPUT, "%s: cannot read it: restore it", path);
    cJSON *json = json_read(path);
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(json, "architectures");
    if (!cJSON_IsObject(all)) die(KP_INPUT, "%s: no object \"architectures\"", path);
    long arch = arch_number(g->arch);
    snprintf(number, sizeof number, "%ld", arch);
    const cJSON *limits = cJSON_GetObjectItemCaseSensitive(all, number);
    values_add(&v, "device", text_format("%s", g->device), false);
    values_add(&v, "arch", text_format("%s", g->arch), false);
    values_add(&v, "capability", text_format("%ld.%ld", arch / 10, arch % 10), false);
    values_add(&v, "chips", text_format("%s", json_text(limits, "chips", "")), false);
    values_add(&v, "sms", g->sms > 0 ? text_format("%.0f", g->sms) : NULL, false);
    values_add(&v, "l2", size(g->l2_bytes), false);
    values_add(&v, "memory", size(g->memory_bytes), false);
    values_add(&v, "read", rate(g->read_gbs), false);
    values_add(&v, "copy", rate(g->copy_gbs), false);
    values_add(&v, "products", products(g), false);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(&v, limits, numbers[i][0], numbers[i][1]);
    add_instructions(&v, g, limits);
    char *text = prompt_expand("gpu.txt", &v);
    values_free(&v);
    cJSON_Delete(json);
    return text;
}
