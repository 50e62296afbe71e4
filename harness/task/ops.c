/* ops.c: the table of ops.  A row says what an op is called, takes and costs;
 * the rules that it names are in infer.c (shapes) and slice.c (cuts). */
#include "task/rules.h"

#include <string.h>

const struct kp_value *op_operand(const struct kp_task *t, const struct kp_op *op, int slot) {
    return slot < op->nin && op->in[slot].value >= 0 ? &t->values[op->in[slot].value] : NULL;
}

int op_axis(const struct kp_op *op, const char *key, int n) {
    const struct kp_attr *a = op_attr(op, key);
    if (!a || a->kind != KP_ATTR_INT || a->number < -n || a->number >= n) return -1;
    return (int)a->number + (a->number < 0 ? n : 0);
}

unsigned op_reduced_axes(const struct kp_op *op, int n) {
    const struct kp_attr *a = op_attr(op, "dim");
    unsigned axes = 0;
    if (!a) return (1u << n) - 1;
    if (a->kind != KP_ATTR_LIST) return op_axis(op, "dim", n) < 0 ? 0 : 1u << op_axis(op, "dim", n);
    for (int i = 0; i < a->n; i++) {
        int64_t axis = a->list[i] + (a->list[i] < 0 ? n : 0);
        if (axis < 0 || axis >= n || (axes & 1u << axis)) return 0;
        axes |= 1u << axis;
    }
    return axes;
}

static double count(const struct kp_value *v) {
    return (double)kp_shape_count(&v->shape);
}

static double result_count(const struct kp_task *t, const struct kp_op *op) {
    return count(&t->values[op->out[0]]);
}

static double operand_count(const struct kp_task *t, const struct kp_op *op) {
    return count(op_operand(t, op, 0));
}

static double none(const struct kp_task *t, const struct kp_op *op) {
    (void)t, (void)op;
    return 0;
}

/* Mean, variance, subtract, scale, shift; or maximum, subtract, exp, sum, divide. */
static double five(const struct kp_task *t, const struct kp_op *op) {
    return 5 * operand_count(t, op);
}

/* One comparison for each element of a window. */
static double pool_flops(const struct kp_task *t, const struct kp_op *op) {
    int64_t k[2];
    op_list(op, "kernel_size", 2, 1, k);
    return (double)(k[0] * k[1]) * result_count(t, op);
}

static double matmul_mm(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *a = &op_operand(t, op, 0)->shape;
    return 2 * (double)a->dim[a->n - 1] * result_count(t, op);
}

/* Scores and weighted sum: L x S x E and L x S x Ev products for each head. */
static double attention_mm(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *k = &op_operand(t, op, 1)->shape;
    double keys = (double)k->dim[k->n - 2];
    return 2 * keys * (operand_count(t, op) + result_count(t, op));
}

static double attention_flops(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_shape *q = &op_operand(t, op, 0)->shape, *k = &op_operand(t, op, 1)->shape;
    double scores = operand_count(t, op) / (double)q->dim[q->n - 1] * (double)k->dim[k->n - 2];
    return attention_mm(t, op) + 5 * scores;
}

/* Each output element sums over one filter: weight elements per output channel.
 * Serves linear too. */
static double filter_mm(const struct kp_task *t, const struct kp_op *op) {
    const struct kp_value *w = op_operand(t, op, 1);
    return 2 * result_count(t, op) * count(w) / (double)w->shape.dim[0];
}

static double filter_flops(const struct kp_task *t, const struct kp_op *op) {
    return filter_mm(t, op) + (op_operand(t, op, 2) ? result_count(t, op) : 0);
}

#define CONV_ATTRS "stride padding dilation groups"
#define WEIGHTED \
    { NULL, "weight", "bias" }
/* clang-format off */
#define VIEW_ROW(id_, name_, attrs_) \
    [KP_OP_##id_] = {.id = KP_OP_##id_, .name = #name_, .min_in = 1, .max_in = 1, .attrs = attrs_, \
        .is_view = true, .infer = infer_##name_, .slice = slice_##name_, .flops = none}
#define CONV_ROW(id_, name_) \
    [KP_OP_##id_] = {.id = KP_OP_##id_, .name = #name_, .min_in = 2, .max_in = 3, \
        .in_name = WEIGHTED, \
        .attrs = CONV_ATTRS, .tensor_cores = true, .infer = infer_conv, .slice = slice_conv, \
        .flops = filter_flops, .mm_flops = filter_mm}
#define UNARY_ROW(id_, name_, attrs_, infer_) \
    [KP_OP_##id_] = {.id = KP_OP_##id_, .name = #name_, .min_in = 1, .max_in = 1, .attrs = attrs_, \
        .infer = infer_, .slice = slice_elementwise, .flops = result_count}
#define BINARY_ROW(id_, name_, infer_) \
    [KP_OP_##id_] = {.id = KP_OP_##id_, .name = #name_, .min_in = 2, .max_in = 2, .attrs = "", \
        .infer = infer_, .slice = slice_elementwise, .flops = result_count}
#define NORM_ROW(id_, name_, attrs_) \
    [KP_OP_##id_] = {.id = KP_OP_##id_, .name = #name_, .min_in = 1, .max_in = 3, \
        .in_name = WEIGHTED, \
        .attrs = attrs_, .infer = infer_##name_, .slice = slice_##name_, .flops = five}
#define REDUCE_ROW(id_, name_, attrs_, infer_, slice_, flops_) \
    [KP_OP_##id_] = {.id = KP_OP_##id_, .name = #name_, .min_in = 1, .max_in = 1, .attrs = attrs_, \
        .infer = infer_, .slice = slice_, .flops = flops_}

static const struct kp_op_def defs[KP_OP_COUNT] = {
    VIEW_ROW(VIEW, view, "shape"),
    VIEW_ROW(TRANSPOSE, transpose, "dims"),
    VIEW_ROW(UNSQUEEZE, unsqueeze, "dim"),
    VIEW_ROW(SQUEEZE, squeeze, "dim"),
    VIEW_ROW(PERMUTE, permute, "dims"),
    VIEW_ROW(FLATTEN, flatten, "start_dim end_dim"),

    [KP_OP_MATMUL] = {.id = KP_OP_MATMUL, .name = "matmul", .min_in = 2, .max_in = 2, .attrs = "",
        .tensor_cores = true, .infer = infer_matmul, .slice = slice_matmul,
        .flops = matmul_mm, .mm_flops = matmul_mm},
    [KP_OP_LINEAR] = {.id = KP_OP_LINEAR, .name = "linear", .min_in = 2, .max_in = 3,
        .in_name = WEIGHTED, .attrs = "", .tensor_cores = true, .infer = infer_linear,
        .slice = slice_linear, .flops = filter_flops, .mm_flops = filter_mm},
    [KP_OP_SCALED_DOT_PRODUCT_ATTENTION] = {.id = KP_OP_SCALED_DOT_PRODUCT_ATTENTION,
        .name = "scaled_dot_product_attention", .min_in = 3, .max_in = 3,
        .in_name = {NULL, "key", "value"}, .attrs = "dropout_p is_causal scale", .tensor_cores = true,
        .infer = infer_attention, .slice = slice_attention, .flops = attention_flops, .mm_flops = attention_mm},

    CONV_ROW(CONV1D, conv1d),
    CONV_ROW(CONV2D, conv2d),
    CONV_ROW(CONV3D, conv3d),

    REDUCE_ROW(MAX_POOL2D, max_pool2d,
        "kernel_size stride padding dilation ceil_mode return_indices",
        infer_max_pool2d, slice_planes, pool_flops),

    UNARY_ROW(RELU, relu, "", infer_unary),
    UNARY_ROW(GELU, gelu, "approximate", infer_gelu),
    UNARY_ROW(SIGMOID, sigmoid, "", infer_unary),
    UNARY_ROW(TANH, tanh, "", infer_unary),
    UNARY_ROW(SOFTPLUS, softplus, "", infer_unary),
    UNARY_ROW(LEAKY_RELU, leaky_relu, "negative_slope", infer_unary),
    UNARY_ROW(SQRT, sqrt, "", infer_unary),
    BINARY_ROW(POW, pow, infer_pow),

    BINARY_ROW(ADD, add, infer_binary),
    BINARY_ROW(SUB, sub, infer_binary),
    BINARY_ROW(MUL, mul, infer_binary),
    BINARY_ROW(DIV, div, infer_binary),

    NORM_ROW(LAYER_NORM, layer_norm, "shape eps"),
    NORM_ROW(GROUP_NORM, group_norm, "num_groups eps"),
    NORM_ROW(INSTANCE_NORM, instance_norm, "use_input_stats momentum eps"),
    NORM_ROW(BATCH_NORM, batch_norm, "training momentum eps"),

    REDUCE_ROW(SOFTMAX, softmax, "dim", infer_along_axis, slice_along_axis, five),
    REDUCE_ROW(SUM, sum, "dim keepdim", infer_reduce, slice_reduce, operand_count),
    REDUCE_ROW(MEAN, mean, "dim keepdim", infer_reduce, slice_reduce, operand_count),
    REDUCE_ROW(MAX, max, "dim keepdim", infer_max, slice_reduce, operand_count),
    REDUCE_ROW(CUMSUM, cumsum, "dim", infer_along_axis, slice_along_axis, operand_count),
    [KP_OP_CROSS_ENTROPY] = {.id = KP_OP_CROSS_ENTROPY, .name = "cross_entropy", .min_in = 2,
        .max_in = 2, .in_name = {NULL, "target"}, .attrs = "ignore_index reduction label_smoothing",
        .infer = infer_cross_entropy, .slice = slice_never, .flops = five},
};
/* clang-format on */

const struct kp_op_def *op_get(enum kp_op_id id) {
    return &defs[id];
}

const struct kp_op_def *op_find(const char *name) {
    for (int i = 0; i < KP_OP_COUNT; i++)
        if (!strcmp(defs[i].name, name)) return &defs[i];
    return NULL;
}
