/* errors.c: see errors.h. */
#include "measure/errors.h"
#include "base/json.h"

/* Whether the candidate is beyond the limits of a class in a distribution. */
static bool misses(const struct errors *e, enum kp_class class, int d) {
    return e->applies[d] && !judgment_passes(&e->of[class].candidate[d]);
}

int errors_missed(const struct errors *e, enum kp_class class) {
    for (int d = 0; d < KP_DIST_COUNT; d++)
        if (misses(e, class, d)) return d;
    return -1;
}

void errors_leave_out(struct errors *e, enum kp_class first, enum kp_class last, cJSON *verdict) {
    const struct class_errors *f = &e->of[first], *l = &e->of[last];
    cJSON *excused = cJSON_AddObjectToObject(verdict, "excused");
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        if (!misses(e, first, d) || !sample_excused(&l->candidate[d], &l->baseline[0][d],
                                                    &f->baseline[0][d], (enum kp_distribution)d))
            continue;
        json_add_number(excused, kp_distribution_name[d], f->candidate[d].of_limit);
        e->applies[d] = false;
    }
}

void errors_add_baselines(const struct errors *e, enum kp_class class, cJSON *to) {
    const struct class_errors *x = &e->of[class];
    for (int b = 0; b < e->acc->nbaselines; b++) {
        const char *name = kp_math_name(e->acc->r.task, e->acc->math[b]);
        bool passes = !cJSON_HasObjectItem(to, name);
        for (int d = 0; d < KP_DIST_COUNT; d++)
            passes &= !e->applies[d] || (b < x->judged[d] && judgment_passes(&x->baseline[b][d]));
        if (passes) cJSON_AddStringToObject(to, name, class_name(e->acc->r.task, class));
    }
}

void errors_add_missed(const struct errors *e, enum kp_class class, cJSON *to) {
    cJSON *missed = cJSON_AddObjectToObject(to, class_name(e->acc->r.task, class));
    for (int d = 0; d < KP_DIST_COUNT; d++)
        if (misses(e, class, d))
            json_add_number(missed, kp_distribution_name[d], e->of[class].candidate[d].of_limit);
}

/* Those of a baseline, or of the candidate (-1). */
static void add_judgments(const struct errors *e, enum kp_class class, int baseline, cJSON *to,
                          const char *key) {
    const struct class_errors *x = &e->of[class];
    const struct kp_judgment *j = baseline < 0 ? x->candidate : x->baseline[baseline];
    cJSON *who = cJSON_AddObjectToObject(to, key);
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        if (!e->applies[d] || baseline >= x->judged[d]) continue;
        cJSON *of = cJSON_AddObjectToObject(who, kp_distribution_name[d]);
        json_add_number(of, "rms", j[d].rms);
        json_add_number(of, "part", j[d].part);
        json_add_number(of, "element", j[d].element);
        json_add_number(of, "bias", j[d].bias);
        json_add_number(of, "of_limit", j[d].of_limit);
    }
}

void errors_add(const struct errors *e, enum kp_class class, cJSON *verdict) {
    const struct kp_error *own = e->of[class].spread;
    cJSON *error = cJSON_AddObjectToObject(verdict, "error");
    if (!e->acc->stand_in) add_judgments(e, class, -1, error, "candidate");
    for (int b = 0; b < e->acc->nbaselines; b++)
        add_judgments(e, class, b, error, kp_math_name(e->acc->r.task, e->acc->math[b]));
    cJSON *spread = cJSON_AddObjectToObject(error, "spread");
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        if (!e->applies[d]) continue;
        cJSON *x = cJSON_AddObjectToObject(spread, kp_distribution_name[d]);
        json_add_number(x, "norm", own[d].norm);
        json_add_number(x, "element", own[d].element);
    }
}
