/* task_text.c: see task_text.h. */
#include "task/task_text.h"
#include "base/error.h"
#include "task/op.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* See task_text.h. */
const char *task_text_bytes(double bytes, char text[TASK_TEXT_BYTES]) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    enum { LARGEST = sizeof unit / sizeof *unit - 1 };
    int u = 0;
    while (bytes >= 1024 && u < LARGEST) bytes /= 1024, u++;
    snprintf(text, TASK_TEXT_BYTES, "%.4g %s", bytes, unit[u]);
    return text;
}

/* See task_text.h. */
void task_text_fill(const struct kp_task *t, const struct kp_fill *f, FILE *out) {
    static const struct {
        int bit;
        const char *name;
    } wraps[] = {{KP_WRAP_SOFTMAX, "softmax"}, /* outermost first */
                 {KP_WRAP_SCALED, "scaled"},
                 {KP_WRAP_LOWER, "lower"},
                 {KP_WRAP_UPPER, "upper"},
                 {KP_WRAP_SYMMETRIC, "symmetric"}};
    int open = 0;
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++)
        if (f->wrap & wraps[i].bit) {
            fprintf(out, "%s(", wraps[i].name);
            open++;
        }
    switch (f->kind) {
    case KP_FILL_UNIFORM: fprintf(out, "uniform(%g,%g)", f->a, f->b); break;
    case KP_FILL_NORMAL: fprintf(out, "normal(%g,%g)", f->a, f->b); break;
    case KP_FILL_CONSTANT: fprintf(out, "constant(%g)", f->a); break;
    case KP_FILL_INTEGERS: fprintf(out, "integers(%.0f,%.0f)", f->a, f->b); break;
    case KP_FILL_FAN_IN: fprintf(out, "fan_in(%.0f)", f->a); break;
    case KP_FILL_BERNOULLI: fprintf(out, "bernoulli(%g)", f->a); break;
    case KP_FILL_SIGNS: fprintf(out, "signs()"); break;
    case KP_FILL_VALUES: fprintf(out, "values(%g,...)", f->values[0]); break;
    case KP_FILL_TRANSPOSED: fprintf(out, "transposed(%s)", t->tensors[f->source].name); break;
    }
    while (open--) fprintf(out, ")");
}

/* Bytes of an array of this shape and type, as text. */
static const char *size_text(const struct kp_shape *s, enum kp_dtype type,
                             char text[TASK_TEXT_BYTES]) {
    return task_text_bytes((double)kp_shape_count(s) * (double)kp_dtype_size(type), text);
}

/* One line: an input or a parameter. */
static void print_tensor(const struct kp_task *t, const struct kp_tensor *x, FILE *out) {
    static const char *const domains[] = {"real", "moderate", "positive", "unit", "declared"};
    char shape[KP_SHAPE_TEXT], bytes[TASK_TEXT_BYTES];
    fprintf(out, "  %-9s %-24s %-5s %-24s %10s  ", x->parameter ? "parameter" : "input", x->name,
            kp_dtype_name(x->dtype), shape_text(&x->shape, shape),
            size_text(&x->shape, x->dtype, bytes));
    task_text_fill(t, &x->fill, out);
    fprintf(out, "  %s\n", domains[x->domain]);
}

/* Operand i as it stands in an op line. */
static void print_operand(const struct kp_task *t, const struct kp_op *op, int i, FILE *out) {
    const char *keyword = op_keyword(op->def, i);
    if (op->in[i].is_scalar)
        fprintf(out, "%.15g", op->in[i].scalar);
    else if (keyword)
        fprintf(out, "%s=%s", keyword, t->values[op->in[i].value].name);
    else
        fprintf(out, "%s", t->values[op->in[i].value].name);
}

/* key=value. */
static void print_attr(const struct kp_attr *a, FILE *out) {
    fprintf(out, "%s=", a->key);
    switch (a->kind) {
    case KP_ATTR_INT:
    case KP_ATTR_FLOAT: fprintf(out, "%.15g", a->number); break;
    case KP_ATTR_BOOL: fprintf(out, "%s", a->number != 0 ? "true" : "false"); break;
    case KP_ATTR_WORD: fprintf(out, "%s", a->word); break;
    case KP_ATTR_LIST:
        for (int i = 0; i < a->n; i++) fprintf(out, "%c%lld", i ? ',' : '[', (long long)a->list[i]);
        fprintf(out, a->n ? "]" : "[]");
    }
}

/* See task_text.h. */
void task_text_op(const struct kp_task *t, const struct kp_op *op, FILE *out) {
    char shape[KP_SHAPE_TEXT];
    const char *between = "";
    for (int i = 0; i < op->nout; i++) {
        const struct kp_value *v = &t->values[op->out[i]];
        fprintf(out, "%s%s%s:%s", i ? ", " : "", v->name, shape_text(&v->shape, shape),
                kp_dtype_name(v->dtype));
    }
    fprintf(out, " = %s(", op->def->name);
    for (int i = 0; i < op->nin; i++) {
        if (!op->in[i].is_scalar && op->in[i].value < 0) continue;
        fprintf(out, "%s", between);
        print_operand(t, op, i, out);
        between = ", ";
    }
    for (int i = 0; i < op->nattr; i++) {
        fprintf(out, i ? ", " : "; ");
        print_attr(&op->attr[i], out);
    }
    fprintf(out, ")");
}

/* See task_text.h. */
void task_text_show(const struct kp_task *t, FILE *out) {
    struct kp_cost c = task_cost(t);
    char bytes[TASK_TEXT_BYTES];
    fprintf(out, "%s (%s): %s\n", t->name, t->suite, t->title);
    if (t->source[0]) fprintf(out, "from %s\n", t->source);
    fprintf(out, "\ntensors\n");
    for (int i = 0; i < t->ntensors; i++) print_tensor(t, &t->tensors[i], out);
    fprintf(out, "\ngraph\n");
    for (int i = 0; i < t->nops; i++) {
        fprintf(out, "  ");
        task_text_op(t, &t->ops[i], out);
        fprintf(out, "\n");
    }
    fprintf(out, "\noutputs\n");
    for (int i = 0; i < t->noutputs; i++) {
        char shape[KP_SHAPE_TEXT];
        const struct kp_value *v = &t->values[t->outputs[i]];
        fprintf(out, "  %s %s %s  %s\n", v->name, kp_dtype_name(v->dtype),
                shape_text(&v->shape, shape), size_text(&v->shape, v->dtype, bytes));
    }
    fprintf(out, "\ncost\n  %.6g flops, %.6g of them in products\n", c.flops, c.mm_flops);
    fprintf(out, "  %.0f bytes read (%s)\n", c.bytes_in, task_text_bytes(c.bytes_in, bytes));
    fprintf(out, "  %.0f bytes written (%s)\n", c.bytes_out, task_text_bytes(c.bytes_out, bytes));
    fprintf(out, "  %.3g flops a byte\n", c.flops / (c.bytes_in + c.bytes_out));
    if (t->nnotes) fprintf(out, "\nnotes\n");
    for (int i = 0; i < t->nnotes; i++) fprintf(out, "  %s\n", t->notes[i]);
    if (t->nflags) fprintf(out, "\nflags\n");
    for (int i = 0; i < t->nflags; i++) fprintf(out, "  %s\n", t->flags[i]);
}

/* Give a value the name of the next number; if it is a tensor, print what it is. */
static void number_value(const struct kp_task *t, int value, int *n, FILE *out) {
    struct kp_value *v = &t->values[value];
    char shape[KP_SHAPE_TEXT];
    if (v->name[0] == '%') return; /* it has one: no name of a task file begins so */
    snprintf(v->name, sizeof v->name, "%%%d", (*n)++);
    if (value < t->ntensors)
        fprintf(out, "%s:%s:%s\n", v->name, shape_text(&v->shape, shape), kp_dtype_name(v->dtype));
}

/* See task_text.h. */
void task_text_meaning(const struct kp_task *t, FILE *out) {
    struct kp_task numbered = *t;
    size_t size = (size_t)t->nvalues * sizeof *t->values;
    int n = 0;
    if (!(numbered.values = malloc(size))) die(KP_MACHINE, "out of memory");
    memcpy(numbered.values, t->values, size);
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        for (int k = 0; k < op->nin; k++)
            if (op_has(op, k)) number_value(&numbered, op->in[k].value, &n, out);
        for (int k = 0; k < op->nout; k++) number_value(&numbered, op->out[k], &n, out);
        task_text_op(&numbered, op, out);
        fputc('\n', out);
    }
    for (int i = 0; i < t->noutputs; i++)
        fprintf(out, "%s%s", i ? ", " : "", numbered.values[t->outputs[i]].name);
    fputc('\n', out);
    free(numbered.values);
}

/* The C name of an element type in the generated header. */
static const char *c_type(enum kp_dtype t) {
    switch (t) {
    case KP_F64: return "double";
    case KP_F32: return "float";
    case KP_F16: return "__half";
    case KP_BF16: return "__nv_bfloat16";
    case KP_I64: return "long long";
    case KP_I32: return "int";
    case KP_BOOL: return "unsigned char";
    }
    die(KP_BUG, "task: dtype %d has no C type", (int)t);
}

/* #define NAME_DIM0 16, NAME_DIMS 2, NAME_ELEMENTS 1024LL */
static void print_sizes(const char *name, const struct kp_shape *s, FILE *out) {
    char upper[KP_NAME];
    size_t n = strlen(name);
    for (size_t i = 0; i <= n; i++) upper[i] = (char)toupper((unsigned char)name[i]);
    for (int i = 0; i < s->n; i++)
        fprintf(out, "#define %s_DIM%d %lld%s\n", upper, i, (long long)s->dim[i],
                s->dim[i] > INT32_MAX ? "LL" : "");
    fprintf(out, "#define %s_DIMS %d\n", upper, s->n);
    fprintf(out, "#define %s_ELEMENTS %lldLL\n\n", upper, (long long)kp_shape_count(s));
}

/* See task_text.h. */
void task_text_output(const struct kp_task *t, int i, char name[TASK_TEXT_OUTPUT]) {
    if (t->noutputs == 1)
        strcpy(name, "out");
    else
        snprintf(name, TASK_TEXT_OUTPUT, "out%d", i);
}

/* Whether an input, a parameter or an output has this dtype. */
static bool has_dtype(const struct kp_task *t, enum kp_dtype dtype) {
    for (int i = 0; i < t->ntensors; i++)
        if (t->tensors[i].dtype == dtype) return true;
    for (int i = 0; i < t->noutputs; i++)
        if (t->values[t->outputs[i]].dtype == dtype) return true;
    return false;
}

/* See task_text.h. */
void task_text_header(const struct kp_task *t, FILE *out) {
    char name[TASK_TEXT_OUTPUT];
    fprintf(out, "/* %s: generated from tasks/%s/%s.json */\n", t->name, t->suite, t->name);
    fprintf(out, "#pragma once\n#include <cuda_runtime.h>\n");
    if (has_dtype(t, KP_F16)) fprintf(out, "#include <cuda_fp16.h>\n");
    if (has_dtype(t, KP_BF16)) fprintf(out, "#include <cuda_bf16.h>\n");
    fprintf(out, "\n");
    for (int i = 0; i < t->ntensors; i++)
        print_sizes(t->tensors[i].name, &t->tensors[i].shape, out);
    for (int i = 0; i < t->noutputs; i++) {
        task_text_output(t, i, name);
        print_sizes(name, &t->values[t->outputs[i]].shape, out);
    }
    fprintf(out, "struct Inputs {\n");
    for (int i = 0; i < t->ntensors; i++)
        fprintf(out, "    const %s *%s;\n", c_type(t->tensors[i].dtype), t->tensors[i].name);
    fprintf(out, "};\n\nstruct Outputs {\n");
    for (int i = 0; i < t->noutputs; i++) {
        task_text_output(t, i, name);
        fprintf(out, "    %s *%s;\n", c_type(t->values[t->outputs[i]].dtype), name);
    }
    fprintf(out,
            "};\n\n/* Optional: bytes that `scratch` must have. */\n"
            "extern \"C\" size_t scratch_bytes(void);\n\n"
            "extern \"C\" void launch(const struct Inputs *in, const struct Outputs *out, void "
            "*scratch,\n"
            "                       cudaStream_t stream);\n");
}
