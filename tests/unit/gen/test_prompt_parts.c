/* test_prompt_parts.c: what the rules say of errors and headers, launches of a shown kernel, and
 * which part of a prompt stays the same. */
#include "prompt_cell.h"

#include "measure/tolerance.h"

static struct attempt measured(const char *name, double ratio) {
    struct attempt a = {.outcome = "code", .verdict = "ok", .class = "fp32", .idea = -1};
    snprintf(a.name, sizeof a.name, "%s", name);
    a.ratio = a.low = a.high = ratio;
    a.us = 2730 / ratio;
    return a;
}

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

/* The rules name the limits of errors as the judge has them, and what each header offers. */
static void test_rules_of_errors(void **state) {
    (void)state;
    struct prompt_turn t = {.ask = "one_shot", .attempt = "x.r1a1", .number = 1, .of = 1};
    struct built b = build(&cell, &t);
    char *text = b.rules,
         *rms = text_format("at most %d spreads (%d in any 64th", KP_RMS_LIMIT, KP_PART_LIMIT);
    holds(text, rms);
    holds(text, "## reduce.cuh\n\n```cuda\n/* reduce.cuh");
    holds(text, "template <int THREADS, class T, class Op> __device__ T block_reduce(T value, Op "
                "op) {...}");
    lacks(text, "__shared__ T part[THREADS / 32]"); /* a body */
    lacks(text, "#pragma once\n#include <math.h>");
    free(rms);
    built_free(&b);
}

/* Launches as the tape has them, and how much of a multiprocessor they fill. */
static void test_launches(void **state) {
    (void)state;
    struct attempt a = measured("branching.r1a1", 3);
    struct prompt_turn t = {
        .ask = "optimise", .attempt = "x.r1a1", .number = 1, .of = 1, .shown = {&a}, .nshown = 1};
    put("results/h200/a.json",
        "{\"schema\":1,\"machine\":{\"gpu_name\":\"NVIDIA H200\",\"sm_count\":132,"
        "\"clocks\":{\"sm_mhz\":1980},\"compute_capability\":\"9.0\",\"peaks\":{\"read_gbs\":4600}}"
        "}");
    put_file(&a, ".cu",
             "// Mine.\n/* A tile each.\n * Floor: 8 bytes a value, 3004 us.\n * Measured: 9 us. "
             "*/\nvoid launch() {}\n");
    put_file(&a, ".tape",
             "kernelproof-tape 1 merged nodes 2 edges 1\n"
             "kernel _Z1kILi2EEvPf grid 1056 1 1 block 256 1 1 shared 32768 cluster 2 1 1 "
             "cooperative 0\n"
             "kernel _Z5otherv grid 3 1 1 block 64 1 1 shared 0 cluster 1 1 1\n");
    a.result = cJSON_Parse(result);
    struct built b = build(&cell, &t);
    holds(b.rules, "clock of the multiprocessors: 1.98 GHz; shared memory gives 128 bytes a clock "
                   "and multiprocessor, 33 TB/s");
    /* 168 registers: 65536 / (168 * 32 * 8) = 1.5 blocks; 50 KiB of shared memory would allow 4 */
    holds(b.user, "- launched: void k<2>(float*): grid 1056 x 1 x 1, block 256 x 1 x 1, 32768 "
                  "bytes of dynamic shared memory, "
                  "clusters of 2 x 1 x 1; 1 block (8 of 64 warps) fit on a multiprocessor, by "
                  "registers; 8 waves\n");
    holds(b.user, "- launched: _Z5otherv: grid 3 x 1 x 1, block 64 x 1 x 1, 0 bytes of dynamic "
                  "shared memory\n");
    holds(b.user, "/* A tile each.\n */\nvoid launch");
    lacks(b.user, "3004");
    built_free(&b);
    cJSON_Delete(a.result);
}

/* What stays the same in many calls comes first: the task and the headers that kernels include. */
static void test_stable(void **state) {
    (void)state;
    struct attempt a = measured("branching.r1a1", 3);
    struct prompt_turn t = {
        .ask = "optimise", .attempt = "x.r1a1", .number = 1, .of = 1, .shown = {&a}, .nshown = 1};
    struct llm_message m[PROMPT_MESSAGES];
    put_file(&a, ".cu", "#include \"reduce.cuh\"\nvoid launch() {}\n");
    prompt_build(&cell, &t, m);
    char *stable = text_format("%.*s", (int)m[1].stable, m[1].text);
    holds(stable, "# The task: ");
    holds(stable, "\n## reduce.cuh\n");
    lacks(stable, "# Kernels measured so far");
    holds(m[1].text + m[1].stable, "# Kernels measured so far");
    free(stable), free(m[0].text), free(m[1].text);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_rules_of_errors, clean),
        cmocka_unit_test_teardown(test_launches, clean),
        cmocka_unit_test_teardown(test_stable, clean),
    };
    return cmocka_run_group_tests(tests, open_task, close_task);
}
