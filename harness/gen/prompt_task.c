/* prompt_task.c: see prompt_task.h. */
#define _GNU_SOURCE
#include "gen/prompt_task.h"
#include "gen/object.h"
#include "base/error.h"
#include "base/json.h"
#include "task/ops.h"
#include "task/task_text.h"

#include <stdlib.h>
#include <string.h>

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

static void print_tensors(const struct kp_task *t, FILE *out) {
    for (int i = 0; i < t->ntensors; i++) {
        const struct kp_tensor *a = &t->tensors[i];
        fprintf(out, "- %s (%s): ", a->name, a->parameter ? "parameter" : "input");
        print_array(out, &a->shape, a->dtype);
        fputs("; contents ", out);
        task_text_fill(t, &a->fill, out);
        print_structure(t, &a->fill, out);
        bool follows = a->fill.kind == KP_FILL_TRANSPOSED; /* its source says how it is checked */
        fprintf(out, "%s%s\n", follows ? "" : "; ", follows ? "" : domains[a->domain]);
    }
}

static void print_graph(const struct kp_task *t, FILE *out) {
    for (int i = 0; i < t->nops; i++) {
        task_text_op(t, &t->ops[i], out);
        fputc('\n', out);
    }
}

static void print_outputs(const struct kp_task *t, FILE *out) {
    char name[TASK_TEXT_OUTPUT];
    for (int i = 0; i < t->noutputs; i++) {
        const struct kp_value *v = &t->values[t->outputs[i]];
        task_text_output(t, i, name);
        fprintf(out, "%sout->%s receives %s (", i ? "; " : "", name, v->name);
        print_array(out, &v->shape, v->dtype);
        fputc(')', out);
    }
}

/* Add what is printed of the task. */
static void add_printed(cJSON *to, const char *key, const struct kp_task *t,
                        void (*print)(const struct kp_task *, FILE *)) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) die(KP_MACHINE, "out of memory");
    print(t, out);
    if (fclose(out)) die(KP_MACHINE, "out of memory");
    object_text(to, key, text);
    free(text);
}

static cJSON *shape_json(const struct kp_shape *s) {
    cJSON *shape = cJSON_CreateArray();
    for (int d = 0; d < s->n; d++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)s->dim[d]));
    return shape;
}

cJSON *prompt_task(const struct kp_task *t) {
    struct kp_cost c = task_cost(t);
    bool seen[KP_OP_COUNT] = {false};
    const char *half = NULL;
    cJSON *json = cJSON_CreateObject(), *outputs = cJSON_CreateArray(), *ops = cJSON_CreateArray(),
          *cost = cJSON_CreateObject();
    object_text(json, "title", t->title);
    object_text(json, "name", t->name);
    object_add(json, "notes", cJSON_CreateStringArray((const char *const *)t->notes, t->nnotes));
    add_printed(json, "tensors", t, print_tensors);
    add_printed(json, "graph", t, print_graph);
    add_printed(json, "written", t, print_outputs);
    add_printed(json, "header", t, task_text_header);
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op_def *def = t->ops[i].def;
        if (!seen[def->id]) cJSON_AddItemToArray(ops, cJSON_CreateString(def->name));
        seen[def->id] = true;
    }
    for (int i = 0; i < t->noutputs; i++) {
        const struct kp_value *v = &t->values[t->outputs[i]];
        cJSON *output = cJSON_CreateObject();
        object_text(output, "name", v->name);
        object_add(output, "shape", shape_json(&v->shape));
        cJSON_AddItemToArray(outputs, output);
    }
    json_add_number(cost, "bytes_in", c.bytes_in);
    json_add_number(cost, "bytes_out", c.bytes_out);
    json_add_number(cost, "flops", c.flops);
    json_add_number(cost, "mm_flops", c.mm_flops);
    for (int i = 0; i < t->ntensors && !half; i++)
        if (t->tensors[i].dtype == KP_F16 || t->tensors[i].dtype == KP_BF16)
            half = kp_dtype_name(t->tensors[i].dtype);
    object_text(json, "half", half);
    object_add(json, "ops", ops);
    object_add(json, "outputs", outputs);
    object_add(json, "cost", cost);
    return json;
}
