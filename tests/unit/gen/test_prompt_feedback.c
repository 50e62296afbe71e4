/* test_prompt_feedback.c: what a prompt says of failures, and of what the libraries do. */
#include "prompt_cell.h"

/* ---- Compiler -------------------------------------------------------------------------- */

static void test_build(void **state) {
    (void)state;
    put_file("repair.r1a1", ".cu", kernel);
    put_file("repair.r1a1", ".log",
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
    char *text = repair_of(attempt_of("repair.r1a1", "code", "build",
                                      "build/attempts/repair.r1a1/h200/" TASK
                                      ".cu(6): error: identifier \"foo\" is undefined",
                                      "{}"));
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
    static const char reason[] = "nvcc took longer than 300 s";
    char *text = repair_of(attempt_of("repair.r1a1", "code", "build", reason, "{}"));
    holds(text, "- outcome: build: nvcc took longer than 300 s\n");
    lacks(text, "first error");
    free(text);
    put_file("repair.r1a1", ".log",
             "/usr/bin/ld: build/x/kernel.o: undefined reference to `helper'\n");
    text = repair_of(attempt_of("repair.r1a1", "code", "build", reason, "{}"));
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
        char *text = repair_of(
            attempt_of("repair.r1a1", cases[i].outcome, cases[i].verdict, cases[i].reason, "{}"));
        holds(text, cases[i].expect);
        holds(text, cases[i].reason);
        free(text);
    }
    char *text = repair_of(attempt_of("repair.r1a1", "duplicate", "duplicate",
                                      "the same kernel as one_shot.r1a3",
                                      "{\"same_as\":\"one_shot.r1a3\"}"));
    holds(text, "written before");
    holds(text, "- outcome: duplicate: the same kernel as one_shot.r1a3\n");
    free(text);
}

/* The prompt that asks to repair a wrong kernel with this result. */
static char *wrong(const char *result) {
    char *more = text_format("{\"result\":%s}", result);
    char *text = repair_of(
        attempt_of("repair.r1a1", "code", "wrong", "3 of 8388608 elements are off", more));
    free(more);
    return text;
}

static void test_wrong(void **state) {
    (void)state;
    char *text = wrong(
        "{\"verdict\":\"wrong\",\"evidence\":{\"output\":\"t3\",\"index\":8200,\"expected\":1.5,"
        "\"found\":null,"
        "\"count\":3,\"of\":8388608,\"unwritten\":2,\"distribution\":\"scaled\",\"seed\":\"00\","
        "\"pattern\":\"every element of column 8\"},"
        "\"error\":{\"candidate\":{\"declared\":{\"rms\":0.5,\"of_limit\":0.2},"
        "\"scaled\":{\"rms\":1.5,\"part\":0,\"element\":205,\"bias\":0.25,\"of_limit\":3.2},"
        "\"tiny\":{\"rms\":null,\"part\":0,\"element\":null,\"bias\":0,\"of_limit\":null}}},"
        "\"missed\":{\"fp32\":{\"scaled\":2000,\"tiny\":null},\"tf32\":{\"scaled\":3.2}}}");
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
    /* another output, an index outside of it, or no element */
    text = wrong("{\"evidence\":{\"output\":\"t9\",\"index\":1e30,\"count\":1,\"of\":0}}");
    holds(text, "output t9: first wrong element at ");
    lacks(text, "= [");
    free(text);
    text = wrong("{\"evidence\":{\"distribution\":\"rows\",\"seed\":\"00\"}}");
    lacks(text, "first wrong");
    free(text);
    text = wrong("{\"evidence\":null,\"error\":{\"candidate\":7},\"missed\":{\"fp32\":7}}");
    lacks(text, "first wrong");
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
    struct built b = build(t, "h200", "90a", turn_of("one_shot", "one_shot.r1a1"));
    lacks(b.user, "vendor libraries do");
    built_free(&b);
    put("results/h200/l1_019_relu.json", result);
    b = build(t, "h200", "90a", turn_of("one_shot", "one_shot.r1a1"));
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
        cmocka_unit_test_teardown(test_build, clean),
        cmocka_unit_test_teardown(test_build_scarce, clean),
        cmocka_unit_test_teardown(test_verdicts, clean),
        cmocka_unit_test_teardown(test_wrong, clean),
        cmocka_unit_test_teardown(test_vendor, clean),
    };
    return cmocka_run_group_tests(tests, open_task, close_task);
}
