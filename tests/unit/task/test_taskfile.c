/* test_taskfile.c: what the task reader accepts and refuses, and its messages. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "task/op.h"
#include "task/task_text.h"
#include "task_text.h"

/* A valid task; each invalid one below differs from it in one place. */
static const char good[] =
    "{\n"
    "  \"schema\": 1,\n"
    "  \"task\": \"t\",\n"
    "  \"suite\": \"unit\",\n"
    "  \"title\": \"A title\",\n"
    "  \"source\": \"nowhere\",\n"
    "  \"inputs\": [\n"
    "    {\"name\": \"x\", \"shape\": [2, 3], \"dtype\": \"f32\", \"fill\": \"uniform(-1,2.5)\"},\n"
    "    {\"name\": \"y\", \"shape\": [3], \"dtype\": \"f32\", \"fill\": \"constant(1)\"}\n"
    "  ],\n"
    "  \"parameters\": [\n"
    "    {\"name\": \"w\", \"shape\": [4, 3], \"dtype\": \"f32\", \"fill\": \"fan_in(3)\", "
    "\"domain\": \"positive\"}\n"
    "  ],\n"
    "  \"graph\": [\n"
    "    \"t1[2,3] = mul(x, y)\",\n"
    "    \"t2[2,4] = linear(t1, weight=w)\",\n"
    "    \"t3[2,4] = gelu(t2; approximate=\\\"tanh\\\")\"\n"
    "  ],\n"
    "  \"outputs\": [\"t3\"],\n"
    "  \"notes\": [\"one \\\"quoted\\\" note\"],\n"
    "  \"flags\": []\n"
    "}\n";

/* Replace the first `from` in the valid task by `to`. */
static const char *changed(const char *from, const char *to) {
    static char text[8192];
    const char *at = strstr(good, from);
    if (!at) fail_msg("the good task has no `%s`", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    return text;
}

static void reads_a_task(void **state) {
    (void)state;
    char message[1024];
    struct kp_task *t = load_text(good, message);
    if (!t) fail_msg("%s", message);
    assert_string_equal(t->name, "t");
    assert_string_equal(t->suite, "unit");
    assert_string_equal(t->title, "A title");
    assert_int_equal(t->ntensors, 3);
    assert_int_equal(t->ninputs, 2);
    assert_true(t->tensors[2].parameter);
    assert_int_equal(t->tensors[0].domain, KP_DOMAIN_REAL);
    assert_int_equal(t->tensors[2].domain, KP_DOMAIN_POSITIVE);
    assert_int_equal(t->nvalues, 6);
    assert_int_equal(t->nops, 3);
    assert_int_equal(t->ops[1].line, 16);
    assert_int_equal(t->ops[1].in[1].value, 2);
    assert_int_equal(t->ops[1].in[2].value, -1);
    assert_string_equal(op_word(&t->ops[2], "approximate", "none"), "tanh");
    assert_int_equal(t->noutputs, 1);
    assert_string_equal(t->values[t->outputs[0]].name, "t3");
    assert_int_equal(t->nnotes, 1);
    assert_string_equal(t->notes[0], "one \"quoted\" note");
    task_free(t);
}

/* A change of the valid task, and the message: where, what is wrong, what is expected. */
static const struct {
    const char *from, *to, *message;
} bad[] = {
    /* JSON */
    {"\"suite\": \"unit\",", "\"suite\": \"unit\"", ":5: not valid JSON"},
    {"\"flags\": []\n}\n", "\"flags\": [", ": the JSON text ends too early"},
    {"}\n", "}\n", NULL},
    {"  \"flags\": []\n}\n", "  \"flags\": []\n}\n{}", ":23: not valid JSON"},
    {"{\n  \"schema\": 1,", "[", ": not valid JSON"},
    {"\"flags\": []\n", "\"flags\": [],\n", ":21: not valid JSON: a comma before `}`"},
    {"\"flags\": []", "\"flags\": [\"a\",]", ":21: not valid JSON: a comma before `]`"},
    /* keys and places */
    {"\"schema\": 1", "\"schema\": 2", ":2: schema is not 1"},
    {"  \"schema\": 1,\n", "", "schema is not 1"},
    {"\"title\"", "\"titel\"", ":5: unknown key `titel`; expected one of: schema task"},
    {"\"source\": \"nowhere\"", "\"title\": \"x\"", ":5: key `title` is given twice"},
    {"\"dtype\": \"f32\"", "\"dtype\": \"f32\", \"dtype\": \"f32\"",
     ":8: key `dtype` is given twice"},
    {"\"dtype\": \"f32\"", "\"type\": \"f32\"", ":8: unknown key `type`"},
    {"\"title\"", "\"precision\": 0, \"title\"", ":5: precision is no number between 0 and 0.1"},
    {"\"title\"", "\"precision\": 0.2, \"title\"", ":5: precision is no number"},
    {"\"title\"", "\"precision\": \"0.02\", \"title\"", ":5: precision is no number"},
    {"\"task\": \"t\"", "\"task\": \"u\"", ":3: task `u` of suite `unit` is in the wrong place"},
    {"\"task\": \"t\"", "\"task\": 7", ":3: `task` is missing or not a string"},
    {"\"task\": \"t\"", "\"task\": \"../t\"", ":3: task `../t`; expected lower-case"},
    {"\"suite\": \"unit\"", "\"suite\": \"level1\"",
     ":3: task `t` of suite `level1` is in the wrong place"},
    {"\"notes\": [\"one", "\"notes\": [3, \"one", ":20: notes: not a string"},
    {"[\"t3\"]", "\"t3\"", ":19: `outputs` is missing, empty or not a list"},
    {"[\"t3\"]", "[]", ":19: `outputs` is missing, empty"},
    {"[\"t3\"]", "[\"x\"]", ":19: output `x`; expected the name of an op's result"},
    {"[\"t3\"]", "[\"t3\", \"t3\"]", ":19: output `t3` is listed twice"},
    {"[\"t3\"]", "[\"t9\"]", ":19: output `t9`"},
    /* tensors */
    {"[2, 3]", "[2, 0]", ":8: x: axis 1 of shape is 0; expected a positive integer"},
    {"[2, 3]", "[2, -3]", ":8: x: axis 1 of shape is -3"},
    {"[2, 3]", "[2.5, 3]", ":8: x: axis 0 of shape is 2.5"},
    {"[2, 3]", "[\"2\", 3]", ":8: x: axis 0 of shape is 0"},
    {"[2, 3]", "[4294967296, 4294967296]", ":8: x: shape has more bytes than 2^50"},
    {"[2, 3]", "[4294967296, 65536]", ":8: x: shape has more bytes than 2^50"},
    {"[2, 3]", "[1,1,1,1,1,1,1,2,3]", ":8: x: shape is missing or too long"},
    {"[2, 3]", "6", ":8: x: shape is missing"},
    {"\"f32\"", "\"bfloat16\"", ":8: `dtype` is longer than 7 bytes"},
    {"\"f32\"", "\"float32\"", ":8: x: dtype `float32`; expected f32"},
    {"\"f32\"", "\"f99\"", ":8: x: dtype `f99`; expected f32, f16, bf16"},
    {"\"name\": \"y\"", "\"name\": \"X\"", ":9: `X` names two tensors (case aside)"},
    {"\"name\": \"y\"", "\"name\": \"float\"", ":9: `float` cannot name a tensor"},
    {"\"name\": \"y\"", "\"name\": \"out\"", ":9: `out` cannot name a tensor"},
    {"\"name\": \"y\"", "\"name\": \"a.b\"", ":9: `a.b` cannot name a tensor"},
    {"\"name\": \"y\"", "\"name\": \"\"", ":9: `` cannot name a tensor"},
    {"\"name\": \"y\"",
     "\"name\": \"t123456789123456789123456789123456789123456789123456789123456789\"",
     ":9: `name` is longer than 63 bytes"},
    {"\"positive\"", "\"negative\"", ":12: w: domain `negative`; expected real, moderate"},
    {"mul(x, y)", "mul(x, 2)",
     ":9: y reaches no output; expected a use of it or the flag \"unused: y\""},
    {"\"flags\": []", "\"flags\": [\"unused: y\"]", ":9: y is used but flagged unused"},
    /* op lines */
    {"gelu(t2;", "gilu(t2;", ":17: unknown op `gilu`; the nearest known op is `gelu`"},
    {"t2[2,4] = linear", "t2[2,5] = linear", ":16: linear: t2 is declared [2,5]; expected [2,4]"},
    {"t2[2,4] = linear", "t2[2,4]:f16 = linear", ":16: linear: t2 is declared f16; expected f32"},
    {"t2[2,4] = linear", "t1[2,4] = linear", ":16: result `t1` is defined already"},
    {"t2[2,4] = linear", "x[2,4] = linear", ":16: result `x` is defined already"},
    {"t2[2,4] = linear", "int[2,4] = linear", ":16: result `int` is defined already or reserved"},
    {"t2[2,4] = linear",
     "t123456789123456789123456789123456789123456789123456789123456789[2,4] = linear",
     "expected the name of a result"},
    {"t1[2,3] = mul(x, y)\",\n    \"t2[2,4] = linear(t1,",
     "t12345678912345678912345678912345678912345678912345678912345678[2,3] = mul(x, y)\",\n    "
     "\"t2[2,4] = linear(t12345678912345678912345678912345678912345678912345678912345678,",
     NULL},
    {"gelu(t2;", "cat(;", "found `; approximate"},
    {"t2[2,4] = linear", "t2 = linear", ":16: `t2 = linear(t1, weight=w)`: found `= linear"},
    {"t2[2,4] = linear", "t2[2,4] linear", "expected = and an op"},
    {"linear(t1, weight=w)", "linear(t9, weight=w)", ":16: `t9` is not defined"},
    {"linear(t1, weight=w)", "linear(t3, weight=w)", ":16: `t3` is not defined"},
    {"linear(t1, weight=w)", "linear(t1, w)", "expected keyword=value here"},
    {"linear(t1, weight=w)", "linear(t1, wait=w)", "expected a keyword that this op has"},
    {"linear(t1, weight=w)", "linear(t1)", ":16: linear: operand 2 (weight) is missing"},
    {"linear(t1, weight=w)", "linear(t1, weight=w, weight=w)", "expected each operand once"},
    {"linear(t1, weight=w)", "linear(t1, weight=w", "ends too early; expected a comma or )"},
    {"linear(t1, weight=w)", "linear(t1, weight=w) + 1", "found `+ 1`; expected nothing after )"},
    {"linear(t1, weight=w)", "linear(t1, weight=w; eps=1)",
     "linear has no attribute `eps`; expected one of: (none)"},
    {"mul(x, y)", "mul(x, y, x)", "expected keyword=value here, or fewer operands"},
    {"mul(x, y)", "mul(2, 3)", ":15: mul: both operands are numbers"},
    {"mul(x, y)", "mul(x, 0x10)", "found `0x10)`; expected an operand"},
    {"approximate=\\\"tanh\\\"", "approximate=fast",
     ":17: gelu: approximate=fast; expected none or tanh"},
    {"approximate=\\\"tanh\\\"", "approximate=1",
     ":17: gelu: approximate has a value of the wrong kind"},
    {"approximate=\\\"tanh\\\"", "approximate=tanh, approximate=tanh",
     "expected each attribute once"},
    {"approximate=\\\"tanh\\\"", "approximate", "expected = and a value"},
    {"approximate=\\\"tanh\\\"", "approximate=\\\"tanh",
     "expected a short string and a closing quote"},
    {"\"t1[2,3] = mul(x, y)\",", "\"t1[2,3] = mul(x, y)\", \"t0[2,3] = relu(x)\",",
     ":15: t0 does not reach an output"},
    {"\"t1[2,3] = mul(x, y)\"", "17", ":15: not a string; expected an op line"},
};

static void refuses_bad_tasks(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char message[1024];
        struct kp_task *t = load_text(changed(bad[i].from, bad[i].to), message);
        if (!bad[i].message) {
            assert_non_null(t);
        } else if (t || !strstr(message, bad[i].message)) {
            wrong++;
            print_error("`%s` -> `%s`: got `%s`, expected `%s`\n", bad[i].from, bad[i].to,
                        t ? "(taken)" : message, bad[i].message);
        }
        task_free(t);
    }
    assert_int_equal(wrong, 0);
}

/* Each tensor has a buffer, and there is room for so many. */
static void bounds_the_number_of_tensors(void **state) {
    (void)state;
    static char list[1 << 17], text[1 << 18], message[1024];
    for (int n = KP_MAX_TENSORS; n <= KP_MAX_TENSORS + 1; n++) {
        size_t at = 0, flags = (size_t)sprintf(text, "{\"flags\":[\"other: \"");
        for (int i = 0; i < n; i++) {
            at += (size_t)sprintf(list + at,
                                  "%s{\"name\":\"x%d\",\"shape\":[1],\"dtype\":\"f32\","
                                  "\"fill\":\"signs()\"}",
                                  i ? "," : "", i);
            if (i) flags += (size_t)sprintf(text + flags, ",\"unused: x%d\"", i);
        }
        sprintf(text + flags,
                "],\"schema\":1,\"task\":\"t\",\"suite\":\"unit\",\n\"inputs\":[%s],"
                "\"graph\":[\"y[1] = relu(x0)\"],\"outputs\":[\"y\"]}",
                list);
        struct kp_task *t = load_text(text, message);
        if (n == KP_MAX_TENSORS && !t) fail_msg("%s", message);
        if (n > KP_MAX_TENSORS) {
            assert_null(t);
            assert_string_equal(message, ":2: 1001 inputs and parameters; expected at most 1000");
        }
        task_free(t);
    }
}

/* A tensor is a member of a struct of task.h, which is C++: no keyword can name one. */
static void refuses_keywords(void **state) {
    static const char keywords[] =
        "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
        "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
        "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
        "else enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register reinterpret_cast requires restrict return short signed sizeof static "
        "static_assert static_cast struct switch template this thread_local throw true try "
        "typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while "
        "xor xor_eq";
    int n = 0;
    (void)state;
    for (const char *at = keywords, *end; *at; at = end + (*end == ' '), n++) {
        char message[1024], name[64];
        end = at + strcspn(at, " ");
        snprintf(name, sizeof name, "\"name\": \"%.*s\"", (int)(end - at), at);
        struct kp_task *t = load_text(changed("\"name\": \"y\"", name), message);
        if (t || !strstr(message, "cannot name a tensor")) fail_msg("%s: %s", name, message);
    }
    assert_int_equal(n, 94);
}

/* A file that is cut anywhere never crashes the reader and is never a task. */
static void refuses_truncated_files(void **state) {
    (void)state;
    for (size_t n = 0; n + 2 < sizeof good; n += 7) {
        char text[sizeof good], message[1024];
        memcpy(text, good, n);
        text[n] = '\0';
        struct kp_task *t = load_text(text, message);
        assert_null(t);
        assert_true(message[0] == ':' && strstr(message, "expected"));
    }
}

static void refuses_what_is_no_file(void **state) {
    (void)state;
    char message[1024];
    assert_null(task_load_error("/nonexistent/t.json", message, sizeof message));
    assert_non_null(strstr(message, "/nonexistent/t.json: cannot be opened (No such file"));
    assert_null(task_load_error("/tmp", message, sizeof message));
    assert_non_null(strstr(message, "cannot be read (a folder"));
}

/* A fill of a [2,3] tensor, unless the row names another; NULL: accepted. */
static const struct {
    const char *fill, *tensor, *message;
} fills[] = {
    {"uniform(0,1)", NULL, NULL},
    {" uniform ( -1e-3 , +2 ) ", NULL, NULL},
    {"normal(0,0.1)", NULL, NULL},
    {"constant(-3.5)", NULL, NULL},
    {"integers(0,10)", NULL, NULL},
    {"fan_in(363)", NULL, NULL},
    {"bernoulli(0.25)", NULL, NULL},
    {"signs()", NULL, NULL},
    {"scaled(uniform(0,1))", NULL, NULL},
    {"softmax(scaled(normal(0,1)))", NULL, NULL},
    {"upper(uniform(0,1))", NULL, NULL},
    {"symmetric(uniform(0,1))", "\"shape\": [3, 3], \"dtype\": \"f32\"", NULL},
    {"transposed(a)", "\"shape\": [3, 2], \"dtype\": \"f32\"", NULL},
    {"bernoulli(0.5)", "\"shape\": [3], \"dtype\": \"bool\"", NULL},
    {"integers(-5,5)", "\"shape\": [3], \"dtype\": \"i64\"", NULL},
    {"values(0.5,-1*4,2e3)", NULL, NULL},
    {"values(-3*2, 7)", "\"shape\": [3], \"dtype\": \"i64\"", NULL},
    {"values(1,0*2)", "\"shape\": [3], \"dtype\": \"bool\"", NULL},
    {"values(1,2,3)", NULL, "fewer values than elements"},
    {"values(1*3,2*4)", NULL, "more values than elements"},
    {"values(1*0,2*6)", NULL, "a count of 1 or more after *"},
    {"values(1*1.5,2*6)", NULL, "a count of 1 or more after *"},
    {"values(1*6", NULL, "expected )"},
    {"values()", NULL, "expected numbers"},
    {"values(0.5*3)", "\"shape\": [3], \"dtype\": \"i64\"", "expected integers"},
    {"values(2,0*2)", "\"shape\": [3], \"dtype\": \"bool\"", "a bool tensor"},
    {"values(0*262145)", "\"shape\": [262145], \"dtype\": \"f32\"", "too many elements"},
    {"values(1*6)", "\"shape\": [2,3], \"dtype\": \"f32\", \"domain\": \"real\"",
     "domain `real` of given values"},
    {"uniform(1,1)", NULL, "expected lo < hi"},
    {"uniform(0)", NULL, "expected two numbers"},
    {"uniform(0,1", NULL, "expected two numbers"},
    {"uniform(0,1) or so", NULL, "expected nothing after it"},
    {"uniform(0,inf)", NULL, "expected two numbers"},
    {"uniform(0,0x10)", NULL, "expected two numbers"},
    {"uniform[0,1)", NULL, "expected two numbers"},
    {"normal(0,0)", NULL, "standard deviation above 0"},
    {"integers(0.5,2)", NULL, "expected integers lo < hi"},
    {"fan_in(0)", NULL, "expected an integer of 1 or more"},
    {"bernoulli(1.5)", NULL, "probability in [0,1]"},
    {"signs", NULL, "expected ()"},
    {"gaussian(0,1)", NULL, "expected uniform, normal, constant"},
    {"", NULL, "expected NAME(...)"},
    {"scaled(uniform(0,1)", NULL, "expected )"},
    {"scaled(softmax(uniform(0,1)))", NULL, "softmax inside another wrap"},
    {"scaled(scaled(uniform(0,1)))", NULL, "the same wrap twice"},
    {"upper(lower(uniform(0,1)))", NULL, "two of symmetric, upper and lower"},
    {"symmetric(uniform(0,1))", NULL, "expected a square matrix"},
    {"lower(uniform(0,1))", "\"shape\": [3], \"dtype\": \"f32\"", "less than two axes"},
    {"transposed(b)", NULL, "no earlier tensor"},
    {"transposed(a)", NULL, "not each other's transpose"},
    {"transposed(a)", "\"shape\": [3, 2], \"dtype\": \"f16\"", "another dtype"},
    {"softmax(transposed(a))", "\"shape\": [3, 2], \"dtype\": \"f32\"",
     "a wrap around transposed()"},
    {"normal(0,1)", "\"shape\": [3], \"dtype\": \"i64\"", "an integer tensor"},
    {"integers(0,3)", "\"shape\": [3], \"dtype\": \"bool\"", "a bool tensor"},
    {"constant(-65504)", "\"shape\": [3], \"dtype\": \"f16\"", NULL},
    {"constant(-65520)", "\"shape\": [3], \"dtype\": \"f16\"", "numbers that the type lacks"},
    {"normal(0,1e5)", "\"shape\": [3], \"dtype\": \"f16\"", "numbers that the type lacks"},
    {"normal(0,1e5)", "\"shape\": [3], \"dtype\": \"bf16\"", NULL},
    {"uniform(-1e37,1e37)", NULL, NULL},
    {"uniform(0,1e39)", NULL, "numbers that the type lacks"},
    {"values(0*5,-1e39)", NULL, "numbers that the type lacks"},
    {"integers(-2147483648,2147483648)", "\"shape\": [3], \"dtype\": \"i32\"", NULL},
    {"integers(0,2147483649)", "\"shape\": [3], \"dtype\": \"i32\"", "numbers that the type lacks"},
    {"constant(2147483648)", "\"shape\": [3], \"dtype\": \"i32\"", "numbers that the type lacks"},
    {"constant(-2147483649)", "\"shape\": [3], \"dtype\": \"i32\"", "numbers that the type lacks"},
    {"values(0*2,2147483648)", "\"shape\": [3], \"dtype\": \"i32\"", "numbers that the type lacks"},
    {"integers(0,4503599627370496)", "\"shape\": [3], \"dtype\": \"i64\"", NULL},
    {"constant(1e19)", "\"shape\": [3], \"dtype\": \"i64\"", "numbers that the type lacks"},
};

static void knows_fills(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        char text[1024], message[1024];
        snprintf(text, sizeof text,
                 "{\"schema\":1,\"task\":\"t\",\"suite\":\"unit\",\"inputs\":["
                 "{\"name\":\"a\",\"shape\":[2,3],\"dtype\":\"f32\",\"fill\":\"normal(0,1)\"},"
                 "{\"name\":\"b\",%s,\"fill\":\"%s\"}],"
                 "\"graph\":[\"t1[2,3] = relu(a)\"],\"outputs\":[\"t1\"]%s}",
                 fills[i].tensor ? fills[i].tensor : "\"shape\":[2,3],\"dtype\":\"f32\"",
                 fills[i].fill,
                 strstr(fills[i].fill, "transposed") ? "" : ",\"flags\":[\"unused: b\"]");
        struct kp_task *t = load_text(text, message);
        if (fills[i].message ? t || !strstr(message, fills[i].message) : !t)
            fail_msg("%s: got `%s`, expected `%s`", fills[i].fill, t ? "(taken)" : message,
                     fills[i].message ? fills[i].message : "(taken)");
        if (t)
            assert_int_equal(t->tensors[1].fill.source,
                             strstr(fills[i].fill, "transposed") ? 0 : -1);
        task_free(t);
    }
}

static void keeps_numbers_of_fills(void **state) {
    (void)state;
    char message[1024];
    struct kp_task *t =
        load_text(changed("uniform(-1,2.5)", "softmax(scaled(upper(normal(-1,2.5))))"), message);
    assert_non_null(t);
    assert_int_equal(t->tensors[0].fill.kind, KP_FILL_NORMAL);
    assert_int_equal(t->tensors[0].fill.wrap, KP_WRAP_SOFTMAX | KP_WRAP_SCALED | KP_WRAP_UPPER);
    assert_true(t->tensors[0].fill.a == -1 && t->tensors[0].fill.b == 2.5);
    assert_true(t->tensors[0].fill.values == NULL);
    assert_int_equal(t->tensors[2].fill.kind, KP_FILL_FAN_IN);
    assert_true(t->tensors[2].fill.a == 3);
    task_free(t);
}

/* What a task computes, as a new string; the task is released. */
static char *meaning_of(struct kp_task *t) {
    char *meaning = NULL;
    size_t size = 0;
    assert_non_null(t);
    FILE *out = open_memstream(&meaning, &size);
    task_text_meaning(t, out);
    fclose(out);
    task_free(t);
    return meaning;
}

/* Names, fills, domains and titles do not change what a task computes; all else does. */
static void tells_problems_apart(void **state) {
    static const struct {
        const char *from, *to;
        bool same;
    } cases[] = {
        {"A title", "Another", true},
        {"uniform(-1,2.5)", "constant(0)", true},
        {", \"domain\": \"positive\"", "", true},
        {"\"t3[2,4] = gelu(t2; approximate=\\\"tanh\\\")\"\n  ],\n  \"outputs\": [\"t3\"]",
         "\"z[2,4] = gelu(t2; approximate=\\\"tanh\\\")\"\n  ],\n  \"outputs\": [\"z\"]", true},
        {"],\n  \"parameters\": [\n", ",\n", true}, /* w is an input, too */
        {"mul(x, y)", "add(x, y)", false},
        {"mul(x, y)", "mul(y, x)", false},
        {"; approximate=\\\"tanh\\\"", "", false},
        {"\"shape\": [3], \"dtype\"", "\"shape\": [1, 3], \"dtype\"", false},
        {"\"outputs\": [\"t3\"]", "\"outputs\": [\"t2\", \"t3\"]", false},
    };
    char message[1024], *plain = meaning_of(load_text(good, message));
    (void)state;
    assert_string_equal(plain, "%0:[2,3]:f32\n%1:[3]:f32\n%2[2,3]:f32 = mul(%0, %1)\n"
                               "%3:[4,3]:f32\n%4[2,4]:f32 = linear(%2, weight=%3)\n"
                               "%5[2,4]:f32 = gelu(%4; approximate=tanh)\n%5\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *other = meaning_of(load_text(changed(cases[i].from, cases[i].to), message));
        if (!strcmp(plain, other) != cases[i].same) fail_msg("%s: %s", cases[i].to, other);
        free(other);
    }
    free(plain);
}

/* A task is what its heaviest op is, whatever stands last. */
static void knows_kinds(void **state) {
    static const struct {
        const char *tensors, *graph, *kind;
    } cases[] = {
        {"x f32 [2,3]", "t[2,3] = relu(x)", "elementwise"},
        {"x f32 [2,3]", "t[3,2] = transpose(x; dims=[0,1])", "elementwise"},
        {"x f32 [2,3]", "t[2,3] = cumsum(x; dim=1)\nu[2,3] = relu(t)", "reductions"},
        {"x f32 [2,3]", "t[2,3] = layer_norm(x; shape=[3])\nu[2,3] = softmax(t; dim=1)", "norms"},
        {"x f32 [2,3]; w f32 [4,3]", "t[2,4] = linear(x, weight=w)", "products"},
        {"x f32 [1,1,4,4]; w f32 [1,1,3,3]; v f32 [2,2]",
         "t[1,1,2,2] = conv2d(x, weight=w)\nu[1,1,2,2] = matmul(t, v)", "convolutions"},
        {"x f32 [1,1,4,4]", "t[1,1,4,4] = scaled_dot_product_attention(x, key=x, value=x)",
         "attention"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[1024];
        struct kp_task *t = load_graph(cases[i].tensors, cases[i].graph, message);
        if (!t) fail_msg("%s: %s", cases[i].graph, message);
        assert_string_equal(kp_kind_name(task_kind(t)), cases[i].kind);
        task_free(t);
    }
}

/* A text has no place that its names could contradict; it is checked as a file is. */
static void reads_a_text(void **state) {
    char message[1024];
    (void)state;
    struct kp_task *t = task_parse(good, "nowhere/template.json", message, sizeof message);
    assert_non_null(t);
    assert_string_equal(t->name, "t");
    task_free(t);
    assert_null(task_parse(changed("mul(x, y)", "mul(x, z)"), "p.json", message, sizeof message));
    assert_non_null(strstr(message, "p.json:15: "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_task),
        cmocka_unit_test(refuses_bad_tasks),
        cmocka_unit_test(bounds_the_number_of_tensors),
        cmocka_unit_test(refuses_keywords),
        cmocka_unit_test(refuses_truncated_files),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(knows_fills),
        cmocka_unit_test(keeps_numbers_of_fills),
        cmocka_unit_test(tells_problems_apart),
        cmocka_unit_test(knows_kinds),
        cmocka_unit_test(reads_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
