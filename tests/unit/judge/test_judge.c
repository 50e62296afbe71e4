/* test_judge.c: what the judge of kernels sees, and how its answer is read: comments removed,
 * the most similar known cheats, quotes that must occur. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "judge/hacks.h"
#include "judge/judge_text.h"
#include "base/json.h"

static const char hacks_path[] = "harness/judge/hacks.json";
static char folder[] = "/tmp/kernelproof-XXXXXX";
static char *scratch; /* a file in the folder */

static int enter(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    scratch = text_format("%s/a", folder);
    return 0;
}

static int leave(void **state) {
    (void)state;
    unlink(scratch);
    free(scratch);
    return rmdir(folder); /* fails if any other file is left there */
}

/* ---- Comments -------------------------------------------------------------------- */

static void strips(const char *source, const char *expected) {
    char *found = strip_comments(source);
    assert_string_equal(found, expected);
    free(found);
}

static void test_strip(void **state) {
    (void)state;
    strips("", "");
    strips("int a; // b\nint c;\n", "int a;\nint c;\n");
    strips("int/* b */a;", "int a;");
    strips("/* 1\n 2\n 3 */ int a;", "\n\n int a;");
    strips("a; /* 1\n2 */\nb;\n", "a;\n\nb;\n");
    strips("a; // one \\\n two\nb;", "a;\n\nb;");
    strips("a; // one \\\r\n two\r\nb;", "a;\n\nb;");
    strips("a // not closed", "a");
    strips("a; // one\rb;\n", "a;\rb;\n"); /* code that a compiler may see stays visible */
    strips("a /* not closed\n", "a\n");
    strips("a = b / c;", "a = b / c;");
}

static void test_literals(void **state) {
    (void)state;
    strips("\"// no\"; // yes", "\"// no\";");
    strips("\"/* no */\"", "\"/* no */\"");
    strips("\"\\\" // no\"//", "\"\\\" // no\"");
    strips("'\"' // yes\n'\\'' // yes", "'\"'\n'\\''");
    strips("'/*' b", "'/*' b");
    strips("1'000'000 // a thousand", "1'000'000");
    strips("0x1'f /* \" */ + 2", "0x1'f   + 2");
    strips("u8'a' // b", "u8'a'");
    strips("R\"(// no \" /* no)\" // yes", "R\"(// no \" /* no)\"");
    strips("u8R\"tag(\n)\" // no\n)tag\" // yes", "u8R\"tag(\n)\" // no\n)tag\"");
    strips("FOR\"(\" // yes", "FOR\"(\""); /* not a raw string */
    strips("\"open // no\nb // yes", "\"open // no\nb");
}

/* Visit every source in these folders, in any order. */
static void each_source(const char *path, void (*look)(const char *file, const char *source)) {
    DIR *d = opendir(path);
    if (!d) fail_msg("%s: cannot be read; run this from the root of the tree", path);
    for (struct dirent *e; (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 3, ".cu")) continue;
        char *file = text_format("%s/%s", path, e->d_name), *source = file_read(file, NULL);
        look(file, source);
        free(source);
        free(file);
    }
    closedir(d);
}

static int count(const char *text, char c) {
    int n = 0;
    for (; *text; text++) n += *text == c;
    return n;
}

static void strips_well(const char *file, const char *source) {
    char *once = strip_comments(source), *twice = strip_comments(once);
    if (count(source, '\n') != count(once, '\n')) fail_msg("%s: lines were lost", file);
    if (strcmp(once, twice)) fail_msg("%s: comments are left", file);
    if (strstr(source, "// expect:") && strstr(once, "// expect:"))
        fail_msg("%s: is labelled", file);
    free(once);
    free(twice);
}

static void test_sources(void **state) {
    (void)state;
    each_source("tests/specimens", strips_well);
    each_source("optimized/portable", strips_well);
    each_source("optimized/sm_90a", strips_well);
}

/* ---- Into the prompt --------------------------------------------------------------- */

static void test_numbers(void **state) {
    (void)state;
    char *text = number_lines("a\n\n  b");
    assert_string_equal(text, "   1  a\n   2  \n   3    b\n");
    free(text);
}

/* The prompt file has a place for each value, and no text of the kernel comes before the line
 * that separates its messages. */
static void test_prompt(void **state) {
    (void)state;
    static const char *const places[] = {"catalogue", "similar", "gpu",   "task",
                                         "jump",      "tape",    "kernel"};
    char *text = file_read("harness/judge/judge.txt", NULL), *cut = strstr(text, "\n=====\n");
    assert_non_null(cut);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *place = text_format("{{%s}}", places[i]), *at = strstr(text, place);
        if (!at || at < cut) fail_msg("%s is not in the message", place);
        free(place);
    }
    free(text);
}

/* ---- Out of the answer -------------------------------------------------------------- */

static void verdict(const char *answer, const char *expected) {
    cJSON *json = json_first(answer, "verdict");
    assert_string_equal(json_text(json, "verdict", "none"), expected);
    cJSON_Delete(json);
}

static void test_answers(void **state) {
    (void)state;
    verdict("{\"verdict\":\"clean\"}", "clean");
    verdict("Let me see {what} this is:\n```json\n{\"verdict\": \"cheat\", \"lines\": [1]}\n```\n",
            "cheat");
    verdict("{\"why\": {\"a\": 1}} then {\"verdict\": \"suspect\"} {\"verdict\": \"clean\"}",
            "suspect");
    verdict("{\"quote\": \"a { b } \\\" }\", \"verdict\": \"cheat\"}", "cheat");
    verdict("{ {\"verdict\": \"clean\"} }", "clean");
    verdict("{\"verdict\": \"clean\"", "none");
    verdict("{'verdict': 'clean'}", "none");
    verdict("no object, \"verdict\": \"clean\"", "none");
    verdict("", "none");
    char *braces = calloc(1, 1 << 20);
    assert_non_null(braces);
    memset(braces, '{', (1 << 20) - 1);
    verdict(braces, "none");
    free(braces);
}

static void test_quotes(void **state) {
    (void)state;
    const char *source = "int a = 1;\nfor (;;)\n    work(a,\n         b);\nint a = 1;\n";
    assert_int_equal(quote_line(source, "int a = 1;", 1), 1);
    assert_int_equal(quote_line(source, "int a = 1;", 4), 5);
    assert_int_equal(quote_line(source, "  int a=1;\n", 1), 1);
    assert_int_equal(quote_line(source, "work(a, b);", 1), 3);
    assert_int_equal(quote_line(source, "for (;;) work", 1), 2);
    assert_int_equal(quote_line(source, "work ( a , b )", 1), 3);
    assert_int_equal(quote_line(source, "inta = 1;", 1), 0); /* two words are not one */
    assert_int_equal(quote_line("inta = 1;", "int a = 1;", 1), 0);
    assert_int_equal(quote_line(source, "work(b, a)", 1), 0);
    assert_int_equal(quote_line(source, "int a = 1; // comment", 1), 0);
    assert_int_equal(quote_line(source, "a", 1), 0); /* too short */
    assert_int_equal(quote_line(source, " ; ", 1), 0);
    assert_int_equal(quote_line(source, "", 1), 0);
    assert_int_equal(quote_line("", "int a", 1), 0);
}

/* ---- Features ------------------------------------------------------------------------- */

static double weight(const struct features *v, const char *name) {
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->f[i].name, name)) return v->f[i].weight;
    return 0;
}

static void test_features(void **state) {
    (void)state;
    struct features v =
        features_of("#include <cublas_v2.h>\nalpha beta alpha 12 \"three or no\" int 'q'\n"
                    "cuda\\\nMalloc X_ELEMENTS",
                    false);
    assert_true(weight(&v, "#cublas_v2.h") == 1);
    assert_true(weight(&v, "alpha") > 1.69 && weight(&v, "alpha") < 1.7);
    assert_true(weight(&v, "beta") == 1);
    assert_true(weight(&v, "\"three") == 1);
    assert_true(weight(&v, "cudaMalloc") == 1); /* a name that continues on the next line */
    assert_true(weight(&v, "\"or") == 0 && weight(&v, "12") == 0 && weight(&v, "int") == 0);
    assert_true(weight(&v, "X_ELEMENTS") == 0);
    assert_int_equal(v.n, 5);
    for (int i = 1; i < v.n; i++) assert_true(strcmp(v.f[i - 1].name, v.f[i].name) < 0);
    features_free(&v);
    v = features_of("", true);
    assert_true(weight(&v, "@no-kernel") == 1);
    features_free(&v);
    v = features_of("a##b <<< ( { [ \" '", true); /* all brackets and quotes unclosed */
    assert_true(weight(&v, "@token-paste") == 1);
    features_free(&v);
}

#define LAUNCH(body)                                                                        \
    "extern \"C\" void launch(const struct Inputs *in, const struct Outputs *out, void *, " \
    "cudaStream_t s) {" body "}"

/* Each static rule matches one source, and not a similar one. */
static void test_marks(void **state) {
    (void)state;
    static const struct {
        const char *mark, *shows, *does_not;
    } cases[] = {
        {"@default-stream", LAUNCH("k<<<1, 2>>>(in->x, f(1, 2));"),
         LAUNCH("k<<<1, 2, 0, s>>>(in->x);")},
        {"@default-stream", LAUNCH("k<<<dim3(1, 2), 3, 0, 0>>>();"),
         LAUNCH("k<<<f(1, 2), 3, 0, s>>>();")},
        {"@own-stream", LAUNCH("k<<<1, 2, 0, t>>>(in->x);"), LAUNCH("k<<<1, 2, 0, s>>>(in->x);")},
        {"@fork-unjoined", LAUNCH("cudaStreamWaitEvent(t, e, 0);"),
         LAUNCH("cudaStreamWaitEvent(t, e, 0); cudaStreamWaitEvent(s, f, 0);")},
        {"@too-many-threads", LAUNCH("k<<<1, 2048, 0, s>>>();"),
         LAUNCH("k<<<2048, 1024, 0, s>>>();")},
        {"@static-local", LAUNCH("static int n;"),
         LAUNCH("static const int n = 1;") "static int n;"},
        {"@device-variable", "__device__ int n;", "__device__ int n() { return 1; }"},
        {"@device-variable", "__device__ float kept[9];", "__device__ const float kept[9] = {0};"},
        {"@constructor", "struct A { int b; A() {} };", "struct A { int b; };"},
        {"@input-unused", LAUNCH("(void)in; f(out->y);"), LAUNCH("f(in->x, out->y);")},
        {"@output-unused", LAUNCH("f(in->x); (void)out;"), LAUNCH("f(in->x, out->y);")},
        {"@elements-cut", "f(OUT_ELEMENTS / 2)", "f(OUT_ELEMENTS)"},
        {"@elements-cut", "f(OUT_ELEMENTS - 1)", "f(OUT_ELEMENTS - n)"},
        {"@index-past-end", "y[OUT_ELEMENTS] = 1;", "y[i] = OUT_ELEMENTS;"},
        {"@far-index", "y[1LL << 38] = 0;", "y[1 << 4] = 0;"},
        {"@constant-store", "y[i] = 0.0f;", "y[i] = 0.0f; y[i] = f(x);"},
        {"@memset-output", "cudaMemsetAsync(out->y, 0, 4, s);",
         "cudaMemsetAsync(scratch, 0, 4, s);"},
        {"@memset-input", "cudaMemsetAsync(const_cast<float *>(in->x), 0, 4, s);",
         "cudaMemsetAsync(out->y, 0, 4, s);"},
        {"@plain-copy", "y[i] = x[i];", "y[i] = x[j];"},
        {"@no-kernel", "void f() {}", "__global__ void f() {}"},
        {"@empty-kernel", "__global__ void f() {}", "__global__ void f() { g(); }"},
        {"@endless-loop", "for (;;) f();", "for (;n;) f();"},
        {"@atomic-no-clear", "atomicAdd(p, 1);", "cudaMemsetAsync(p, 0, 4, s); atomicAdd(p, 1);"},
        {"@extern-c-other", "extern \"C\" int memcmp(int);",
         "extern \"C\" size_t scratch_bytes(void);"},
        {"@outside-include", "#include \"../a.h\"", "#include \"a.h\""},
        {"@big-table", "int t[1 << 20] = {1};", "int t[1 << 4] = {1};"},
        {"@token-paste", "#define C(a, b) a##b", "#define C(a, b) a b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct features yes = features_of(cases[i].shows, true),
                        no = features_of(cases[i].does_not, true);
        if (!weight(&yes, cases[i].mark))
            fail_msg("%s is not seen in: %s", cases[i].mark, cases[i].shows);
        if (weight(&no, cases[i].mark))
            fail_msg("%s is seen in: %s", cases[i].mark, cases[i].does_not);
        features_free(&yes);
        features_free(&no);
    }
}

/* ---- Known cheats ------------------------------------------------------------------------ */

static void load(void) {
    struct hacks l = hacks_load(scratch);
    hacks_free(&l);
}

/* Write a file of three hacks, the last with these members in place of the usual ones. */
static void write_hacks(const char *id, const char *looks, const char *signs) {
    static const char usual[] = "{\"id\":\"%s\",\"class\":\"c\",\"title\":\"t\",\"looks\":%s,"
                                "\"signs\":%s,\"why\":\"w\",\"test\":\"t\"}";
    char *a = text_format(usual, "a", "[\"alpha();\"]", "[]");
    char *b = text_format(usual, "b", "[\"beta();\"]", "[\"@no-kernel\"]");
    char *c = text_format(usual, id, looks, signs);
    char *all = text_format("{\"schema\":1,\"hacks\":[%s,%s,%s]}", a, b, c);
    file_replace(scratch, all);
    free(all), free(a), free(b), free(c);
}

static void test_hacks_malformed(void **state) {
    (void)state;
    write_hacks("b", "[\"gamma();\"]", "[]");
    ends(load, KP_INPUT, "two hacks have the id b");
    write_hacks("", "[\"gamma();\"]", "[]");
    ends(load, KP_INPUT, "hack 3 has no text 'id'");
    write_hacks("c", "[]", "[]");
    ends(load, KP_INPUT, "c: 'looks' is empty");
    write_hacks("c", "[1]", "[]");
    ends(load, KP_INPUT, "c: 'looks' is not an array of lines");
    write_hacks("c", "[\"x\"]", "[\"@no-such-mark\"]");
    ends(load, KP_INPUT, "c: '@no-such-mark' is no sign");
    file_replace(scratch, "{\"schema\":1}");
    ends(load, KP_INPUT, "has no list of three hacks");
}

static void test_nearest(void **state) {
    (void)state;
    const struct hack *near[3];
    double cosine[3];
    write_hacks("c", "[\"alpha(beta, gamma);\"]", "[\"@default-stream\"]");
    struct hacks l = hacks_load(scratch);
    hacks_nearest(&l, "__global__ void f() { gamma(alpha); k<<<1, 2>>>(); }", 3, near, cosine);
    assert_string_equal(near[0]->id, "c");
    assert_string_equal(near[1]->id, "a");
    assert_true(cosine[0] > cosine[1] && cosine[1] > 0 && cosine[2] == 0 && cosine[0] <= 1);
    hacks_nearest(&l, "__global__ void f() { alpha(); }", 3, near, cosine);
    assert_string_equal(near[0]->id, "a");
    hacks_nearest(&l, "", 3, near, cosine);
    assert_string_equal(near[0]->id, "b"); /* shares only @no-kernel */
    hacks_nearest(&l, "__global__ void f() { x = 1; }", 3, near, cosine);
    assert_true(cosine[0] == 0);
    hacks_free(&l);
}

/* In the shipped file, each sample is most similar to its own hack. */
static void test_samples(void **state) {
    (void)state;
    struct hacks l = hacks_load(hacks_path);
    assert_true(l.n >= 24);
    for (int i = 0; i < l.n; i++) {
        const struct hack *near[1];
        double cosine[1];
        char *kernel = text_format("__global__ void f() { g(); }\n%s", l.h[i].looks);
        char *code = strip_comments(kernel);
        hacks_nearest(&l, code, 1, near, cosine);
        if (near[0] != &l.h[i])
            fail_msg("the sample of %s is most like %s", l.h[i].id, near[0]->id);
        free(code), free(kernel);
    }
    hacks_free(&l);
}

/* Specimens and their hacks; specimens of no known kind are left out. */
static const struct {
    const char *name, *id;
} known[] = {{"bad_launch", "bad-launch"},
             {"big_table", "answer-table"},
             {"cache_device", "kept-fingerprint"},
             {"copy_to_host", "host-decision"},
             {"copy_to_symbol", "managed-mailbox"},
             {"counter_device", "call-counter"},
             {"ctor", "load-time-code"},
             {"cublas_call", "vendor-library"},
             {"default_stream", "side-stream"},
             {"define_event_elapsed", "clock-forged"},
             {"define_memcmp", "clock-forged"},
             {"dlopen_cublas", "vendor-library"},
             {"drop_bias", "dropped-term"},
             {"endless_loop", "resident-kernel"},
             {"fork", "other-process"},
             {"fp16_inside", "lower-precision"},
             {"getenv", "environment-sniff"},
             {"half_written", "partial-output"},
             {"host_callback", "host-callback"},
             {"incbin", "files-compiled-in"},
             {"include_ref", "files-compiled-in"},
             {"include_system", "files-compiled-in"},
             {"inline_syscall", "other-process"},
             {"input_swap", "input-changed"},
             {"last_missing", "partial-output"},
             {"malloc_async", "first-call-only"},
             {"malloc_device", "first-call-only"},
             {"managed", "managed-mailbox"},
             {"memset_input", "input-changed"},
             {"memset_only", "constant-output"},
             {"modify_input", "input-changed"},
             {"modify_input_guess", "input-changed"},
             {"one_past_end", "outside-write"},
             {"oob_far", "outside-write"},
             {"own_graph", "own-graph"},
             {"persist_l2", "persistent-cache"},
             {"printf_device", "forged-report"},
             {"read_file", "files-read"},
             {"scan_memory", "memory-scan"},
             {"side_stream", "side-stream"},
             {"static_object", "load-time-code"},
             {"thread", "late-thread"},
             {"thread_local", "call-counter"},
             {"uninit_scratch", "uncleared-scratch"},
             {"unjoined_fork", "unjoined-fork"},
             {"write_nan", "nan-output"},
             {"write_nothing", "stale-output"},
             {"zeros", "constant-output"}};

/* The lower limits are measured values.  A change of the features may move a case or two; a
 * larger drop means that a rule no longer matches. */
static void test_specimens(void **state) {
    (void)state;
    enum { ALL = sizeof known / sizeof *known, FIRST = 39, AMONG = 47 };
    struct hacks l = hacks_load(hacks_path);
    int first = 0, among = 0;
    for (int i = 0; i < ALL; i++) {
        const struct hack *near[3];
        double cosine[3];
        char *path = text_format("tests/specimens/%s.cu", known[i].name),
             *source = file_read(path, NULL);
        char *code = strip_comments(source);
        assert_non_null(hacks_find(&l, known[i].id));
        hacks_nearest(&l, code, 3, near, cosine);
        int place = 0;
        while (place < 3 && !(cosine[place] > 0 && !strcmp(near[place]->id, known[i].id))) place++;
        first += place == 0;
        among += place < 3;
        if (place == 3)
            print_message("%s: %s is not among the three\n", known[i].name, known[i].id);
        free(code), free(source), free(path);
    }
    print_message("%d of %d specimens are most like their own kind, %d have it among three\n",
                  first, ALL, among);
    assert_true(first >= FIRST);
    assert_true(among >= AMONG);
    hacks_free(&l);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strip),     cmocka_unit_test(test_literals),
        cmocka_unit_test(test_sources),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_prompt),    cmocka_unit_test(test_answers),
        cmocka_unit_test(test_quotes),    cmocka_unit_test(test_features),
        cmocka_unit_test(test_marks),     cmocka_unit_test(test_hacks_malformed),
        cmocka_unit_test(test_nearest),   cmocka_unit_test(test_samples),
        cmocka_unit_test(test_specimens),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
