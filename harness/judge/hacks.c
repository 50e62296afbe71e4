/* hacks.c: see hacks.h. */
#define _GNU_SOURCE
#include "judge/hacks.h"
#include "judge/hack_rules.h"
#include "judge/judge_text.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sign, a feature that an entry lists as typical, weighs as much as this many occurrences. */
enum { SIGN = 3 };

static const char *member(const cJSON *hack, const char *key, const char *path, int number) {
    const char *text = json_text(hack, key, "");
    if (!*text) die(KP_INPUT, "%s: hack %d has no text '%s'", path, number, key);
    return text;
}

/* The strings of an array, each followed by a newline.  Free it. */
static char *lines_of(const cJSON *array, const char *path, const char *id) {
    const cJSON *line;
    char *text = text_format("%s", "");
    cJSON_ArrayForEach(line, array) {
        if (!cJSON_IsString(line))
            die(KP_INPUT, "%s: %s: 'looks' is not an array of lines", path, id);
        char *longer = text_format("%s%s\n", text, line->valuestring);
        free(text);
        text = longer;
    }
    if (!*text) die(KP_INPUT, "%s: %s: 'looks' is empty", path, id);
    return text;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct feature *)a)->name, ((const struct feature *)b)->name);
}

static struct feature *feature_find(const struct features *v, const char *name) {
    struct feature key = {(char *)name, 0};
    return v->n ? bsearch(&key, v->f, (size_t)v->n, sizeof *v->f, by_name) : NULL;
}

/* Add the signs to the sample's features. */
static void add_signs(struct features *v, const cJSON *signs, const char *path, const char *id) {
    const cJSON *sign;
    cJSON_ArrayForEach(sign, signs) {
        const char *name = cJSON_IsString(sign) ? sign->valuestring : "";
        if (!*name || (*name == '@' && !static_rule_known(name + 1)))
            die(KP_INPUT, "%s: %s: '%s' is no sign that a source can have", path, id, name);
        struct feature *known = feature_find(v, name);
        if (known) {
            known->weight += SIGN;
            continue;
        }
        feature_add(v, 0, name, strlen(name));
        v->f[v->n - 1].weight = SIGN;
        qsort(v->f, (size_t)v->n, sizeof *v->f, by_name);
    }
}

static void load_one(struct hacks *l, const cJSON *json, const char *path) {
    struct hack *h = &l->h[l->n];
    int number = l->n + 1;
    h->id = member(json, "id", path, number);
    if (hacks_find(l, h->id)) die(KP_INPUT, "%s: two hacks have the id %s", path, h->id);
    h->class = member(json, "class", path, number);
    h->title = member(json, "title", path, number);
    h->why = member(json, "why", path, number);
    h->test = member(json, "test", path, number);
    h->looks = lines_of(cJSON_GetObjectItemCaseSensitive(json, "looks"), path, h->id);
    char *code = strip_comments(h->looks);
    h->vector = features_of(code, false);
    free(code);
    add_signs(&h->vector, cJSON_GetObjectItemCaseSensitive(json, "signs"), path, h->id);
    l->n++;
}

/* The weight of a feature: the fewer hacks have it, the higher. */
static double says(const struct hacks *l, const char *name) {
    int have = 0;
    for (int i = 0; i < l->n; i++) have += feature_find(&l->h[i].vector, name) != NULL;
    return log((1.0 + l->n) / (1.0 + have)) + 0.1;
}

struct hacks hacks_load(const char *path) {
    cJSON *json = json_read(path), *list = cJSON_GetObjectItemCaseSensitive(json, "hacks"), *x;
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (n < 3) die(KP_INPUT, "%s: has no list of three hacks or more", path);
    struct hacks l = {0, calloc((size_t)n, sizeof *l.h), json};
    if (!l.h) die(KP_MACHINE, "out of memory");
    cJSON_ArrayForEach(x, list) load_one(&l, x, path);
    for (int i = 0; i < l.n; i++) {
        struct hack *h = &l.h[i];
        for (int k = 0; k < h->vector.n; k++) {
            double w = h->vector.f[k].weight * says(&l, h->vector.f[k].name);
            h->length += w * w;
        }
        h->length = sqrt(h->length);
    }
    return l;
}

void hacks_free(struct hacks *l) {
    for (int i = 0; i < l->n; i++) {
        features_free(&l->h[i].vector);
        free(l->h[i].looks);
    }
    free(l->h);
    cJSON_Delete(l->json);
    *l = (struct hacks){0, NULL, NULL};
}

struct hack *hacks_find(const struct hacks *l, const char *id) {
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->h[i].id, id)) return &l->h[i];
    return NULL;
}

void hacks_nearest(const struct hacks *l, const char *source, int n, const struct hack **nearest,
                   double *cosine) {
    struct features v = features_of(source, true);
    double length = 0, *product = calloc((size_t)l->n, sizeof *product);
    if (!product) die(KP_MACHINE, "out of memory");
    for (int k = 0; k < v.n; k++) {
        double idf = says(l, v.f[k].name), w = v.f[k].weight * idf;
        length += w * w;
        for (int i = 0; i < l->n; i++) {
            const struct feature *f = feature_find(&l->h[i].vector, v.f[k].name);
            if (f) product[i] += w * f->weight * idf / l->h[i].length;
        }
    }
    for (int place = 0; place < n; place++) {
        int best = -1;
        for (int i = 0; i < l->n; i++)
            if (product[i] >= 0 && (best < 0 || product[i] > product[best])) best = i;
        nearest[place] = best < 0 ? NULL : &l->h[best];
        cosine[place] = best < 0 || !(length > 0) ? 0 : product[best] / sqrt(length);
        if (best >= 0) product[best] = -1;
    }
    free(product);
    features_free(&v);
}
