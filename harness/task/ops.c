/* ops.c: the table of ops: what the words in the rows of op_table.h mean.
 *
 * The rules that a row names are in infer_*.c (shapes), slice.c (cuts) and cost.c (flops). */
#include "task/ops.h"
#include "task/rules.h"

#include <math.h>
#include <string.h>

/* Attributes, by what their values may be. */
#define ATTRS(...) .attr = {__VA_ARGS__}
#define INTEGER(key_) \
    { .key = #key_, .kinds = 1 << KP_ATTR_INT }
#define INTEGERS(key_) \
    { .key = #key_, .kinds = 1 << KP_ATTR_INT | 1 << KP_ATTR_LIST }
#define LIST(key_) \
    { .key = #key_, .kinds = 1 << KP_ATTR_LIST }
#define NUMBER(key_, otherwise_) \
    { .key = #key_, .kinds = 1 << KP_ATTR_INT | 1 << KP_ATTR_FLOAT, .otherwise = otherwise_ }
#define FLAG(key_) \
    { .key = #key_, .kinds = 1 << KP_ATTR_BOOL }
#define WORD(key_) \
    { .key = #key_, .kinds = 1 << KP_ATTR_WORD }

/* Operands, rules and costs. */
#define OPERANDS(least, most) .min_in = least, .max_in = most
#define ONE_OPERAND           OPERANDS(1, 1)
#define KEYWORDS(...)         .in_name = {__VA_ARGS__}
#define WEIGHTED              KEYWORDS(NULL, "weight", "bias")
#define RULES(shape, cut)     .infer = infer_##shape, .slice = slice_##cut
#define COSTS(all)            .flops = flops_##all
#define SHOWS(what)           .view = KP_VIEW_##what
#define SHOWS_PART(rule)      SHOWS(PART), RULES(part, along_axis), .part = part_##rule
#define INNER(of_0, of_1)     .has_inner = true, .inner = {of_0, of_1}
#define KIND(kind_)           .kind = KP_KIND_##kind_
#define PRODUCT(all, products) \
    .tensor_cores = true, .flops = flops_##all, .mm_flops = flops_##products

/* Families. */
#define UNARY      ONE_OPERAND, RULES(unary, elementwise), COSTS(results)
#define BINARY     OPERANDS(2, 2), RULES(binary, elementwise), COSTS(results)
#define NORM(rule) OPERANDS(1, 3), WEIGHTED, KIND(NORM), RULES(rule, rule), COSTS(five)
#define REDUCTION(rule)                                                \
    ONE_OPERAND, KIND(REDUCTION), RULES(rule, reduce), COSTS(operand), \
        ATTRS(INTEGERS(dim), FLAG(keepdim))
#define SCAN                                                                     \
    ONE_OPERAND, KIND(REDUCTION), RULES(along_axis, along_axis), COSTS(operand), \
        ATTRS(INTEGERS(dim))
#define FILTERED(axes_) \
    OPERANDS(2, 3), WEIGHTED, KIND(CONVOLUTION), .axes = axes_, PRODUCT(filter_and_bias, filter)
#define CONVOLUTION(axes_)                           \
    FILTERED(axes_), RULES(conv, conv), INNER(1, 1), \
        ATTRS(INTEGERS(stride), INTEGERS(padding), INTEGERS(dilation), INTEGER(groups))
#define CONVOLUTION_TRANSPOSE(axes_)                                                         \
    FILTERED(axes_), .transposed = true, RULES(conv_transpose, conv_transpose), INNER(1, 0), \
                     ATTRS(INTEGERS(stride), INTEGERS(padding), INTEGERS(output_padding),    \
                           INTEGER(groups), INTEGERS(dilation))
#define RECURRENT(gates_)                                    \
    KIND(PRODUCT), .gates = gates_, RULES(recurrent, never), \
                   PRODUCT(recurrent, recurrent_products),   \
                   ATTRS(INTEGER(num_layers), FLAG(bidirectional), FLAG(batch_first))
#define POOL(axes_) ONE_OPERAND, KIND(REDUCTION), .axes = axes_, RULES(pool, planes), COSTS(pool)
#define MAX_POOL(axes_)                                                            \
    POOL(axes_), ATTRS(INTEGERS(kernel_size), INTEGERS(stride), INTEGERS(padding), \
                       INTEGERS(dilation), FLAG(ceil_mode), FLAG(return_indices))
#define AVG_POOL(axes_)                                                            \
    POOL(axes_), ATTRS(INTEGERS(kernel_size), INTEGERS(stride), INTEGERS(padding), \
                       FLAG(ceil_mode), FLAG(count_include_pad))
#define ADAPTIVE_POOL(axes_)                                                   \
    ONE_OPERAND, KIND(REDUCTION), .axes = axes_, RULES(adaptive_pool, planes), \
                                  COSTS(adaptive_pool), ATTRS(INTEGERS(output_size))

static const struct kp_op_def table[KP_OP_COUNT] = {
#define OP(name_, ...) [KP_OP_##name_] = {.id = KP_OP_##name_, .name = #name_, __VA_ARGS__},
#define VIEW(name_, ...) \
    [KP_OP_##            \
        name_] = {.id = KP_OP_##name_, .name = #name_, ONE_OPERAND, COSTS(nothing), __VA_ARGS__},
#include "task/op_table.h"
};

/* See ops.h. */
const struct kp_op_def *op_get(enum kp_op_id id) {
    return &table[id];
}

/* See ops.h. */
const struct kp_op_def *op_find(const char *name) {
    for (int i = 0; i < KP_OP_COUNT; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}
