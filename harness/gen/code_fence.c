/* code_fence.c: find code blocks, headings and ideas in an answer; see code.h. */
#define _GNU_SOURCE
#include "gen/code.h"
#include "base/code_lex.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 256 * 1024, MOST_BLOCKS = 1000 };

struct block {
    const char *body, *end, *after; /* its text, and where the answer continues */
    size_t indent;                  /* blanks before the opening fence */
    char tag[16];                   /* lower case; "" if none */
    bool closed;
};

static const char *next_line(const char *p) {
    p = strchrnul(p, '\n');
    return *p ? p + 1 : p;
}

/* Whether the rest of the line at p is blank. */
static bool is_blank(const char *p) {
    p += strspn(p, " \t\r");
    return !*p || *p == '\n';
}

/* Read the tag of an opening fence, its first word: "cuda", also of "CUDA kernel.cu". */
static void take_tag(struct block *b, const char *p) {
    p += strspn(p, " \t{.");
    size_t n = strcspn(p, " \t\r\n:{},;"), i = 0;
    for (; i < n && i < sizeof b->tag - 1; i++)
        b->tag[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 32) : p[i];
    b->tag[i] = 0;
}

/* Whether a block of this tag can be the kernel. */
static bool is_kernel_tag(const char *tag) {
    static const char *const tags[] = {"", "cuda", "cu", "cpp", "c++", "c"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (!strcmp(tag, tags[i])) return true;
    return false;
}

/* The length of the fence that starts the line at p, after `indent` blanks; 0 if none.  A line
 * with more backquotes further on is inline code. */
static size_t fence(const char *p, size_t *indent) {
    *indent = strspn(p, " \t");
    p += *indent;
    if (*p != '`' && *p != '~') return 0;
    size_t n = strspn(p, *p == '`' ? "`" : "~");
    const char *more = *p == '`' ? strpbrk(p + n, "`\n") : NULL;
    return n < 3 || (more && *more == '`') ? 0 : n;
}

/* Find the line that closes a fence of n marks c: at least n of them and nothing else.  `code`:
 * skip lines inside a block comment or a raw string. */
static bool find_close(struct block *b, char c, size_t n, bool code) {
    const char *lexed = b->body;
    size_t indent;
    for (const char *p = b->body; *p; p = next_line(p)) {
        size_t length = fence(p, &indent);
        if (length < n || p[indent] != c || !is_blank(p + indent + length)) continue;
        struct lex l = {0};
        while (code && lexed < p) l = lex_at(lexed), lexed += l.n;
        if (lexed > p && !*lexed) return false; /* unclosed until the end */
        if (lexed > p && (l.kind == LEX_RAW || l.kind == LEX_COMMENT || !l.n)) continue;
        b->end = p;
        b->after = next_line(p);
        return true;
    }
    return false;
}

/* Whether a fenced block opens at this line; if so, read all of it.  Only blocks tagged as code
 * are lexed as code: in a shell script, a file pattern would open a comment. */
static bool fence_at(const char *p, struct block *b) {
    size_t n = fence(p, &b->indent);
    if (!n) return false;
    char mark = p[b->indent];
    take_tag(b, p + b->indent + n);
    b->body = next_line(p);
    bool is_code = b->tag[0] && is_kernel_tag(b->tag);
    b->closed = (is_code && find_close(b, mark, n, true)) || find_close(b, mark, n, false);
    if (!b->closed) b->end = b->after = b->body + strlen(b->body);
    return true;
}

/* Whether <file ...> opens at this line; if so, read up to </file>. */
static bool file_at(const char *p, struct block *b) {
    p += strspn(p, " \t");
    if (strncasecmp(p, "<file", 5) || !strchr(" \t>", p[5])) return false;
    p += strcspn(p, ">\n");
    if (*p++ != '>') return false;
    const char *end = strcasestr(p, "</file>");
    *b = (struct block){.body = is_blank(p) ? next_line(p) : p, .closed = end};
    b->end = end ? end : p + strlen(p);
    b->after = end ? next_line(end) : b->end;
    if (b->end < b->body) b->end = b->body;
    return true;
}

static bool block_at(const char *p, struct block *b) {
    return file_at(p, b) || fence_at(p, b);
}

/* If a block contains only another block, a fence in a file or the reverse, replace it by that
 * one. */
static void unwrap(struct block *b) {
    const char *p = b->body;
    struct block inner;
    while (p < b->end && is_blank(p)) p = next_line(p);
    if (p >= b->end || !block_at(p, &inner) || !inner.closed || inner.end > b->end) return;
    const char *rest = inner.after;
    while (rest < b->end && is_blank(rest)) rest = next_line(rest);
    if (rest < b->end) return;
    *b = inner;
}

/* A block's text without the indentation of its fence.  Free it. */
static char *text_of(const struct block *b) {
    char *text = malloc((size_t)(b->end - b->body) + 1), *to = text;
    if (!text) die(KP_MACHINE, "out of memory");
    for (const char *p = b->body, *next; p < b->end; p = next) {
        size_t blanks = strspn(p, " \t");
        next = next_line(p);
        if (next > b->end) next = b->end;
        p += blanks < b->indent ? blanks : b->indent;
        if (p < next) to = mempcpy(to, p, (size_t)(next - p));
    }
    *to = 0;
    return text;
}

static bool is_utf8(const char *text) {
    size_t n = strlen(text), k;
    for (; n && (k = utf8_length(text, n)); text += k) n -= k;
    return n == 0;
}

/* Why a kernel is rejected; NULL if it is not. */
static const char *objection(const char *kernel, int blocks) {
    if (!blocks) return "the answer holds no block of code";
    if (!kernel) return "no block of code in the answer defines launch";
    if (strlen(kernel) > MOST_BYTES) return "the kernel is larger than 256 KB";
    if (!is_utf8(kernel)) return "the kernel holds bytes that are not UTF-8";
    return NULL;
}

char *code_extract(const char *answer, char why[200]) {
    char *text = lex_lines(answer), *kernel = NULL;
    const char *no = NULL;
    struct block b;
    int blocks = 0;
    for (const char *p = text; *p && !no;) {
        if (!block_at(p, &b)) {
            p = next_line(p);
            continue;
        }
        p = b.after;
        if (!b.closed) no = "the last block of code is not closed: the answer was cut";
        if (++blocks > MOST_BLOCKS) no = "the answer holds more than 1000 blocks of code";
        unwrap(&b);
        if (no || !is_kernel_tag(b.tag)) continue;
        char *candidate = text_of(&b);
        if (code_defines_launch(candidate)) {
            free(kernel);
            kernel = candidate;
        } else {
            free(candidate);
        }
    }
    if (!no) no = objection(kernel, blocks);
    snprintf(why, 200, "%s", no ? no : "");
    free(text);
    if (!no) return kernel;
    free(kernel);
    return NULL;
}

/* The level of the heading at p, and its title; 0 if it is not one. */
static int heading(const char *p, const char **title, size_t *n) {
    p += strspn(p, " ");
    int level = (int)strspn(p, "#");
    if (level < 1 || level > 6 || !strchr(" \t", p[level]) || !p[level]) return 0;
    const char *end = strchrnul(p, '\n'), marks[] = " \t\r*_`:#";
    p += level;
    p += strspn(p, marks);
    size_t digits = strspn(p, "0123456789");
    if (digits && strchr(".)", p[digits]) && p[digits]) p += digits + 1, p += strspn(p, marks);
    while (end > p && strchr(marks, end[-1])) end--;
    *title = p;
    *n = end > p ? (size_t)(end - p) : 0;
    return level;
}

char *code_section(const char *answer, const char *name) {
    char *text = lex_lines(answer);
    const char *start = NULL, *end = NULL, *title;
    struct block b;
    int found = 0;
    for (const char *p = text; *p;) {
        if (block_at(p, &b)) {
            p = b.after;
            continue;
        }
        size_t n;
        int level = heading(p, &title, &n);
        if (start && level && level <= found) {
            end = p;
            break;
        }
        p = next_line(p);
        if (!start && level && n == strlen(name) && !strncasecmp(title, name, n))
            start = p, found = level;
    }
    if (!start) start = end = text;
    if (!end) end = start + strlen(start);
    while (start < end && strchr(" \t\n", *start)) start++;
    while (end > start && strchr(" \t\n", end[-1])) end--;
    char *section = strndup(start, (size_t)(end - start));
    if (!section) die(KP_MACHINE, "out of memory");
    free(text);
    return section;
}

cJSON *code_ideas(const char *answer) {
    cJSON *best = cJSON_CreateArray(), *item;
    bool best_objects = false;
    const char *p = answer, *end;
    for (int tries = 0; tries < 1000 && (p = strchr(p, '[')); tries++) {
        cJSON *array = cJSON_ParseWithOpts(p, &end, 0), *ideas = cJSON_CreateArray();
        bool objects = false;
        cJSON_ArrayForEach(item, array) {
            const char *text =
                cJSON_IsString(item) ? item->valuestring : json_text(item, "idea", "");
            objects |= cJSON_IsObject(item);
            if (text[strspn(text, " \t\r\n")])
                cJSON_AddItemToArray(ideas, cJSON_CreateString(text));
        }
        if (cJSON_GetArraySize(ideas) && objects >= best_objects) {
            cJSON_Delete(best);
            best = ideas;
            best_objects = objects;
        } else {
            cJSON_Delete(ideas);
        }
        p = array ? end : p + 1;
        cJSON_Delete(array);
    }
    return best;
}
