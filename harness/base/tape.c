/* tape.c: text form, merging and placing of tapes, without CUDA.  From and to a graph:
 * replay/tape_graph.c. */
#define _GNU_SOURCE
#include "base/tape.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* what a tape may hold: CUDA's own limits, or far more than a kernel has use for */
       MOST_NODES = 10000,
       MOST_EDGES = 100000,
       MOST_THREADS = 1024,
       MOST_SHARED = 1 << 20,
       MOST_CLUSTER = 64,
       MOST_POLICY = 16,
       MOST_PARAMETER_BYTES = 32764,
       MOST_PORT = 16,
       MOST_SMALL = 1000000
};

static void *grow(void *p, size_t bytes) {
    p = realloc(p, bytes ? bytes : 1);
    if (!p) die(KP_MACHINE, "out of memory");
    return p;
}

void tape_free(struct tape *t) {
    if (!t) return;
    for (int i = 0; i < t->nnodes; i++) {
        free(t->nodes[i].name);
        free(t->nodes[i].params);
        free(t->nodes[i].reloc);
    }
    free(t->nodes);
    free(t->edges);
    free(t);
}

static bool fail(char message[KP_TAPE_MESSAGE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(char message[KP_TAPE_MESSAGE], const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(message, KP_TAPE_MESSAGE, format, ap);
    va_end(ap);
    return false;
}

/* ---- Text -------------------------------------------------------------------- */

static void print_kernel(FILE *f, const struct tape_node *n) {
    fprintf(f, "kernel %s grid %u %u %u block %u %u %u shared %u cluster %u %u %u", n->name,
            n->grid[0], n->grid[1], n->grid[2], n->block[0], n->block[1], n->block[2], n->shared,
            n->cluster[0], n->cluster[1], n->cluster[2]);
    fprintf(f, " cooperative %d carveout %d policy %d nonportable %d params %u ", n->cooperative,
            n->carveout, n->cluster_policy, n->nonportable, n->param_bytes);
    for (uint32_t i = 0; i < n->param_bytes; i++) fprintf(f, "%02x", n->params[i]);
    if (!n->param_bytes) fputc('-', f);
    fprintf(f, " relocs %d", n->nreloc);
    for (int i = 0; i < n->nreloc; i++)
        fprintf(f, " %u %u %llu", n->reloc[i].at, n->reloc[i].buffer,
                (unsigned long long)n->reloc[i].offset);
    fputc('\n', f);
}

char *tape_print(const struct tape *t) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) die(KP_MACHINE, "out of memory");
    fprintf(f, "kernelproof-tape 1 %s nodes %d edges %d\n", t->merged ? "merged" : "raw", t->nnodes,
            t->nedges);
    for (int i = 0; i < t->nnodes; i++) {
        const struct tape_node *n = &t->nodes[i];
        if (n->type == TAPE_KERNEL) print_kernel(f, n);
        if (n->type == TAPE_MEMSET)
            fprintf(f, "memset %u %llu value %u element %u width %llu height %llu pitch %llu\n",
                    n->to_buffer, (unsigned long long)n->to, n->value, n->element,
                    (unsigned long long)n->width, (unsigned long long)n->height,
                    (unsigned long long)n->pitch);
        if (n->type == TAPE_COPY)
            fprintf(f, "copy %u %llu to %u %llu width %llu\n", n->from_buffer,
                    (unsigned long long)n->from, n->to_buffer, (unsigned long long)n->to,
                    (unsigned long long)n->width);
    }
    for (int i = 0; i < t->nedges; i++)
        fprintf(f, "edge %d %d type %d ports %d %d\n", t->edges[i].from, t->edges[i].to,
                t->edges[i].type, t->edges[i].from_port, t->edges[i].to_port);
    fputs("end\n", f);
    fclose(f);
    return text;
}

/* The words of one line, taken in order.  `bad` stays set once anything is wrong. */
struct words {
    char *rest;
    bool bad;
};

static const char *word(struct words *w) {
    char *p = w->bad ? NULL : strsep(&w->rest, " ");
    if (!p || !*p) w->bad = true;
    return w->bad ? "" : p;
}

static void expect(struct words *w, const char *text) {
    if (strcmp(word(w), text)) w->bad = true;
}

static uint64_t number(struct words *w, uint64_t limit) {
    const char *p = word(w);
    char *end;
    if (*p < '0' || *p > '9') w->bad = true;
    uint64_t x = strtoull(p, &end, 10);
    if (*end || x > limit) w->bad = true;
    return w->bad ? 0 : x;
}

static int small(struct words *w) { /* may be -1 */
    const char *p = word(w);
    char *end;
    long x = strtol(p, &end, 10);
    if (!*p || *end || x < -1 || x > MOST_SMALL) w->bad = true;
    return w->bad ? 0 : (int)x;
}

static unsigned digit(char c) {
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void hex(struct words *w, struct tape_node *n) {
    const char *p = word(w);
    size_t digits = 2 * (size_t)n->param_bytes;
    n->params = grow(NULL, n->param_bytes);
    if (digits ? strlen(p) != digits || strspn(p, "0123456789abcdef") != digits : strcmp(p, "-")) {
        w->bad = true;
        return;
    }
    for (uint32_t i = 0; i < n->param_bytes; i++)
        n->params[i] = (uint8_t)(digit(p[2 * i]) << 4 | digit(p[2 * i + 1]));
}

static void parse_kernel(struct words *w, struct tape_node *n) {
    n->type = TAPE_KERNEL;
    n->name = strdup(word(w));
    expect(w, "grid");
    for (int k = 0; k < 3; k++) n->grid[k] = (uint32_t)number(w, UINT32_MAX);
    expect(w, "block");
    for (int k = 0; k < 3; k++) n->block[k] = (uint32_t)number(w, MOST_THREADS);
    expect(w, "shared");
    n->shared = (uint32_t)number(w, MOST_SHARED);
    expect(w, "cluster");
    for (int k = 0; k < 3; k++) n->cluster[k] = (uint32_t)number(w, MOST_CLUSTER);
    expect(w, "cooperative");
    n->cooperative = (int)number(w, 1);
    expect(w, "carveout");
    n->carveout = small(w);
    expect(w, "policy");
    n->cluster_policy = (int)number(w, MOST_POLICY);
    expect(w, "nonportable");
    n->nonportable = (int)number(w, 1);
    expect(w, "params");
    n->param_bytes = (uint32_t)number(w, MOST_PARAMETER_BYTES);
    hex(w, n);
    expect(w, "relocs");
    n->nreloc = (int)number(w, n->param_bytes / 8);
    n->reloc = grow(NULL, (size_t)n->nreloc * sizeof *n->reloc);
    for (int i = 0; i < n->nreloc; i++) {
        n->reloc[i].at = (uint32_t)number(w, w->bad || n->param_bytes < 8 ? 0 : n->param_bytes - 8);
        n->reloc[i].buffer = (uint32_t)number(w, KP_MAX_BUFFERS);
        n->reloc[i].offset = number(w, UINT64_MAX);
    }
}

static void parse_memset(struct words *w, struct tape_node *n) {
    n->type = TAPE_MEMSET;
    n->to_buffer = (uint32_t)number(w, KP_MAX_BUFFERS);
    n->to = number(w, UINT64_MAX);
    expect(w, "value");
    n->value = (uint32_t)number(w, UINT32_MAX);
    expect(w, "element");
    n->element = (uint32_t)number(w, 4);
    expect(w, "width");
    n->width = number(w, UINT64_MAX);
    expect(w, "height");
    n->height = number(w, UINT64_MAX);
    expect(w, "pitch");
    n->pitch = number(w, UINT64_MAX);
    if (n->element != 1 && n->element != 2 && n->element != 4) w->bad = true;
}

static void parse_copy(struct words *w, struct tape_node *n) {
    n->type = TAPE_COPY;
    n->from_buffer = (uint32_t)number(w, KP_MAX_BUFFERS);
    n->from = number(w, UINT64_MAX);
    expect(w, "to");
    n->to_buffer = (uint32_t)number(w, KP_MAX_BUFFERS);
    n->to = number(w, UINT64_MAX);
    expect(w, "width");
    n->width = number(w, UINT64_MAX);
}

static void parse_node(struct words *w, struct tape_node *n) {
    const char *kind = word(w);
    n->carveout = -1;
    if (!strcmp(kind, "kernel"))
        parse_kernel(w, n);
    else if (!strcmp(kind, "memset"))
        parse_memset(w, n);
    else if (!strcmp(kind, "copy"))
        parse_copy(w, n);
    else
        w->bad = true;
}

/* An edge leads to none before the node that the last one led to. */
static void parse_edge(struct words *w, struct tape_edge *e, int before, int nnodes) {
    expect(w, "edge");
    e->from = (int)number(w, (uint64_t)nnodes);
    e->to = (int)number(w, (uint64_t)nnodes);
    expect(w, "type");
    e->type = (int)number(w, 1);
    expect(w, "ports");
    e->from_port = (int)number(w, MOST_PORT);
    e->to_port = (int)number(w, MOST_PORT);
    if (e->from >= e->to || e->to < before || e->to >= nnodes) w->bad = true;
}

static void parse_header(struct words *w, struct tape *t) {
    expect(w, "kernelproof-tape");
    expect(w, "1");
    const char *form = word(w);
    t->merged = !strcmp(form, "merged");
    if (!t->merged && strcmp(form, "raw")) w->bad = true;
    expect(w, "nodes");
    t->nnodes = (int)number(w, MOST_NODES);
    expect(w, "edges");
    t->nedges = (int)number(w, MOST_EDGES);
    if (w->bad) t->nnodes = t->nedges = 0;
    t->nodes = grow(NULL, (size_t)t->nnodes * sizeof *t->nodes);
    t->edges = grow(NULL, (size_t)t->nedges * sizeof *t->edges);
    memset(t->nodes, 0, (size_t)t->nnodes * sizeof *t->nodes);
}

/* Print what was parsed, and return the first line that differs from what was read (leading zeros,
 * overflow); 0 if there is none. */
static int unlike(const struct tape *t, const char *text) {
    char *again = tape_print(t);
    int line = 1;
    const char *p = again;
    for (; *p && *p == *text; p++, text++) line += *p == '\n';
    if (*p == *text) line = 0;
    free(again);
    return line;
}

struct tape *tape_parse(const char *text, char message[KP_TAPE_MESSAGE]) {
    struct tape *t = calloc(1, sizeof *t);
    char *copy = strdup(text), *rest = copy;
    if (!t || !copy) die(KP_MACHINE, "out of memory");
    int total = 1, line = 0;
    bool bad = false;
    for (; line < total && !bad; line++) {
        struct words w = {strsep(&rest, "\n"), false};
        if (!w.rest) w.bad = true;
        if (line == 0) {
            parse_header(&w, t);
            total = 2 + t->nnodes + t->nedges;
        } else if (line <= t->nnodes)
            parse_node(&w, &t->nodes[line - 1]);
        else if (line < total - 1) {
            struct tape_edge *e = &t->edges[line - 1 - t->nnodes];
            parse_edge(&w, e, e > t->edges ? e[-1].to : 0, t->nnodes);
        } else
            expect(&w, "end");
        bad = w.bad || w.rest;
    }
    free(copy);
    int odd = bad ? line : unlike(t, text);
    if (odd) line = odd, bad = true;
    if (!bad) return t;
    fail(message, "line %d of the tape is not what a recorder writes", line);
    tape_free(t);
    return NULL;
}

/* ---- Comparing, merging, placing ----------------------------------------------- */

static const char *node_name(const struct tape_node *n) {
    return n->type == TAPE_KERNEL ? n->name : n->type == TAPE_MEMSET ? "memset" : "copy";
}

/* Whether two nodes agree in everything but addresses: launch shape, sizes, values. */
static bool same_shape(const struct tape_node *a, const struct tape_node *b) {
    if (a->type != b->type) return false;
    if (a->type == TAPE_KERNEL)
        return !strcmp(a->name, b->name) && !memcmp(a->grid, b->grid, sizeof a->grid) &&
               !memcmp(a->block, b->block, sizeof a->block) && a->shared == b->shared &&
               !memcmp(a->cluster, b->cluster, sizeof a->cluster) &&
               a->cooperative == b->cooperative && a->carveout == b->carveout &&
               a->cluster_policy == b->cluster_policy && a->nonportable == b->nonportable &&
               a->param_bytes == b->param_bytes;
    return a->width == b->width && a->height == b->height && a->pitch == b->pitch &&
           a->value == b->value && a->element == b->element;
}

static bool same_graph(const struct tape *a, const struct tape *b, char message[KP_TAPE_MESSAGE]) {
    if (a->nnodes != b->nnodes)
        return fail(message, "%d launches against %d", a->nnodes, b->nnodes);
    if (a->nedges != b->nedges)
        return fail(message, "%d dependencies against %d", a->nedges, b->nedges);
    for (int i = 0; i < a->nnodes; i++)
        if (!same_shape(&a->nodes[i], &b->nodes[i]))
            return fail(message, "launch %d (%s) differs from (%s)", i, node_name(&a->nodes[i]),
                        node_name(&b->nodes[i]));
    for (int i = 0; i < a->nedges; i++)
        if (memcmp(&a->edges[i], &b->edges[i], sizeof a->edges[i]))
            return fail(message, "dependency %d differs", i);
    return true;
}

bool tape_equal(const struct tape *a, const struct tape *b, char message[KP_TAPE_MESSAGE]) {
    if (!same_graph(a, b, message)) return false;
    for (int i = 0; i < a->nnodes; i++) {
        const struct tape_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->type == TAPE_KERNEL && memcmp(x->params, y->params, x->param_bytes))
            return fail(message, "parameters of launch %d (%s) differ", i, x->name);
        if (x->nreloc != y->nreloc ||
            (x->nreloc && memcmp(x->reloc, y->reloc, (size_t)x->nreloc * sizeof *x->reloc)))
            return fail(message, "relocations of launch %d (%s) differ", i, node_name(x));
        if (x->type != TAPE_KERNEL &&
            (x->to != y->to || x->from != y->from || x->to_buffer != y->to_buffer ||
             x->from_buffer != y->from_buffer))
            return fail(message, "addresses of launch %d (%s) differ", i, node_name(x));
    }
    return true;
}

static bool within(uint64_t size, uint64_t offset, uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
}

/* Find the buffer that holds [address, address + bytes); false if none does. */
static bool find(const struct tape_span *at, int n, uint64_t address, uint64_t bytes,
                 uint32_t *buffer, uint64_t *offset) {
    for (int i = 0; i < n; i++)
        if (address >= at[i].address && within(at[i].bytes, address - at[i].address, bytes)) {
            *buffer = (uint32_t)i;
            *offset = address - at[i].address;
            return true;
        }
    return false;
}

static uint64_t load64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

/* Parameter bytes that differ between the two recordings must belong to a word that is the address
 * of the same byte of the same buffer in both.  A word at a multiple of 8 bytes is tried first,
 * then any other (packed structs). */
static bool relocate(struct tape_node *out, const struct tape_node *a, const struct tape_span *at_a,
                     const struct tape_node *b, const struct tape_span *at_b, int n,
                     char message[KP_TAPE_MESSAGE]) {
    for (uint32_t i = 0; i < a->param_bytes; i++) {
        if (a->params[i] == b->params[i]) continue;
        uint32_t aligned = i & ~7u, try_at[8], ntry = 0;
        try_at[ntry++] = aligned;
        for (uint32_t k = i >= 7 ? i - 7 : 0; k <= i && ntry < 8; k++)
            if (k != aligned) try_at[ntry++] = k;
        bool found = false;
        for (uint32_t k = 0; k < ntry && !found; k++) {
            struct tape_reloc r = {try_at[k], 0, 0}, s = r;
            if (r.at + 8 > a->param_bytes) continue;
            found = find(at_a, n, load64(a->params + r.at), 0, &r.buffer, &r.offset) &&
                    find(at_b, n, load64(b->params + r.at), 0, &s.buffer, &s.offset) &&
                    r.buffer == s.buffer && r.offset == s.offset;
            if (!found) continue;
            out->reloc = grow(out->reloc, (size_t)(out->nreloc + 1) * sizeof r);
            out->reloc[out->nreloc++] = r;
            memset(out->params + r.at, 0, 8);
            i = r.at + 7;
        }
        if (!found)
            return fail(message,
                        "byte %u of the parameters of %s depends on where buffers lie or on the "
                        "recording, and is not an address of a declared buffer",
                        i, a->name);
    }
    return true;
}

/* Bytes from the first to the last that a memset or a copy touches; UINT64_MAX if that
 * overflows. */
static uint64_t extent(const struct tape_node *n) {
    uint64_t rows = n->type == TAPE_MEMSET && n->height > 1 ? n->height - 1 : 0, row, above, all;
    bool over = __builtin_mul_overflow(n->width, n->type == TAPE_MEMSET ? n->element : 1, &row);
    over |= __builtin_mul_overflow(rows, n->pitch, &above);
    over |= __builtin_add_overflow(row, above, &all);
    return over ? UINT64_MAX : all;
}

static bool merge_memory(struct tape_node *out, const struct tape_node *a,
                         const struct tape_span *at_a, const struct tape_node *b,
                         const struct tape_span *at_b, int n, char message[KP_TAPE_MESSAGE]) {
    uint64_t bytes = extent(a), offset;
    uint32_t buffer;
    if (!find(at_a, n, a->to, bytes, &out->to_buffer, &out->to) ||
        !find(at_b, n, b->to, bytes, &buffer, &offset) || buffer != out->to_buffer ||
        offset != out->to)
        return fail(message, "a %s writes outside the declared buffers", node_name(a));
    if (a->type == TAPE_COPY && (!find(at_a, n, a->from, bytes, &out->from_buffer, &out->from) ||
                                 !find(at_b, n, b->from, bytes, &buffer, &offset) ||
                                 buffer != out->from_buffer || offset != out->from))
        return fail(message, "a copy reads outside the declared buffers");
    return true;
}

/* A deep copy. */
static struct tape *copy_of(const struct tape *a) {
    struct tape *t = grow(NULL, sizeof *t);
    *t = *a;
    t->nodes = grow(NULL, (size_t)a->nnodes * sizeof *t->nodes);
    t->edges = grow(NULL, (size_t)a->nedges * sizeof *t->edges);
    memcpy(t->edges, a->edges, (size_t)a->nedges * sizeof *t->edges);
    for (int i = 0; i < a->nnodes; i++) {
        const struct tape_node *n = &a->nodes[i];
        struct tape_node *m = &t->nodes[i];
        *m = *n;
        m->name = n->name ? strdup(n->name) : NULL;
        m->params = grow(NULL, n->param_bytes);
        if (n->param_bytes) memcpy(m->params, n->params, n->param_bytes);
        m->reloc = grow(NULL, (size_t)n->nreloc * sizeof *m->reloc);
        if (n->nreloc) memcpy(m->reloc, n->reloc, (size_t)n->nreloc * sizeof *m->reloc);
    }
    return t;
}

struct tape *tape_merge(const struct tape *a, const struct tape_span *at_a, const struct tape *b,
                        const struct tape_span *at_b, int n, char message[KP_TAPE_MESSAGE]) {
    char why[KP_TAPE_MESSAGE];
    if (!same_graph(a, b, why)) {
        fail(message, "two recordings differ: %.400s", why);
        return NULL;
    }
    struct tape *t = copy_of(a);
    t->merged = true;
    for (int i = 0; i < t->nnodes; i++) {
        const struct tape_node *x = &a->nodes[i], *y = &b->nodes[i];
        bool ok = x->type == TAPE_KERNEL ? relocate(&t->nodes[i], x, at_a, y, at_b, n, message)
                                         : merge_memory(&t->nodes[i], x, at_a, y, at_b, n, message);
        if (ok) continue;
        tape_free(t);
        return NULL;
    }
    return t;
}

struct tape *tape_place(const struct tape *merged, const struct tape_span *at, int nbuffers,
                        char message[KP_TAPE_MESSAGE]) {
    struct tape *t = copy_of(merged);
    t->merged = false;
    bool ok = merged->merged || fail(message, "the tape is not merged");
    for (int i = 0; i < t->nnodes && ok; i++) {
        struct tape_node *n = &t->nodes[i];
        for (int k = 0; k < n->nreloc && ok; k++) {
            struct tape_reloc *r = &n->reloc[k];
            if (r->buffer >= (uint32_t)nbuffers || r->offset > at[r->buffer].bytes)
                ok = fail(message, "launch %d names a place outside buffer %u", i, r->buffer);
            uint64_t address = ok ? at[r->buffer].address + r->offset : 0;
            memcpy(n->params + r->at, &address, 8);
        }
        n->nreloc = 0;
        if (n->type == TAPE_KERNEL || !ok) continue;
        if (n->to_buffer >= (uint32_t)nbuffers || n->from_buffer >= (uint32_t)nbuffers)
            ok = fail(message, "launch %d names an unknown buffer", i);
        else if (!within(at[n->to_buffer].bytes, n->to, extent(n)) ||
                 (n->type == TAPE_COPY && !within(at[n->from_buffer].bytes, n->from, extent(n))))
            ok = fail(message, "launch %d (%s) leaves its buffer", i, node_name(n));
        else {
            n->to += at[n->to_buffer].address;
            if (n->type == TAPE_COPY) n->from += at[n->from_buffer].address;
            n->to_buffer = n->from_buffer = 0; /* raw tapes name no buffers */
        }
    }
    if (ok) return t;
    tape_free(t);
    return NULL;
}
