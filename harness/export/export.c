/* export.c: see export.h. */
#define _GNU_SOURCE
#include "export/export.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "record/result.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rewards ---------------------------------------------------------------------- */

double export_round(double ratio) {
    const double grain = 1e-6; /* tolerance, so that 1.13 is not rounded below 113 hundredths */
    double x = ratio >= 1 ? floor(100 * ratio + grain) : ceil(100 * ratio - grain);
    return x / 100;
}

/* The recorded times of one side; NULL if there are none. */
static const cJSON *samples_of(const cJSON *time, const char *side) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(time, "time_us");
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(all, side), "samples");
}

/* The ratios of the paired samples, in order.  Returns their number; 0 if the two sides do not
 * match. */
static int pair(const cJSON *base, const cJSON *kernel, double *ratio) {
    const cJSON *b = base ? base->child : NULL, *k = kernel ? kernel->child : NULL;
    int n = 0;
    for (; b && k; b = b->next, k = k->next) {
        if (!cJSON_IsNumber(b) || !cJSON_IsNumber(k)) return 0;
        if (!(b->valuedouble > 0) || !(k->valuedouble > 0)) return 0;
        ratio[n++] = b->valuedouble / k->valuedouble;
    }
    return b || k ? 0 : n;
}

double export_score(const cJSON *time, double *variance) {
    const cJSON *speedup = cJSON_GetObjectItemCaseSensitive(time, "speedup");
    const cJSON *base = samples_of(time, json_text(speedup, "against", ""));
    const cJSON *kernel = samples_of(time, "candidate");
    double mean[EXPORT_BUCKETS] = {0}, all = 0, spread = 0;
    double *ratio = calloc((size_t)cJSON_GetArraySize(base) + 1, sizeof *ratio);
    if (!ratio) die(KP_MACHINE, "out of memory");
    int n = pair(base, kernel, ratio);
    if (variance) *variance = NAN;
    if (n < EXPORT_BUCKETS) {
        free(ratio);
        return export_round(json_number(speedup, "ratio", 0));
    }
    for (int b = 0; b < EXPORT_BUCKETS; b++) {
        int from = b * n / EXPORT_BUCKETS, to = (b + 1) * n / EXPORT_BUCKETS;
        for (int i = from; i < to; i++) mean[b] += ratio[i] / (to - from);
        all += mean[b] / EXPORT_BUCKETS;
    }
    for (int b = 0; b < EXPORT_BUCKETS; b++)
        spread += (mean[b] - all) * (mean[b] - all) / EXPORT_BUCKETS;
    if (variance) *variance = spread;
    free(ratio);
    return export_round(stat_median(mean, EXPORT_BUCKETS));
}

double export_worth(const cJSON *result, bool shaped) {
    const cJSON *speedup = cJSON_GetObjectItemCaseSensitive(result, "speedup");
    const char *verdict = json_text(result, "verdict", "");
    if (!strcmp(verdict, "skipped") || result_flag(result, FLAG_VOID)) return NAN;
    if (strcmp(verdict, "ok") || result_flag(result, FLAG_DOUBT)) return 0;
    return shaped ? export_score(result, NULL) : json_number(speedup, "ratio", 0);
}

void export_rewards(const double *score, double *reward, int n) {
    double mean = 0, variance = 0;
    bool equal = true;
    for (int i = 0; i < n; i++) {
        mean += score[i] / n;
        equal = equal && score[i] == score[0];
    }
    for (int i = 0; i < n; i++) variance += (score[i] - mean) * (score[i] - mean) / n;
    for (int i = 0; i < n; i++) {
        double z = equal ? 0 : (score[i] - mean) / sqrt(variance);
        reward[i] = fmax(-EXPORT_CLIP, fmin(EXPORT_CLIP, z));
    }
}

const char *export_split(const char *task, double test_share) {
    char hex[65];
    text_sha256(task, strlen(task), hex);
    hex[8] = 0;
    return (double)strtoul(hex, NULL, 16) / 4294967296.0 < test_share ? "test" : "train";
}

/* ---- texts ------------------------------------------------------------------------ */

/* The text of a content: a string, or its parts' texts joined.  NULL if it has none.  Free it. */
static char *content_text(const cJSON *content) {
    if (cJSON_IsString(content)) return text_format("%s", content->valuestring);
    if (!cJSON_IsArray(content)) return NULL;
    char *all = text_format("%s", "");
    const cJSON *part;
    cJSON_ArrayForEach(part, content) {
        char *more = text_format("%s%s", all, json_text(part, "text", ""));
        free(all);
        all = more;
    }
    return all;
}

/* Append a message, unless it is empty. */
static void add_message(cJSON *list, const char *role, const cJSON *content) {
    char *text = content_text(content);
    if (text) {
        cJSON *one = cJSON_CreateObject();
        if (!cJSON_AddStringToObject(one, "role", strcmp(role, "developer") ? role : "system") ||
            !cJSON_AddStringToObject(one, "content", text) || !cJSON_AddItemToArray(list, one))
            die(KP_MACHINE, "out of memory");
    }
    free(text);
}

cJSON *export_messages(const cJSON *request) {
    /* Anthropic and Responses keep the instructions outside of the list. */
    static const char *const instructions[] = {"system", "instructions"};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(request, "messages"), *m;
    cJSON *found = cJSON_CreateArray();
    if (!found) die(KP_MACHINE, "out of memory");
    if (!list) list = cJSON_GetObjectItemCaseSensitive(request, "input");
    for (int i = 0; i < 2; i++)
        add_message(found, "system", cJSON_GetObjectItemCaseSensitive(request, instructions[i]));
    if (cJSON_IsString(list)) add_message(found, "user", list);
    if (cJSON_IsArray(list))
        cJSON_ArrayForEach(m, list) add_message(found, json_text(m, "role", "user"),
                                                cJSON_GetObjectItemCaseSensitive(m, "content"));
    if (cJSON_GetArraySize(found)) return found;
    cJSON_Delete(found);
    return NULL;
}
