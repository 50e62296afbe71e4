/* prompt_failure.c: describe what went wrong with an attempt, as far as it helps to do better;
 * see prompt_parts.h. */
#define _GNU_SOURCE
#include "gen/prompt_parts.h"
#include "base/error.h"
#include "base/json.h"
#include "task/parse.h"
#include "task/task_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ERRORS = 3, MOST_MESSAGE = 600, MOST_REASON = 2000, MOST_DETAILS = 3 };

/* What each outcome and each verdict means, and where to look. */
static const struct {
    const char *word, *meaning;
} meanings[] = {
    {"cut",
     "The answer was cut off before its code block was complete. Write less before the code, "
     "and shorter code."},
    {"empty", "The answer held no text."},
    {"refused", "The answer was a refusal."},
    {"invalid", "The answer held characters that no source file can have."},
    {"no-code", "The answer held no usable kernel."},
    {"duplicate", "The kernel was one that had been written before, but for comments and spacing. "
                  "Write one that differs."},
    {"build", "It does not compile."},
    {"gate", "It compiles, but the object holds something that no kernel may."},
    {"tape", "Its launches cannot be recorded and replayed."},
    {"crash", "It stopped with an error when it was run: an address out of bounds or misaligned, a "
              "write to an input, a launch that asks for too much, or the like."},
    {"timeout", "It did not end. Look for a barrier that not all threads reach, a wait for a phase "
                "that never completes, a block that waits for one that is not resident, a loop "
                "without progress."},
    {"wrong", "It runs, but what it leaves is wrong."},
    {"impossible", "It was faster than this GPU can move the bytes or multiply the numbers, so it "
                   "does not do all of the work."},
    {"doubtful",
     "What it computes is right, but its time is not to be trusted: on contents of another kind "
     "it takes another time (control-ratio), or the GPU was busy for longer than that time "
     "(clocks-disagree). It must do the same work whatever the contents are, and end all of it "
     "before its last launch ends."},
    {"skipped", "It could not be tried."},
};

/* The outcome or verdict that ended an attempt. */
static const char *fate(const struct attempt *a) {
    if (*a->outcome && strcmp(a->outcome, "code") && strcmp(a->outcome, "ideas")) return a->outcome;
    return *a->verdict ? a->verdict : "not measured";
}

static const char *meaning_of(const char *word) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!strcmp(meanings[i].word, word)) return meanings[i].meaning;
    return "";
}

/* ---- Compiler ------------------------------------------------------------------------------ */

static bool has(const char *line, size_t n, const char *word) {
    return memmem(line, n, word, strlen(word)) != NULL;
}

/* Whether `word` starts a message in the line: "error: ", "error   : ", "error #20: ". */
static bool heads(const char *line, size_t n, const char *word) {
    const char *at = memmem(line, n, word, strlen(word));
    if (!at) return false;
    at += strlen(word);
    while (at < line + n && *at == ' ') at++;
    return at < line + n && (*at == ':' || *at == '#');
}

/* Whether a line of the log is an error, not quoted source or a count of errors. */
static bool is_error(const char *line, size_t n) {
    return heads(line, n, "error") || heads(line, n, "fatal") ||
           has(line, n, "undefined reference");
}

/* The end of the characters at `p` that may be part of a path. */
static const char *path_end(const char *p, const char *end) {
    while (p < end && (isalnum((unsigned char)*p) || strchr("./+-_", *p))) p++;
    return p;
}

/* The part of [p, end) to show.  An absolute path, and a path into build/ or to a header of the
 * project, is reduced to its file name; anything else stays. */
static const char *shown_part(const char *p, const char *end) {
    static const char headers[] = PROMPT_HEADERS "/", build[] = "build/";
    const char *last = memrchr(p, '/', (size_t)(end - p));
    if (!last || last + 1 == end) return p;
    bool path = *p == '/' && last > p; /* "/SM" is not a path */
    path |= !strncmp(p, headers, sizeof headers - 1) || !strncmp(p, build, sizeof build - 1);
    return path ? last + 1 : p;
}

/* Print the line number at *p minus the number of hidden lines. */
static void print_line_number(FILE *out, const char **p, int skipped) {
    char *after;
    long number = strtol(*p, &after, 10);
    fprintf(out, "%ld", number > skipped ? number - skipped : number);
    *p = after;
}

void failure_message(FILE *out, const char *line, size_t n, const char *name, int skipped) {
    static const char at_line[] = "at line ";
    const char *p = line, *stop = line + n;
    while (p < stop) {
        const char *end = path_end(p, stop), *last = memrchr(p, '/', (size_t)(end - p));
        const char *base = last ? last + 1 : p;
        if (!strncmp(p, at_line, sizeof at_line - 1) &&
            isdigit((unsigned char)p[sizeof at_line - 1])) {
            fputs(at_line, out);
            p += sizeof at_line - 1;
            bool other = !strncmp(p + strspn(p, "0123456789"), " of ", 4); /* a line of another
                                                                            * file */
            print_line_number(out, &p, other ? 0 : skipped);
        } else if (end == p) { /* not part of a path */
            fputc((unsigned char)*p < ' ' ? ' ' : *p, out);
            p++;
        } else if ((size_t)(end - base) == strlen(name) && !strncmp(base, name, strlen(name))) {
            fputs("kernel.cu", out);
            p = end;
            if (p + 1 < stop && strchr("(:", *p) && isdigit((unsigned char)p[1])) {
                fputc(*p++, out);
                print_line_number(out, &p, skipped);
            }
        } else {
            fwrite(shown_part(p, end), 1, (size_t)(end - shown_part(p, end)), out);
            p = end;
        }
    }
}

/* Print a line of a log in the same way, at most MOST_MESSAGE bytes and no partial character. */
static void print_message(FILE *out, const char *line, size_t n, const char *name, int skipped) {
    if (n > MOST_MESSAGE)
        for (n = MOST_MESSAGE; n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80;) n--;
    failure_message(out, line, n, name, skipped);
    fputc('\n', out);
}

/* The line of the kernel's whole file that a message names; 0 if none. */
static long line_named(const char *line, size_t n, const char *name) {
    const char *at = memmem(line, n, name, strlen(name));
    if (!at) return 0;
    at += strlen(name);
    return at + 1 < line + n && strchr("(:", *at) ? strtol(at + 1, NULL, 10) : 0;
}

/* Print the lines of the kernel around a line. */
static void quote(FILE *out, const char *code, long line) {
    long number = 1;
    for (const char *p = code; *p && number <= line + 1; number++) {
        size_t n = strcspn(p, "\n");
        if (number >= line - 2)
            fprintf(out, "%c %4ld | %.*s\n", number == line ? '>' : ' ', number,
                    (int)(n < 200 ? n : 200), p);
        p += n + (p[n] == '\n');
    }
}

/* Print the error that starts at `line`: its message, where templates were instantiated, the
 * source. */
static void print_error(FILE *out, const char *line, const char *name, const char *code,
                        int skipped) {
    size_t n = strcspn(line, "\n");
    long number = line_named(line, n, name) - skipped;
    print_message(out, line, n, name, skipped);
    const char *next = line + n + (line[n] == '\n');
    for (int found = 0, seen = 0; *next && found < MOST_DETAILS && seen < 12; seen++) {
        n = strcspn(next, "\n");
        if (is_error(next, n)) break;
        if (has(next, n, "instantiation") || has(next, n, "required from") ||
            has(next, n, "argument types are") || has(next, n, "object type is")) {
            print_message(out, next, n, name, skipped);
            found++;
        }
        next += n + (next[n] == '\n');
    }
    if (number > 0 && code) quote(out, code, number);
}

/* Print the first errors of a compiler's log, with the source lines that they name.  `name` is
 * the kernel's file in the log, `code` its text without its first `skipped` lines. */
static void failure_log(FILE *out, const char *log, const char *name, const char *code,
                        int skipped) {
    struct draft t;
    int errors = 0;
    draft_open(&t);
    for (const char *line = log; *line;) {
        size_t n = strcspn(line, "\n");
        if (is_error(line, n) && errors++ < MOST_ERRORS) {
            if (errors > 1) fputc('\n', t.out);
            print_error(t.out, line, name, code, skipped);
        }
        line += n + (line[n] == '\n');
    }
    char *body = draft_close(&t);
    if (errors) {
        fprintf(out, "The compiler's first error%s, of %d:\n\n", errors > 1 ? "s" : "", errors);
        text_fence(out, "text", body, 16 << 10);
        fputc('\n', out);
    }
    free(body);
}

/* Print the log beside an attempt, if it is the log of a failed compilation. */
static void print_log(FILE *out, const struct prompt_cell *c, const struct attempt *a,
                      const char *code, int skipped) {
    char *path = attempt_path(c->root, a->name, c->gpu, c->task->name, ".log");
    char *name = text_format("%s.cu", c->task->name);
    if (access(path, R_OK) == 0) {
        char *log = file_read(path, NULL);
        failure_log(out, log, name, code, skipped);
        free(log);
    }
    free(name);
    free(path);
}

void failure_line(FILE *out, const struct prompt_cell *c, const struct attempt *a, int skipped) {
    fprintf(out, "- outcome: %s", fate(a));
    if (*a->reason) {
        char *name = text_format("%s.cu", c->task->name);
        char *reason = text_one_line(a->reason, MOST_REASON); /* of the gate: all that it found */
        fputs(": ", out);
        failure_message(out, reason, strlen(reason), name, skipped);
        free(reason);
        free(name);
    }
    if (*a->same_as && !strstr(a->reason, a->same_as))
        fprintf(out, " (the same as %s)", a->same_as);
    fputc('\n', out);
}

/* ---- Wrong results --------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *json, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* Print element `index` of an output as indices along its axes. */
static void print_index(FILE *out, const struct kp_task *t, const char *output, double index) {
    for (int k = 0; k < t->noutputs; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        if (strcmp(v->name, output) || !(index >= 0) ||
            !(index < (double)kp_shape_count(&v->shape)) || !v->shape.n)
            continue;
        long long at[KP_MAX_DIMS], rest = (long long)index;
        for (int d = v->shape.n - 1; d >= 0; d--) {
            at[d] = rest % v->shape.dim[d];
            rest /= v->shape.dim[d];
        }
        for (int d = 0; d < v->shape.n; d++) fprintf(out, "%s%lld", d ? "," : " = [", at[d]);
        fputc(']', out);
    }
}

static void print_value(FILE *out, const cJSON *e, const char *key) {
    const cJSON *x = member(e, key);
    if (cJSON_IsNumber(x))
        fprintf(out, "%.9g", x->valuedouble);
    else
        fputs("not finite", out); /* JSON has no NaN and no infinity */
}

/* Print the first wrong element, the number of wrong ones, and where they are. */
static void print_evidence(FILE *out, const struct kp_task *t, const cJSON *e) {
    if (!cJSON_IsObject(e)) return;
    const char *output = json_text(e, "output", "?"), *pattern = json_text(e, "pattern", "");
    double index = json_number(e, "index", -1), bad = json_number(e, "count", 0),
           of = json_number(e, "of", 0), unwritten = json_number(e, "unwritten", 0);
    fprintf(out, "- with %s contents, output %s: first wrong element at %.0f",
            json_text(e, "distribution", "declared"), output, index);
    print_index(out, t, output, index);
    fputs(": expected ", out);
    print_value(out, e, "expected");
    fputs(", found ", out);
    print_value(out, e, "found");
    fprintf(out, "\n- wrong elements: %.0f of %.0f", bad, of);
    if (of > 0) fprintf(out, " (%.3g %%)", 100 * bad / of);
    if (unwritten > 0)
        fprintf(out, "; %.0f of the output's elements were never written", unwritten);
    fputc('\n', out);
    if (*pattern) {
        fputs("- where they lie: ", out);
        text_line(out, pattern, MOST_MESSAGE);
        fputc('\n', out);
    }
}

/* Print " 3.2", or what is no number. */
static void print_short(FILE *out, const cJSON *x) {
    if (cJSON_IsNumber(x))
        fprintf(out, " %.2g", x->valuedouble);
    else
        fputs(" not finite", out);
}

/* Print the errors of each input distribution that are beyond the limits of the last class. */
static void print_errors(FILE *out, const cJSON *error) {
    static const char *const measures[] = {"rms", "part", "element", "bias"};
    const cJSON *d;
    cJSON_ArrayForEach(d, member(error, "candidate")) {
        const cJSON *limit = member(d, "of_limit");
        if (!d->string || !limit || json_number(d, "of_limit", 2) <= 1) continue;
        fprintf(out, "- error with %s contents:", d->string);
        print_short(out, limit);
        fputs(" x the limit;", out);
        for (int k = 0; k < 4; k++) {
            fprintf(out, "%s %s", k ? "," : "", measures[k]);
            print_short(out, member(d, measures[k]));
        }
        fputs(" spreads\n", out);
    }
}

/* Print for each class that was missed by how much, by distribution. */
static void print_missed(FILE *out, const cJSON *missed) {
    const cJSON *class, *d;
    cJSON_ArrayForEach(class, missed) {
        if (!class->string || !cJSON_IsObject(class)) continue;
        const char *comma = "";
        fprintf(out, "- beyond the limits of class %s with", class->string);
        cJSON_ArrayForEach(d, class) {
            fprintf(out, "%s %s (", comma, d->string);
            comma = ",";
            if (cJSON_IsNumber(d))
                fprintf(out, "%.2g x", d->valuedouble);
            else
                fputs("not finite", out);
            fputc(')', out);
        }
        fputs(" contents\n", out);
    }
}

char *prompt_failed(const struct prompt_cell *c, const struct attempt *a, size_t most) {
    if (!a) return NULL;
    struct draft x;
    int skipped;
    char *code = attempt_code(c, a, &skipped);
    const char *word = fate(a), *idea = json_text(a->gen, "idea_text", "");
    draft_open(&x);
    fprintf(x.out, "# What failed: %s\n\n%s\n\n", a->name, meaning_of(word));
    failure_line(x.out, c, a, skipped);
    if (!strcmp(word, "wrong")) {
        print_evidence(x.out, c->task, member(a->result, "evidence"));
        print_errors(x.out, member(a->result, "error"));
        print_missed(x.out, member(a->result, "missed"));
    }
    if (*idea) {
        fputs("- idea: ", x.out);
        text_line(x.out, idea, 1000);
        fputc('\n', x.out);
    }
    fputc('\n', x.out);
    if (!strcmp(word, "build")) print_log(x.out, c, a, code, skipped);
    if (code) {
        fputs("Its source:\n\n", x.out);
        text_fence(x.out, "cuda", code, most);
    }
    free(code);
    return draft_close(&x);
}
