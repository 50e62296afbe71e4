/* test_fence.c: kernels, sections and ideas in answers: which block is taken, and why none is. */
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
#include "gen/code.h"
#include "base/json.h"

#define LAUNCH "extern \"C\" void launch(int x) {"
#define K1     LAUNCH " /* 1 */ }\n"
#define K2     LAUNCH " /* 2 */ }\n"
#define CUT    "not closed: the answer was cut"

/* Expect this kernel in the answer. */
static void gives(const char *answer, const char *kernel) {
    char why[200] = "unset", *found = code_extract(answer, why);
    if (!found) fail_msg("'%s': %s", answer, why);
    if (strcmp(found, kernel)) fail_msg("'%s' gave '%s', not '%s'", answer, found, kernel);
    assert_string_equal(why, "");
    free(found);
}

static void gives_none(const char *answer, const char *words) {
    char why[200] = "unset", *found = code_extract(answer, why);
    if (found) fail_msg("'%.300s' gave '%.300s'", answer, found);
    if (!strstr(why, words)) fail_msg("'%s' is not in '%s'", words, why);
}

static void test_plain(void **state) {
    (void)state;
    gives("Here:\n```cuda\n" K1 "```\nDone.\n", K1);
    gives("```cuda\n" K1 "```", K1);
    gives("~~~cuda\n" K1 "~~~\n", K1);
    gives("````cpp\n" K1 "````\n", K1);
    gives("```\n" K1 "```   \n", K1);
    gives("```cuda\r\nint x;\r\n" LAUNCH "}\r\n```\r\n", "int x;\n" LAUNCH "}\n");
    gives("```cuda\r// a\rint x;\r" LAUNCH "}\r```\r", "// a\nint x;\n" LAUNCH "}\n");
    gives("~~~ cuda\n```\n" K1 "~~~\n", "```\n" K1);
    gives("````\n```\n" K1 "```\n````\n", K1);
    static const char *const tags[] = {"cuda",          "cu",      "cpp",
                                       "c++",           "c",       "C++",
                                       "CUDA",          " cuda ",  "cuda kernel.cu",
                                       "cpp:kernel.cu", "{.cuda}", "cu title=\"a\""};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        char *answer = text_format("```%s\n" K1 "```\n", tags[i]);
        gives(answer, K1);
        free(answer);
    }
    static const char *const other[] = {"python", "text", "ptx", "diff", "cudax", "json"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        char *answer = text_format("```%s\n" K1 "```\n", other[i]);
        gives_none(answer, "no block of code in the answer defines launch");
        free(answer);
    }
}

/* Among drafts, examples and build commands, the last block that defines launch is the kernel. */
static void test_which(void **state) {
    (void)state;
    gives("```cuda\n" K1 "```\nBetter:\n```cuda\n" K2 "```\n", K2);
    gives("```cuda\n" K1
          "```\nUse:\n```cpp\nint main() { launch(1); }\n```\nBuild:\n```bash\nnvcc k.cu\n```\n",
          K1);
    gives("```cuda\n" K1 "```\n```cuda\nextern \"C\" void launch(int x);\n```\n", K1);
    gives("```cuda\n" K1 "```\n```cuda\n// " K2 "```\n", K1);
    gives("```cuda\n" K1 "```\n```python\n" K2 "```\n", K1);
    gives_none("", "holds no block of code");
    gives_none("I cannot.\n", "holds no block of code");
    gives_none(K1, "holds no block of code");
    gives_none("use ```" LAUNCH "}``` here\n", "holds no block of code");
    gives_none("```x``` \n" K1, "holds no block of code");
    gives_none("```cuda\n```\n", "defines launch");
    gives_none("```cuda\n__global__ void k() {}\n```\n", "defines launch");
}

static void test_indented(void **state) {
    (void)state;
    gives("1. So:\n\n   ```cuda\n   int x;\n     int y;\n\n z;\n   " K1 "   ```\n",
          "int x;\n  int y;\n\nz;\n" K1);
    gives("\t```cuda\n\t" K1 "\t```\n", K1);
    gives("```cuda\n" K1 "  ```\n", K1);
}

static void test_cut(void **state) {
    (void)state;
    gives_none("```cuda\n" K1, CUT);
    gives_none("```cuda\n" K1 "```\n```cuda\n" K2, CUT);
    gives_none("````cuda\n" K1 "```\n", CUT);
    gives_none("```cuda\n" K1 "~~~\n", CUT);
    gives_none("```cuda\n" K1 "``` and\n", CUT);
    gives_none("```cuda", CUT);
    gives_none("```cuda\n" K1 "```\n```", CUT);
    gives_none("<file name=\"k.cu\">\n" K1, CUT);
}

/* Fences that are part of the code. */
static void test_inside(void **state) {
    (void)state;
    gives("```cuda\n/*\n```\nexample\n```\n*/\n" K1 "```\n", "/*\n```\nexample\n```\n*/\n" K1);
    gives("```cuda\n// ```\n * ```;\n" K1 "```\n", "// ```\n * ```;\n" K1);
    gives("```cuda\nauto s = R\"(\n```\n)\";\n" K1 "```\n", "auto s = R\"(\n```\n)\";\n" K1);
    gives("```cuda\nchar c = '\"'; // don't /*\n" K1 "```\n", "char c = '\"'; // don't /*\n" K1);
    /* Text that only looks like the start of a comment does not swallow the answer. */
    gives("```\nrm results/*\n```\n```cuda\n" K1 "```\n", K1);
    gives("```cuda\n" K1 "```\n```\nls a/* b\n```\n", K1);
}

static void test_files(void **state) {
    (void)state;
    gives("<file name=\"k.cu\">\n" K1 "</file>\n", K1);
    gives("<file name=\"../../etc/passwd\">" K1 "</file>\n", K1);
    gives("<FILE>\n" K1 "</FILE>", K1);
    gives("<file name=\"k.cu\">\n```cuda\n" K1 "```\n</file>\n", K1);
    gives("<file name=\"k.cu\">\n\n```cuda\n" K1 "```\n\n</file>\nrest\n", K1);
    gives("```xml\n<file name=\"k.cu\">\n" K1 "</file>\n```\n", K1);
    gives("<file name=\"a.cu\">\n" K1 "</file>\n<file name=\"b.cu\">\n" K2 "</file>\n", K2);
    gives("<file name=\"a.cu\">\n" K1 "</file>\n```\nint main() { launch(1); }\n```\n", K1);
    gives_none("<file name=\"k.py\">\n```python\n" K1 "```\n</file>\n", "defines launch");
    gives_none("<filename>\n" K1 "</filename>\n", "no block");
    gives_none("say <file>\n" K1 "</file>\n", "no block");
}

static char *long_answer(size_t size) {
    char *fill = malloc(size + 1);
    assert_non_null(fill);
    memset(fill, ' ', size), fill[size] = 0;
    char *answer = text_format("```cuda\n%s%s```\n", K1, fill);
    memcpy(answer + strlen(answer) - 5, "\n```\n", 5);
    free(fill);
    return answer;
}

static void test_limits(void **state) {
    (void)state;
    char why[200], *small = long_answer(256 * 1024 - strlen(K1)),
                   *big = long_answer(256 * 1024 - strlen(K1) + 2);
    char *kernel = code_extract(small, why);
    if (!kernel) fail_msg("%s", why);
    free(kernel);
    gives_none(big, "larger than 256 KB");
    free(small);
    free(big);
}

/* Thousands of blocks with unclosed comments are refused quickly. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 100000 };
    static const char block[] = "```c\n/*\n```\n";
    char *answer = malloc(MANY * (sizeof block - 1) + 1);
    assert_non_null(answer);
    for (size_t i = 0; i < MANY; i++) memcpy(answer + i * (sizeof block - 1), block, sizeof block);
    gives_none(answer, "more than 1000 blocks");
    free(answer);
}

static void test_utf8(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xc3(",
                                      "\xc0\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xe0\x80\x80",
                                      "\xf0\x80\x80\x80",
                                      "\xe2\x82"};
    static const char *const good[] = {"\xc3\xa9",     "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                       "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf",
                                       "\xe0\xa0\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *answer = text_format("```cuda\n// %s\n" K1 "```\n", bad[i]);
        gives_none(answer, "not UTF-8");
        free(answer);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char *answer = text_format("\xff```\n```cuda\n// %s\n" K1 "```\n", good[i]);
        char *kernel = text_format("// %s\n" K1, good[i]);
        gives(answer, kernel);
        free(answer);
        free(kernel);
    }
}

static void section_is(const char *answer, const char *name, const char *text) {
    char *found = code_section(answer, name);
    if (strcmp(found, text)) fail_msg("'%s' of '%s' is '%s', not '%s'", name, answer, found, text);
    free(found);
}

static void test_sections(void **state) {
    (void)state;
    static const char answer[] =
        "Intro\n# Answer\n## Performance analysis\n\nSlow.\n\n### Why\nBytes.\n"
        "```c\n# Algorithm design\n## Performance analysis\n```\n"
        "## 2. **Algorithm Design:** ##\nTiles.\n## Code\n```cuda\n" K1 "```\n";
    section_is(answer, "Performance analysis",
               "Slow.\n\n### Why\nBytes.\n```c\n# Algorithm design\n## Performance analysis\n```");
    section_is(answer, "PERFORMANCE ANALYSIS",
               "Slow.\n\n### Why\nBytes.\n```c\n# Algorithm design\n## Performance analysis\n```");
    section_is(answer, "algorithm design", "Tiles.");
    section_is(answer, "why", "Bytes.\n```c\n# Algorithm design\n## Performance analysis\n```");
    section_is(answer, "Performance", "");
    section_is(answer, "Code", "```cuda\n" K1 "```");
    section_is("## A\r\none\r\n## B\r\ntwo", "a", "one");
    section_is("## A\none\n# B\ntwo", "A", "one");
    section_is("# A\none\n## B\ntwo", "A", "one\n## B\ntwo");
    section_is("## A", "A", "");
    section_is("## A\n```\nopen", "A", "```\nopen");
    section_is("##A\none", "A", "");
    section_is("####### A\none", "A", "");
    section_is("#include <A>\n", "include <A>", "");
    section_is("## A\none\n## A\ntwo", "A", "one");
    section_is("", "A", "");
    section_is("## A\none\n<file>\n# define B 1\n</file>\ntwo\n## C", "A",
               "one\n<file>\n# define B 1\n</file>\ntwo");
}

/* Expect these ideas, joined by '|'. */
static void finds(const char *answer, const char *ideas) {
    cJSON *found = code_ideas(answer), *idea;
    char text[2000] = "";
    assert_true(cJSON_IsArray(found));
    cJSON_ArrayForEach(idea, found) {
        assert_true(cJSON_IsString(idea));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "|" : "",
                 idea->valuestring);
    }
    assert_string_equal(text, ideas);
    cJSON_Delete(found);
}

static void test_ideas(void **state) {
    (void)state;
    finds("", "");
    finds("I have none.", "");
    finds(
        "[{\"idea\": \"tiles\", \"why\": \"reuse\", \"gain\": 2}, {\"idea\": \" wide\\n loads \"}]",
        "tiles| wide\n loads ");
    finds("Use a[0] and b[i]:\n```json\n[{\"idea\": \"x [y]\"}, {\"why\": \"none\"}, 3]\n```\nDone "
          "[1].",
          "x [y]");
    finds("{\"ideas\": [{\"idea\": \"in an object\"}]}", "in an object");
    finds("[\"a\", \"b\"]", "a|b");
    finds("[{\"idea\": \"real\"}]\nRanked: [\"fast\", \"safe\"]",
          "real"); /* objects were requested */
    finds("A draft:\n[{\"idea\": \"draft\"}]\nFinal:\n[{\"idea\": \"final\"}]", "final");
    finds("[{\"idea\": \"\"}, {\"idea\": \"  \"}]", "");
    finds("[{\"idea\": \"never closed\"}", "");
    finds("1. a list\n2. in words\n", ""); /* JSON is asked for */
}

/* Brackets alone take little time. */
static void test_ideas_large(void **state) {
    (void)state;
    size_t n = 1 << 20;
    char *answer = malloc(n + 1);
    assert_non_null(answer);
    for (size_t i = 0; i < n; i++) answer[i] = "[\"\","[i % 4];
    answer[n] = 0;
    alarm(20);
    finds(answer, "");
    memset(answer, '[', n);
    finds(answer, "");
    alarm(0);
    free(answer);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),    cmocka_unit_test(test_which),
        cmocka_unit_test(test_indented), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_inside),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_utf8),     cmocka_unit_test(test_sections),
        cmocka_unit_test(test_ideas),    cmocka_unit_test(test_ideas_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
