/* family.c: families of tasks: see taskfile.h. */
#include "task/taskfile.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 8, MOST_DIGITS = 9 };

struct family {
    const char *path, *name;
    int n;
    const char *part[MOST_PARTS]; /* names of the template's sizes */
    char value[MOST_PARTS][MOST_DIGITS + 1];
    char *message; /* what is wrong */
    size_t size;
};

/* Say what is wrong.  Returns false. */
static bool fail(const struct family *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(const struct family *f, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(f->message, f->size, format, ap);
    va_end(ap);
    return false;
}

/* The names of the sizes, taken out of the template.  Returns false, and says why, if there are
 * none.
 */
static bool read_parts(struct family *f, cJSON *shape) {
    const cJSON *part;
    cJSON_ArrayForEach(part, shape) {
        if (!cJSON_IsString(part) || !*part->valuestring || f->n == MOST_PARTS)
            return fail(f, "%s: \"shape\": expected 1 to %d names, such as [\"M\", \"N\"]", f->path,
                        MOST_PARTS);
        f->part[f->n++] = part->valuestring;
    }
    return f->n ||
           fail(f, "%s: no \"shape\": expected names of sizes, such as [\"M\", \"N\"]", f->path);
}

/* Split the word of a name, which follows SUITE_, into numbers without leading zeros.  Returns
 * false, and says why, if it is no such word. */
static bool read_values(struct family *f, const char *suite) {
    size_t n = strlen(suite);
    const char *p = f->name + n + 1;
    bool fits = !strncmp(f->name, suite, n) && f->name[n] == '_';
    for (int i = 0; fits && i < f->n; i++) {
        size_t digits = strspn(p, "0123456789");
        fits = digits > 0 && digits <= MOST_DIGITS && *p != '0' &&
               p[digits] == (i + 1 < f->n ? '_' : '\0');
        if (!fits) break;
        memcpy(f->value[i], p, digits);
        p += digits + 1;
    }
    return fits || fail(f,
                        "%s is no task of %s: expected %s_ and %d numbers with _ between them; "
                        "look at the list beside the template",
                        f->name, f->path, suite, f->n);
}

/* A string with the sizes in place of their names; new.  NULL, and why, if it has another name. */
static char *replace(const struct family *f, const char *s) {
    struct text out = {0};
    text_add(&out, "", 0);
    while (*s) {
        const char *shut = *s == '{' ? strchr(s, '}') : NULL;
        int i = shut ? 0 : f->n;
        while (i < f->n && (strlen(f->part[i]) != (size_t)(shut - s - 1) ||
                            memcmp(f->part[i], s + 1, (size_t)(shut - s - 1))))
            i++;
        if (shut && i == f->n) {
            fail(f, "%s: %.*s: no size has this name; see \"shape\"", f->path, (int)(shut - s + 1),
                 s);
            text_free(&out);
            return NULL;
        }
        if (shut) {
            text_add(&out, f->value[i], strlen(f->value[i]));
            s = shut + 1;
        } else {
            text_add(&out, s++, 1);
        }
    }
    return out.s;
}

/* Replace names of sizes in all strings at and below `node`.  Returns false, and says why, if one
 * has another name. */
static bool expand(const struct family *f, cJSON *node) {
    for (cJSON *child = node->child, *next; child; child = next) {
        next = child->next;
        if (!cJSON_IsString(child)) {
            if (!expand(f, child)) return false;
            continue;
        }
        const char *s = child->valuestring;
        bool number = *s == '{' && s[strcspn(s, "}")] && !s[strcspn(s, "}") + 1];
        char *text = replace(f, s);
        if (!text) return false;
        cJSON *item = number ? cJSON_CreateNumber(atof(text)) : cJSON_CreateString(text);
        char *key = child->string ? text_format("%s", child->string) : NULL;
        if (!item || !(key ? cJSON_ReplaceItemInObjectCaseSensitive(node, key, item)
                           : cJSON_ReplaceItemViaPointer(node, child, item)))
            die(KP_MACHINE, "out of memory");
        free(key);
        free(text);
    }
    return true;
}

char *family_expand_error(const char *path, const char *name, char *message, size_t size) {
    struct family f = {.path = path, .name = name, .message = message, .size = size};
    cJSON *json = json_read(path);
    const char *suite = json_text(json, "suite", "");
    cJSON *shape = cJSON_DetachItemFromObjectCaseSensitive(json, "shape");
    bool whole = read_parts(&f, shape) && read_values(&f, suite) && expand(&f, json);
    char *text = whole ? cJSON_Print(json) : NULL;
    if (whole && !text) die(KP_MACHINE, "out of memory");
    cJSON_Delete(shape);
    cJSON_Delete(json);
    return text;
}

char *family_expand(const char *path, const char *name) {
    char message[1024];
    char *text = family_expand_error(path, name, message, sizeof message);
    if (!text) die(KP_INPUT, "%s", message);
    return text;
}
