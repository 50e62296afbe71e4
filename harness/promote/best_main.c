/* best_main.c: print the best attempt of a cell, or all attempts as a table.
 *
 *   best GPU TASK                 the name of the best attempt of all modes; nothing if none is ok
 *   best --all GPU TASK           every ok attempt, best first: its name and its class
 *   best --table GPU TASK...      CSV: a header line, then one row an attempt, by task as given,
 *                                 mode, round and index; unknown values are empty */
#include "gen/attempt.h"
#include "base/error.h"
#include "record/result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char root[] = "build/attempts";

/* Print a field, quoted if CSV requires it.  A line break would start a row, so print a space. */
static void put_text(const char *text) {
    bool quoted = text[strcspn(text, ",\"\r\n")] != 0;
    putchar(',');
    if (quoted) putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text == '\n' || *text == '\r' ? ' ' : *text);
    }
    if (quoted) putchar('"');
}

/* Print a number; nothing if it is unknown. */
static void put_number(double x) {
    putchar(',');
    if (isfinite(x)) printf("%.9g", x);
}

static void put_row(const struct attempt *a, const char *gpu, const char *task) {
    bool ok = attempt_ok(a);
    printf("%s,%s,%s,%d,%d,%s", gpu, task, a->mode, a->round, a->index, a->name);
    put_text(a->model);
    put_text(a->outcome);
    put_text(a->verdict);
    put_text(a->class);
    put_number(ok ? a->ratio : NAN);
    put_number(ok ? a->low : NAN);
    put_number(ok ? a->high : NAN);
    put_number(ok ? a->us : NAN);
    put_number(a->input_tokens);
    put_number(a->output_tokens);
    put_number(a->cost);
    put_number(a->seconds);
    put_text(a->same_as);
    put_text(a->date);
    put_text(a->code_hash);
    putchar('\n');
}

static void table(const char *gpu, char **task) {
    puts("gpu,task,mode,round,index,attempt,model,outcome,verdict,class,ratio,low,high,us,"
         "input_tokens,output_tokens,cost_usd,seconds,same_as,date,code_sha256");
    for (; *task; task++) {
        struct attempts l = attempts_load(root, gpu, *task, NULL);
        for (int i = 0; i < l.n; i++) put_row(&l.a[i], gpu, *task);
        attempts_free(&l);
    }
}

/* qsort: the better one first; ties keep their order. */
static int by_rank(const void *x, const void *y) {
    const struct attempt *a = *(const struct attempt *const *)x,
                         *b = *(const struct attempt *const *)y;
    int better = attempt_better(b, a) - attempt_better(a, b);
    return better ? better : (a > b) - (a < b);
}

/* Print all ok attempts, best first. */
static void ranking(const char *gpu, const char *task) {
    struct attempts l = attempts_load(root, gpu, task, NULL);
    const struct attempt **ok = calloc((size_t)l.n + 1, sizeof *ok);
    int n = 0;
    if (!ok) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < l.n; i++)
        if (attempt_ok(&l.a[i])) ok[n++] = &l.a[i];
    qsort(ok, (size_t)n, sizeof *ok, by_rank);
    for (int i = 0; i < n; i++) printf("%s %s\n", ok[i]->name, ok[i]->class);
    free(ok);
    attempts_free(&l);
}

int main(int argc, char **argv) {
    kp_program("best");
    bool rows = argc > 1 && !strcmp(argv[1], "--table"),
         all = argc > 1 && !strcmp(argv[1], "--all");
    bool usable = rows ? argc > 3 : argc == (all ? 4 : 3);
    for (int i = rows || all ? 2 : 1; i < argc; i++) usable = usable && is_name(argv[i]);
    if (!usable)
        die(KP_USAGE, "usage: best GPU TASK, best --all GPU TASK, or best --table GPU TASK...");
    if (rows) {
        table(argv[2], argv + 3);
    } else if (all) {
        ranking(argv[2], argv[3]);
    } else {
        struct attempts l = attempts_load(root, argv[1], argv[2], NULL);
        const struct attempt *best = attempts_best(&l);
        if (best) puts(best->name);
        attempts_free(&l);
    }
    if (fflush(stdout) || ferror(stdout))
        die(KP_IO, "cannot write to standard output: %s", strerror(errno));
    return KP_OK;
}
