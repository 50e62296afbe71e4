/* test_code.c: a kernel's normal form, whether it defines launch, and the file of an attempt. */
#define _GNU_SOURCE
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/code_normal.h"
#include "gen/code.h"
#include "base/json.h"

/* Expect the normal form of a text, which is its own normal form. */
static void becomes(const char *text, const char *normal) {
    char *once = code_normal(text), *twice = code_normal(once);
    if (strcmp(once, normal)) fail_msg("'%s' became '%s', not '%s'", text, once, normal);
    if (strcmp(once, twice)) fail_msg("'%s' became '%s', and that '%s'", text, once, twice);
    free(once);
    free(twice);
}

static void test_blanks(void **state) {
    (void)state;
    becomes("", "");
    becomes(" \n\t\r\n", "");
    becomes("int  a ;\n\nint\tb;", "int a;int b;");
    becomes("a + b", "a+b");
    becomes("a + +b - -c", "a+ +b- -c");
    becomes("a+ ++b", "a+ ++b");
    becomes("a & &b && c", "a& &b&&c");
    becomes("x < y > z", "x<y>z");
    becomes("vector<vector<int> >  v", "vector<vector<int> >v");
    becomes("vector<vector<int>> v", "vector<vector<int>>v");
    becomes("a / *p", "a/ *p");
    becomes("a * p", "a*p");
    becomes("x = = y ; a -> b ; a - > b", "x= =y;a->b;a- >b");
    becomes("f ( x ) [ 1 ]", "f(x)[1]");
    becomes("kernel <<< grid , block >>> ( )", "kernel<<<grid,block>>>()");
    becomes("1 . f", "1 .f");
    becomes("0xE +1", "0xE +1");
    becomes("0xF +1", "0xF+1");
    becomes("1e+5 + 1.f", "1e+5+1.f");
    becomes("return - 1 ;", "return-1;");
    becomes("a : : b", "a: :b");
    becomes("p . * q", "p. *q");
    becomes("\xc3\xa9 x", "\xc3\xa9 x");
}

static void test_comments(void **state) {
    (void)state;
    becomes("a//b\nc", "a c");
    becomes("a/**/b", "a b");
    becomes("a/* x\n * y */+b", "a+b");
    becomes("a // one \\\n still it\nb", "a b");
    becomes("a // \"open\nb", "a b");
    becomes("a /* // */ b", "a b");
    becomes("// /* \na", "a");
    becomes("a /* open", "a");
    becomes("x = \"// no /* comment */\" ;", "x=\"// no /* comment */\";");
    becomes("/* only */", "");
}

static void test_literals(void **state) {
    (void)state;
    becomes("\"a  b\\\"  c\" ;", "\"a  b\\\"  c\";");
    becomes("' ' ; '\\'' ; '\"' ;", "' ';'\\'';'\"';");
    becomes("extern \"C\"  void f ( )", "extern\"C\" void f()");
    becomes("\"a\" \"b\"", "\"a\"\"b\"");
    becomes("L \"a\" ; u8\"b  c\"", "L \"a\";u8\"b  c\"");
    becomes("\"a\"_s  \"b\" _s", "\"a\"_s\"b\" _s");
    becomes("R\"(a  // b\n  \")\"  ; d", "R\"(a  // b\n  \")\";d");
    becomes("R\"x(a )\"  // b\n)x\" ; d", "R\"x(a )\"  // b\n)x\";d");
    becomes("u8R\"(  )\"  + 1", "u8R\"(  )\"+1");
    becomes("R\"(open  // ", "R\"(open  // ");
    becomes("1'000'000 + ' ' ", "1'000'000+' '");
    becomes("0x1'F  + 'a'", "0x1'F+'a'");
    becomes("case 1 : 'a'  ; 1 'a'", "case 1:'a';1 'a'");
    becomes("\"two \\\n  lines\"  ;", "\"two \\\n  lines\";");
    becomes("\"open\n x  y", "\"open\nx y");
    becomes("'a\\'\n x  y", "'a\\'\nx y");
    becomes("don't  stop\n  x  y", "don't  stop\nx y");
}

static void test_directives(void **state) {
    (void)state;
    becomes("#include  <a.h>\nint  x;", "#include<a.h>\nint x;");
    becomes("#include <a//b.h> // c\n", "#include<a//b.h>\n");
    becomes("# include \"a  b.h\"\n", "#include\"a  b.h\"\n");
    becomes("int x;\n  #  define A( x )  x + 1\nint y;", "int x;\n#define A(x)x+1\nint y;");
    becomes("#define A (x)\n", "#define A (x)\n");
    becomes("#define A(x)\n", "#define A(x)\n");
    becomes("#define A -1\n", "#define A -1\n");
    becomes("#define A", "#define A\n");
    becomes("#define A x ## y", "#define A x##y\n");
    becomes("#define A \\\n  x \\\n  + 1\nb", "#define A \\\nx\\\n+1\nb");
    becomes("#define A /* one\n two */ 1\nb", "#define A 1\nb");
    becomes("#pragma unroll 4\nfor ( ; ; )", "#pragma unroll 4\nfor(;;)");
    becomes("#if A\n\n\n#else\n#endif\n", "#if A\n#else\n#endif\n");
    becomes("/* c */ # if 0\n", "#if 0\n");
    becomes("a /* \n */ #b\n", "a#b");
    becomes("#\n", "#\n");
    becomes("#error don't do  that\nint  x;", "#error don't do  that\nint x;");
    becomes("\n\n#define A 1\n\n\n#define B 2", "#define A 1\n#define B 2\n");
    becomes("int\\\n x", "int \\\nx");
    becomes("int \\\nx", "int \\\nx");
    becomes("in\\\nt x", "in\\\nt x");
}

/* Line ends, tabs and comments do not make a different kernel; names and numbers do. */
static void test_same(void **state) {
    (void)state;
    char *a = code_normal("// one\r\n__global__ void k(float *x) {\r\n\tx[0] = 1.f;\r\n}\r\n");
    char *b = code_normal("__global__ void k( float* x )\n{ /* two */ x[0]=1.f; }");
    char *c = code_normal("__global__ void k( float* x )\n{ /* two */ x[0]=2.f; }");
    char *d = code_normal("// one\r__global__ void k(float *x) {\r\tx[0] = 1.f;\r}\r");
    assert_string_equal(a, b);
    assert_string_equal(a, d);
    free(d);
    assert_string_not_equal(b, c);
    free(a);
    free(b);
    free(c);
}

/* Without static_assert; where none is closed, a kernel of 300 KB takes no half minute. */
static void test_unasserted(void **state) {
    (void)state;
    enum { MANY = 20000 };
    static const char open[] = "static_assert(a ";
    size_t n = strlen(open);
    char *text = calloc(MANY, n + 1), *left;
    for (size_t i = 0; i < MANY; i++) memcpy(text + i * n, open, n);
    alarm(10);
    left = code_unasserted(text);
    alarm(0);
    assert_string_equal(left, text);
    free(left);
    free(text);
    left = code_unasserted("a static_assert((1), \")\"); b static_assert(static_assert(1); c");
    assert_string_equal(left, "a  b static_assert( c");
    free(left);
}

/* For every kernel and header here, the normal form is its own, is shorter, has no comments, and
 * defines launch if the source does. */
static void test_kernels(void **state) {
    (void)state;
    static const char *const where[] = {"optimized/*/*.cu", "optimized/include/*.cuh",
                                        "tests/specimens/*.cu"};
    glob_t g = {0};
    int kernels = 0;
    for (int i = 0; i < 3; i++) assert_int_equal(glob(where[i], i ? GLOB_APPEND : 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        const char *path = g.gl_pathv[i];
        char *text = file_read(path, NULL), *once = code_normal(text), *twice = code_normal(once);
        if (strcmp(once, twice)) fail_msg("%s: the normal form has another one", path);
        if (strlen(once) >= strlen(text)) fail_msg("%s: is not shorter", path);
        if (strstr(once, "provenance") || strstr(once, "/*"))
            fail_msg("%s: a comment is left", path);
        if (code_defines_launch(text) != code_defines_launch(once))
            fail_msg("%s: launch is lost", path);
        if (!strncmp(path, "optimized/", 10) && strstr(path, ".cu") && !strstr(path, ".cuh")) {
            if (!code_defines_launch(text)) fail_msg("%s: defines no launch", path);
            kernels++;
        }
        free(text);
        free(once);
        free(twice);
    }
    assert_true(kernels > 0);
    globfree(&g);
}

/* Random texts, valid or not: the normal form of a normal form is itself. */
static void test_random(void **state) {
    (void)state;
    static const char *const part[] = {" ",
                                       "\n",
                                       "\t",
                                       "a",
                                       "R",
                                       "u8",
                                       "1",
                                       "0xE",
                                       ".",
                                       "'",
                                       "\"",
                                       "\\",
                                       "\\\n",
                                       "/",
                                       "*",
                                       "//",
                                       "/*",
                                       "*/",
                                       "#",
                                       "##",
                                       "#define ",
                                       "#include <",
                                       ">",
                                       "<",
                                       "+",
                                       "-",
                                       "=",
                                       ":",
                                       "%:",
                                       "(",
                                       ")",
                                       "R\"(",
                                       ")\"",
                                       "\r\n",
                                       "e",
                                       "\xc3\xa9",
                                       "&",
                                       "|",
                                       "{",
                                       "}",
                                       "launch",
                                       "void ",
                                       "extern \"C\" "};
    unsigned long long s = 1;
    for (int round = 0; round < 100000; round++) {
        char text[256] = "";
        int n = 1 + round % 14;
        for (int i = 0; i < n; i++) {
            s = s * 6364136223846793005ull + 1442695040888963407ull;
            strcat(text, part[(s >> 33) % (sizeof part / sizeof *part)]);
        }
        char *once = code_normal(text), *twice = code_normal(once);
        if (strcmp(once, twice)) fail_msg("'%s' became '%s', and that '%s'", text, once, twice);
        code_defines_launch(text);
        free(once);
        free(twice);
    }
}

static void test_launch(void **state) {
    (void)state;
    static const char *const yes[] = {
        "extern \"C\" void launch(const struct Inputs *in, void *s) {}",
        "extern \"C\" void launch(int (*f)(int), int x = (1)) noexcept { }",
        "extern \"C\" __attribute__((visibility(\"default\"))) void launch()\n\n{",
        "extern \"C\" { void launch() { } }",
        "#include \"task.h\"\nvoid launch(const struct Inputs *in) {",
        "static void f() { launch(); }\nextern \"C\" void launch() {}",
        "extern \"C\" void launch();\nextern \"C\" void launch() {}",
        "#define A {\nextern \"C\" void launch() {}",
        "#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\nextern \"C\" void launch() {}",
        "extern \"C\" size_t scratch_bytes(void) { return 1; }\nextern \"C\" void launch(int) {}",
        "extern \"C\" auto launch(int) -> void {",
        "extern \"C\" // the entry\nvoid /* here */ launch(int) {",
    };
    static const char *const no[] = {
        "",
        "extern \"C\" void launch(int x);",
        "// extern \"C\" void launch() {}",
        "/* extern \"C\" void launch() {} */",
        "const char *s = \"extern \\\"C\\\" void launch() {}\";",
        "R\"(extern \"C\" void launch() {})\"",
        "int main() { launch(in, out, 0, 0); }",
        "int main() { if (launch()) { } }",
        "launch(in, out);",
        "extern \"C\" void relaunch() {}",
        "extern \"C\" void launch_kernel() {}",
        "static void launch() {}",
        "template <int N> void launch() {}",
        "__global__ void launch(float *x) {}",
        "struct K { void launch() { } };",
        "#define D extern \"C\" void launch() {}\n",
        "#define D \\\n extern \"C\" void launch() {}\n",
        "extern \"C\" void launch",
        "extern \"C\" void launch(",
        "namespace a { void launch() {} }",
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!code_defines_launch(yes[i])) fail_msg("not seen in '%s'", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (code_defines_launch(no[i])) fail_msg("seen in '%s'", no[i]);
}

static char *file_of(const char *kernel) {
    return code_file(kernel, "model-1", "repair.r2a3", "2026-11-21T10:00:00Z",
                     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                     "build/attempts/repair.r2a3/h200/t.jsonl");
}

static void test_file(void **state) {
    (void)state;
    char *file = file_of("int x;\n\n\n"), *same = file_of("int x;");
    assert_string_equal(
        file, "// provenance: model-1, attempt repair.r2a3, 2026-11-21T10:00:00Z\n"
              "// prompt sha256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef; "
              "transcript "
              "build/attempts/repair.r2a3/h200/t.jsonl\n"
              "// kernel sha256 7c725f30854a46033dd94f728ac6b08caf10845993cd3ed48e40079cdb0a76a6 "
              "(of all that follows this line)\n"
              "int x;\n");
    assert_string_equal(file, same);
    assert_int_equal(code_untouched(file), 1);
    char *edited = text_format("%s// mine\n", file);
    assert_int_equal(code_untouched(edited), 0);
    edited[strlen(edited) - 9] = 0; /* without the last newline */
    assert_int_equal(code_untouched(edited), 0);
    strstr(edited, "int x")[4] = 'y';
    assert_int_equal(code_untouched(edited), 0);
    free(edited);
    free(file);
    free(same);
    assert_int_equal(code_untouched(""), -1);
    assert_int_equal(code_untouched("// provenance: shipped\nint x;\n"), -1);
    assert_int_equal(
        code_untouched(
            "// provenance: m\n// prompt sha256 0; transcript t\n// kernel sha256 abc\nint x;\n"),
        -1);
    assert_int_equal(
        code_untouched("// provenance: m\n// prompt sha256 0; transcript t\n// kernel sha256 "),
        -1);
}

/* A server's name for its model cannot end the comment. */
static void test_names(void **state) {
    (void)state;
    char name[300];
    memset(name, 'm', sizeof name - 1), name[299] = 0;
    memcpy(name, "a\nb\r\\\t\xc3\xa9", 8);
    name[99] = '\\';
    char *file = code_file("int x;", name, "a\n#define b", "", "s", "t\\");
    const char *line = file;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(strncmp(line, "// ", 3), 0);
        line = strchr(line, '\n') + 1;
        assert_int_not_equal(line[-2], '\\');
    }
    assert_string_equal(line, "int x;\n");
    assert_int_equal(strspn(file + strlen("// provenance: "), "ab_m"), 100);
    assert_int_equal(code_untouched(file), 1);
    free(file);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blanks),    cmocka_unit_test(test_comments),
        cmocka_unit_test(test_literals),  cmocka_unit_test(test_directives),
        cmocka_unit_test(test_same),      cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_random),    cmocka_unit_test(test_launch),
        cmocka_unit_test(test_file),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_unasserted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
