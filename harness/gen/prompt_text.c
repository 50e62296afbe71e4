/* prompt_text.c: fences, templates and other short text; see prompt_parts.h. */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void draft_open(struct draft *t) {
    t->out = open_memstream(&t->s, &t->size);
    if (!t->out) die(KP_MACHINE, "out of memory");
}

char *draft_close(struct draft *t) {
    bool bad = ferror(t->out);
    if (fclose(t->out) || bad) die(KP_MACHINE, "out of memory");
    return t->s;
}

/* The longest run of backticks. */
static size_t longest_run(const char *s, size_t n) {
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < n; i++) {
        run = s[i] == '`' ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest;
}

/* The number of bytes to show: all, or whole lines of at most `most` bytes. */
static size_t whole_lines(const char *s, size_t most) {
    size_t n = strlen(s);
    if (n <= most) return n;
    while (most > 0 && s[most - 1] != '\n') most--;
    return most;
}

void text_fence(FILE *out, const char *tag, const char *body, size_t most) {
    size_t all = strlen(body), n = whole_lines(body, most), width = longest_run(body, n) + 1;
    if (width < 3) width = 3;
    for (size_t i = 0; i < width; i++) fputc('`', out);
    fprintf(out, "%s\n", tag);
    fwrite(body, 1, n, out);
    if (n && body[n - 1] != '\n') fputc('\n', out);
    for (size_t i = 0; i < width; i++) fputc('`', out);
    fputc('\n', out);
    if (n < all) fprintf(out, "(cut here: %zu more bytes are not shown)\n", all - n);
}

void text_line(FILE *out, const char *s, size_t most) {
    size_t n = strlen(s);
    bool cut = n > most, blank = false, begun = false;
    if (cut) n = most;
    while (cut && n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) n--; /* cut between characters */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c <= ' ' || c == 0x7f) {
            blank = begun;
            continue;
        }
        if (blank) fputc(' ', out);
        fputc(c, out);
        blank = false, begun = true;
    }
    if (cut) fputs("...", out);
}

char *text_one_line(const char *s, size_t most) {
    struct draft t;
    draft_open(&t);
    text_line(t.out, s, most);
    return draft_close(&t);
}

/* ---- Templates -------------------------------------------------------------------------- */

void values_add(struct prompt_values *v, const char *name, char *text, bool must) {
    if (v->n == PROMPT_VALUES) die(KP_BUG, "more than %d values for a template", PROMPT_VALUES);
    if (text) { /* the template breaks the lines */
        size_t n = strlen(text);
        while (n > 0 && text[n - 1] == '\n') text[--n] = 0;
        if (!n) free(text), text = NULL;
    }
    v->v[v->n].name = name;
    v->v[v->n].text = text;
    v->v[v->n].must = must;
    v->v[v->n++].used = false;
}

void values_free(struct prompt_values *v) {
    for (int i = 0; i < v->n; i++) free(v->v[i].text);
    cJSON_Delete(v->json);
    *v = (struct prompt_values){0};
}

/* Index of the value that the {{name}} at `at` asks for; *after is what follows it.  Ends the
 * program if there is none. */
static int value_at(const struct prompt_values *v, const char *path, int line, const char *at,
                    const char **after) {
    size_t n = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (!n || strncmp(at + 2 + n, "}}", 2))
        die(KP_INPUT, "%s:%d: {{ without a name and }}: write {{name}}", path, line);
    *after = at + 2 + n + 2;
    for (int i = 0; i < v->n; i++)
        if (strlen(v->v[i].name) == n && !strncmp(v->v[i].name, at + 2, n)) return i;
    die(KP_INPUT,
        "%s:%d: unknown name {{%.*s}}: remove it, or see values_add in harness/gen for those there "
        "are",
        path, line, (int)n, at + 2);
}

/* Write one line of a template (without its newline) with values filled in.  If one of them is
 * unknown, writes nothing and returns false. */
static bool expand_line(FILE *out, struct prompt_values *v, const char *path, int number,
                        const char *line, size_t n) {
    const char *end = line + n, *at, *after;
    for (int pass = 0; pass < 2; pass++)
        for (const char *p = line; p < end; p = after) {
            at = memmem(p, (size_t)(end - p), "{{", 2);
            if (pass) fwrite(p, 1, (size_t)((at ? at : end) - p), out);
            if (!at) break;
            int i = value_at(v, path, number, at, &after);
            v->v[i].used = true;
            if (!v->v[i].text) return false; /* in the first pass */
            if (pass) fputs(v->v[i].text, out);
        }
    return true;
}

char *prompt_expand(const char *file, struct prompt_values *v) {
    char *path = text_format("%s%s", strchr(file, '/') ? "" : PROMPT_FOLDER "/", file);
    if (access(path, R_OK))
        die(KP_INPUT, "%s: cannot read this template: %s", path, strerror(errno));
    char *template = file_read(path, NULL);
    struct draft t;
    bool blank = true; /* above this line: the start, or a blank line */
    int number = 1;
    draft_open(&t);
    for (const char *line = template; *line; number++) {
        size_t n = strcspn(line, "\n");
        if (n || !blank) {
            bool written = expand_line(t.out, v, path, number, line, n);
            if (written) fputc('\n', t.out);
            if (written) blank = n == 0;
        }
        line += n + (line[n] == '\n');
    }
    for (int i = 0; i < v->n; i++)
        if (v->v[i].must && v->v[i].text && !v->v[i].used)
            die(KP_INPUT, "%s: lacks {{%s}}, which this request is about: add a line with it", path,
                v->v[i].name);
    free(template);
    free(path);
    return draft_close(&t);
}
