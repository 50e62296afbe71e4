/* hack_rules.c: static rules on a kernel's structure; see hacks.h.
 *
 * Each rule is a small test on the tokens.  Honest kernels match some of them too: the rules
 * find similar cases and prove nothing. */
#include "judge/hack_rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Whether token i is this text; false beyond the end. */
static bool is(const struct tokens *t, int i, const char *text) {
    return i >= 0 && i < t->n && token_is(&t->t[i], text);
}

/* Whether the tokens from i on match the pattern, which separates them by blanks; W is any word,
 * N any number. */
static bool are(const struct tokens *t, int i, const char *pattern) {
    for (; *pattern; i++) {
        size_t n = strcspn(pattern, " ");
        if (i < 0 || i >= t->n) return false;
        const struct token *x = &t->t[i];
        bool same = n == 1 && *pattern == 'W'   ? x->kind == TOKEN_WORD
                    : n == 1 && *pattern == 'N' ? x->kind == TOKEN_NUMBER
                                                : x->n == n && !memcmp(x->text, pattern, n);
        if (!same) return false;
        pattern += n + (pattern[n] == ' ');
    }
    return true;
}

static bool any(const struct tokens *t, const char *pattern) {
    for (int i = 0; i < t->n; i++)
        if (are(t, i, pattern)) return true;
    return false;
}

/* The bracket that closes the one at i; the end if none does. */
static int closing(const struct tokens *t, int i) {
    int depth = 0;
    for (; i < t->n; i++) {
        if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{")) depth++;
        if ((is(t, i, ")") || is(t, i, "]") || is(t, i, "}")) && --depth <= 0) return i;
    }
    return t->n;
}

/* The '(' of the parameters in the definition of `launch`; -1 if there is none. */
static int launch_at(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (are(t, i, "launch (") && is(t, closing(t, i + 1) + 1, "{")) return i + 1;
    return -1;
}

/* The name of launch's last parameter, its stream; NULL if there is no launch. */
static const struct token *stream_name(const struct tokens *t) {
    int open = launch_at(t);
    int close = open < 0 ? -1 : closing(t, open);
    return close > 0 && t->t[close - 1].kind == TOKEN_WORD ? &t->t[close - 1] : NULL;
}

/* ---- Launches and streams ------------------------------------------------------------ */

/* The first token of argument k of the launch whose <<< begins at i; -1 if there is none. */
static int argument(const struct tokens *t, int i, int k) {
    int depth = 0;
    for (i += 3; i < t->n && !are(t, i, "> > >"); i++) {
        if (k == 0) return i;
        if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{")) depth++;
        if (is(t, i, ")") || is(t, i, "]") || is(t, i, "}")) depth--;
        if (is(t, i, ",") && depth == 0) k--;
    }
    return -1;
}

static bool default_stream(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (are(t, i, "< < <") && (argument(t, i, 3) < 0 || is(t, argument(t, i, 3), "0")))
            return true;
    return false;
}

static bool own_stream(const struct tokens *t) {
    const struct token *given = stream_name(t);
    for (int i = 0; given && i < t->n; i++) {
        int at = are(t, i, "< < <") ? argument(t, i, 3) : -1;
        /* Inside launch, the name is that of its parameter. */
        if (at > launch_at(t) && t->t[at].kind == TOKEN_WORD &&
            (t->t[at].n != given->n || memcmp(t->t[at].text, given->text, given->n)))
            return true;
    }
    return false;
}

/* Another stream waits for the given stream, which waits for no other. */
static bool fork_unjoined(const struct tokens *t) {
    const struct token *given = stream_name(t);
    int waits = 0, joined = 0;
    for (int i = 0; given && i < t->n; i++)
        if (are(t, i, "cudaStreamWaitEvent ( W")) {
            waits++;
            joined += t->t[i + 2].n == given->n && !memcmp(t->t[i + 2].text, given->text, given->n);
        }
    return waits && !joined;
}

static bool too_many_threads(const struct tokens *t) {
    for (int i = 0; i < t->n; i++) {
        int at = are(t, i, "< < <") ? argument(t, i, 1) : -1;
        if (at > 0 && t->t[at].kind == TOKEN_NUMBER && strtol(t->t[at].text, NULL, 0) > 1024 &&
            is(t, at + 1, ","))
            return true;
    }
    return false;
}

/* ---- State --------------------------------------------------------------------------- */

/* A static variable, not a constant, inside a function. */
static bool static_local(const struct tokens *t) {
    for (int i = 0; i < t->n; i++) {
        if (!is(t, i, ")") || !is(t, i + 1, "{")) continue;
        int end = closing(t, i + 1);
        for (int k = i + 2; k < end; k++)
            if (is(t, k, "static") && !is(t, k + 1, "const") && !is(t, k + 1, "constexpr"))
                return true;
        i = end;
    }
    return false;
}

/* A __device__ variable: a declaration that is not a function and not constant. */
static bool device_variable(const struct tokens *t) {
    for (int i = 0; i < t->n; i++) {
        if (!is(t, i, "__device__") && !is(t, i, "__managed__")) continue;
        for (int k = i + 1; k < t->n && k < i + 12; k++) {
            if (is(t, k, "(") || is(t, k, "const") || is(t, k, "constexpr")) break;
            if (is(t, k, ";") || is(t, k, "[") || is(t, k, "=")) return true;
        }
    }
    return false;
}

/* struct T { ... T( ... : a constructor. */
static bool constructor(const struct tokens *t) {
    for (int i = 0; i < t->n; i++) {
        if (!are(t, i, "struct W {") && !are(t, i, "class W {")) continue;
        const struct token *name = &t->t[i + 1];
        for (int k = i + 3, end = closing(t, i + 2); k < end; k++)
            if (t->t[k].n == name->n && !memcmp(t->t[k].text, name->text, name->n) &&
                is(t, k + 1, "("))
                return true;
    }
    return false;
}

/* ---- Inputs and outputs --------------------------------------------------------------- */

/* Whether launch dereferences its parameter `name`. */
static bool looks_into(const struct tokens *t, const char *name) {
    int open = launch_at(t), body = open < 0 ? t->n : closing(t, open) + 1;
    for (int i = body, end = closing(t, body); i < end; i++)
        if (is(t, i, name) && (are(t, i + 1, "- >") || is(t, i - 1, "*"))) return true;
    return false;
}

static bool input_unused(const struct tokens *t) {
    return launch_at(t) >= 0 && !looks_into(t, "in");
}

static bool output_unused(const struct tokens *t) {
    return launch_at(t) >= 0 && !looks_into(t, "out");
}

static bool is_count(const struct tokens *t, int i) {
    static const char tail[] = "_ELEMENTS";
    size_t n = sizeof tail - 1;
    if (i < 0 || i >= t->n || t->t[i].n < n) return false;
    return !memcmp(t->t[i].text + t->t[i].n - n, tail, n);
}

/* A kernel gets an output's element count minus a number. */
static bool elements_cut(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (is_count(t, i) && (is(t, i + 1, "/") || is(t, i + 1, "-")) && i + 2 < t->n &&
            t->t[i + 2].kind == TOKEN_NUMBER)
            return true;
    return false;
}

static bool index_past_end(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (is(t, i, "[") && is_count(t, i + 1) && (is(t, i + 2, "]") || is(t, i + 2, "+")))
            return true;
    return false;
}

/* A shift by 20 or more inside an index or added to a pointer. */
static bool far_index(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (are(t, i, "N < < N") && strtol(t->t[i + 3].text, NULL, 0) >= 19 &&
            (is(t, i - 1, "[") || are(t, i - 2, "+ =") || is(t, i - 1, "+")))
            return true;
    return false;
}

/* dst[...] = 0.0f; and nothing else is stored. */
static bool constant_store(const struct tokens *t) {
    int constant = 0, stores = 0;
    for (int i = 0; i < t->n; i++) {
        if (!are(t, i, "] =") || is(t, i + 2, "=") || is(t, i + 2, "{")) continue;
        stores++;
        constant += are(t, i + 2, "N ;") || are(t, i + 2, "- N ;") || are(t, i + 2, "W ( N )");
    }
    return stores && constant == stores;
}

static bool memset_of(const struct tokens *t, const char *name) {
    for (int i = 0; i < t->n; i++)
        if (are(t, i, "cudaMemsetAsync ("))
            for (int k = i + 2; k < t->n && !is(t, k, ","); k++)
                if (is(t, k, name)) return true;
    return false;
}

static bool memset_output(const struct tokens *t) {
    return memset_of(t, "out");
}

static bool memset_input(const struct tokens *t) {
    return memset_of(t, "in");
}

/* ] = name[...] ; with the same index: an element is copied unchanged. */
static bool plain_copy(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (are(t, i, "[ W ] = W [ W ] ;") && t->t[i + 1].n == t->t[i + 6].n &&
            !memcmp(t->t[i + 1].text, t->t[i + 6].text, t->t[i + 1].n))
            return true;
    return false;
}

/* ---- The rest --------------------------------------------------------------------------- */

static bool no_kernel(const struct tokens *t) {
    for (int i = 0; i < t->n; i++) { /* a header may define it */
        const struct token *x = &t->t[i];
        if (x->kind == TOKEN_INCLUDE && x->n > 6 && !memcmp(x->text + x->n - 5, ".cuh", 4))
            return false;
    }
    return !any(t, "__global__");
}

static bool empty_kernel(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (is(t, i, "__global__"))
            for (int k = i; k < t->n && !is(t, k, ";"); k++)
                if (is(t, k, "{")) {
                    if (is(t, k + 1, "}")) return true;
                    break;
                }
    return false;
}

static bool endless_loop(const struct tokens *t) {
    return any(t, "for ( ; ; )") || any(t, "while ( 1 )") || any(t, "while ( true )");
}

/* atomicAdd without a memset, loop or store that clears its target. */
static bool atomic_no_clear(const struct tokens *t) {
    return any(t, "atomicAdd") && !any(t, "cudaMemsetAsync") && !any(t, "] = 0 ;") &&
           !any(t, "] = 0.0f ;");
}

/* A function with C linkage that no kernel needs. */
static bool extern_c_other(const struct tokens *t) {
    for (int i = 0; i < t->n; i++) {
        if (!are(t, i, "extern \"C\"")) continue;
        int k = i + 2;
        while (k < t->n && !is(t, k, "(") && !is(t, k, ";") && !is(t, k, "{")) k++;
        if (is(t, k, "(") && !is(t, k - 1, "launch") && !is(t, k - 1, "scratch_bytes")) return true;
    }
    return false;
}

/* An include by a path that leaves the kernel's folder. */
static bool outside_include(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (t->t[i].kind == TOKEN_INCLUDE && t->t[i].n > 2 &&
            (t->t[i].text[1] == '/' || t->t[i].text[1] == '.'))
            return true;
    return false;
}

/* An initialised array of at least 4096 elements, or a list of 64 numbers. */
static bool big_table(const struct tokens *t) {
    for (int i = 0, run = 0; i < t->n; i++) {
        run = t->t[i].kind == TOKEN_NUMBER || is(t, i, ",") || is(t, i, "-") ? run + 1 : 0;
        if (run >= 128) return true;
        if (!are(t, i, "[ N ] = {") && !are(t, i, "[ N < < N ] = {")) continue;
        long n = strtol(t->t[i + 1].text, NULL, 0), shift = 0;
        if (is(t, i + 2, "<")) shift = strtol(t->t[i + 4].text, NULL, 0);
        if (shift >= 12 || n >= 4096) return true;
    }
    return false;
}

static bool long_string(const struct tokens *t) {
    for (int i = 0; i < t->n; i++)
        if (t->t[i].kind == TOKEN_STRING && t->t[i].n > 60) return true;
    return false;
}

static bool token_paste(const struct tokens *t) {
    return any(t, "# #");
}

static const struct {
    const char *name;
    bool (*matches)(const struct tokens *t);
} rules[] = {{"atomic-no-clear", atomic_no_clear},
             {"big-table", big_table},
             {"constant-store", constant_store},
             {"constructor", constructor},
             {"default-stream", default_stream},
             {"device-variable", device_variable},
             {"elements-cut", elements_cut},
             {"empty-kernel", empty_kernel},
             {"endless-loop", endless_loop},
             {"extern-c-other", extern_c_other},
             {"far-index", far_index},
             {"fork-unjoined", fork_unjoined},
             {"index-past-end", index_past_end},
             {"input-unused", input_unused},
             {"long-string", long_string},
             {"memset-input", memset_input},
             {"memset-output", memset_output},
             {"no-kernel", no_kernel},
             {"output-unused", output_unused},
             {"outside-include", outside_include},
             {"own-stream", own_stream},
             {"plain-copy", plain_copy},
             {"static-local", static_local},
             {"token-paste", token_paste},
             {"too-many-threads", too_many_threads}};

bool static_rule_known(const char *name) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, name)) return true;
    return false;
}

void static_rules_add(struct features *v, const struct tokens *t) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].matches(t)) feature_add(v, '@', rules[i].name, strlen(rules[i].name));
}
