/* test_prompt.c: the prompt of every task and request, its facts, its templates. */
#include "prompt_tree.h"

#include "llm/llm.h"
#include "task/ops.h"
#include "task/task_text.h"
#include "task_text.h"

#include <ctype.h>
#include <fnmatch.h>
#include <glob.h>

static const char *const asks[] = {"one_shot",    "repair", "optimise",
                                   "contrastive", "ideas",  "implement"};
enum { ASKS = sizeof asks / sizeof *asks };

static const char machine[] =
    "{\"schema\":1,\"machine\":{\"gpu_name\":\"NVIDIA H200\",\"memory_bytes\":150109880320,"
    "\"sm_count\":132,\"l2_bytes\":62914560,\"compute_capability\":\"%s\",\"peaks\":{\"schema\":1,"
    "\"read_gbs\":4626.9,\"copy_gbs\":4272.0,\"l2_read_gbs\":7354.2,\"f16_tflops\":764.9,"
    "\"tf32_tflops\":412.9,"
    "\"fp32_tflops\":50.92,\"f64_tflops\":61.98}}}";

/* A turn with all that its ask is about. */
static cJSON *whole_turn(const char *ask) {
    cJSON *t = turn_of(ask, "repair.r2a1");
    if (!strcmp(ask, "repair"))
        cJSON_AddItemToObject(
            t, "failed",
            attempt_of("one_shot.r1a2", "code", "tape", "a fork was not joined", "{}"));
    if (!strcmp(ask, "optimise") || !strcmp(ask, "contrastive"))
        show(t, attempt_of("one_shot.r1a1", "code", "ok", "",
                           "{\"class\":\"fp32\",\"ratio\":1.5,\"low\":1.4,\"high\":1.6,\"us\":100,"
                           "\"against_us\":150}"));
    if (!strcmp(ask, "ideas")) cJSON_AddNumberToObject(t, "ideas_wanted", 4);
    if (!strcmp(ask, "ideas")) cJSON_AddStringToObject(t, "ledger", "- tiles of 64: failed\n");
    if (!strcmp(ask, "implement")) cJSON_AddStringToObject(t, "idea", "Let a warp own a row.");
    return t;
}

static void put_attempts(const char *task) {
    const char *const names[] = {"one_shot.r1a1", "one_shot.r1a2"};
    for (int i = 0; i < 2; i++) {
        char *path = attempt_path(ROOT, names[i], "h200", task, ".cu");
        put(path, "#include \"task.h\"\nextern \"C\" void launch();\n");
        free(path);
    }
}

/* ---- Data ---------------------------------------------------------------------------- */

static void test_ops(void **state) {
    (void)state;
    cJSON *json = json_read("harness/gen/prompts/ops.json");
    const cJSON *ops = cJSON_GetObjectItemCaseSensitive(json, "ops"), *op;
    int n = 0;
    for (int i = 0; i < KP_OP_COUNT; i++)
        if (strlen(json_text(ops, op_get(i)->name, "")) < 15)
            fail_msg("harness/gen/prompts/ops.json has no meaning of %s: add one", op_get(i)->name);
    cJSON_ArrayForEach(op, ops) {
        if (!op_find(op->string)) fail_msg("ops.json has %s, which is no op", op->string);
        n++;
    }
    assert_int_equal(n, KP_OP_COUNT);
    cJSON_Delete(json);
}

/* Every attribute of an op is described, except those that do not affect its result. */
static void test_attributes(void **state) {
    (void)state;
    cJSON *json = json_read("harness/gen/prompts/ops.json");
    const cJSON *ops = cJSON_GetObjectItemCaseSensitive(json, "ops");
    for (int i = 0; i < KP_OP_COUNT; i++) {
        for (const struct kp_attr_def *a = op_get(i)->attr; a->key; a++) {
            static const char silent[] =
                "ceil_mode return_indices use_input_stats training momentum "
                "reduction label_smoothing";
            if (strstr(silent, a->key) || strstr(json_text(ops, op_get(i)->name, ""), a->key))
                continue;
            fail_msg("the meaning of %s does not say what %s is", op_get(i)->name, a->key);
        }
    }
    cJSON_Delete(json);
}

static void test_arch(void **state) {
    (void)state;
    static const char *const known[] = {"80", "86", "89", "90", "100", "120"};
    cJSON *json = json_read("harness/gen/prompts/arch.json");
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(json, "architectures");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const cJSON *a = cJSON_GetObjectItemCaseSensitive(all, known[i]);
        double threads = json_number(a, "threads_per_sm", 0);
        assert_true(threads == 1536 || threads == 2048);
        assert_true(json_number(a, "warps_per_sm", 0) * 32 == threads);
        assert_true(json_number(a, "shared_per_block_kib", 0) ==
                    json_number(a, "shared_per_sm_kib", 0) - 1);
        assert_true(json_number(a, "registers_per_sm", 0) == 65536);
        assert_true(strlen(json_text(a, "has", "")) > 50);
    }
    cJSON_Delete(json);
}

/* Whether the gate's list of functions allowed to host code has this name. */
static bool allowed(const char *gate, const char *name) {
    const char *end = strstr(gate, "} advice[]");
    char pattern[80], launch[80];
    assert_non_null(end);
    snprintf(launch, sizeof launch, "%sC", name); /* cudaLaunchKernelEx is a template over ...ExC */
    for (const char *p = gate; (p = strstr(p, "\n    {\"")) && p < end; p++)
        if (sscanf(p, " {\"%79[^\"]\"", pattern) == 1 &&
            (!fnmatch(pattern, name, 0) || !fnmatch(pattern, launch, 0)))
            return true;
    return false;
}

/* Functions under "What is refused" in the rules are not allowed by the gate; all others named
 * there are. */
static void test_rules(void **state) {
    (void)state;
    char *path = text_format("%s/harness/compile/gate.c", home), *gate = file_read(path, NULL),
         *rules = file_read("harness/gen/prompts/system.txt", NULL);
    const char *refused = strstr(rules, "# What is refused"),
               *end = strstr(rules, "# How it is checked");
    int may = 0, not = 0;
    assert_true(refused && end && refused < end);
    for (const char *p = rules; (p = strstr(p, "cuda")) && p < end;) {
        char name[64];
        size_t n = 4;
        while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if (isupper((unsigned char)name[4]) && strcmp(name, "cudaStream_t")) {
            if (allowed(gate, name) != (p < refused)) fail_msg("%s: not as the gate has it", name);
            p < refused ? may++ : not ++;
        }
        p += n;
    }
    assert_true(may >= 20 && not >= 6);
    free(rules), free(gate), free(path);
}

/* The compiler's flags are those of harness/compile/compile. */
static void test_command(void **state) {
    (void)state;
    char *path = text_format("%s/harness/compile/compile", home), *compile = file_read(path, NULL),
         *gpu = file_read("harness/gen/prompts/gpu.txt", NULL), *flags = strstr(gpu, "nvcc -std"),
         *save;
    int n = 0;
    assert_non_null(flags);
    for (char *f = strtok_r(flags, " ,\n", &save); f; f = strtok_r(NULL, " ,\n", &save)) {
        if (f[0] != '-' || strchr(f, '{') || !strcmp(f, "-lineinfo") || !strcmp(f, "-I.")) continue;
        holds(compile, f);
        n++;
    }
    assert_true(n > 10);
    free(gpu), free(compile), free(path);
}

/* The header in the worked example is the one that would be generated. */
static void test_example(void **state) {
    (void)state;
    char message[1024], *header = NULL,
                        *example = file_read("harness/gen/prompts/example.txt", NULL);
    size_t size;
    struct kp_task *t =
        load_graph("a f32 [1000003]; b f32 [1000003]", "t1[1000003] = add(a, b)", message);
    if (!t) fail_msg("%s", message);
    FILE *out = open_memstream(&header, &size);
    task_text_header(t, out);
    fclose(out);
    holds(example, strchr(header, '\n')); /* all but the line with the task's name */
    holds(example, "```cuda\n");
    free(header), free(example);
    task_free(t);
}

/* ---- The whole prompt ------------------------------------------------------------------ */

static void check_prompt(const struct kp_task *t, const char *ask, const struct built *b) {
    static const char *const never[] = {"{{",    "\n\n\n", "/tmp/",       "/home/",
                                        "/usr/", "/root/", "KERNELPROOF_"};
    char line[128], *header = text_format("/* %s: generated from", t->name);
    for (int i = 0; i < 2; i++) {
        const char *part = i ? b->user : b->rules;
        for (size_t k = 0; k < sizeof never / sizeof *never; k++) lacks(part, never[k]);
        lacks(part, home);
    }
    holds(b->user, t->title);
    holds(b->user, header);
    holds(b->user, "(Request repair.r2a1.)");
    holds(b->user, strcmp(ask, "ideas") ? "\n## Code\n" : "```json\n");
    for (int i = 0; i < t->ntensors; i++) {
        const struct kp_tensor *x = &t->tensors[i];
        snprintf(line, sizeof line, "- %s (%s): %s [", x->name,
                 x->parameter ? "parameter" : "input", kp_dtype_name(x->dtype));
        holds(b->user, line);
    }
    for (int i = 0; i < t->nops; i++) {
        snprintf(line, sizeof line, "\n- %s: ", t->ops[i].def->name);
        holds(b->user, line);
    }
    assert_true(blocks(b->rules, NULL, NULL) > 3); /* two examples, the form, each header */
    assert_true(blocks(b->user, NULL, NULL) >= 2);
    free(header);
}

/* Whether a task has an op that none before it had, or very many. */
static bool adds(const struct kp_task *t, bool seen[KP_OP_COUNT]) {
    bool more = t->nops > 300;
    for (int i = 0; i < t->nops; i++) {
        more |= !seen[t->ops[i].def->id];
        seen[t->ops[i].def->id] = true;
    }
    return more;
}

/* Every request of one task, and one of each task that adds something. */
static void test_every_op(void **state) {
    (void)state;
    glob_t g;
    bool seen[KP_OP_COUNT] = {false};
    char *first = NULL;
    char *path = text_format("results/h200/a.json"), *text = text_format(machine, "9.0");
    put(path, text);
    assert_int_equal(glob("tasks/*/*.json", 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= 32);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        if (strstr(g.gl_pathv[i], "/template.json")) continue;
        struct kp_task *t = task_load(g.gl_pathv[i]);
        bool whole = i == 5, one = adds(t, seen);
        if (whole || one) put_attempts(t->name);
        for (int k = 0; k < ASKS; k++) {
            if (!whole && (!one || k != (int)i % ASKS)) continue;
            struct built a = build(t, "h200", "90a", whole_turn(asks[k]));
            check_prompt(t, asks[k], &a);
            if (!first) first = strdup(a.rules);
            assert_string_equal(a.rules, first); /* the same for all, for prompt caches */
            built_free(&a);
        }
        task_free(t);
    }
    globfree(&g);
    free(first), free(path), free(text);
}

/* A sample of several, in a prompt of l1_019_relu. */
static struct built sample(const struct kp_task *t, const char *name, int number, int of) {
    cJSON *turn = turn_of("one_shot", name);
    cJSON_SetNumberValue(cJSON_GetObjectItem(turn, "number"), number);
    cJSON_SetNumberValue(cJSON_GetObjectItem(turn, "of"), of);
    return build(t, "h200", "90a", turn);
}

/* Samples of one request differ, in their last lines only; a control draws independently: two of
 * its prompts differ in the attempt's name alone. */
static void test_samples(void **state) {
    (void)state;
    struct kp_task *t = task_named("level1/l1_019_relu");
    struct built a = sample(t, "one_shot.r1a1", 1, 3), b = sample(t, "one_shot.r1a2", 2, 3),
                 c = sample(t, "best_of_n.r1a1", 1, 1), d = sample(t, "best_of_n.r1a2", 1, 1);
    assert_string_equal(a.rules, b.rules);
    holds(a.user, "one_shot.r1a1: proposal 1 of 3");
    holds(b.user, "one_shot.r1a2: proposal 2 of 3");
    holds(b.user, "differ in kind");
    lacks(a.user, "differ in kind");
    size_t same = 0;
    while (a.user[same] && a.user[same] == b.user[same]) same++;
    assert_true(same > strlen(a.user) * 3 / 4);
    char *name = strstr(d.user, "(Request best_of_n.r1a2.)");
    assert_non_null(name);
    name[strlen("(Request best_of_n.r1a")] = '1';
    assert_string_equal(c.user, d.user);
    built_free(&a), built_free(&b), built_free(&c), built_free(&d);
    task_free(t);
}

static void test_tokens(void **state) {
    (void)state;
    char many[1001] = "";
    memset(many, 'x', sizeof many - 1);
    struct llm_message m[] = {{"system", many, 0}, {"user", "\xe2\x82\xac", 0}};
    assert_true(tokens_bound(m, 1) > 1000 / 3.0); /* four bytes a token, and a third more */
    assert_true(tokens_bound(m, 1) < 400);
    assert_true(tokens_bound(m, 2) >= tokens_bound(m, 1) + 3);
}

/* ---- The GPU --------------------------------------------------------------------------- */

static char *gpu_text(const char *gpu, const char *arch) {
    struct kp_task *t = task_named("level1/l1_019_relu");
    struct built b = build(t, gpu, arch, whole_turn("one_shot"));
    free(b.user);
    task_free(t);
    return b.rules;
}

/* The user's message of a plain question about a task. */
static char *user_text(const struct kp_task *t, const char *gpu) {
    struct built b = build(t, gpu, "90a", whole_turn("one_shot"));
    free(b.rules);
    return b.user;
}

static void test_gpu_recorded(void **state) {
    (void)state;
    char *other = text_format(machine, "8.0"), *right = text_format(machine, "9.0");
    memcpy(strstr(other, "H200"), "A100", 4);
    put("results/h200/a.json", "{\"schema\":1,\"verdict\":\"missing\"}"); /* no machine */
    put("results/h200/b.json", other);                                    /* another architecture */
    put("results/h200/c.json", right);
    put("build/h200/peaks.json", "{\"read_gbs\":1}");
    char *text = gpu_text("h200", "90a");
    holds(text, "- NVIDIA H200\n");
    holds(text, "- 132 multiprocessors");
    holds(text, "L2 cache: 60 MiB");
    holds(text, "reading 4.6 TB/s");
    holds(text, "copying 4.3 TB/s");
    holds(text, "reading what lies in the L2, 7.4 TB/s");
    holds(text, "tf32 410, fp32 without tensor cores 51, f64 62 TFLOP/s");
    holds(text, "227 KiB");
    holds(text, "tf32 and 8-bit operands in shared memory K-major only");
    holds(text, "arch=compute_90a,code=sm_90a");
    free(text), free(other), free(right);
}

static void test_gpu_unknown(void **state) {
    (void)state;
    char *text = gpu_text("b200", "100a");
    holds(text, "- b200\n");
    holds(text, "tcgen05 (mma");
    lacks(text, "measured on this kind");
    lacks(text, "- L2 cache");
    free(text);
    put("build/b200/peaks.json",
        "{\"schema\":1,\"read_gbs\":7100,\"copy_gbs\":6500,\"f16_tflops\":1700}");
    text = gpu_text("b200", "100a");
    holds(text, "reading 7.1 TB/s");
    holds(text, "f16 with fp32 sums 1700 TFLOP/s");
    lacks(text, "tf32 0");
    lacks(text, "- L2 cache");
    free(text);
    text = gpu_text("h100", "90"); /* no a in the target: no wgmma */
    holds(text, "for this target also not: wgmma");
    free(text);
    text = gpu_text("orin", "87"); /* an architecture that is not listed */
    holds(text, "- compute capability 8.7\n");
    lacks(text, "- has:");
    lacks(text, "multiprocessor holds");
    free(text);
    put("build/l4/peaks.json", "{\"read_gbs\":279.4,\"copy_gbs\":NaN}"); /* not JSON: left out */
    text = gpu_text("l4", "89");
    lacks(text, "measured on this kind");
    free(text);
}

static void gpu_without_name(void) {
    gpu_text("../h200", "90");
}

static void gpu_without_arch(void) {
    gpu_text("h200", "90a;x");
}

/* The floors in a task's block follow from the rounded rates. */
static void test_floors(void **state) {
    (void)state;
    char *text = text_format(machine, "9.0");
    put("results/h200/a.json", text);
    char *expanded = family_expand("tasks/hgemm/template.json", "hgemm_4096_4096_4096");
    put("build/hgemm/hgemm_4096_4096_4096.json", expanded);
    struct kp_task *t = task_named("level2/l2_076_gemm_add_relu"),
                   *half = task_load("build/hgemm/hgemm_4096_4096_4096.json");
    char *with = user_text(t, "h200"), *without = user_text(t, "x"), *f16 = user_text(half, "h200");
    holds(with, "copying and reading that takes about 74.0 us");
    holds(with, "543 us in class fp32");
    holds(with, "335 us in class tf32");
    holds(with, "302022656 bytes read (288 MiB)");
    lacks(without, "measured rate");
    holds(f16, "181 us in class f16");
    lacks(f16, "class fp32");
    holds(f16, "- Bt (");
    holds(f16, "always the transpose of B");
    free(with), free(without), free(f16), free(text), free(expanded);
    task_free(t), task_free(half);
}

static void test_gpu_refused(void **state) {
    (void)state;
    ends(gpu_without_name, KP_USAGE, "GPU '../h200'");
    ends(gpu_without_arch, KP_USAGE, "'90a;x'");
}

/* ---- Templates --------------------------------------------------------------------------- */

/* A turn's prompt with the templates in this folder. */
static void build_here(void) {
    struct kp_task *t = task_named("level1/l1_019_relu");
    struct built b = build(t, "h200", "90a", whole_turn("repair"));
    built_free(&b);
    task_free(t);
}

static void test_templates(void **state) {
    (void)state;
    put_attempts("l1_019_relu");
    char *copy =
        text_format("rm harness/gen/prompts && cp -r '%s/harness/gen/prompts' harness/gen/", home);
    assert_int_equal(system(copy), 0);
    build_here();
    put("harness/gen/prompts/ask_repair.txt",
        "{{failed}}\n{{ledger}} {{sample}}\nfixed: {{wrong_name}}\n");
    ends(build_here, KP_INPUT, "harness/gen/prompts/ask_repair.txt:3: unknown name {{wrong_name}}");
    put("harness/gen/prompts/ask_repair.txt", "{{sample}}\nfix it\n");
    ends(build_here, KP_INPUT, "harness/gen/prompts/ask_repair.txt: lacks {{failed}}");
    put("harness/gen/prompts/ask_repair.txt", "{{failed}}\n{{sample\n");
    ends(build_here, KP_INPUT, "harness/gen/prompts/ask_repair.txt:2: {{ without a name");
    unlink("harness/gen/prompts/ask_repair.txt");
    ends(build_here, KP_INPUT, "harness/gen/prompts/ask_repair.txt: cannot read this template");
    unlink("harness/gen/prompts/gpu.txt");
    ends(build_here, KP_INPUT, "harness/gen/prompts/gpu.txt: cannot read this template");
    put("harness/gen/prompts/ops.json", "{\"ops\":{}}");
    put("harness/gen/prompts/gpu.txt", "{{device}}\n");
    ends(build_here, KP_INPUT, "harness/gen/prompts/ops.json: no meaning of the op relu");
    unlink("harness/gen/prompts/arch.json");
    ends(build_here, KP_INPUT, "harness/gen/prompts/arch.json: cannot read it");
    assert_int_equal(system("rm -r harness/gen/prompts"), 0);
    link_in("harness/gen/prompts");
    free(copy);
}

/* Lines with unknown values disappear; blank lines do not pile up; values are not expanded
 * again. */
static void test_expand(void **state) {
    (void)state;
    cJSON *data = cJSON_CreateObject();
    cJSON_AddStringToObject(data, "t",
                            "\n{{none}}\n\na {{one}} {{one}}\n\n{{none}} b\n\n\nc\n{{two}}");
    cJSON *found = prompt_jq("text",
                             "{t: (.t | expand(\"x.txt\"; {one: \"{{two}}\", two: \"2\\n\\n\", "
                             "none: null}; [\"one\", \"none\"]))}",
                             data);
    assert_string_equal(json_text(found, "t", ""), "a {{two}} {{two}}\n\nc\n2\n");
    cJSON_Delete(found), cJSON_Delete(data);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_arch),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_example),
        cmocka_unit_test_teardown(test_every_op, clean),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test_teardown(test_gpu_recorded, clean),
        cmocka_unit_test_teardown(test_gpu_unknown, clean),
        cmocka_unit_test(test_gpu_refused),
        cmocka_unit_test_teardown(test_floors, clean),
        cmocka_unit_test_teardown(test_templates, clean),
        cmocka_unit_test(test_expand),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
