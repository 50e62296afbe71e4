/* tasks.c: the list of tasks: what each asks for, and where it has kernels. */
#include "report/report.h"
#include "base/error.h"
#include "base/json.h"
#include "record/recorded.h"
#include "task/taskfile.h"
#include "task/op.h"
#include "task/task_text.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- kernels ---- */

struct kernel { /* optimized/FOLDER/NAME.cu */
    char folder[32], name[64];
};

struct kernels {
    int n;
    struct kernel *kernel; /* by folder */
};

/* scandir filter: what is not hidden. */
static int visible(const struct dirent *e) {
    return e->d_name[0] != '.';
}

/* Add the kernels of a folder. */
static void add_folder(struct kernels *all, const char *root, const char *folder) {
    struct dirent **file = NULL;
    char *path = text_format("%s/%s", root, folder);
    int n = scandir(path, &file, visible, alphasort);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(file[i]->d_name);
        if (length > 3 && length < sizeof all->kernel->name &&
            !strcmp(file[i]->d_name + length - 3, ".cu") &&
            strlen(folder) < sizeof all->kernel->folder) {
            all->kernel = realloc(all->kernel, ((size_t)all->n + 1) * sizeof *all->kernel);
            if (!all->kernel) die(KP_MACHINE, "out of memory");
            struct kernel *k = &all->kernel[all->n++];
            *k = (struct kernel){0};
            memcpy(k->folder, folder, strlen(folder));
            memcpy(k->name, file[i]->d_name, length - 3);
        }
        free(file[i]);
    }
    if (n >= 0) free(file);
    free(path);
}

static struct kernels find_kernels(const char *root) {
    struct kernels all = {0};
    struct dirent **folder = NULL;
    int n = scandir(root, &folder, visible, alphasort);
    for (int i = 0; i < n; i++) {
        add_folder(&all, root, folder[i]->d_name);
        free(folder[i]);
    }
    if (n >= 0) free(folder);
    return all;
}

/* Print the folders that have a kernel of a task, or of its suite; a dash if none has. */
static void put_kernels(const struct kernels *all, const char *suite, const char *task, FILE *out) {
    const char *last = "";
    for (int i = 0; i < all->n; i++) {
        const struct kernel *k = &all->kernel[i];
        if ((strcmp(k->name, task) && strcmp(k->name, suite)) || !strcmp(k->folder, last)) continue;
        fprintf(out, "%s%s", *last ? "," : "", k->folder);
        last = k->folder;
    }
    if (!*last) fputc('-', out);
}

/* ---- this machine's peaks ---- */

/* recorded_use: keep the peaks of the first result that has them. */
static bool take_peaks(void *state, const char *where, const char *as, cJSON *json) {
    cJSON **peaks = state;
    cJSON *machine = cJSON_GetObjectItemCaseSensitive(json, "machine");
    (void)where, (void)as;
    *peaks = cJSON_DetachItemFromObjectCaseSensitive(machine, "peaks");
    if (cJSON_IsNull(*peaks)) cJSON_Delete(*peaks), *peaks = NULL;
    cJSON_Delete(json);
    return !*peaks;
}

/* What was recorded of a GPU's rates; NULL if nothing was. */
static cJSON *find_peaks(const char *results, const char *gpu) {
    cJSON *peaks = NULL;
    struct recorded from;
    if (!is_name(gpu)) return NULL;
    recorded_open(&from, results, gpu);
    recorded_each(&from, take_peaks, &peaks);
    recorded_close(&from);
    return peaks;
}

/* ---- tasks ---- */

/* The most bytes that a task's values take at once, if the result of each op is kept until its last
 * reader is done.  Tensors and outputs stay; a view takes nothing, and keeps what it shows. */
static double peak_bytes(const struct kp_task *t) {
    size_t n = (size_t)t->nvalues;
    int *root = calloc(n, sizeof *root), *last = calloc(n, sizeof *last);
    double *change = calloc((size_t)t->nops + 2, sizeof *change), now = 0, peak = 0;
    if (!root || !last || !change) die(KP_MACHINE, "out of memory");
    for (int v = 0; v < t->nvalues; v++) root[v] = v;
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        for (int k = 0; k < op->nin; k++)
            if (!op->in[k].is_scalar && op->in[k].value >= 0) last[root[op->in[k].value]] = i;
        for (int k = 0; k < op->nout; k++) {
            if (op->def->view) root[op->out[k]] = root[op->in[0].value];
            last[root[op->out[k]]] = i;
        }
    }
    for (int o = 0; o < t->noutputs; o++) last[root[t->outputs[o]]] = t->nops;
    for (int v = 0; v < t->ntensors; v++) now += kp_value_bytes(&t->values[v]);
    for (int i = 0; i < t->nops; i++)
        for (int k = 0; k < t->ops[i].nout; k++) {
            int v = t->ops[i].out[k];
            if (root[v] != v) continue;
            change[i] += kp_value_bytes(&t->values[v]);
            change[last[v] + 1] -= kp_value_bytes(&t->values[v]);
        }
    for (int i = 0; i < t->nops; i++) {
        now += change[i];
        if (now > peak) peak = now;
    }
    free(root);
    free(last);
    free(change);
    return peak;
}

/* A task of SUITE by its name: a file, or a shape of a family.  Dies with KP_INPUT. */
static struct kp_task *read_task(const char *tasks, const char *suite, const char *name) {
    char *path = text_format("%s/%s/%s.json", tasks, suite, name), why[512] = "";
    struct kp_task *t;
    if (access(path, F_OK) == 0) {
        t = task_load(path);
    } else {
        char *template = text_format("%s/%s/template.json", tasks, suite);
        char *text = family_expand(template, name);
        t = task_parse(text, template, why, sizeof why);
        if (!t) die(KP_INPUT, "%s", why);
        free(text);
        free(template);
    }
    free(path);
    return t;
}

/* Add the name of a flag, which a colon may end, to a list without it.  Returns the list. */
static char *with_flag(char *list, const char *flag) {
    char *name = text_format("%.*s", (int)strcspn(flag, ":"), flag), *longer = list;
    if (!strstr(list, name)) {
        longer = text_format("%s%s%s", list, *list ? "," : "", name);
        free(list);
    }
    free(name);
    return longer;
}

/* "no-influence,cannot-tell": the flags of a task's result that are more than a remark, and those
 * of its file; a new string. */
static char *flags_of(const struct kp_task *t, const struct result *r) {
    char *flags = text_format("%s", "");
    for (int i = 0; i < r->nflags; i++)
        if (flag_kind(r->flags[i]) != FLAG_REMARK) flags = with_flag(flags, r->flags[i]);
    for (int i = 0; i < t->nflags; i++) flags = with_flag(flags, t->flags[i]);
    return flags;
}

/* The row of a task, with its result, all zero if it has none.  What a kernel's floor rests on is
 * its class: fp32, or that of half tensors. */
static void task_row(const struct kp_task *t, const struct result *r, const cJSON *peaks,
                     const struct kernels *kernels, FILE *out) {
    char *flags = flags_of(t, r);
    char bytes[TASK_TEXT_BYTES], memory[TASK_TEXT_BYTES], floor[32] = "-";
    struct kp_cost c = task_cost(t);
    enum kp_dtype type = task_float_type(t);
    if (peaks) {
        struct kp_floor f = task_floor(&c, peaks, type == KP_F32 ? "fp32" : kp_dtype_name(type));
        double us = f.bytes_us > f.flops_us ? f.bytes_us : f.flops_us;
        snprintf(floor, sizeof floor, us < 1000 ? "%.3g" : "%.0f", us);
    }
    fprintf(out, "%-8s %-52s %4d %10s %9.3g %9s %10s  %-10s ", t->suite, t->name, t->nops,
            task_text_bytes(c.bytes_in + c.bytes_out, bytes), c.flops, floor,
            task_text_bytes(peak_bytes(t), memory), *r->verdict ? r->verdict : "-");
    put_kernels(kernels, t->suite, t->name, out);
    fprintf(out, "%s%s\n", *flags ? "  " : "", flags);
    free(flags);
}

void report_tasks(FILE *chosen, const char *tasks, const char *results, const char *gpu,
                  const char *optimized, FILE *out) {
    char suite[64], name[128];
    cJSON *peaks = find_peaks(results, gpu);
    struct kernels kernels = find_kernels(optimized);
    struct recorded from;
    recorded_open(&from, results, gpu);
    fprintf(out, "%-8s %-52s %4s %10s %9s %9s %10s  %-10s %s\n", "suite", "task", "ops", "bytes",
            "flops", "floor, us", "memory", "recorded", "kernels  flags");
    while (fscanf(chosen, "%63s %127s", suite, name) == 2) {
        struct kp_task *t = read_task(tasks, suite, name);
        struct result r = {0};
        if (is_name(gpu)) recorded_find(&from, name, &r);
        task_row(t, &r, peaks, &kernels, out);
        result_free(&r);
        task_free(t);
    }
    recorded_close(&from);
    cJSON_Delete(peaks);
    free(kernels.kernel);
}
