/* price.c: the cost of a call; see wire.h. */
#define _GNU_SOURCE
#include "llm/wire.h"

#include <time.h>

/* Whether spending is capped. */
static bool capped(void) {
    const char *all = getenv("BUDGET_USD"), *task = getenv("TASK_USD");
    return (all && *all) || (task && *task);
}

/* What follows a listed name in the name of a dated version of that model. */
#define DAY(dash) "(0[1-9]|1[0-2])" dash "(0[1-9]|[12][0-9]|3[01])"
static const char version[] = "^([-:@]([0-9]{4}-" DAY("-") "|([0-9]{4})?" DAY("") "|latest))?$";

/* A rate of an entry.  If it is absent or null: `otherwise`, or an error if that is NAN. */
static double rate(const char *path, const cJSON *entry, const char *key, double otherwise) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, key);
    if ((!v || cJSON_IsNull(v)) && !isnan(otherwise)) return otherwise;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || !isfinite(v->valuedouble))
        die(KP_INPUT, "%s: %s: \"%s\" is not a price", path, json_text(entry, "model", "?"), key);
    return v->valuedouble;
}

/* Take an entry's prices if it is for this model, is valid, and beats what `p` holds: its name
 * is longer, or the same and the entry is newer. */
static void consider(struct price *p, size_t *length, const char *path, const cJSON *entry,
                     const char *today) {
    const char *name = json_text(entry, "model", NULL), *from = json_text(entry, "valid_from", "");
    if (!name || !*name || strlen(from) != strlen("2026-01-31"))
        die(KP_INPUT, "%s: an entry has no \"model\" or no date in \"valid_from\"", path);
    size_t n = strlen(name);
    if (strncmp(p->model, name, n) || !text_matches(p->model + n, version) ||
        strcmp(from, today) > 0)
        return;
    if (n < *length || (n == *length && strcmp(from, p->valid_from) <= 0)) return;
    *length = n;
    p->known = true;
    p->input = rate(path, entry, "input", NAN);
    p->output = rate(path, entry, "output", NAN);
    p->cached = rate(path, entry, "cached", p->input);
    p->cache_write = rate(path, entry, "cache_write", p->input);
    p->cache_write_1h = rate(path, entry, "cache_write_1h", p->cache_write);
    p->up_to = rate(path, entry, "up_to", 0);
    snprintf(p->valid_from, sizeof p->valid_from, "%s", from);
}

struct price price_find(const char *prices_path, const struct llm_config *c) {
    struct price p = {0};
    size_t length = 0;
    char today[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &tm));
    snprintf(p.model, sizeof p.model, "%s", c->model);
    p.known = c->api == LLM_REPLAY || c->loopback;
    if (c->api == LLM_REPLAY || (c->loopback && !capped())) return p;
    cJSON *json = json_read(prices_path);
    const cJSON *models = cJSON_GetObjectItemCaseSensitive(json, "models"), *entry;
    if (json_number(json, "schema", 0) != 1 || json_number(json, "unit", 0) != 1e6 ||
        strcmp(json_text(json, "currency", ""), "USD") || !cJSON_IsArray(models))
        die(KP_INPUT, "%s: not a list of prices in USD for a million tokens (schema 1)",
            prices_path);
    cJSON_ArrayForEach(entry, models) consider(&p, &length, prices_path, entry, today);
    cJSON_Delete(json);
    return p;
}

double price_cost(const struct price *p, const struct llm_usage *u) {
    if (isfinite(u->cost) && u->cost >= 0) return u->cost;
    if (!p->known || !u->known || (p->up_to > 0 && u->input > p->up_to)) return NAN;
    double plain = u->input - u->cached - u->cache_write - u->cache_write_1h;
    return (fmax(plain, 0) * p->input + u->cached * p->cached + u->cache_write * p->cache_write +
            u->cache_write_1h * p->cache_write_1h + u->output * p->output) /
           1e6;
}
