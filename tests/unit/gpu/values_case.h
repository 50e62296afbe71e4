/* values_case.h: tasks and their values, for the tests of values.h. */
#ifndef KP_VALUES_CASE_H
#define KP_VALUES_CASE_H

#include "gpu/values.h"
#include "task_text.h"

/* A task with these tensors ("x f32 [4,8] uniform(0,1) real; ..."), op lines ("... | ...") and
 * outputs. */
static inline struct kp_task *task_of(const char *tensors, const char *graph, const char *outputs) {
    char text[2048], part[1024], message[1024], *save, *p;
    int n = sprintf(text, "{\"schema\":1,\"task\":\"t\",\"suite\":\"unit\",\"inputs\":[");
    snprintf(part, sizeof part, "%s", tensors);
    for (p = strtok_r(part, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
        char name[48], type[8], shape[64], fill[64], domain[16];
        assert_int_equal(sscanf(p, " %47s %7s %63s %63s %15s", name, type, shape, fill, domain), 5);
        n += sprintf(
            text + n,
            "%s{\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,\"fill\":\"%s\",\"domain\":\"%s\"}",
            p == part ? "" : ",", name, type, shape, fill, domain);
    }
    n += sprintf(text + n, "],\"graph\":[");
    snprintf(part, sizeof part, "%s", graph);
    for (p = strtok_r(part, "|", &save); p; p = strtok_r(NULL, "|", &save))
        n += sprintf(text + n, "%s\"%s\"", p == part ? "" : ",", p);
    n += sprintf(text + n, "],\"outputs\":[");
    snprintf(part, sizeof part, "%s", outputs);
    for (p = strtok_r(part, " ", &save); p; p = strtok_r(NULL, " ", &save))
        n += sprintf(text + n, "%s\"%s\"", p == part ? "" : ",", p);
    sprintf(text + n, "]}");
    struct kp_task *t = load_text(text, message);
    if (!t) fail_msg("%s", message);
    return t;
}

/* The same with output y. */
static inline struct kp_task *task(const char *tensors, const char *graph) {
    return task_of(tensors, graph, "y");
}

static inline int64_t count_of(const struct kp_task *t, int i) {
    return kp_shape_count(&t->tensors[i].shape);
}

/* The values of tensor i, newly allocated. */
static inline double *values(const struct kp_task *t, int i, enum kp_distribution d,
                             uint64_t seed) {
    struct kp_values w = kp_values_of(t, i, d, seed);
    int64_t n = count_of(t, i);
    double *x = malloc((size_t)n * sizeof *x);
    if (!x) abort();
    for (int64_t k = 0; k < n; k++) x[k] = kp_value_at(&w, (uint64_t)k);
    return x;
}

static inline double least_of(const double *x, int64_t n) {
    double least = x[0];
    for (int64_t k = 0; k < n; k++) least = fmin(least, x[k]);
    return least;
}

static inline double most_of(const double *x, int64_t n) {
    double most = x[0];
    for (int64_t k = 0; k < n; k++) most = fmax(most, x[k]);
    return most;
}

/* Mean of f^power over the values. */
static inline double moment(const double *x, int64_t n, int power) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += pow(x[k], power);
    return sum / (double)n;
}

static inline void about(double got, double want, double by) {
    if (!(fabs(got - want) <= by)) fail_msg("got %g, expected %g +- %g", got, want, by);
}

#endif
