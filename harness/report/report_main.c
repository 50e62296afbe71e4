/* report_main.c: draws what was recorded.
 *
 *   report [--results DIR] [--plots DIR] [--readme FILE] [--tasks DIR] [--published DIR]
 *          [--suites "SUITE..."]
 *          writes a table into FILE between its markers, a page for each GPU and for searches into
 *          results/, data into plots/data/, and figures
 *   report --cell FILE...    prints one line for each finished cell
 *   report --tasks-of GPU    lists the tasks that standard input names, a line each
 *   report --failed DIR      prints one line for each cell below build/ that is not ok, one for
 *                            each recorded result that is stale, one for those of another tree
 *
 * The same inputs give the same bytes.  A result that cannot be used costs one line and is left
 * out.  If there are results and none can be used, nothing is written (exit code 3). */
#include "report/report.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: report [--results DIR] [--plots DIR] [--readme FILE] [--tasks DIR] [--published DIR]"
    " [--suites SUITES]"
    " | --cell FILE... | --failed DIR | --tasks-of GPU";

/* Print a line for each file.  Returns KP_INPUT if one cannot be used. */
static int cells(char **path) {
    int code = KP_OK;
    struct boards known;
    boards_load(&known, "results");
    for (; *path; path++) {
        struct result r;
        char why[256];
        if (result_load(*path, &r, why, sizeof why)) {
            report_cell(&r, &known, stdout);
            result_free(&r);
        } else {
            warn("%s %s; remove it and run make again", *path, why);
            code = KP_INPUT;
        }
    }
    boards_free(&known);
    return code;
}

struct options {
    const char *results, *plots, *readme, *tasks, *published, *suites;
};

/* Read --NAME VALUE pairs; dies on anything else. */
static void parse(struct options *o, int argc, char **argv) {
    static const char *const name[] = {"--results", "--plots",     "--readme",
                                       "--tasks",   "--published", "--suites"};
    const char **field[] = {&o->results, &o->plots,     &o->readme,
                            &o->tasks,   &o->published, &o->suites};
    for (int i = 1; i < argc; i += 2) {
        int k = 0;
        while (k < 6 && strcmp(argv[i], name[k])) k++;
        if (k == 6 || i + 1 == argc) die(KP_USAGE, "%s: %s", argv[i], usage);
        *field[k] = argv[i + 1];
    }
    if (strpbrk(o->plots, "'\"\\"))
        die(KP_USAGE, "--plots %s: gnuplot cannot take a quote in a path", o->plots);
}

/* Write all that is generated.  Returns an exit code. */
static int everything(const struct options *o) {
    struct report r;
    report_load(&r, o->results, o->tasks, o->suites);
    report_staleness(&r, o->tasks);
    if (r.refused && !r.read)
        die(KP_INPUT, "none of %d results in %s can be used; nothing was written", r.refused,
            o->results);
    beside_load(&r, o->results);
    r.search = search_load(o->results);
    search_leave_out(r.search, &r);
    if (!r.ncolumns) printf("report: no results in %s yet\n", o->results);
    report_readme(&r, o->results, o->readme);
    report_pages(&r, o->results);
    report_reruns(&r, o->results);
    int code = report_plots(&r, o->plots, o->published);
    if (r.read)
        printf("report: %d results of %d GPU%s: %s, %s/*/README.md, %s/\n", r.read, r.ncolumns,
               r.ncolumns > 1 ? "s" : "", o->readme, o->results, o->plots);
    search_free(r.search);
    report_free(&r);
    return code;
}

/* List the measured cells that are not ok, and the recorded results that are stale. */
static void failed(const struct options *o, const char *build) {
    struct report r;
    report_load(&r, o->results, o->tasks, NULL);
    report_staleness(&r, o->tasks);
    report_failed(build, &r, stdout);
    report_stale(&r, stdout);
    report_free(&r);
}

/* Do what the words of the command line ask for.  Returns an exit code. */
static int run(int argc, char **argv) {
    struct options o = {"results", "plots", "README.md", "tasks", "results/published", ""};
    if (argc > 2 && !strcmp(argv[1], "--cell")) return cells(argv + 2);
    if (argc == 3 && !strcmp(argv[1], "--failed")) {
        failed(&o, argv[2]);
        return KP_OK;
    }
    if (argc == 3 && !strcmp(argv[1], "--tasks-of")) {
        report_tasks(stdin, o.tasks, o.results, argv[2], "optimized", stdout);
        return KP_OK;
    }
    parse(&o, argc, argv);
    return everything(&o);
}

int main(int argc, char **argv) {
    kp_program("report");
    int code = run(argc, argv);
    output_end();
    return code;
}
