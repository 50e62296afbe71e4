/* test_tape.c: the text form of tapes read and written, every malformed line refused, and
 * addresses merged from two recordings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/tape.h"

#define KERNEL_TAIL " cluster 0 0 0 cooperative 0 carveout -1 policy 0 nonportable 0 params "

static const char whole[] =
    "kernelproof-tape 1 merged nodes 5 edges 4\n"
    "memset 2 64 value 7 element 4 width 16 height 1 pitch 0\n"
    "kernel _Z4reluPKfPf grid 1 2 65535 block 1024 1 1 shared 232448 cluster 16 1 1 cooperative 1 "
    "carveout 100 policy 1 nonportable 1 params 20 0000000000000000000000000000000012345678 "
    "relocs 2 0 0 0 8 1 18446744073709551615\n"
    "kernel a grid 1 1 1 block 32 1 1 shared 0" KERNEL_TAIL "0 - relocs 0\n"
    "copy 0 4 to 1 8 width 12\n"
    "memset 1 0 value 4294967295 element 1 width 3 height 9 pitch 512\n"
    "edge 0 1 type 0 ports 0 0\n"
    "edge 1 2 type 1 ports 1 0\n"
    "edge 1 3 type 0 ports 0 0\n"
    "edge 3 4 type 0 ports 0 0\n"
    "end\n";

static struct tape *parsed(const char *text) {
    char message[KP_TAPE_MESSAGE] = "";
    struct tape *t = tape_parse(text, message);
    if (!t) fail_msg("%s", message);
    return t;
}

static void test_round_trip(void **state) {
    (void)state;
    const char *const texts[] = {whole, "kernelproof-tape 1 raw nodes 0 edges 0\nend\n"};
    for (int i = 0; i < 2; i++) {
        char message[KP_TAPE_MESSAGE];
        struct tape *t = parsed(texts[i]), *u;
        char *text = tape_print(t);
        assert_string_equal(text, texts[i]);
        u = parsed(text);
        assert_true(tape_equal(t, u, message));
        tape_free(u);
        tape_free(t);
        free(text);
    }
    tape_free(NULL);
}

static void test_parsed(void **state) {
    (void)state;
    struct tape *t = parsed(whole);
    assert_true(t->merged);
    assert_int_equal(t->nnodes, 5);
    assert_int_equal(t->nedges, 4);
    const struct tape_node *n = &t->nodes[1];
    assert_int_equal(n->type, TAPE_KERNEL);
    assert_string_equal(n->name, "_Z4reluPKfPf");
    assert_int_equal(n->grid[2], 65535);
    assert_int_equal(n->cluster[0], 16);
    assert_int_equal(n->param_bytes, 20);
    assert_int_equal(n->params[19], 0x78);
    assert_int_equal(n->reloc[1].at, 8);
    assert_true(n->reloc[1].offset == UINT64_MAX);
    assert_int_equal(t->nodes[2].carveout, -1);
    assert_int_equal(t->nodes[4].pitch, 512);
    assert_int_equal(t->edges[1].type, 1);
    tape_free(t);
}

static void refused(const char *text, int line) {
    char message[KP_TAPE_MESSAGE] = "", expected[64];
    snprintf(expected, sizeof expected, "line %d of the tape", line);
    struct tape *t = tape_parse(text, message);
    if (t) fail_msg("accepted:\n%s", text);
    if (!strstr(message, expected)) fail_msg("'%s', not '%s':\n%s", message, expected, text);
}

/* The whole tape with the first `from` replaced. */
static char *changed(const char *from, const char *to) {
    const char *at = strstr(whole, from);
    char *text = malloc(sizeof whole + strlen(to));
    assert_non_null(at);
    assert_non_null(text);
    sprintf(text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    return text;
}

/* A change of the whole tape, and the line that is refused because of it. */
static const struct {
    int line;
    const char *from, *to;
} malformed[] = {
    {1, "kernelproof-tape", "kernelproof"},
    {1, "tape 1", "tape 2"},
    {1, "merged", "cooked"},
    {1, "nodes 5", "nodes 5x"},
    {1, "nodes 5", "nodes 05"},
    {1, "nodes 5", "nodes -1"},
    {1, "nodes 5", "nodes 10001"},
    {1, "edges 4", "edges"},
    {1, "edges 4", "edges 100001"},
    {1, "edges 4", "edges 4 "},
    {2, "memset", "memsets"},
    {2, "memset 2", "memset 1025"},
    {2, "memset 2 64", "memset  2 64"},
    {2, "value 7", "value 4294967296"},
    {2, "element 4", "element 3"},
    {2, "width 16", "width +16"},
    {2, "width 16", "width 99999999999999999999"},
    {2, "height 1", "heigth 1"},
    {2, "pitch 0\n", "pitch 0 0\n"},
    {2, "pitch 0\n", "pitch 0\r\n"},
    {2, "pitch 0\n", "\n"},
    {3, "kernel _Z4reluPKfPf", "kernel "},
    {3, "grid 1 2", "grid 1"},
    {3, "grid 1 2", "grid 1 4294967296"},
    {3, "block 1024", "block 1025"},
    {3, "shared 232448", "shared 1048577"},
    {3, "cluster 16", "cluster 65"},
    {3, "cooperative 1", "cooperative 2"},
    {3, "carveout 100", "carveout -2"},
    {3, "carveout 100", "carveout +100"},
    {3, "policy 1", "policy 17"},
    {3, "nonportable 1", "nonportable x"},
    {3, "params 20", "params 21"},
    {3, "params 20", "params 32765"},
    {3, "12345678", "1234567"},
    {3, "12345678", "1234567g"},
    {3, "12345678", "1234567A"},
    {3, "relocs 2", "relocs 3"},
    {3, "relocs 2", "relocs 1"},
    {3, "relocs 2 0 0 0 8", "relocs 2 0 0 0 13"},
    {3, "18446744073709551615", "18446744073709551616"},
    {4, " - relocs", " 00 relocs"},
    {4, " - relocs", "  relocs"},
    {4, "relocs 0\n", "relocs 1 0 0 0\n"},
    {5, "copy 0 4 to", "copy 0 4 from"},
    {5, "copy 0 4 to 1 8", "copy 0 4 to 1"},
    {7, "edge 0 1", "edge 1 1"},
    {8, "edge 0 1", "edge 0 3"},
    {7, "edge 0 1", "edge 2 1"},
    {7, "edge 0 1", "edge 0 5"},
    {7, "edge 0 1 type 0", "edge 0 1 type 2"},
    {8, "ports 1 0", "ports 17 0"},
    {7, "edge 0 1 type 0 ports 0 0\n", "copy 0 0 to 0 0 width 0\n"},
    {11, "end\n", "ende\n"},
    {11, "end\n", "end"},
    {11, "end\n", ""},
    {12, "end\n", "end\n\n"},
    {12, "end\n", "end\nend\n"},
    {6, "memset 1 0", "edge 0 1"},
};

static void test_malformed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        char *text = changed(malformed[i].from, malformed[i].to);
        refused(text, malformed[i].line);
        free(text);
    }
}

/* A tape that is cut anywhere is refused, and so is an empty one. */
static void test_truncated(void **state) {
    (void)state;
    char text[sizeof whole];
    for (size_t n = 0; n < strlen(whole); n++) {
        char message[KP_TAPE_MESSAGE] = "";
        memcpy(text, whole, n), text[n] = 0;
        if (tape_parse(text, message)) fail_msg("accepted %zu bytes", n);
        assert_non_null(strstr(message, "of the tape"));
    }
}

/* ---- Merging ------------------------------------------------------------------------ */

enum { BUFFERS = 3 };

static const struct tape_span at_a[BUFFERS] = {
    {0x7f0000200000, 4096}, {0x7f0000410100, 4096}, {0x7f0000800000, 0}};
static const struct tape_span at_b[BUFFERS] = {
    {0x7e1111600000, 4096}, {0x7e1111aa0100, 4096}, {0x7e2222cc0000, 0}};

/* A raw tape of one kernel with these parameters. */
static struct tape *kernel_tape(const void *params, uint32_t bytes) {
    struct tape *t = parsed("kernelproof-tape 1 raw nodes 1 edges 0\n"
                            "kernel f grid 1 1 1 block 32 1 1 shared 0" KERNEL_TAIL "0 - relocs 0\n"
                            "end\n");
    free(t->nodes[0].params);
    t->nodes[0].params = malloc(bytes + 1);
    assert_non_null(t->nodes[0].params);
    memcpy(t->nodes[0].params, params, bytes);
    t->nodes[0].param_bytes = bytes;
    return t;
}

/* Merge and free; the message is that of a refusal, else "". */
static struct tape *merged(struct tape *a, struct tape *b, char message[KP_TAPE_MESSAGE]) {
    message[0] = 0;
    struct tape *t = tape_merge(a, at_a, b, at_b, BUFFERS, message);
    tape_free(a);
    tape_free(b);
    return t;
}

static struct tape *merged_kernels(const void *a, const void *b, uint32_t bytes, char *message) {
    return merged(kernel_tape(a, bytes), kernel_tape(b, bytes), message);
}

static void relocation(const struct tape *t, int k, uint32_t at, uint32_t buffer, uint64_t offset) {
    const struct tape_reloc *r = &t->nodes[0].reloc[k];
    assert_true(k < t->nodes[0].nreloc);
    assert_int_equal(r->at, at);
    assert_int_equal(r->buffer, buffer);
    assert_int_equal(r->offset, offset);
}

static void test_relocations(void **state) {
    (void)state;
    char message[KP_TAPE_MESSAGE];
    const uint64_t a[] = {at_a[0].address, 5, at_a[1].address + 100, at_a[1].address + 4096,
                          at_a[2].address};
    const uint64_t b[] = {at_b[0].address, 5, at_b[1].address + 100, at_b[1].address + 4096,
                          at_b[2].address};
    struct tape *t = merged_kernels(a, b, sizeof a, message);
    assert_string_equal(message, "");
    assert_true(t->merged);
    assert_int_equal(t->nodes[0].nreloc, 4);
    relocation(t, 0, 0, 0, 0);
    relocation(t, 1, 16, 1, 100);
    relocation(t, 2, 24, 1, 4096); /* a pointer one past the end may be passed */
    relocation(t, 3, 32, 2, 0);
    const uint64_t rest[] = {0, 5, 0, 0, 0};
    assert_memory_equal(t->nodes[0].params, rest, sizeof rest);
    tape_free(t);
}

/* A pointer at an odd offset of a packed structure, beside other pointers. */
static void test_packed(void **state) {
    (void)state;
    char message[KP_TAPE_MESSAGE];
    for (uint32_t at = 0; at <= 13; at++) {
        unsigned char a[21], b[21];
        uint64_t x = at_a[0].address + 8, y = at_b[0].address + 8;
        memset(a, 0xab, sizeof a), memset(b, 0xab, sizeof b);
        memcpy(a + at, &x, 8), memcpy(b + at, &y, 8);
        struct tape *t = merged_kernels(a, b, sizeof a, message);
        assert_string_equal(message, "");
        assert_int_equal(t->nodes[0].nreloc, 1);
        relocation(t, 0, at, 0, 8);
        assert_int_equal(t->nodes[0].params[at ? 0 : 20], 0xab);
        tape_free(t);
    }
    struct __attribute__((packed)) {
        char c;
        uint64_t p, q;
    } a = {1, at_a[0].address, at_a[1].address}, b = {1, at_b[0].address, at_b[1].address};
    struct tape *t = merged_kernels(&a, &b, sizeof a, message);
    assert_string_equal(message, "");
    relocation(t, 0, 1, 0, 0);
    relocation(t, 1, 9, 1, 0);
    tape_free(t);
}

static void not_an_address(uint64_t x, uint64_t y, uint32_t bytes) {
    char message[KP_TAPE_MESSAGE];
    assert_null(merged_kernels(&x, &y, bytes, message));
    assert_non_null(strstr(message, "of the parameters of f depends on where buffers lie"));
    assert_non_null(strstr(message, "is not an address of a declared buffer"));
}

static void test_no_addresses(void **state) {
    (void)state;
    not_an_address(1, 2, 8);
    not_an_address(at_a[0].address, at_b[1].address, 8);     /* different buffers */
    not_an_address(at_a[0].address, at_b[0].address + 4, 8); /* different offsets */
    not_an_address(at_a[0].address + 4097, at_b[0].address + 4097, 8);
    not_an_address(at_a[0].address - 1, at_b[0].address - 1, 8);
    not_an_address(at_a[0].address, at_b[0].address, 6); /* cut off */
    not_an_address(~at_a[0].address, ~at_b[0].address, 8);
}

static struct tape *line_tape(const char *form, const char *line) {
    char text[512];
    snprintf(text, sizeof text, "kernelproof-tape 1 %s nodes 1 edges 0\n%s\nend\n", form, line);
    return parsed(text);
}

static void test_different(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"nodes 5 edges 4", "nodes 5 edges 3", "4 dependencies against 3"},
        {"_Z4reluPKfPf", "_Z4geluPKfPf", "launch 1 (_Z4reluPKfPf) differs from (_Z4geluPKfPf)"},
        {"grid 1 2", "grid 1 3", "launch 1"},
        {"block 1024", "block 512", "launch 1"},
        {"shared 232448", "shared 0", "launch 1"},
        {"cluster 16", "cluster 8", "launch 1"},
        {"cooperative 1", "cooperative 0", "launch 1"},
        {"carveout 100", "carveout 50", "launch 1"},
        {"policy 1", "policy 2", "launch 1"},
        {"nonportable 1", "nonportable 0", "launch 1"},
        {"value 7", "value 8", "launch 0 (memset) differs from (memset)"},
        {"element 4", "element 2", "launch 0"},
        {"height 9", "height 8", "launch 4"},
        {"pitch 512", "pitch 511", "launch 4"},
        {"width 12", "width 13", "launch 3 (copy)"},
        {"copy 0 4 to 1 8 width 12", "memset 0 0 value 0 element 1 width 12 height 1 pitch 0",
         "launch 3 (copy) differs from (memset)"},
        {"type 1 ports 1 0", "type 1 ports 2 0", "dependency 1 differs"},
        {"edge 1 3", "edge 0 3", "dependency 2 differs"},
    };
    char message[KP_TAPE_MESSAGE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = changed(cases[i].from, cases[i].to);
        if (i == 0) *strstr(text, "edge 3 4") = 0, strcat(text, "end\n");
        assert_null(merged(parsed(whole), parsed(text), message));
        assert_non_null(strstr(message, "two recordings differ: "));
        if (!strstr(message, cases[i].message)) fail_msg("%s: %s", cases[i].message, message);
        free(text);
    }
    assert_null(merged(parsed("kernelproof-tape 1 raw nodes 0 edges 0\nend\n"),
                       line_tape("raw", "copy 0 0 to 0 0 width 0"), message));
    assert_string_equal(message, "two recordings differ: 0 launches against 1");
}

/* A memset or copy of raw tapes at these addresses. */
static struct tape *merged_lines(const char *format, uint64_t a, uint64_t b, char *message) {
    char one[256], two[256];
    snprintf(one, sizeof one, format, (unsigned long long)a);
    snprintf(two, sizeof two, format, (unsigned long long)b);
    return merged(line_tape("raw", one), line_tape("raw", two), message);
}

static void test_memory(void **state) {
    (void)state;
    char message[KP_TAPE_MESSAGE];
    const uint64_t a = at_a[1].address, b = at_b[1].address;
    const char *all = "memset 0 %llu value 0 element 4 width 1024 height 1 pitch 0";
    struct tape *t = merged_lines(all, a, b, message);
    assert_string_equal(message, "");
    assert_int_equal(t->nodes[0].to_buffer, 1);
    assert_int_equal(t->nodes[0].to, 0);
    tape_free(t);
    t = merged_lines("memset 0 %llu value 0 element 2 width 8 height 16 pitch 256", a + 16, b + 16,
                     message);
    assert_string_equal(message, "");
    assert_int_equal(t->nodes[0].to, 16);
    tape_free(t);
    static const char *const outside[] = {
        "memset 0 %llu value 0 element 4 width 1025 height 1 pitch 0",
        "memset 0 %llu value 0 element 1 width 1 height 2 pitch 4096",
        "memset 0 %llu value 0 element 4 width 4611686018427387905 height 1 pitch 0",
        "memset 0 %llu value 0 element 1 width 1 height 3 pitch 9223372036854775808",
    };
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_null(merged_lines(outside[i], a, b, message));
        assert_string_equal(message, "a memset writes outside the declared buffers");
    }
    assert_null(merged_lines(all, a, b + 4, message));
    assert_null(merged_lines(all, a - 1, b - 1, message));
    assert_null(merged_lines(all, a, at_b[0].address, message)); /* another buffer */
}

static void test_copies(void **state) {
    (void)state;
    char message[KP_TAPE_MESSAGE], to[128], from[128];
    const uint64_t a = at_a[0].address, b = at_b[0].address;
    char one[128], two[128];
    snprintf(one, sizeof one, "copy 0 %llu to 0 %llu width 96", (unsigned long long)(a + 4),
             (unsigned long long)(at_a[1].address + 4000));
    snprintf(two, sizeof two, "copy 0 %llu to 0 %llu width 96", (unsigned long long)(b + 4),
             (unsigned long long)(at_b[1].address + 4000));
    struct tape *t = merged(line_tape("raw", one), line_tape("raw", two), message);
    assert_string_equal(message, "");
    char *text = tape_print(t);
    assert_string_equal(text, "kernelproof-tape 1 merged nodes 1 edges 0\n"
                              "copy 0 4 to 1 4000 width 96\nend\n");
    free(text);
    tape_free(t);
    /* Inside in one recording only: the other side's address is that of the first. */
    snprintf(to, sizeof to, "copy 0 %llu to 0 %%llu width 97", (unsigned long long)a);
    assert_null(merged_lines(to, at_a[1].address + 4000, at_b[1].address + 4000, message));
    assert_string_equal(message, "a copy writes outside the declared buffers");
    snprintf(from, sizeof from, "copy 0 %%llu to 0 %llu width 8", (unsigned long long)a);
    assert_null(merged_lines(from, 4096, 4096, message));
    snprintf(one, sizeof one, "copy 0 4096 to 0 %llu width 8", (unsigned long long)a);
    snprintf(two, sizeof two, "copy 0 4096 to 0 %llu width 8", (unsigned long long)b);
    assert_null(merged(line_tape("raw", one), line_tape("raw", two), message));
    assert_string_equal(message, "a copy reads outside the declared buffers");
    /* Inside in both recordings, but at different offsets. */
    const uint64_t other[] = {b + 8, at_b[1].address};
    for (int i = 0; i < 2; i++) {
        snprintf(one, sizeof one, "copy 0 %llu to 0 %llu width 8", (unsigned long long)a,
                 (unsigned long long)a + 64);
        snprintf(two, sizeof two, "copy 0 %llu to 0 %llu width 8", (unsigned long long)other[i],
                 (unsigned long long)b + 64);
        assert_null(merged(line_tape("raw", one), line_tape("raw", two), message));
    }
}

/* ---- Placing ---------------------------------------------------------------------------- */

static void test_place(void **state) {
    (void)state;
    char message[KP_TAPE_MESSAGE] = "";
    const uint64_t a[] = {at_a[0].address + 8, 5, at_a[1].address};
    const uint64_t b[] = {at_b[0].address + 8, 5, at_b[1].address};
    struct tape *t = merged_kernels(a, b, sizeof a, message), *raw = kernel_tape(b, sizeof b);
    struct tape *placed = tape_place(t, at_b, BUFFERS, message);
    assert_non_null(placed);
    assert_false(placed->merged);
    if (!tape_equal(placed, raw, message)) fail_msg("%s", message);
    tape_free(placed);
    /* A recorded tape can be placed where it was recorded, and anywhere else. */
    const struct tape_span smaller[] = {{1 << 20, 7}, {2 << 20, 4096}, {0, 0}};
    assert_null(tape_place(t, smaller, BUFFERS, message));
    assert_string_equal(message, "launch 0 names a place outside buffer 0");
    assert_null(tape_place(t, at_a, 1, message));
    assert_string_equal(message, "launch 0 names a place outside buffer 1");
    assert_null(tape_place(raw, at_a, BUFFERS, message));
    assert_string_equal(message, "the tape is not merged");
    tape_free(raw);
    tape_free(t);
}

static void test_place_memory(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"memset 1 96 value 0 element 4 width 1000 height 1 pitch 0", NULL},
        {"memset 1 97 value 0 element 4 width 1000 height 1 pitch 0", "leaves its buffer"},
        {"memset 3 0 value 0 element 4 width 1 height 1 pitch 0", "unknown buffer"},
        {"copy 0 4095 to 1 0 width 1", NULL},
        {"copy 0 4095 to 1 0 width 2", "leaves its buffer"},
        {"copy 3 0 to 1 0 width 1", "unknown buffer"},
        {"copy 0 0 to 2 0 width 1", "leaves its buffer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[KP_TAPE_MESSAGE] = "";
        struct tape *t = line_tape("merged", cases[i].line);
        struct tape *placed = tape_place(t, at_a, BUFFERS, message);
        if (!placed != !!cases[i].message) fail_msg("%s: %s", cases[i].line, message);
        if (!placed) assert_non_null(strstr(message, cases[i].message));
        if (placed) {
            assert_true(placed->nodes[0].to == at_a[1].address + t->nodes[0].to);
            assert_int_equal(placed->nodes[0].to_buffer, 0);
        }
        tape_free(placed);
        tape_free(t);
    }
}

static void test_equal(void **state) {
    (void)state;
    static const char *const changes[][3] = {
        {"12345678", "12345679", "parameters of launch 1 (_Z4reluPKfPf) differ"},
        {"relocs 2 0 0 0", "relocs 2 0 1 0", "relocations of launch 1"},
        {"relocs 2 0 0 0 8 1 18446744073709551615", "relocs 1 0 0 0", "relocations of launch 1"},
        {"memset 2 64", "memset 2 65", "addresses of launch 0 (memset) differ"},
        {"memset 2 64", "memset 1 64", "addresses of launch 0"},
        {"copy 0 4", "copy 1 4", "addresses of launch 3 (copy)"},
        {"copy 0 4", "copy 0 5", "addresses of launch 3"},
        {"grid 1 2", "grid 2 2", "launch 1"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char message[KP_TAPE_MESSAGE] = "", *text = changed(changes[i][0], changes[i][1]);
        struct tape *t = parsed(whole), *u = parsed(text);
        assert_false(tape_equal(t, u, message));
        if (!strstr(message, changes[i][2])) fail_msg("%s: %s", changes[i][2], message);
        tape_free(t);
        tape_free(u);
        free(text);
    }
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_parsed),
        cmocka_unit_test(test_malformed),    cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_relocations),  cmocka_unit_test(test_packed),
        cmocka_unit_test(test_no_addresses), cmocka_unit_test(test_different),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_copies),
        cmocka_unit_test(test_place),        cmocka_unit_test(test_place_memory),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
