/* graph.c: the parser of op lines.
 *
 *   t1[16,64] = linear(x, weight=w, bias=b)
 *   t2[16,1], t3[16,1]:i64 = max(t1; dim=1, keepdim=true)
 *   t4[16,192] = cat(t1, x, t1; dim=1)              an op of any number of operands
 *   t5[16,64]:bool = full(; shape=[16,64], value=1, dtype=bool)         one of none
 *
 * A line has the results with their shapes (and their dtype, if it is not that of the first
 * operand), the op, its operands, and after a semicolon its attributes.  The declared shapes must
 * be the inferred ones: they make a task file readable, and a mistake is found here. */
#include "task/parse.h"
#include "task/ops.h"
#include "base/error.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 64 }; /* characters of an op's name, with its NUL */

/* The parser's state: the place in the line, and the results declared so far. */
struct reader {
    struct kp_source *s;
    struct kp_task *t;
    const char *text, *p;
    struct kp_op *op;
    int ndeclared;
    struct kp_value declared[KP_MAX_RESULTS];
    bool has_dtype[KP_MAX_RESULTS];
};

/* Fail with what is found here and what was expected.  Returns false. */
static bool expected(struct reader *r, const char *what) {
    while (*r->p == ' ' || *r->p == '\t') r->p++;
    if (*r->p)
        return parse_fail(r->s, r->op->line, "`%s`: found `%.24s`; expected %s", r->text, r->p,
                          what);
    return parse_fail(r->s, r->op->line, "`%s`: ends too early; expected %s", r->text, what);
}

/* Whether an earlier result of this line has this name. */
static bool declared_already(const struct reader *r, const char *name) {
    for (int i = 0; i < r->ndeclared; i++)
        if (!strcmp(name, r->declared[i].name)) return true;
    return false;
}

/* NAME[2,3] or NAME[2,3]:i64, one or more, up to the equals sign. */
static bool read_results(struct reader *r) {
    do {
        if (r->ndeclared == KP_MAX_RESULTS) return expected(r, "fewer results");
        struct kp_value *v = &r->declared[r->ndeclared];
        if (!lex_name(&r->p, v->name, sizeof v->name))
            return expected(r, "the name of a result, as in t1[2,3] = relu(x)");
        if (!name_is_usable(v->name) || value_find(r->t, v->name) >= 0 ||
            declared_already(r, v->name))
            return parse_fail(r->s, r->op->line,
                              "result `%s` is defined already or reserved; expected a new name",
                              v->name);
        if (!lex_dims(&r->p, &v->shape.n, v->shape.dim))
            return expected(r, "the shape of the result, as in [2,3]");
        if (lex_char(&r->p, ':')) {
            char dtype[8];
            r->has_dtype[r->ndeclared] = true;
            if (!lex_name(&r->p, dtype, sizeof dtype) || !dtype_parse(dtype, &v->dtype))
                return expected(r, "f64, f32, f16, bf16, i64, i32 or bool");
        }
        r->ndeclared++;
    } while (lex_char(&r->p, ','));
    return lex_char(&r->p, '=') ? true : expected(r, "= and an op");
}

/* Fewest single-character edits from a to b; MOST_NAME for names that are too long. */
static int edit_distance(const char *a, const char *b) {
    int row[MOST_NAME], nb = (int)strlen(b);
    if (nb >= MOST_NAME) return MOST_NAME;
    for (int j = 0; j <= nb; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

/* The op, up to the parenthesis.  Of an unknown one the message names the most similar. */
static bool read_op_name(struct reader *r) {
    char name[MOST_NAME];
    const char *nearest = "";
    int best = INT_MAX;
    if (!lex_name(&r->p, name, sizeof name)) return expected(r, "the name of an op");
    r->op->def = op_find(name);
    if (r->op->def) return lex_char(&r->p, '(') ? true : expected(r, "( and the operands");
    for (int i = 0; i < KP_OP_COUNT; i++) {
        int distance = edit_distance(name, op_get((enum kp_op_id)i)->name);
        if (distance < best) best = distance, nearest = op_get((enum kp_op_id)i)->name;
    }
    return parse_fail(r->s, r->op->line, "unknown op `%s`; the nearest known op is `%s`", name,
                      nearest);
}

/* The slot of an operand: the one with its keyword, or, without one, the next.  -1 if there is
 * none. */
static int slot_of(const struct kp_op_def *def, const char *keyword, int next) {
    if (!keyword) return next < def->max_in && !op_keyword(def, next) ? next : -1;
    for (int i = 0; i < KP_SLOTS; i++)
        if (def->in_name[i] && !strcmp(def->in_name[i], keyword)) return i;
    return -1;
}

/* Make room for the operand in `slot`; no return without memory. */
static void reserve(struct kp_op *op, int slot) {
    if (op->in && (slot < KP_SLOTS || slot & (slot - 1))) return; /* room doubles */
    int had = op->in ? slot : 0, room = op->in ? 2 * slot : KP_SLOTS;
    op->in = realloc(op->in, (size_t)room * sizeof *op->in);
    if (!op->in) die(KP_MACHINE, "out of memory for an op's operands; free some and try again");
    for (int i = had; i < room; i++) op->in[i] = (struct kp_operand){.value = -1};
}

/* A number, the name of a value, or keyword=name. */
static bool read_operand(struct reader *r, int *position) {
    struct kp_operand in = {.value = -1};
    char name[KP_NAME], keyword[KP_NAME];
    bool integer, named = false;
    const char *at = r->p;
    if (lex_number(&r->p, &in.scalar, &integer)) {
        in.is_scalar = true;
    } else {
        if (!lex_name(&r->p, name, sizeof name)) return expected(r, "an operand");
        named = lex_char(&r->p, '=');
        if (named) {
            strcpy(keyword, name);
            if (!lex_name(&r->p, name, sizeof name)) return expected(r, "the name of a value");
        }
        in.value = value_find(r->t, name);
        if (in.value < 0)
            return parse_fail(
                r->s, r->op->line,
                "`%s` is not defined; expected an input, a parameter or an earlier result", name);
    }
    int slot = slot_of(r->op->def, named ? keyword : NULL, *position);
    if (slot < 0) {
        r->p = at;
        return expected(r, named ? "a keyword that this op has"
                                 : "keyword=value here, or fewer operands");
    }
    reserve(r->op, slot);
    if (r->op->in[slot].is_scalar || r->op->in[slot].value >= 0) {
        r->p = at;
        return expected(r, "each operand once");
    }
    r->op->in[slot] = in;
    if (slot >= r->op->nin) r->op->nin = slot + 1;
    if (!named) (*position)++;
    return true;
}

/* All operands, up to the semicolon or parenthesis; none for an op that takes none. */
static bool read_operands(struct reader *r) {
    const struct kp_op_def *def = r->op->def;
    int position = 0;
    reserve(r->op, 0);
    while (def->max_in > 0) {
        if (!read_operand(r, &position)) return false;
        if (!lex_char(&r->p, ',')) break;
    }
    for (int i = 0; i < def->min_in; i++) {
        if (op_has(r->op, i) || r->op->in[i].is_scalar) continue;
        const char *keyword = op_keyword(def, i);
        char count[48];
        snprintf(count, sizeof count, def->max_in == KP_ANY ? "%d or more" : "%d to %d",
                 def->min_in, def->max_in);
        return parse_fail(r->s, r->op->line, "%s: operand %d (%s) is missing; expected %s operands",
                          def->name, i + 1, keyword ? keyword : "positional", count);
    }
    return true;
}

/* inf or -inf. */
static bool read_infinity(struct reader *r, double *out) {
    const char *p = r->p;
    char word[4];
    *out = lex_char(&p, '-') ? -INFINITY : INFINITY;
    if (!lex_name(&p, word, sizeof word) || strcmp(word, "inf")) return false;
    r->p = p;
    return true;
}

/* The value of an attribute: a number, a list, a word or a quoted string. */
static bool read_value(struct reader *r, struct kp_attr *a) {
    bool integer;
    if (read_infinity(r, &a->number)) {
        a->kind = KP_ATTR_FLOAT;
        return true;
    }
    if (lex_number(&r->p, &a->number, &integer)) {
        a->kind = integer ? KP_ATTR_INT : KP_ATTR_FLOAT;
        return true;
    }
    if (lex_char(&r->p, '[')) {
        r->p--;
        a->kind = KP_ATTR_LIST;
        return lex_dims(&r->p, &a->n, a->list) ? true : expected(r, "a list of few integers");
    }
    a->kind = KP_ATTR_WORD;
    if (lex_char(&r->p, '"')) {
        size_t n = strcspn(r->p, "\"");
        if (r->p[n] != '"' || n >= sizeof a->word)
            return expected(r, "a short string and a closing quote");
        memcpy(a->word, r->p, n);
        r->p += n + 1;
        return true;
    }
    if (!lex_name(&r->p, a->word, sizeof a->word))
        return expected(r, "a number, a list, a word or a quoted string");
    if (!strcmp(a->word, "true") || !strcmp(a->word, "false")) {
        a->kind = KP_ATTR_BOOL;
        a->number = a->word[0] == 't';
    }
    return true;
}

/* What an attribute of these kinds may be, for messages. */
static const char *kinds_text(int kinds) {
    switch (kinds) {
    case 1 << KP_ATTR_INT: return "an integer";
    case 1 << KP_ATTR_INT | 1 << KP_ATTR_FLOAT: return "a number";
    case 1 << KP_ATTR_INT | 1 << KP_ATTR_LIST: return "an integer or a list";
    case 1 << KP_ATTR_LIST: return "a list";
    case 1 << KP_ATTR_BOOL: return "true or false";
    default: return "a word";
    }
}

/* Fail with the attributes that the op takes.  Returns false. */
static bool unknown_attribute(struct reader *r, const char *key) {
    char known[256] = "(none)";
    size_t n = 0;
    for (const struct kp_attr_def *a = r->op->def->attr; a->key && n < sizeof known; a++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? " " : "", a->key);
    return parse_fail(r->s, r->op->line, "%s has no attribute `%s`; expected one of: %s",
                      r->op->def->name, key, known);
}

/* key=value. */
static bool read_attribute(struct reader *r) {
    struct kp_op *op = r->op;
    if (op->nattr == KP_MAX_ATTRS) return expected(r, "fewer attributes");
    struct kp_attr *a = &op->attr[op->nattr];
    if (!lex_name(&r->p, a->key, sizeof a->key)) return expected(r, "key=value");
    const struct kp_attr_def *def = op_takes(op->def, a->key);
    if (!def) return unknown_attribute(r, a->key);
    for (int i = 0; i < op->nattr; i++)
        if (!strcmp(op->attr[i].key, a->key)) return expected(r, "each attribute once");
    if (!lex_char(&r->p, '=')) return expected(r, "= and a value");
    if (!read_value(r, a)) return false;
    if (!(def->kinds & 1 << a->kind))
        return parse_fail(r->s, op->line, "%s: %s has a value of the wrong kind; expected %s",
                          op->def->name, a->key, kinds_text(def->kinds));
    op->nattr++;
    return true;
}

/* Fail if result i is declared otherwise than inferred. */
static bool check_result(struct reader *r, int i, const struct kp_value *got) {
    struct kp_value *v = &r->declared[i];
    char a[KP_SHAPE_TEXT], b[KP_SHAPE_TEXT];
    enum kp_dtype default_dtype =
        op_has(r->op, 0) ? r->t->values[r->op->in[0].value].dtype : got->dtype;
    if (!r->has_dtype[i]) v->dtype = default_dtype;
    bool same = v->shape.n == got->shape.n;
    for (int d = 0; same && d < got->shape.n; d++) same = v->shape.dim[d] == got->shape.dim[d];
    if (!same)
        return parse_fail(r->s, r->op->line, "%s: %s is declared %s; expected %s from its operands",
                          r->op->def->name, v->name, shape_text(&v->shape, a),
                          shape_text(&got->shape, b));
    if (v->dtype != got->dtype)
        return parse_fail(r->s, r->op->line, "%s: %s is declared %s; expected %s (write %s%s:%s)",
                          r->op->def->name, v->name, kp_dtype_name(v->dtype),
                          kp_dtype_name(got->dtype), v->name, shape_text(&v->shape, a),
                          kp_dtype_name(got->dtype));
    if (!shape_fits(&v->shape))
        return parse_fail(r->s, r->op->line,
                          "%s: %s has more bytes than 2^50; expected a smaller shape",
                          r->op->def->name, v->name);
    return true;
}

/* See parse.h. */
bool op_parse(struct kp_source *s, int line, struct kp_task *t, const char *text,
              struct kp_op *op) {
    struct reader r = {.s = s, .t = t, .text = text, .p = text, .op = op};
    struct kp_value inferred[KP_MAX_RESULTS] = {0};
    *op = (struct kp_op){.line = line};
    if (!read_results(&r) || !read_op_name(&r) || !read_operands(&r)) return false;
    if (lex_char(&r.p, ';')) {
        do
            if (!read_attribute(&r)) return false;
        while (lex_char(&r.p, ','));
    }
    if (!lex_char(&r.p, ')')) return expected(&r, "a comma or )");
    if (!lex_end(&r.p)) return expected(&r, "nothing after )");
    const char *wrong = op->def->infer(t, op, inferred);
    if (wrong) return parse_fail(s, line, "%s: %s", op->def->name, wrong);
    if (op->nout != r.ndeclared)
        return parse_fail(s, line, "%s: %d results are declared; expected %d", op->def->name,
                          r.ndeclared, op->nout);
    for (int i = 0; i < op->nout; i++) {
        if (!check_result(&r, i, &inferred[i])) return false;
        op->out[i] = t->nvalues;
        t->values[t->nvalues++] = r.declared[i];
    }
    return true;
}
