/* json.c: see json.h. */
#define _GNU_SOURCE
#include "base/json.h"
#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No function of cJSON fails for want of memory: the program ends here. */
static void *memory(size_t n) {
    void *p = malloc(n);
    if (!p) die(KP_MACHINE, "out of memory");
    return p;
}

__attribute__((constructor)) static void hook(void) {
    cJSON_InitHooks(&(cJSON_Hooks){memory, free});
}

char *text_format(const char *format, ...) {
    va_list ap;
    char *text = NULL;
    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    if (n < 0) die(KP_MACHINE, "out of memory");
    return text;
}

char *file_read(const char *path, long *size) {
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st)) die(KP_IO, "%s: cannot read: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) die(KP_IO, "%s: cannot read: not a regular file", path);
    long n = (long)st.st_size;
    char *text = memory((size_t)n + 1);
    if (fread(text, 1, (size_t)n, f) != (size_t)n)
        die(KP_IO, "%s: cannot read: %s", path, ferror(f) ? strerror(errno) : "it became shorter");
    fclose(f);
    text[n] = 0;
    if (size) *size = n;
    return text;
}

cJSON *json_read(const char *path) {
    char *text = file_read(path, NULL);
    const char *end = text;
    cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
    if (!json) {
        int line = 1;
        for (const char *p = text; p < end; p++) line += *p == '\n';
        die(KP_INPUT, "%s:%d: not JSON (truncated or edited?): remove it and run make again", path,
            line);
    }
    free(text);
    return json;
}

void file_replace(const char *path, const char *text) {
    char *beside = text_format("%s.%ld+", path, (long)getpid());
    FILE *f = fopen(beside, "wb");
    size_t n = strlen(text);
    int bad = !f || fwrite(text, 1, n, f) != n || fflush(f) != 0 || fsync(fileno(f)) != 0;
    int why = errno;
    if (f && fclose(f) != 0 && !bad) bad = 1, why = errno;
    if (!bad && rename(beside, path) != 0) bad = 1, why = errno;
    if (bad) {
        unlink(beside);
        die(KP_IO, "%s: cannot write: %s; what was there before is unchanged", path, strerror(why));
    }
    free(beside);
}

void file_update(const char *path, const char *text) {
    char *old = access(path, R_OK) ? NULL : file_read(path, NULL);
    if (!old || strcmp(old, text)) file_replace(path, text);
    free(old);
}

void json_write(const char *path, const cJSON *json) {
    char *text = cJSON_Print(json);
    char *line = text_format("%s\n", text);
    file_replace(path, line);
    free(line);
    free(text);
}

const char *json_text(const cJSON *object, const char *key, const char *otherwise) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(v) ? v->valuestring : otherwise;
}

double json_number(const cJSON *object, const char *key, double otherwise) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(v) ? v->valuedouble : otherwise;
}

void json_add_number(cJSON *object, const char *key, double x) {
    if (isfinite(x))
        cJSON_AddNumberToObject(object, key, x);
    else
        cJSON_AddNullToObject(object, key);
}
