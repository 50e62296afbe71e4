/* task_main.c: look at task files, and generate the header a kernel includes.
 *
 *   task show FILE      what the task is, for people
 *   task header FILE    task.h on standard output
 *   task list FILE...   one line a task: suite, name, flops, bytes, title
 *   task check FILE...  read all strictly; say how many there are */
#include "taskfile.h"
#include "parse.h"
#include "error.h"
#include "../reference/ops.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "64 MiB" and the like, in a static buffer. */
static const char *human_bytes(double bytes) {
    static char text[32];
    const char *unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (bytes >= 1024 && u < 4) bytes /= 1024, u++;
    snprintf(text, sizeof text, "%.4g %s", bytes, unit[u]);
    return text;
}

/* The fill as it would stand in a task file. */
static void print_fill(const struct kp_task *t, const struct kp_fill *f) {
    static const char *const wraps[] = {"symmetric", "upper", "lower", "scaled", "softmax"};
    int open = 0;
    for (int i = 4; i >= 0; i--)
        if (f->wrap & 1 << i) {
            printf("%s(", wraps[i]);
            open++;
        }
    switch (f->kind) {
    case KP_FILL_UNIFORM: printf("uniform(%g,%g)", f->a, f->b); break;
    case KP_FILL_NORMAL: printf("normal(%g,%g)", f->a, f->b); break;
    case KP_FILL_CONSTANT: printf("constant(%g)", f->a); break;
    case KP_FILL_INTEGERS: printf("integers(%.0f,%.0f)", f->a, f->b); break;
    case KP_FILL_FAN_IN: printf("fan_in(%.0f)", f->a); break;
    case KP_FILL_BERNOULLI: printf("bernoulli(%g)", f->a); break;
    case KP_FILL_SIGNS: printf("signs()"); break;
    case KP_FILL_TRANSPOSED: printf("transposed(%s)", t->tensors[f->source].name); break;
    }
    while (open--) printf(")");
}

static void print_tensor(const struct kp_task *t, const struct kp_tensor *x) {
    static const char *const domains[] = {"real", "moderate", "positive", "unit", "declared"};
    char shape[KP_SHAPE_TEXT];
    printf("  %-9s %-24s %-5s %-24s %10s  ", x->parameter ? "parameter" : "input", x->name,
           kp_dtype_name(x->dtype), shape_text(&x->shape, shape),
           human_bytes((double)kp_shape_count(&x->shape) * (double)kp_dtype_size(x->dtype)));
    print_fill(t, &x->fill);
    printf("  %s\n", domains[x->domain]);
}

static void print_operand(const struct kp_task *t, const struct kp_op *op, int i) {
    if (op->in[i].is_scalar)
        printf("%.15g", op->in[i].scalar);
    else if (op->def->in_name[i])
        printf("%s=%s", op->def->in_name[i], t->values[op->in[i].value].name);
    else
        printf("%s", t->values[op->in[i].value].name);
}

static void print_attr(const struct kp_attr *a) {
    printf("%s=", a->key);
    switch (a->kind) {
    case KP_ATTR_INT:
    case KP_ATTR_FLOAT: printf("%.15g", a->number); break;
    case KP_ATTR_BOOL: printf("%s", a->number != 0 ? "true" : "false"); break;
    case KP_ATTR_WORD: printf("%s", a->word); break;
    case KP_ATTR_LIST:
        for (int i = 0; i < a->n; i++) printf("%c%lld", i ? ',' : '[', (long long)a->list[i]);
        printf(a->n ? "]" : "[]");
    }
}

static void print_op(const struct kp_task *t, const struct kp_op *op) {
    char shape[KP_SHAPE_TEXT];
    const char *between = "";
    printf("  ");
    for (int i = 0; i < op->nout; i++) {
        const struct kp_value *v = &t->values[op->out[i]];
        printf("%s%s%s:%s", i ? ", " : "", v->name, shape_text(&v->shape, shape),
               kp_dtype_name(v->dtype));
    }
    printf(" = %s(", op->def->name);
    for (int i = 0; i < op->nin; i++) {
        if (!op->in[i].is_scalar && op->in[i].value < 0) continue;
        printf("%s", between);
        print_operand(t, op, i);
        between = ", ";
    }
    for (int i = 0; i < op->nattr; i++) {
        printf(i ? ", " : "; ");
        print_attr(&op->attr[i]);
    }
    printf(")\n");
}

static void show(const struct kp_task *t) {
    struct kp_cost c = task_cost(t);
    printf("%s (%s): %s\n", t->name, t->suite, t->title);
    if (t->source[0]) printf("from %s\n", t->source);
    printf("\ntensors\n");
    for (int i = 0; i < t->ntensors; i++) print_tensor(t, &t->tensors[i]);
    printf("\ngraph\n");
    for (int i = 0; i < t->nops; i++) print_op(t, &t->ops[i]);
    printf("\noutputs\n");
    for (int i = 0; i < t->noutputs; i++) {
        char shape[KP_SHAPE_TEXT];
        const struct kp_value *v = &t->values[t->outputs[i]];
        printf("  %s %s %s  %s\n", v->name, kp_dtype_name(v->dtype), shape_text(&v->shape, shape),
               human_bytes((double)kp_shape_count(&v->shape) * (double)kp_dtype_size(v->dtype)));
    }
    printf("\ncost\n  %.6g flops, %.6g of them in products\n", c.flops, c.mm_flops);
    printf("  %.0f bytes read (%s)\n", c.bytes_in, human_bytes(c.bytes_in));
    printf("  %.0f bytes written (%s)\n", c.bytes_out, human_bytes(c.bytes_out));
    printf("  %.3g flops a byte\n", c.flops / (c.bytes_in + c.bytes_out));
    if (t->nnotes) printf("\nnotes\n");
    for (int i = 0; i < t->nnotes; i++) printf("  %s\n", t->notes[i]);
    if (t->nflags) printf("\nflags\n");
    for (int i = 0; i < t->nflags; i++) printf("  %s\n", t->flags[i]);
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
static void print_sizes(const char *name, const struct kp_shape *s) {
    char upper[48];
    size_t n = strlen(name);
    for (size_t i = 0; i <= n; i++) upper[i] = (char)toupper((unsigned char)name[i]);
    for (int i = 0; i < s->n; i++)
        printf("#define %s_DIM%d %lld%s\n", upper, i, (long long)s->dim[i],
               s->dim[i] > INT32_MAX ? "LL" : "");
    printf("#define %s_DIMS %d\n", upper, s->n);
    printf("#define %s_ELEMENTS %lldLL\n\n", upper, (long long)kp_shape_count(s));
}

/* One output is called out; several out0, out1, ... */
static void output_name(const struct kp_task *t, int i, char name[8]) {
    if (t->noutputs == 1)
        strcpy(name, "out");
    else
        snprintf(name, 8, "out%d", i);
}

static bool has_dtype(const struct kp_task *t, enum kp_dtype dtype) {
    for (int i = 0; i < t->ntensors; i++)
        if (t->tensors[i].dtype == dtype) return true;
    for (int i = 0; i < t->noutputs; i++)
        if (t->values[t->outputs[i]].dtype == dtype) return true;
    return false;
}

/* task.h: see the contract of a kernel in optimized/. */
static void header(const struct kp_task *t) {
    char name[8];
    printf("/* %s: generated from tasks/%s/%s.json */\n", t->name, t->suite, t->name);
    printf("#pragma once\n#include <cuda_runtime.h>\n");
    if (has_dtype(t, KP_F16)) printf("#include <cuda_fp16.h>\n");
    if (has_dtype(t, KP_BF16)) printf("#include <cuda_bf16.h>\n");
    printf("\n");
    for (int i = 0; i < t->ntensors; i++) print_sizes(t->tensors[i].name, &t->tensors[i].shape);
    for (int i = 0; i < t->noutputs; i++) {
        output_name(t, i, name);
        print_sizes(name, &t->values[t->outputs[i]].shape);
    }
    printf("struct Inputs {\n");
    for (int i = 0; i < t->ntensors; i++)
        printf("    const %s *%s;\n", c_type(t->tensors[i].dtype), t->tensors[i].name);
    printf("};\n\nstruct Outputs {\n");
    for (int i = 0; i < t->noutputs; i++) {
        output_name(t, i, name);
        printf("    %s *%s;\n", c_type(t->values[t->outputs[i]].dtype), name);
    }
    printf("};\n\n/* Optional: bytes that `scratch` must have. */\n"
           "extern \"C\" size_t scratch_bytes(void);\n\n"
           "extern \"C\" void launch(const struct Inputs *in, const struct Outputs *out, void "
           "*scratch,\n"
           "                       cudaStream_t stream);\n");
}

/* Read every file, which checks it; with `list`, print a line for each. */
static void check(int n, char **path, bool list) {
    for (int i = 0; i < n; i++) {
        struct kp_task *t = task_load(path[i]);
        struct kp_cost c = task_cost(t);
        if (list)
            printf("%-8s %-44s %9.3g flops %11s  %s\n", t->suite, t->name, c.flops,
                   human_bytes(c.bytes_in + c.bytes_out), t->title);
        task_free(t);
    }
    if (!list) printf("%d task%s\n", n, n == 1 ? "" : "s");
}

int main(int argc, char **argv) {
    kp_program("task");
    if (argc < 3) die(KP_USAGE, "usage: task show|header FILE, task list|check FILE...");
    if (!strcmp(argv[1], "list") || !strcmp(argv[1], "check")) {
        check(argc - 2, argv + 2, argv[1][0] == 'l');
    } else {
        bool is_header = !strcmp(argv[1], "header");
        if (argc != 3 || (!is_header && strcmp(argv[1], "show")))
            die(KP_USAGE, "usage: task show|header FILE, task list|check FILE...");
        struct kp_task *t = task_load(argv[2]);
        is_header ? header(t) : show(t);
        task_free(t);
    }
    if (fflush(stdout) || ferror(stdout))
        die(KP_IO, "cannot write standard output; is the disk full?");
    return KP_OK;
}
