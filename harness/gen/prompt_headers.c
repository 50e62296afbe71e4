/* prompt_headers.c: the project's headers in a prompt: what they offer, and the text of those that
 * a kernel includes; see prompt_parts.h. */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/code_lex.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_INCLUDED = 32, MOST_INTERFACE = 1536 };

/* Remove what is compiled for racecheck alone: `#ifdef KP_RACECHECK` up to its #else or #endif. */
static void drop_racecheck(char *text) {
    char *to = text;
    bool inside = false, other = false;
    for (char *p = text, *next; *p; p = next) {
        next = strchr(p, '\n') ? strchr(p, '\n') + 1 : p + strlen(p);
        bool start = !strncmp(p, "#ifdef KP_RACECHECK", 19), turn = !strncmp(p, "#else", 5),
             end = !strncmp(p, "#endif", 6);
        bool keep = !inside && !start && !(other && end);
        if (start) inside = true;
        if (inside && turn) inside = false, other = true;
        if (end) inside = other = false;
        if (!keep || (other && turn)) continue;
        memmove(to, p, (size_t)(next - p));
        to += next - p;
    }
    *to = 0;
}

/* The text of a header as a prompt shows it; NULL if there is no such file.  The model chose the
 * name, and "." is a folder.  Free it. */
static char *header_text(const char *path) {
    struct stat s;
    if (stat(path, &s) || !S_ISREG(s.st_mode) || access(path, R_OK)) return NULL;
    char *text = file_read(path, NULL);
    drop_racecheck(text);
    return text;
}

/* ---- What headers offer ---- */

/* The declarations of a source with their comments, without bodies, directives and details. */
static char *interface(const char *source) {
    struct text out = {0};
    int depth = 0, newlines = 0;
    bool directive = false;
    struct lex l;
    text_add(&out, "", 0);
    for (const char *p = source; l = lex_at(p), l.kind != LEX_END; p += l.n) {
        bool line = l.kind == LEX_NEWLINE;
        directive = line ? false : directive || (newlines && lex_is(l, "#"));
        if (directive) continue;
        if (lex_is(l, "{") && depth++ == 0) text_add(&out, "{...}", 5);
        if (lex_is(l, "}")) depth--;
        if (depth || lex_is(l, "}")) continue;
        newlines = line ? newlines + 1 : l.kind == LEX_SPACE ? newlines : 0;
        if (newlines < 3) text_add(&out, l.at, l.n);
    }
    return out.s;
}

char *prompt_interfaces(void) {
    struct draft t;
    glob_t g;
    draft_open(&t);
    if (glob(PROMPT_HEADERS "/*.cuh", 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++) {
            char *text = header_text(g.gl_pathv[i]);
            char *offers = text ? interface(text) : NULL;
            fprintf(t.out, "%s## %s\n\n", i ? "\n" : "", strrchr(g.gl_pathv[i], '/') + 1);
            if (offers) text_fence(t.out, "cuda", offers, MOST_INTERFACE);
            free(offers);
            free(text);
        }
        globfree(&g);
    }
    return draft_close(&t);
}

/* ---- Headers of kernels ---- */

struct included {
    int n;
    char *name[MOST_INCLUDED];
    char *text[MOST_INCLUDED];
};

/* Collect each header of the project that a source includes, and the headers that those include. */
static void collect(struct included *h, const char *source) {
    for (const char *p = source; p; p = strchr(p, '\n')) {
        char name[64];
        int end = 0; /* stays 0 unless the name has its closing quote */
        p += *p == '\n';
        if (sscanf(p, " # include \"%63[A-Za-z0-9_.]\"%n", name, &end) != 1 || !end) continue;
        bool known = h->n == MOST_INCLUDED;
        for (int i = 0; i < h->n; i++) known |= !strcmp(h->name[i], name);
        char *path = text_format(PROMPT_HEADERS "/%s", name),
             *text = known ? NULL : header_text(path);
        free(path);
        if (!text) continue;
        h->name[h->n] = text_format("%s", name);
        h->text[h->n++] = text;
        collect(h, text);
    }
}

char *prompt_header_names(const char *source) {
    struct included h = {0};
    struct draft t;
    draft_open(&t);
    collect(&h, source);
    for (int i = 0; i < h.n; i++) {
        fprintf(t.out, "%s%s", i ? " " : "", h.name[i]);
        free(h.name[i]), free(h.text[i]);
    }
    return draft_close(&t);
}

char *prompt_included(const struct prompt_cell *c, const struct prompt_turn *t, size_t most) {
    struct included h = {0};
    struct draft x;
    for (int i = 0; i <= t->nshown; i++) {
        const struct attempt *a = i < t->nshown ? t->shown[i] : t->failed;
        int skipped;
        char *code = a ? attempt_code(c, a, &skipped) : NULL;
        if (code) collect(&h, code);
        free(code);
    }
    draft_open(&x);
    if (h.n) fputs("# Headers of the project that these kernels include\n", x.out);
    for (int i = 0; i < h.n; i++) {
        fprintf(x.out, "\n## %s\n\n", h.name[i]);
        text_fence(x.out, "cuda", h.text[i], most);
        free(h.name[i]);
        free(h.text[i]);
    }
    return draft_close(&x);
}
