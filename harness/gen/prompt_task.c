/* prompt_task.c: the description of a task; see prompt_parts.h. */
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"
#include "task/parse.h"
#include "task/task_text.h"
#include "task/ops.h"

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

/* ---- Values ---- */

void prompt_task_values(const struct kp_task *t, struct prompt_values *v) {
    struct kp_cost c = task_cost(t);
    char in[TASK_TEXT_BYTES], out[TASK_TEXT_BYTES];
    values_add(v, "title", text_format("%s", t->title), false);
    values_add(v, "name", text_format("%s", t->name), false);
    values_add(v, "tensors", tensors(t), false);
    values_add(v, "graph", graph(t), false);
    values_add(v, "outputs", outputs(t), false);
    values_add(v, "meanings", meanings(t), false);
    values_add(v, "notes", notes(t), false);
    values_add(v, "header", header(t), false);
    values_add(v, "bytes",
               text_format("%.0f bytes read (%s), %.0f bytes written (%s), each once", c.bytes_in,
                           task_text_bytes(c.bytes_in, in), c.bytes_out,
                           task_text_bytes(c.bytes_out, out)),
               false);
    values_add(v, "flops",
               text_format("%.3g additions and multiplications, %.3g of them in products (matrix "
                           "products, convolutions, attention)",
                           c.flops, c.mm_flops),
               false);
}
