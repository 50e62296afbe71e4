/* op_table.h: the table of ops, a row for each.
 *
 *     OP(NAME, WHAT IT TAKES AND ITS RULES, ATTRS(...))
 *
 * NAME stands for the op everywhere: task files say it; define_NAME in reference/define is its
 * meaning, kp_impl_NAME in reference/cuda_ops its device code.  A row without one of the two does
 * not link.  VIEW is an op that moves nothing: it needs no device code.
 *
 * ops.c says what the words of a row mean.  An attribute is INTEGER, INTEGERS (a number or a
 * list), LIST, NUMBER (with its value where it is absent), FLAG or WORD.  An op is elementwise
 * unless its row has a KIND.
 *
 * Included by whoever makes something of each row: define OP and VIEW first.  CONTRIBUTING.md
 * says how to add an op. */
/* clang-format off */

/* The same elements, seen otherwise */
VIEW(view, SHOWS(ORDER), RULES(view, view), ATTRS(LIST(shape)))
VIEW(transpose, SHOWS(AXES), RULES(transpose, transpose), ATTRS(LIST(dims)))
VIEW(unsqueeze, SHOWS(ORDER), RULES(unsqueeze, unsqueeze), ATTRS(INTEGERS(dim)))
VIEW(squeeze, SHOWS(ORDER), RULES(squeeze, squeeze), ATTRS(INTEGERS(dim)))
VIEW(permute, SHOWS(AXES), RULES(permute, permute), ATTRS(LIST(dims)))
VIEW(flatten, SHOWS(ORDER), RULES(flatten, flatten), ATTRS(INTEGER(start_dim), INTEGER(end_dim)))
VIEW(slice, SHOWS_PART(slice),
   ATTRS(INTEGER(dim), INTEGER(start), INTEGER(end), INTEGER(step)))
VIEW(flip, SHOWS_PART(flip), ATTRS(INTEGER(dim)))
VIEW(expand, SHOWS(REPEAT), RULES(expand, elementwise), ATTRS(LIST(shape)))

/* Elements put together, replaced or chosen; none is computed */
OP(cat, OPERANDS(1, KP_ANY), RULES(cat, along_axis), COSTS(nothing), ATTRS(INTEGER(dim)))
OP(pad, ONE_OPERAND, RULES(pad, pad), COSTS(nothing), ATTRS(LIST(pad), NUMBER(value, 0)))
OP(tril, ONE_OPERAND, RULES(triangle, triangle), COSTS(nothing), ATTRS(INTEGER(diagonal)))
OP(triu, ONE_OPERAND, RULES(triangle, triangle), COSTS(nothing), ATTRS(INTEGER(diagonal)))
OP(masked_fill, OPERANDS(2, 2), KEYWORDS(NULL, "mask"), RULES(masked_fill, elementwise),
   COSTS(results), ATTRS(NUMBER(value, 0)))
OP(eq, OPERANDS(2, 2), RULES(compare, elementwise), COSTS(results))
OP(index_select, OPERANDS(2, 2), KEYWORDS(NULL, "index"), RULES(index_select, index_select),
   COSTS(nothing), ATTRS(INTEGER(dim)))
OP(full, OPERANDS(0, 0), RULES(full, elementwise), COSTS(nothing),
   ATTRS(LIST(shape), NUMBER(value, 0), WORD(dtype)))

/* Products */
OP(matmul, OPERANDS(2, 2), KIND(PRODUCT), RULES(matmul, matmul), PRODUCT(matmul, matmul),
   INNER(-1, -2))
OP(linear, OPERANDS(2, 3), WEIGHTED, KIND(PRODUCT), RULES(linear, linear),
   PRODUCT(filter_and_bias, filter), INNER(-1, -1))
OP(scaled_dot_product_attention, OPERANDS(3, 3), KEYWORDS(NULL, "key", "value"),
   KIND(ATTENTION), RULES(attention, attention), PRODUCT(attention, attention_products),
   INNER(-1, -1),
   ATTRS(NUMBER(dropout_p, 0), FLAG(is_causal), NUMBER(scale, 0)))

/* Recurrent networks, by the gates of a cell: task/recurrent.h */
OP(lstm, RECURRENT(4), OPERANDS(7, KP_ANY))
OP(gru, RECURRENT(3), OPERANDS(6, KP_ANY))

/* Windows: convolutions and pools, by their spatial axes */
OP(conv1d, CONVOLUTION(1))
OP(conv2d, CONVOLUTION(2))
OP(conv3d, CONVOLUTION(3))
OP(conv_transpose1d, CONVOLUTION_TRANSPOSE(1))
OP(conv_transpose2d, CONVOLUTION_TRANSPOSE(2))
OP(conv_transpose3d, CONVOLUTION_TRANSPOSE(3))
OP(max_pool1d, MAX_POOL(1))
OP(max_pool2d, MAX_POOL(2))
OP(max_pool3d, MAX_POOL(3))
OP(avg_pool1d, AVG_POOL(1))
OP(avg_pool2d, AVG_POOL(2))
OP(avg_pool3d, AVG_POOL(3))
OP(adaptive_avg_pool1d, ADAPTIVE_POOL(1))
OP(adaptive_avg_pool2d, ADAPTIVE_POOL(2))
OP(adaptive_avg_pool3d, ADAPTIVE_POOL(3))

/* Elementwise: one expression each in define/elementwise.h, forms.h, functions.h or terms.h */
OP(relu, UNARY)
OP(gelu, ONE_OPERAND, RULES(gelu, elementwise), COSTS(results), ATTRS(WORD(approximate)))
OP(sigmoid, UNARY)
OP(tanh, UNARY)
OP(softplus, UNARY)
OP(leaky_relu, UNARY, ATTRS(NUMBER(negative_slope, 0.01)))
OP(hardtanh, UNARY, ATTRS(NUMBER(min_val, -1), NUMBER(max_val, 1)))
OP(clamp, ONE_OPERAND, RULES(clamp, elementwise), COSTS(results),
   ATTRS(NUMBER(min, -INFINITY), NUMBER(max, INFINITY)))
OP(elu, UNARY, ATTRS(NUMBER(alpha, 1)))
OP(selu, UNARY)
OP(silu, UNARY)
OP(mish, UNARY)
OP(hardsigmoid, UNARY)
OP(hardswish, UNARY)
OP(sqrt, UNARY)
OP(rsqrt, UNARY)
OP(abs, UNARY)
OP(neg, UNARY)
OP(exp, UNARY)
OP(log, UNARY)
OP(sin, UNARY)
OP(cos, UNARY)
OP(pow, OPERANDS(2, 2), RULES(pow, elementwise), COSTS(results))
OP(add, BINARY)
OP(sub, BINARY)
OP(mul, BINARY)
OP(div, BINARY)
OP(minimum, BINARY)
OP(maximum, BINARY)
OP(smooth_l1_loss, BINARY, KEYWORDS(NULL, "target"), ATTRS(NUMBER(beta, 1)))
OP(kl_div, BINARY, KEYWORDS(NULL, "target"))

/* Normalisations */
OP(layer_norm, NORM(layer_norm), ATTRS(LIST(shape), NUMBER(eps, 1e-5)))
OP(group_norm, NORM(group_norm), ATTRS(INTEGER(num_groups), NUMBER(eps, 1e-5)))
OP(instance_norm, NORM(instance_norm),
   ATTRS(FLAG(use_input_stats), NUMBER(momentum, 0.1), NUMBER(eps, 1e-5)))
OP(batch_norm, NORM(batch_norm), ATTRS(FLAG(training), NUMBER(momentum, 0.1), NUMBER(eps, 1e-5)))

/* Along one axis, or over several */
OP(softmax, ONE_OPERAND, KIND(REDUCTION), RULES(along_axis, along_axis), COSTS(five),
   ATTRS(INTEGERS(dim)))
OP(log_softmax, ONE_OPERAND, KIND(REDUCTION), RULES(along_axis, along_axis), COSTS(five),
   ATTRS(INTEGERS(dim)))
OP(sum, REDUCTION(reduce))
OP(mean, REDUCTION(reduce))
OP(norm, ONE_OPERAND, KIND(REDUCTION), RULES(norm, reduce), COSTS(operand),
   ATTRS(INTEGERS(dim), FLAG(keepdim), NUMBER(p, 2)))
OP(logsumexp, ONE_OPERAND, KIND(REDUCTION), RULES(logsumexp, reduce), COSTS(five),
   ATTRS(INTEGERS(dim), FLAG(keepdim)))
OP(max, REDUCTION(extreme))
OP(min, REDUCTION(extreme))
OP(argmax, REDUCTION(index))
OP(argmin, REDUCTION(index))
OP(cumsum, SCAN)
OP(cumprod, SCAN)
OP(cross_entropy, OPERANDS(2, 2), KEYWORDS(NULL, "target"), KIND(REDUCTION),
   RULES(cross_entropy, never), COSTS(five),
   ATTRS(INTEGER(ignore_index), WORD(reduction), NUMBER(label_smoothing, 0)))

/* clang-format on */
#undef OP
#undef VIEW
