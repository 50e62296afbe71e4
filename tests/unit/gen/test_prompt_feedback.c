/* test_prompt_feedback.c: what the prompt says of earlier attempts: measurements, failures,
 * code. */
#include "prompt_cell.h"

static struct attempt attempt_of(const char *name, const char *outcome, const char *verdict,
                                 const char *reason) {
    struct attempt a = {.round = 1, .index = 1, .idea = -1};
    snprintf(a.name, sizeof a.name, "%s", name);
    snprintf(a.outcome, sizeof a.outcome, "%s", outcome);
    snprintf(a.verdict, sizeof a.verdict, "%s", verdict);
    snprintf(a.reason, sizeof a.reason, "%s", reason);
    return a;
}

static struct attempt measured(const char *name, double ratio) {
    struct attempt a = attempt_of(name, "code", "ok", "");
    strcpy(a.class, "fp32");
    a.ratio = ratio, a.low = ratio * 0.99, a.high = ratio * 1.01;
    a.us = 2730 / ratio, a.against_us = 2730;
    return a;
}

/* The prompt that asks to repair `a`. */
static char *repair_of(const struct attempt *a) {
    struct prompt_turn t = {
        .ask = "repair", .attempt = "repair.r2a1", .number = 1, .of = 1, .failed = a};
    struct built b = build(&cell, &t);
    blocks(b.user, NULL, NULL); /* all closed */
    lacks(b.user, "{{");
    free(b.rules);
    return b.user;
}

static const char kernel[] = "// provenance: m, attempt repair.r1a1, 2026\n"
                             "// prompt sha256 00; transcript x\n"
                             "// kernel sha256 00\n"
                             "#include \"task.h\"\n"
                             "__global__ void k(float *x) {\n"
                             "    x[0] = foo;\n"
                             "}\n"
                             "extern \"C\" void launch() {}\n";

/* ---- Compiler -------------------------------------------------------------------------- */

static void test_build(void **state) {
    (void)state;
    struct attempt a = attempt_of("repair.r1a1", "code", "build",
                                  "build/attempts/repair.r1a1/h200/" TASK
                                  ".cu(6): error: identifier \"foo\" is undefined");
    put_file(&a, ".cu", kernel);
    put_file(&a, ".log",
             "/somewhere/build/attempts/repair.r1a1/h200/" TASK
             ".cu(6): error: identifier \"foo\" is undefined\n"
             "      x[0] = foo; // an error, it says\n"
             "             ^\n"
             "\n"
             "/usr/local/cuda/include/cuda_fp16.h(77): warning #20: something\n"
             "/usr/local/cuda/include/x.hpp(9): error #20: second\n"
             "          detected during instantiation of class \"A<N> [with N=2]\" at line 8\n"
             "          detected during instantiation of class \"B<N> [with N=2]\" at line 8 of "
             "other.h\n"
             "build/attempts/repair.r1a1/h200/" TASK ".cu:7:3: error: third one (hi/lo)\n"
             "ptxas error   : fourth\n"
             "4 errors detected in the compilation of \"" TASK ".cu\".\n");
    char *text = repair_of(&a);
    holds(text, "# What failed: repair.r1a1\n\nIt does not compile.\n");
    holds(text, "- outcome: build: kernel.cu(3): error: identifier \"foo\" is undefined\n");
    holds(text, "first errors, of 4:");
    holds(text, "\nkernel.cu(3): error: identifier \"foo\" is undefined\n"
                "     1 | #include \"task.h\"\n"
                "     2 | __global__ void k(float *x) {\n"
                ">    3 |     x[0] = foo;\n"
                "     4 | }\n");
    holds(text, "\nx.hpp(9): error #20: second\n"
                "          detected during instantiation of class \"A<N> [with N=2]\" at line 5\n"
                "          detected during instantiation of class \"B<N> [with N=2]\" at line 8 of "
                "other.h\n");
    holds(text, "\nkernel.cu:4:3: error: third one (hi/lo)\n");
    lacks(text, "fourth");
    lacks(text, "warning");
    lacks(text, "/usr/");
    lacks(text, "/somewhere");
    lacks(text, "provenance");
    holds(text, "```cuda\n#include \"task.h\"\n__global__");
    free(text);
}

/* A missing kernel, a missing log, a linker's message. */
static void test_build_scarce(void **state) {
    (void)state;
    struct attempt a = attempt_of("repair.r1a1", "code", "build", "nvcc took longer than 300 s");
    char *text = repair_of(&a);
    holds(text, "- outcome: build: nvcc took longer than 300 s\n");
    lacks(text, "first error");
    free(text);
    put_file(&a, ".log", "/usr/bin/ld: build/x/kernel.o: undefined reference to `helper'\n");
    text = repair_of(&a);
    holds(text, "The compiler's first error, of 1:");
    holds(text, "ld: kernel.o: undefined reference to `helper'\n");
    free(text);
}

/* ---- Verdicts ---------------------------------------------------------------------------- */

static void test_verdicts(void **state) {
    (void)state;
    static const struct {
        const char *outcome, *verdict, *reason, *expect;
    } cases[] = {
        {"code", "gate", "object: cublasSgemm is called: write the kernel",
         "holds something that no kernel may"},
        {"code", "tape", "an allocation was enqueued", "cannot be recorded"},
        {"code", "crash", "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access",
         "stopped with an error"},
        {"code", "timeout", "did not end in 60 s", "barrier that not all threads reach"},
        {"code", "impossible", "faster than the bytes can move", "does not do all of the work"},
        {"code", "doubtful", "flagged control-ratio: 1.30x on scaled inputs",
         "its time is not to be trusted"},
        {"code", "skipped", "needs at least 90 GB", "could not be tried"},
        {"code", "wrong", "an input was modified", "what it leaves is wrong"},
        {"cut", "", "the answer hit the cap of 32768 tokens", "was cut off"},
        {"empty", "", "no text", "held no text"},
        {"refused", "", "declined", "was a refusal"},
        {"invalid", "", "a NUL", "no source file can have"},
        {"no-code", "", "no block defines launch", "no usable kernel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct attempt a =
            attempt_of("repair.r1a1", cases[i].outcome, cases[i].verdict, cases[i].reason);
        char *text = repair_of(&a);
        holds(text, cases[i].expect);
        holds(text, cases[i].reason);
        free(text);
    }
    struct attempt a =
        attempt_of("repair.r1a1", "duplicate", "duplicate", "the same kernel as one_shot.r1a3");
    strcpy(a.same_as, "one_shot.r1a3");
    char *text = repair_of(&a);
    holds(text, "written before");
    holds(text, "- outcome: duplicate: the same kernel as one_shot.r1a3\n");
    free(text);
}

static void test_wrong(void **state) {
    (void)state;
    struct attempt a = attempt_of("repair.r1a1", "code", "wrong", "3 of 8388608 elements are off");
    a.result = cJSON_Parse(
        "{\"verdict\":\"wrong\",\"evidence\":{\"output\":\"t3\",\"index\":8200,\"expected\":1.5,"
        "\"found\":null,"
        "\"count\":3,\"of\":8388608,\"unwritten\":2,\"distribution\":\"scaled\",\"seed\":\"00\","
        "\"pattern\":\"every element of column 8\"},"
        "\"error\":{\"candidate\":{\"declared\":{\"rms\":0.5,\"of_limit\":0.2},"
        "\"scaled\":{\"rms\":1.5,\"part\":0,\"element\":205,\"bias\":0.25,\"of_limit\":3.2},"
        "\"tiny\":{\"rms\":null,\"part\":0,\"element\":null,\"bias\":0,\"of_limit\":null}}},"
        "\"missed\":{\"fp32\":{\"scaled\":2000,\"tiny\":null},\"tf32\":{\"scaled\":3.2}}}");
    assert_non_null(a.result);
    char *text = repair_of(&a);
    holds(text,
          "with scaled contents, output t3: first wrong element at 8200 = [1,8]: expected 1.5, "
          "found not finite\n");
    holds(
        text,
        "wrong elements: 3 of 8388608 (3.58e-05 %); 2 of the output's elements were never written");
    holds(text, "- where they lie: every element of column 8\n");
    holds(text, "- error with scaled contents: 3.2 x the limit; rms 1.5, part 0, element 2.1e+02, "
                "bias 0.25 spreads\n");
    holds(text, "- error with tiny contents: not finite x the limit; rms not finite, part 0, "
                "element not finite, bias 0 spreads\n");
    lacks(text, "error with declared contents"); /* it is within its limits */
    holds(text, "- beyond the limits of class fp32 with scaled (2e+03 x), tiny (not finite) "
                "contents\n");
    holds(text, "- beyond the limits of class tf32 with scaled (3.2 x) contents\n");
    free(text);
    cJSON_Delete(a.result);
    /* another output, an index outside of it, or no element */
    a.result =
        cJSON_Parse("{\"evidence\":{\"output\":\"t9\",\"index\":1e30,\"count\":1,\"of\":0}}");
    text = repair_of(&a);
    holds(text, "output t9: first wrong element at ");
    lacks(text, "= [");
    free(text);
    cJSON_Delete(a.result);
    a.result =
        cJSON_Parse("{\"evidence\":null,\"error\":{\"candidate\":7},\"missed\":{\"fp32\":7}}");
    text = repair_of(&a);
    lacks(text, "first wrong");
    free(text);
    cJSON_Delete(a.result);
}

/* ---- Kernels that are shown ---------------------------------------------------------------- */

static const char result[] =
    "{\"schema\":1,\"time_us\":{\"candidate\":{\"midmean\":910,\"low\":905.5,\"high\":915},"
    "\"fp32\":{\"midmean\":2730}},"
    "\"speedup\":{\"against\":\"fp32\",\"ratio\":3,\"low\":2.97,\"high\":3.03},\"floor_us\":539,"
    "\"floor_bytes_us\":78.5,"
    "\"floor_flops_us\":539,\"launches\":2,\"scratch_bytes\":67108864,\"flags\":[\"noisy\","
    "\"latency-bound\"],"
    "\"kernel\":{\"resources\":[{\"name\":\"void "
    "k<2>(float*)\",\"registers\":168,\"spill_bytes\":12,\"stack_bytes\":8,"
    "\"shared_bytes\":17408}]}}";

static void test_shown(void **state) {
    (void)state;
    struct attempt slow = measured("branching.r1a1", 1.5), fast = measured("branching.r1a2", 3),
                   failed = attempt_of("branching.r1a3", "code", "crash", "CUDA_ERROR_ASSERT");
    struct prompt_turn t = {.ask = "contrastive",
                            .attempt = "contrastive.r2a1",
                            .number = 1,
                            .of = 1,
                            .shown = {&failed, &slow, &fast},
                            .nshown = 3};
    put_file(&slow, ".cu", kernel);
    put_file(&fast, ".cu", "#include \"reduce.cuh\"\n# include \"norm.cuh\"\nvoid launch() {}\n");
    put_file(&fast, ".profile.json",
             "{\"schema\":1,\"sentences\":[\"Memory-bound: 88 %.\",7,\"Stalls:\\nlong.\"]}");
    put_file(&slow, ".profile.json", "{\"schema\":1,\"sent");
    fast.result = cJSON_Parse(result);
    fast.gen = cJSON_Parse("{\"idea_text\":\"Split  K over\\nclusters.\"}");
    assert_non_null(fast.result);
    struct built b = build(&cell, &t);
    holds(b.user, "# Kernels measured so far, slowest first\n");
    holds(b.user, "## Kernel 1 of 3: branching.r1a3\n\n- outcome: crash: CUDA_ERROR_ASSERT\n");
    holds(b.user, "(its source is not kept)");
    holds(b.user,
          "## Kernel 2 of 3: branching.r1a1\n\n- time: 1820 us, class fp32\n- speedup: 1.500");
    holds(b.user, "## Kernel 3 of 3: branching.r1a2\n");
    holds(b.user, "- time: 910 us (95 %: 906 us to 915 us), class fp32\n");
    holds(b.user, "- speedup: 3.000 (95 %: 2.970 to 3.030) over the fp32 library, 2730 us\n");
    holds(b.user,
          "- floor: 539 us, set by products (memory 78.5 us); the kernel runs at 59 % of it\n");
    holds(b.user,
          "void k<2>(float*): 168 registers, 12 bytes spilled, 8 of stack, 17408 of static shared");
    holds(b.user, "- enqueued: 2 nodes; scratch 64 MiB\n");
    holds(b.user, "- flags: noisy; latency-bound\n");
    holds(b.user, "- profiler: Memory-bound: 88 %.\n- profiler: Stalls: long.\n");
    holds(b.user, "- idea: Split K over clusters.\n");
    /* headers that are included, and the headers that those include; each once */
    holds(b.user, "\n## reduce.cuh\n\n```cuda\n/* reduce.cuh");
    holds(b.user, "\n## norm.cuh\n");
    char *first = strstr(b.user, "\n## reduce.cuh\n");
    assert_null(strstr(first + 1, "\n## reduce.cuh\n"));
    blocks(b.user, NULL, NULL);
    built_free(&b);
    cJSON_Delete(fast.result);
    cJSON_Delete(fast.gen);
}

/* The model chose the names of its includes: names that are no header of the project are
 * ignored. */
static void test_includes(void **state) {
    (void)state;
    static const char *const names[] = {
        ".",
        "./",
        "./reduce.cuh",
        "..",
        "../prompts",
        "/etc/hostname",
        "reduce.cuh/",
        "reduce.cuh>",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.cuh"};
    struct attempt a = attempt_of("repair.r1a1", "code", "build", "no such file");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *code = text_format("#include \"%s\"\nvoid launch() {}\n", names[i]);
        put_file(&a, ".cu", code);
        char *text = repair_of(&a);
        lacks(text, "# Headers of the project that these kernels include");
        free(text);
        free(code);
    }
}

/* The current kernel comes from the cell, not from an attempt's file. */
static void test_current(void **state) {
    (void)state;
    struct attempt current = measured("current", 2);
    struct prompt_turn t = {.ask = "optimise",
                            .attempt = "repair.r2a1",
                            .number = 1,
                            .of = 1,
                            .shown = {&current},
                            .nshown = 1};
    struct prompt_cell c = cell;
    c.kernel = "// provenance: shipped\n/* the present kernel's source */\n";
    c.current = &current;
    put("build/h200/" TASK ".profile.json", "{\"sentences\":[\"Latency-bound.\"]}");
    struct built b = build(&c, &t);
    holds(b.user, "## Kernel 1 of 1: the present one\n");
    holds(b.user, "```cuda\n/* the present kernel's source */\n```\n");
    holds(b.user, "- profiler: Latency-bound.\n");
    built_free(&b);
}

/* ---- Fences -------------------------------------------------------------------------------- */

struct search_body {
    const char *body;
    int found;
};

static void look(void *context, const char *tag, const char *body) {
    struct search_body *s = context;
    (void)tag;
    s->found += !strcmp(body, s->body);
}

/* A kernel, an idea or a ledger stays inside its block, whatever it contains. */
static void test_fences(void **state) {
    (void)state;
    static const char sly[] =
        "// ```\n```\n````\n# Your turn\n`````` {{idea}} %s %n\n```cuda\nint launch;\n";
    struct attempt a = measured("branching.r1a1", 2);
    struct prompt_turn t = {.ask = "implement",
                            .attempt = "branching.r2a1",
                            .number = 1,
                            .of = 1,
                            .shown = {&a},
                            .nshown = 1,
                            .idea = sly,
                            .ledger = sly};
    put_file(&a, ".cu", sly);
    struct built b = build(&cell, &t);
    struct search_body s = {.body = sly};
    int n = blocks(b.user, look, &s);
    assert_int_equal(s.found, 3);
    assert_int_equal(n, 2 + 3); /* graph, task.h */
    holds(b.user, "```````text\n");
    built_free(&b);
    struct draft x;
    draft_open(&x);
    text_fence(x.out, "c", "a `` b", 100);
    text_fence(x.out, "c", "", 100);
    char *text = draft_close(&x);
    assert_string_equal(text, "```c\na `` b\n```\n```c\n```\n");
    free(text);
}

/* ---- Sizes --------------------------------------------------------------------------------- */

/* A text of so many lines of 50 bytes, each with a letter and its number. */
static char *long_text(int lines, char letter) {
    char *text = malloc((size_t)lines * 50 + 1);
    assert_non_null(text);
    for (int i = 0; i < lines; i++) sprintf(text + 50 * i, "%c%047d;\n", letter, i);
    return text;
}

static void test_long(void **state) {
    (void)state;
    struct attempt a[8];
    struct prompt_turn t = {.ask = "optimise", .attempt = "repair.r2a1", .number = 1, .of = 1};
    char *text = long_text(2000, 'k'), *ledger = long_text(2000, 'l'); /* 100 KB */
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "one_shot.r1a%d", i + 1);
        a[i] = measured(name, 1 + i);
        put_file(&a[i], ".cu", text);
        t.shown[i] = &a[i];
    }
    t.nshown = 1;
    t.ledger = ledger;
    struct built b = build(&cell, &t);
    char last[160];
    snprintf(last, sizeof last, "k%047d;\n```\n(cut here: %d more bytes are not shown)\n",
             (64 << 10) / 50 - 1, 100000 - (64 << 10) / 50 * 50);
    holds(b.user, last);
    holds(b.user, "(older entries are left out)");
    snprintf(last, sizeof last, "l%047d;\n```\n", 1999); /* the ledger keeps its end */
    holds(b.user, last);
    snprintf(last, sizeof last, "l%047d;\n", 2000 - (32 << 10) / 50 - 1);
    lacks(b.user, last);
    built_free(&b);
    t.nshown = 8;
    b = build(&cell, &t);
    assert_true(strlen(b.rules) + strlen(b.user) <= PROMPT_MAX_BYTES);
    assert_true(strlen(b.user) > PROMPT_MAX_BYTES / 2);
    blocks(b.user, NULL, NULL);
    built_free(&b);
    free(text), free(ledger);
}

static void without_failure(void) {
    struct prompt_turn t = {.ask = "repair", .attempt = "repair.r2a1"};
    build(&cell, &t);
}

static void without_idea(void) {
    struct prompt_turn t = {.ask = "implement", .attempt = "branching.r2a1", .idea = ""};
    build(&cell, &t);
}

static void unknown_ask(void) {
    struct prompt_turn t = {.ask = "sing", .attempt = "branching.r2a1"};
    build(&cell, &t);
}

static void outside_ask(void) {
    struct prompt_turn t = {.ask = "../../x", .attempt = "branching.r2a1"};
    build(&cell, &t);
}

static void test_turns(void **state) {
    (void)state;
    ends(without_failure, KP_BUG, "repair needs a failed attempt");
    ends(without_idea, KP_BUG, "implement needs an idea");
    ends(unknown_ask, KP_INPUT, "ask_sing.txt: cannot read");
    ends(outside_ask, KP_BUG, "a prompt for a turn");
}

/* Text on one line, cut between characters. */
static void test_line(void **state) {
    (void)state;
    struct draft x;
    draft_open(&x);
    text_line(x.out, "  a\n\tb\x7f ", 100);
    text_line(x.out, "|\xe2\x82\xac\xe2\x82\xac", 5);
    char *text = draft_close(&x);
    assert_string_equal(text, "a b|\xe2\x82\xac...");
    free(text);
}

/* What is recorded of the libraries: times and errors by class, and the size of a spread. */
static void test_vendor(void **state) {
    (void)state;
    static const char result[] =
        "{\"schema\":1,\"task\":\"l1_019_relu\",\"suite\":\"level1\",\"gpu\":\"h200\",\"verdict\":"
        "\"ok\",\"reason\":null,\"class\":\"fp32\",\"flags\":[],\"kernel\":{\"sha256\":\"a\"},"
        "\"speedup\":{\"against\":\"fp32\",\"ratio\":2,\"low\":1.9,\"high\":2.1},\"time_us\":{"
        "\"candidate\":{\"midmean\":50.4},\"fp32\":{\"midmean\":100.8},\"tf32\":{\"midmean\":30.2}}"
        ","
        "\"error\":{\"tf32\":{\"declared\":{\"rms\":164.2}},\"spread\":{\"declared\":{\"norm\":4."
        "61e-07}"
        "}}}";
    struct kp_task *t = task_named("level1/l1_019_relu");
    struct prompt_cell c = {.task = t, .gpu = "h200", .arch = "90a", .root = ROOT};
    struct prompt_turn turn = {.ask = "one_shot", .attempt = "one_shot.r1a1"};
    struct built b = build(&c, &turn);
    lacks(b.user, "vendor libraries do");
    built_free(&b);
    put("results/h200/l1_019_relu.json", result);
    b = build(&c, &turn);
    holds(b.user, "\n- class fp32: 100 us\n- class tf32: 30.0 us, off by 160 spreads");
    holds(b.user, "a spread of class fp32 is about 4.6e-07 of the output's");
    holds(b.user, "so the limit of 3 is 1.4e-06\n");
    lacks(b.user, "50 us");
    built_free(&b);
    task_free(t);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_vendor, clean),
        cmocka_unit_test_teardown(test_build, clean),
        cmocka_unit_test_teardown(test_build_scarce, clean),
        cmocka_unit_test_teardown(test_verdicts, clean),
        cmocka_unit_test_teardown(test_wrong, clean),
        cmocka_unit_test_teardown(test_shown, clean),
        cmocka_unit_test_teardown(test_includes, clean),
        cmocka_unit_test_teardown(test_current, clean),
        cmocka_unit_test_teardown(test_fences, clean),
        cmocka_unit_test_teardown(test_long, clean),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_line),
    };
    return cmocka_run_group_tests(tests, open_task, close_task);
}
