/* prompt_task.c: the description of a task; see prompt_parts.h. */
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"
#include "record/recorded.h"
#include "task/parse.h"
#include "task/task_text.h"
#include "task/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The other contents that a tensor is checked with, by domain. */
static const char *const domains[] = {
    [KP_DOMAIN_REAL] = "checked also with any sign, any magnitude and an infinity",
    [KP_DOMAIN_MODERATE] = "checked also with any sign, magnitudes within a few powers of two",
    [KP_DOMAIN_POSITIVE] = "checked also with other positive values",
    [KP_DOMAIN_UNIT] = "checked also with other values in [0,1]",
    [KP_DOMAIN_DECLARED] = "always such values"};

/* Print the structure that a fill implies, which holds for all contents. */
static void print_structure(const struct kp_task *t, const struct kp_fill *f, FILE *out) {
    if (f->wrap & KP_WRAP_SYMMETRIC) fputs(", always symmetric in its last two axes", out);
    if (f->wrap & KP_WRAP_UPPER) fputs(", always zero below the diagonal", out);
    if (f->wrap & KP_WRAP_LOWER) fputs(", always zero above the diagonal", out);
    if (f->kind == KP_FILL_INTEGERS) fputs(" (the upper end is not among them)", out);
    if (f->kind == KP_FILL_FAN_IN) fprintf(out, " (uniform in +-1/sqrt(%.0f))", f->a);
    if (f->kind == KP_FILL_VALUES) fputs(", a table that never changes", out);
    if (f->kind == KP_FILL_TRANSPOSED)
        fprintf(out, ", always the transpose of %s in its last two axes",
                t->tensors[f->source].name);
}

static void print_array(FILE *out, const struct kp_shape *s, enum kp_dtype type) {
    char shape[KP_SHAPE_TEXT], bytes[TASK_TEXT_BYTES];
    fprintf(out, "%s %s, %s", kp_dtype_name(type), shape_text(s, shape),
            task_text_bytes((double)kp_shape_count(s) * (double)kp_dtype_size(type), bytes));
}

static char *tensors(const struct kp_task *t) {
    struct draft x;
    draft_open(&x);
    for (int i = 0; i < t->ntensors; i++) {
        const struct kp_tensor *a = &t->tensors[i];
        fprintf(x.out, "- %s (%s): ", a->name, a->parameter ? "parameter" : "input");
        print_array(x.out, &a->shape, a->dtype);
        fputs("; contents ", x.out);
        task_text_fill(t, &a->fill, x.out);
        print_structure(t, &a->fill, x.out);
        bool follows = a->fill.kind == KP_FILL_TRANSPOSED; /* its source says how it is checked */
        fprintf(x.out, "%s%s\n", follows ? "" : "; ", follows ? "" : domains[a->domain]);
    }
    return draft_close(&x);
}

static char *graph(const struct kp_task *t) {
    struct draft lines, block;
    draft_open(&lines);
    for (int i = 0; i < t->nops; i++) {
        task_text_op(t, &t->ops[i], lines.out);
        fputc('\n', lines.out);
    }
    char *body = draft_close(&lines);
    draft_open(&block);
    text_fence(block.out, "text", body, SIZE_MAX);
    free(body);
    return draft_close(&block);
}

static char *outputs(const struct kp_task *t) {
    struct draft x;
    char name[TASK_TEXT_OUTPUT];
    draft_open(&x);
    for (int i = 0; i < t->noutputs; i++) {
        const struct kp_value *v = &t->values[t->outputs[i]];
        task_text_output(t, i, name);
        fprintf(x.out, "%sout->%s receives %s (", i ? "; " : "", name, v->name);
        print_array(x.out, &v->shape, v->dtype);
        fputc(')', x.out);
    }
    return draft_close(&x);
}

/* The meaning of each op of the graph, each once. */
static char *meanings(const struct kp_task *t) {
    static const char path[] = PROMPT_FOLDER "/ops.json";
    if (access(path, R_OK)) die(KP_INPUT, "%s: cannot read it: restore it", path);
    cJSON *json = json_read(path);
    const cJSON *ops = cJSON_GetObjectItemCaseSensitive(json, "ops");
    bool said[KP_OP_COUNT] = {false};
    struct draft x;
    draft_open(&x);
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op_def *def = t->ops[i].def;
        const char *meaning = json_text(ops, def->name, "");
        if (!*meaning) die(KP_INPUT, "%s: no meaning of the op %s: add it", path, def->name);
        if (!said[def->id]) fprintf(x.out, "- %s: %s\n", def->name, meaning);
        said[def->id] = true;
    }
    cJSON_Delete(json);
    return draft_close(&x);
}

static char *notes(const struct kp_task *t) {
    struct draft x;
    draft_open(&x);
    if (t->nnotes) fputs("Notes:\n\n", x.out);
    for (int i = 0; i < t->nnotes; i++) {
        fputs("- ", x.out);
        text_line(x.out, t->notes[i], 2000);
        fputc('\n', x.out);
    }
    return draft_close(&x);
}

static char *header(const struct kp_task *t) {
    struct draft text, block;
    draft_open(&text);
    task_text_header(t, text.out);
    char *body = draft_close(&text);
    draft_open(&block);
    text_fence(block.out, "c", body, SIZE_MAX);
    free(body);
    return draft_close(&block);
}

/* ---- What it costs at least ------------------------------------------------------------- */

static char *floor_bytes(const struct kp_cost *c, const struct prompt_gpu *g) {
    double bytes = c->bytes_in + c->bytes_out;
    bool reads = c->bytes_out < 0.05 * bytes; /* the same rule as time_main.c */
    double gbs = reads ? g->read_gbs : g->copy_gbs;
    if (!(gbs > 0)) return NULL;
    struct draft x;
    draft_open(&x);
    fputs("at the measured rate of ", x.out);
    fprintf(x.out, "%s that takes about ", reads ? "reading" : "copying");
    text_us(x.out, bytes / gbs * 1e-3);
    return draft_close(&x);
}

/* The time of the products in each class at the measured rates, the same as in time_main.c. */
static char *floor_flops(const struct kp_task *t, const struct kp_cost *c,
                         const struct prompt_gpu *g) {
    double fp32 = fmax(g->fp32_tflops, g->f16_tflops / 3);
    if (!(c->mm_flops > 0) || !(g->f16_tflops > 0) || !(g->fp32_tflops > 0)) return NULL;
    struct draft x;
    draft_open(&x);
    fputs("at the measured rates the products take about ", x.out);
    if (task_float_type(t) != KP_F32) {
        text_us(x.out, c->mm_flops / g->f16_tflops * 1e-6);
        fprintf(x.out, " in class %s", kp_dtype_name(task_float_type(t)));
        return draft_close(&x);
    }
    text_us(x.out, c->mm_flops / fp32 * 1e-6);
    fprintf(x.out, " in class fp32 (%s)",
            fp32 > g->fp32_tflops
                ? "by three f16 products of split operands on tensor cores; by fp32 "
                  "multipliers it is more"
                : "by fp32 multipliers");
    if (g->tf32_tflops > 0) {
        fputs(", ", x.out);
        text_us(x.out, c->mm_flops / g->tf32_tflops * 1e-6);
        fputs(" in class tf32", x.out);
    }
    return draft_close(&x);
}

/* ---- What the libraries do -------------------------------------------------------------- */

/* Times and errors of the libraries by class, and how large a spread is; "" if nothing is
 * recorded.  Two digits, as for the machine's rates. */
static char *vendor(const struct kp_task *t, const char *gpu) {
    struct recorded from;
    struct result r = {0};
    struct draft x;
    draft_open(&x);
    recorded_open(&from, "results", gpu);
    if (recorded_find(&from, t->name, &r) == FOUND_USABLE) {
        const char *heading = "What the vendor libraries do, as recorded on this kind of GPU:\n\n";
        const cJSON *times = cJSON_GetObjectItemCaseSensitive(r.json, "time_us"), *side,
                    *errors = cJSON_GetObjectItemCaseSensitive(r.json, "error");
        cJSON_ArrayForEach(side, times) {
            double us = round_two(json_number(side, "midmean", 0));
            if (!side->string || !strcmp(side->string, "candidate") || !(us > 0)) continue;
            fprintf(x.out, "%s- class %s: ", heading, side->string);
            heading = "";
            text_us(x.out, us);
            const cJSON *error = cJSON_GetObjectItemCaseSensitive(
                cJSON_GetObjectItemCaseSensitive(errors, side->string), "declared");
            double rms = round_two(json_number(error, "rms", 0));
            if (rms > 0) fprintf(x.out, ", off by %g spreads (root mean square)", rms);
            fputc('\n', x.out);
        }
        const cJSON *spread = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(errors, "spread"), "declared");
        double norm = round_two(json_number(spread, "norm", 0));
        if (*r.class && norm > 0 && !*heading)
            fprintf(
                x.out,
                "- a spread of class %s is about %.2g of the output's root mean square with the "
                "declared contents, so the limit of 3 is %.2g\n",
                r.class, norm, 3 * norm);
    }
    result_free(&r);
    recorded_close(&from);
    return draft_close(&x);
}

char *prompt_task_text(const struct kp_task *t, const struct prompt_gpu *g) {
    struct prompt_values v = {0};
    struct kp_cost c = task_cost(t);
    char in[TASK_TEXT_BYTES], out[TASK_TEXT_BYTES];
    values_add(&v, "title", text_format("%s", t->title), false);
    values_add(&v, "name", text_format("%s", t->name), false);
    values_add(&v, "tensors", tensors(t), true);
    values_add(&v, "graph", graph(t), true);
    values_add(&v, "outputs", outputs(t), true);
    values_add(&v, "meanings", meanings(t), true);
    values_add(&v, "notes", notes(t), false);
    values_add(&v, "header", header(t), true);
    values_add(&v, "bytes",
               text_format("%.0f bytes read (%s), %.0f bytes written (%s), each once", c.bytes_in,
                           task_text_bytes(c.bytes_in, in), c.bytes_out,
                           task_text_bytes(c.bytes_out, out)),
               false);
    values_add(&v, "floor_bytes", floor_bytes(&c, g), false);
    values_add(&v, "flops",
               text_format("%.3g additions and multiplications, %.3g of them in products (matrix "
                           "products, convolutions, attention)",
                           c.flops, c.mm_flops),
               false);
    values_add(&v, "floor_flops", floor_flops(t, &c, g), false);
    values_add(&v, "vendor", vendor(t, g->slug), false);
    char *text = prompt_expand("task.txt", &v);
    values_free(&v);
    return text;
}
