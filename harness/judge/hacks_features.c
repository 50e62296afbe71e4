/* hacks_features.c: extract the features of a source; see hacks_features.h.
 *
 * This is not a parser: it uses tokens and bracket depth, takes unknown code for harmless, and
 * may err either way. */
#define _GNU_SOURCE
#include "judge/hacks_features.h"
#include "judge/hack_rules.h"
#include "base/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Words of the language and of every kernel, which distinguish nothing. */
static const char *const common[] = {"__device__",
                                     "__forceinline__",
                                     "__global__",
                                     "__launch_bounds__",
                                     "__restrict__",
                                     "__shared__",
                                     "__syncthreads",
                                     "auto",
                                     "block",
                                     "blockDim",
                                     "blockIdx",
                                     "body",
                                     "bool",
                                     "bytes",
                                     "char",
                                     "const",
                                     "constexpr",
                                     "cudaError_t",
                                     "cudaStream_t",
                                     "define",
                                     "dim3",
                                     "double",
                                     "dst",
                                     "else",
                                     "extern",
                                     "false",
                                     "float",
                                     "for",
                                     "grid",
                                     "gridDim",
                                     "if",
                                     "in",
                                     "include",
                                     "inline",
                                     "int",
                                     "launch",
                                     "long",
                                     "namespace",
                                     "nullptr",
                                     "once",
                                     "out",
                                     "pragma",
                                     "return",
                                     "size_t",
                                     "sizeof",
                                     "src",
                                     "static",
                                     "static_assert",
                                     "static_cast",
                                     "stream",
                                     "struct",
                                     "template",
                                     "threadIdx",
                                     "true",
                                     "typename",
                                     "unroll",
                                     "unsigned",
                                     "using",
                                     "void",
                                     "while"};

static int by_text(const void *a, const void *b) {
    return strcmp(a, *(const char *const *)b);
}

/* Add the words of a string literal with at least three letters, each prefixed by a quotation
 * mark. */
static void add_words(struct features *v, const struct token *t) {
    for (size_t i = 0, n; i < t->n; i += n + 1) {
        for (n = 0;
             i + n < t->n && (isalnum((unsigned char)t->text[i + n]) || t->text[i + n] == '_');)
            n++;
        if (n >= 3) feature_add(v, '"', t->text + i, n);
    }
}

/* Add the name in an #include directive, without its brackets. */
static void add_include(struct features *v, const struct token *t) {
    if (t->n > 2) feature_add(v, '#', t->text + 1, t->n - 2);
}

/* Add a word, unless it is a size of the kernel's own task (X_ELEMENTS, X_DIM0). */
static void add_word(struct features *v, const struct token *t) {
    char word[64];
    if (t->n < 2 || t->n >= sizeof word) return; /* single letters, and overlong names */
    memcpy(word, t->text, t->n);
    word[t->n] = 0;
    if (strstr(word, "_ELEMENTS") || strstr(word, "_DIM")) return;
    if (!bsearch(word, common, sizeof common / sizeof *common, sizeof *common, by_text))
        feature_add(v, 0, t->text, t->n);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct feature *)a)->name, ((const struct feature *)b)->name);
}

/* Sort, and merge repeated names into one with its weight. */
static void settle(struct features *v) {
    int n = 0;
    if (v->n) qsort(v->f, (size_t)v->n, sizeof *v->f, by_name);
    for (int i = 0; i < v->n; i++)
        if (n && !strcmp(v->f[n - 1].name, v->f[i].name)) {
            v->f[n - 1].weight += v->f[i].weight;
            free(v->f[i].name);
        } else
            v->f[n++] = v->f[i];
    v->n = n;
    for (int i = 0; i < n; i++) v->f[i].weight = 1 + log(v->f[i].weight);
}

/* A copy with continued lines joined, because a continuation may split a name. */
static char *joined(const char *source) {
    char *out = malloc(strlen(source) + 1), *to = out;
    if (!out) die(KP_MACHINE, "out of memory");
    for (const char *p = source; *p; p++)
        if (*p == '\\' && p[1] == '\n')
            p++;
        else
            *to++ = *p;
    *to = 0;
    return out;
}

struct features features_of(const char *source, bool whole) {
    struct features v = {0, NULL};
    char *text = joined(source);
    struct tokens t = tokens_of(text);
    for (int i = 0; i < t.n; i++) {
        if (t.t[i].kind == TOKEN_WORD) add_word(&v, &t.t[i]);
        if (t.t[i].kind == TOKEN_STRING) add_words(&v, &t.t[i]);
        if (t.t[i].kind == TOKEN_INCLUDE) add_include(&v, &t.t[i]);
    }
    if (whole) static_rules_add(&v, &t);
    settle(&v);
    free(t.t);
    free(text);
    return v;
}
