/* load.c: read tasks/SUITE/TASK.json and check everything that needs no GPU: see taskfile.h. */
#include "task/parse.h"
#include "base/error.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 16 << 20 };
static const double MOST_PRECISION = 0.1; /* beyond a tenth a speedup says little */

/* Zeroed memory, or no return. */
static void *allocate(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) die(KP_MACHINE, "out of memory for %zu x %zu bytes; free some and try again", n, size);
    return p;
}

/* The whole file as text, for the caller to free.  NULL on error. */
static char *read_text(struct kp_source *s) {
    struct stat status;
    FILE *f = fopen(s->path, "rb");
    if (!f || fstat(fileno(f), &status)) {
        parse_fail(s, 0, "cannot be opened (%s); expected a task file", strerror(errno));
        if (f) fclose(f);
        return NULL;
    }
    bool fits = S_ISREG(status.st_mode) && status.st_size <= MAX_FILE;
    size_t size = fits ? (size_t)status.st_size : 0;
    char *text = allocate(size + 1, 1);
    size_t n = fread(text, 1, size, f);
    fclose(f);
    if (!fits || n != size)
        parse_fail(s, 0, "cannot be read (a folder, or over 16 MiB); expected a task file");
    else if (memchr(text, '\0', n))
        parse_fail(s, 1, "holds a NUL byte; expected text");
    else
        return text;
    free(text);
    return NULL;
}

/* Fail if an object has a key that is not allowed, or has one twice.  Line 0 stands for the task
 * object, each of whose keys has a line of its own. */
static bool check_keys(struct kp_source *s, int line, const cJSON *object, const char *allowed) {
    for (const cJSON *a = object->child; a; a = a->next) {
        int at = line ? line : parse_line_of(s, a->string, -1);
        if (!word_in(allowed, a->string))
            return parse_fail(s, at, "unknown key `%.40s`; expected one of: %s", a->string,
                              allowed);
        for (const cJSON *b = a->next; b; b = b->next)
            if (!strcmp(a->string, b->string))
                return parse_fail(s, at, "key `%s` is given twice; expected once", a->string);
    }
    return true;
}

/* Copy string `key` of an object; an absent optional one becomes "". */
static bool get_string(struct kp_source *s, int line, const cJSON *object, const char *key,
                       bool optional, char *out, size_t size) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    out[0] = '\0';
    if (!v && optional) return true;
    if (!cJSON_IsString(v))
        return parse_fail(s, line, "`%s` is missing or not a string; expected one", key);
    if (strlen(v->valuestring) >= size)
        return parse_fail(s, line, "`%s` is longer than %zu bytes; expected a shorter one", key,
                          size - 1);
    strcpy(out, v->valuestring);
    return true;
}

/* The array called `key`, of at least `least` entries.  *out is NULL if it is absent, which only
 * a least of 0 allows. */
static bool get_array(struct kp_source *s, const cJSON *root, const char *key, int least,
                      const cJSON **out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, key);
    *out = v;
    if (!v && least == 0) return true;
    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) < least)
        return parse_fail(s, parse_line_of(s, key, -1),
                          "`%s` is missing, empty or not a list; expected a list", key);
    return true;
}

/* The shape of a tensor. */
static bool get_shape(struct kp_source *s, int line, const cJSON *object, struct kp_tensor *x) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, "shape"), *d;
    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > KP_MAX_DIMS)
        return parse_fail(s, line,
                          "%s: shape is missing or too long; expected a list of at most %d sizes",
                          x->name, KP_MAX_DIMS);
    cJSON_ArrayForEach(d, v) {
        double size = cJSON_IsNumber(d) ? d->valuedouble : 0;
        if (!(size >= 1 && size <= 9007199254740992.0) || size != (double)(int64_t)size)
            return parse_fail(s, line, "%s: axis %d of shape is %.15g; expected a positive integer",
                              x->name, x->shape.n, cJSON_IsNumber(d) ? d->valuedouble : 0.0);
        x->shape.dim[x->shape.n++] = (int64_t)size;
    }
    if (!shape_fits(&x->shape))
        return parse_fail(s, line, "%s: shape has more bytes than 2^50; expected a smaller one",
                          x->name);
    return true;
}

/* Fail if no tensor may have this name.  Names must differ in more than case, since the header
 * makes upper-case macros of them. */
static bool check_name(struct kp_source *s, int line, const struct kp_task *t, const char *name) {
    if (!name_is_usable(name))
        return parse_fail(s, line,
                          "`%s` cannot name a tensor; expected a C identifier that is no keyword, "
                          "not `out`, with no leading underscore",
                          name);
    for (int i = 0; i < t->ntensors; i++)
        if (!strcasecmp(t->tensors[i].name, name))
            return parse_fail(
                s, line, "`%s` names two tensors (case aside); expected different names", name);
    return true;
}

/* One entry of "inputs" or "parameters". */
static bool read_tensor(struct kp_source *s, int line, struct kp_task *t, const cJSON *object,
                        bool parameter) {
    struct kp_tensor *x = &t->tensors[t->ntensors];
    char name[KP_NAME], dtype[8], domain[16];
    if (!cJSON_IsObject(object))
        return parse_fail(s, line, "not an object; expected {\"name\": ...}");
    if (!check_keys(s, line, object, "name shape dtype fill domain") ||
        !get_string(s, line, object, "name", false, name, sizeof name) ||
        !check_name(s, line, t, name) ||
        !get_string(s, line, object, "dtype", false, dtype, sizeof dtype) ||
        !get_string(s, line, object, "domain", true, domain, sizeof domain))
        return false;
    strcpy(x->name, name);
    x->parameter = parameter;
    if (!dtype_parse(dtype, &x->dtype) || x->dtype == KP_F64)
        return parse_fail(s, line, "%s: dtype `%s`; expected f32, f16, bf16, i64, i32 or bool",
                          name, dtype);
    const cJSON *fill = cJSON_GetObjectItemCaseSensitive(object, "fill");
    if (!cJSON_IsString(fill))
        return parse_fail(s, line, "`fill` is missing or not a string; expected one");
    if (!get_shape(s, line, object, x) || !fill_parse(s, line, t, t->ntensors, fill->valuestring) ||
        !domain_parse(s, line, x, domain[0] ? domain : NULL)) {
        free(x->fill.values);
        return false;
    }
    struct kp_value *v = &t->values[t->nvalues++];
    strcpy(v->name, name);
    v->dtype = x->dtype;
    v->shape = x->shape;
    t->ntensors++;
    return true;
}

/* All entries of "inputs" or of "parameters". */
static bool read_tensors(struct kp_source *s, struct kp_task *t, const cJSON *list,
                         const char *key) {
    const cJSON *v;
    int i = 0;
    cJSON_ArrayForEach(v, list) {
        if (!read_tensor(s, parse_line_of(s, key, i++), t, v, !strcmp(key, "parameters")))
            return false;
    }
    return true;
}

/* All op lines. */
static bool read_graph(struct kp_source *s, struct kp_task *t, const cJSON *list) {
    const cJSON *v;
    cJSON_ArrayForEach(v, list) {
        int line = parse_line_of(s, "graph", t->nops);
        if (!cJSON_IsString(v)) return parse_fail(s, line, "not a string; expected an op line");
        if (!op_parse(s, line, t, v->valuestring, &t->ops[t->nops++])) return false;
    }
    return true;
}

/* The names of the outputs: results of ops, each once. */
static bool read_outputs(struct kp_source *s, struct kp_task *t, const cJSON *list) {
    const cJSON *v;
    cJSON_ArrayForEach(v, list) {
        int line = parse_line_of(s, "outputs", t->noutputs);
        int value = cJSON_IsString(v) ? value_find(t, v->valuestring) : -1;
        if (value < t->ntensors)
            return parse_fail(s, line, "output `%.48s`; expected the name of an op's result",
                              cJSON_IsString(v) ? v->valuestring : "(not a string)");
        for (int i = 0; i < t->noutputs; i++)
            if (t->outputs[i] == value)
                return parse_fail(s, line, "output `%s` is listed twice; expected once",
                                  v->valuestring);
        if (t->noutputs == KP_MAX_OUTPUTS)
            return parse_fail(s, line, "more than %d outputs; expected at most %d", KP_MAX_OUTPUTS,
                              KP_MAX_OUTPUTS);
        t->outputs[t->noutputs++] = value;
    }
    return true;
}

/* A list of strings, copied. */
static bool read_strings(struct kp_source *s, const cJSON *list, const char *key, int *n,
                         char ***out) {
    const cJSON *v;
    *out = allocate((size_t)cJSON_GetArraySize(list), sizeof **out);
    cJSON_ArrayForEach(v, list) {
        if (!cJSON_IsString(v))
            return parse_fail(s, parse_line_of(s, key, *n), "%s: not a string; expected one", key);
        (*out)[*n] = allocate(strlen(v->valuestring) + 1, 1);
        strcpy((*out)[(*n)++], v->valuestring);
    }
    return true;
}

/* Whether the task has the flag "unused: NAME". */
static bool declared_unused(const struct kp_task *t, const char *name) {
    for (int i = 0; i < t->nflags; i++)
        if (!strncmp(t->flags[i], "unused: ", 8) && !strcmp(t->flags[i] + 8, name)) return true;
    return false;
}

/* A tensor counts as used if an output needs it, or needs its transpose. */
static bool is_used(const struct kp_task *t, const bool *live, int i) {
    if (live[i]) return true;
    if (t->tensors[i].fill.kind == KP_FILL_TRANSPOSED && live[t->tensors[i].fill.source])
        return true;
    for (int j = 0; j < t->ntensors; j++)
        if (live[j] && t->tensors[j].fill.kind == KP_FILL_TRANSPOSED &&
            t->tensors[j].fill.source == i)
            return true;
    return false;
}

/* Fail if an op or a tensor reaches no output. */
static bool check_live(struct kp_source *s, const struct kp_task *t) {
    bool *live = allocate((size_t)t->nvalues, sizeof *live), ok = true;
    task_live(t, live);
    for (int i = 0; ok && i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        bool needed = false;
        for (int k = 0; k < op->nout; k++) needed |= live[op->out[k]];
        if (!needed)
            ok = parse_fail(s, op->line, "%s does not reach an output; expected no such op",
                            t->values[op->out[0]].name);
    }
    for (int i = 0; ok && i < t->ntensors; i++) {
        const char *key = i < t->ninputs ? "inputs" : "parameters";
        int line = parse_line_of(s, key, i < t->ninputs ? i : i - t->ninputs);
        bool used = is_used(t, live, i), declared = declared_unused(t, t->tensors[i].name);
        if (!used && !declared)
            ok = parse_fail(s, line,
                            "%s reaches no output; expected a use of it or the flag \"unused: %s\"",
                            t->tensors[i].name, t->tensors[i].name);
        if (used && declared)
            ok = parse_fail(s, line, "%s is used but flagged unused; expected no such flag",
                            t->tensors[i].name);
    }
    free(live);
    return ok;
}

/* Fail unless the file has the task's name and its folder the suite's. */
static bool check_place(struct kp_source *s, const struct kp_task *t) {
    char full[PATH_MAX], want[PATH_MAX];
    for (const char *p = t->name; *p; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_')
            return parse_fail(s, parse_line_of(s, "task", -1),
                              "task `%s`; expected lower-case letters, digits and underscores",
                              t->name);
    if (!t->name[0] || !t->suite[0])
        return parse_fail(
            s, 1, "task or suite is empty; expected the names of the file and of its folder");
    if (s->no_file) return true;
    if (!realpath(s->path, full)) return parse_fail(s, 0, "realpath: %s", strerror(errno));
    snprintf(want, sizeof want, "/%s/%s.json", t->suite, t->name);
    size_t nf = strlen(full), nw = strlen(want);
    if (nf < nw || strcmp(full + nf - nw, want))
        return parse_fail(s, parse_line_of(s, "task", -1),
                          "task `%s` of suite `%s` is in the wrong place; expected the file %s",
                          t->name, t->suite, want + 1);
    return true;
}

/* The share to which a speedup must be known.  Absent is 0. */
static bool read_precision(struct kp_source *s, struct kp_task *t, const cJSON *root) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, "precision");
    if (!v) return true;
    if (!cJSON_IsNumber(v) || !(v->valuedouble > 0 && v->valuedouble <= MOST_PRECISION))
        return parse_fail(s, parse_line_of(s, "precision", -1),
                          "precision is no number between 0 and %g; expected one, such as 0.02",
                          MOST_PRECISION);
    t->precision = v->valuedouble;
    return true;
}

/* Everything before the tensors. */
static bool read_head(struct kp_source *s, struct kp_task *t, const cJSON *root) {
    if (!cJSON_IsObject(root))
        return parse_fail(s, 1, "not an object; expected {\"schema\": 1, ...}");
    if (!check_keys(s, 0, root,
                    "schema task suite title source precision inputs parameters graph outputs "
                    "notes flags"))
        return false;
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
    if (!cJSON_IsNumber(schema) || schema->valuedouble != 1)
        return parse_fail(s, parse_line_of(s, "schema", -1),
                          "schema is not 1; expected \"schema\": 1");
    return get_string(s, parse_line_of(s, "task", -1), root, "task", false, t->name,
                      sizeof t->name) &&
           get_string(s, parse_line_of(s, "suite", -1), root, "suite", false, t->suite,
                      sizeof t->suite) &&
           get_string(s, parse_line_of(s, "title", -1), root, "title", true, t->title,
                      sizeof t->title) &&
           get_string(s, parse_line_of(s, "source", -1), root, "source", true, t->source,
                      sizeof t->source) &&
           read_precision(s, t, root) && check_place(s, t);
}

/* The whole task. */
static bool read_task(struct kp_source *s, struct kp_task *t, const cJSON *root) {
    const cJSON *inputs, *parameters, *graph, *outputs, *notes, *flags;
    if (!read_head(s, t, root) || !get_array(s, root, "inputs", 1, &inputs) ||
        !get_array(s, root, "parameters", 0, &parameters) ||
        !get_array(s, root, "graph", 1, &graph) || !get_array(s, root, "outputs", 1, &outputs) ||
        !get_array(s, root, "notes", 0, &notes) || !get_array(s, root, "flags", 0, &flags))
        return false;
    size_t tensors = (size_t)cJSON_GetArraySize(inputs) + (size_t)cJSON_GetArraySize(parameters);
    size_t ops = (size_t)cJSON_GetArraySize(graph);
    if (tensors > KP_MAX_TENSORS)
        return parse_fail(s, parse_line_of(s, "inputs", -1),
                          "%zu inputs and parameters; expected at most %d", tensors,
                          KP_MAX_TENSORS);
    t->tensors = allocate(tensors, sizeof *t->tensors);
    t->values = allocate(tensors + ops * KP_MAX_RESULTS, sizeof *t->values);
    t->ops = allocate(ops, sizeof *t->ops);
    if (!read_tensors(s, t, inputs, "inputs")) return false;
    t->ninputs = t->ntensors;
    return read_tensors(s, t, parameters, "parameters") && read_graph(s, t, graph) &&
           read_outputs(s, t, outputs) && read_strings(s, notes, "notes", &t->nnotes, &t->notes) &&
           read_strings(s, flags, "flags", &t->nflags, &t->flags) && check_live(s, t);
}

/* Fail at the first character that cJSON could not parse, or at the comma before it that is one
 * too many.  (Where cJSON wants a key it stands behind that character.) */
static void json_error(struct kp_source *s, const char *at) {
    const char *found = at - (at > s->text && at[-1] == '}'), *before = found;
    while (before > s->text && isspace((unsigned char)before[-1])) before--;
    if ((*found == '}' || *found == ']') && before > s->text && before[-1] == ',')
        parse_fail(s, parse_line_at(s, before - 1),
                   "not valid JSON: a comma before `%c`; expected none there", *found);
    else if (*at)
        parse_fail(s, parse_line_at(s, at), "not valid JSON at `%.*s`; expected a complete object",
                   (int)strcspn(at, "\n") < 24 ? (int)strcspn(at, "\n") : 24, at);
    else
        parse_fail(s, parse_line_at(s, at),
                   "the JSON text ends too early; expected a complete object");
}

/* The task of s->text; NULL on error, or if there is no text. */
static struct kp_task *parse_task(struct kp_source *s) {
    struct kp_task *t = allocate(1, sizeof *t);
    const char *end = NULL;
    bool ok = false;
    if (strlen(s->path) >= sizeof t->path) {
        parse_fail(s, 0, "path is longer than %zu bytes; expected a shorter one",
                   sizeof t->path - 1);
    } else if (s->text) {
        strcpy(t->path, s->path);
        cJSON *root = cJSON_ParseWithOpts(s->text, &end, true);
        if (root)
            ok = read_task(s, t, root);
        else
            json_error(s, end ? end : s->text);
        cJSON_Delete(root);
    }
    if (ok) return t;
    task_free(t);
    return NULL;
}

/* See taskfile.h. */
struct kp_task *task_load_error(const char *path, char *message, size_t size) {
    struct kp_source s = {.path = path, .message = message, .size = size};
    if (size) message[0] = '\0';
    char *text = read_text(&s);
    s.text = text;
    struct kp_task *t = parse_task(&s);
    free(text);
    return t;
}

/* See taskfile.h. */
struct kp_task *task_parse(const char *text, const char *path, char *message, size_t size) {
    struct kp_source s = {
        .path = path, .no_file = true, .text = text, .message = message, .size = size};
    if (size) message[0] = '\0';
    return parse_task(&s);
}

/* See taskfile.h. */
struct kp_task *task_load(const char *path) {
    char message[1024];
    struct kp_task *t = task_load_error(path, message, sizeof message);
    if (!t) die(KP_INPUT, "%s", message);
    return t;
}
