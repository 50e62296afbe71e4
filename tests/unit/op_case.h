/* op_case.h: the cases of tests/data/ops.json as tasks.  That file says what a case is. */
#ifndef KP_OP_CASE_H
#define KP_OP_CASE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Member `key` of a case as text; "" if it is absent. */
static inline const char *op_case_text(const cJSON *c, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, key));
    return text ? text : "";
}

/* Write the tensors of a case as the entries of "inputs".  Returns the length. */
static inline size_t op_case_inputs(const cJSON *c, const char *dtype, char *text, size_t size) {
    char tensors[512], *save, *p;
    size_t n = 0;
    snprintf(tensors, sizeof tensors, "%s", op_case_text(c, "tensors"));
    for (p = strtok_r(tensors, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
        char name[48] = "", shape[96] = "", fill[64] = "normal(0,1)";
        sscanf(p, "%47s %95s", name, shape);
        const char *type = dtype;
        char *kind = name + strcspn(name, "+:=?");
        if (*kind == '+') strcpy(fill, "uniform(0.5,1.5)");
        if (*kind == '=') snprintf(fill, sizeof fill, "transposed(%s)", kind + 1);
        if (*kind == ':') {
            snprintf(fill, sizeof fill, "integers(0,%s)", kind + 1);
            type = "i64";
        }
        if (*kind == '?') {
            strcpy(fill, "bernoulli(0.5)");
            type = "bool";
        }
        *kind = '\0';
        n += (size_t)snprintf(text + n, size - n,
                              "%s{\"name\":\"%s\",\"shape\":[%s],\"dtype\":\"%s\",\"fill\":\"%s\"}",
                              p == tensors ? "" : ",", name, shape, type, fill);
    }
    return n;
}

/* Write the names of the results of an op line, each followed by a space. */
static inline void op_case_results(const char *line, char *names, size_t size) {
    size_t n = 0;
    const char *end = strstr(line, " = ");
    for (const char *p = line; end && p < end && n < size;) {
        n += (size_t)snprintf(names + n, size - n, "%.*s ", (int)strcspn(p, "["), p);
        p = strchr(p, ']');
        if (!p) return;
        p += strcspn(p, ", ");
        p += strspn(p, ", ");
    }
}

/* Write a case as the text of a task file of the suite "ops", its floating tensors of type
 * `dtype`. */
static inline void op_case_task(const cJSON *c, const char *dtype, char *text, size_t size) {
    char graph[1024], names[64] = "", *save, *p;
    snprintf(graph, sizeof graph, "%s", op_case_text(c, "graph"));
    size_t n =
        (size_t)snprintf(text, size, "{\"schema\":1,\"task\":\"%s\",\"suite\":\"ops\",\"inputs\":[",
                         op_case_text(c, "name"));
    n += op_case_inputs(c, dtype, text + n, size - n);
    n += (size_t)snprintf(text + n, size - n, "],\"graph\":[");
    char *outputs = strstr(graph, " -> ");
    if (outputs) {
        *outputs = '\0';
        outputs += strlen(" -> ");
    }
    for (p = strtok_r(graph, "|", &save); p; p = strtok_r(NULL, "|", &save)) {
        n += (size_t)snprintf(text + n, size - n, "%s\"%s\"", p == graph ? "" : ",", p);
        op_case_results(p, names, sizeof names);
    }
    if (outputs) snprintf(names, sizeof names, "%s", outputs);
    n += (size_t)snprintf(text + n, size - n, "],\"outputs\":[");
    for (p = strtok_r(names, " ", &save); p; p = strtok_r(NULL, " ", &save))
        n += (size_t)snprintf(text + n, size - n, "%s\"%s\"", p == names ? "" : ",", p);
    snprintf(text + n, size - n, "]}");
}

#endif
