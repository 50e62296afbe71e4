/* test_ops.c: the result of each op for its operands; test_cuts.c has how it may be sliced. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "task_text.h"
#include "task/ops.h"

/* Tensors and op lines; NULL if they are valid, else part of the message.  These are cases of the
 * rules; tests/data/ops.json has a case of every op. */
static const struct {
    const char *tensors, *graph, *message;
} cases[] = {
    /* views */
    {"x f32 [2,3,4]", "t1[6,4] = view(x; shape=[-1,4])", NULL},
    {"x f32 [2,3,4]", "t1[24] = view(x; shape=[24])", NULL},
    {"x f32 [2,3,4]", "t1[5,5] = view(x; shape=[5,5])",
     "shape does not hold the operand's 24 elements"},
    {"x f32 [2,3,4]", "t1[5,5] = view(x; shape=[5,-1])", "shape does not hold"},
    {"x f32 [2,3,4]", "t1[24] = view(x; shape=[4503599627370496,4503599627370496])", "too large"},
    {"x f32 [2,3,4]", "t1[24] = view(x; shape=[-1,-1])", "one of which may be -1"},
    {"x f32 [2,3,4]", "t1[24] = view(x)", "expected shape=[...]"},
    {"x f32 [2,3,4]", "t1[2,4,3] = transpose(x; dims=[1,2])", NULL},
    {"x f32 [2,3,4]", "t1[4,3,2] = transpose(x; dims=[0,-1])", NULL},
    {"x f32 [2,3,4]", "t1[2,3,4] = transpose(x; dims=[1,1])", "two different axes"},
    {"x f32 [2,3,4]", "t1[2,3,4] = transpose(x; dims=[1,3])", "two different axes"},
    {"x f32 [2,3,4]", "t1[4,2,3] = permute(x; dims=[2,0,1])", NULL},
    {"x f32 [2,3,4]", "t1[4,2,3] = permute(x; dims=[2,0])", "each axis once"},
    {"x f32 [2,3]", "t1[2,3,1] = unsqueeze(x; dim=-1)", NULL},
    {"x f32 [2,3]", "t1[2,1,3] = unsqueeze(x; dim=1)", NULL},
    {"x f32 [2,3]", "t1[1,2,3] = unsqueeze(x; dim=3)", "an axis of the result, -3 to 2"},
    {"x f32 [2,1,3]", "t1[2,3] = squeeze(x; dim=1)", NULL},
    {"x f32 [2,1,3]", "t1[2,3] = squeeze(x; dim=0)", "an axis of size 1"},
    {"x f32 [2,3,4,5]", "t1[2,60] = flatten(x; start_dim=1)", NULL},
    {"x f32 [2,3,4,5]", "t1[2,12,5] = flatten(x; start_dim=1, end_dim=2)", NULL},
    {"x f32 [2,3,4,5]", "t1[120] = flatten(x)", NULL},
    {"x f32 [2,3]", "t1[6] = flatten(x; start_dim=1, end_dim=0)", "expected start_dim <= end_dim"},
    {"x i64 [2,7]", "t1[2,3] = slice(x; dim=1, start=1, end=-1, step=2)", NULL},
    {"x f32 [2,7]", "t1[1,7] = slice(x; dim=0, start=-1)", NULL},
    {"x f32 [2,7]", "t1[2,2] = slice(x; dim=1, start=0, end=4, step=3)", NULL},
    {"x f32 [2,7]", "t1[2,3] = slice(x; start=4)", "expected dim=, an axis of the operand"},
    {"x f32 [2,7]", "t1[2,3] = slice(x; dim=1, start=4, end=8)", "within axis 1 of size 7"},
    {"x f32 [2,7]", "t1[2,3] = slice(x; dim=1, start=-8)", "within axis 1 of size 7"},
    {"x f32 [2,7]", "t1[2,0] = slice(x; dim=1, start=4, end=4)", "expected start < end"},
    {"x f32 [2,7]", "t1[2,3] = slice(x; dim=1, step=-1)", "step is below 1"},
    {"x bool [2,7]", "t1[2,7] = flip(x; dim=-1)", NULL},
    {"x f32 [2,7]", "t1[2,7] = flip(x; dim=2)", "expected dim=, an axis of the operand"},
    {"x f32 [2,1]", "t1[4,2,3] = expand(x; shape=[4,2,3])", NULL},
    {"x f32 [2,1]", "t1[4,3] = expand(x; shape=[4,3])", "does not follow by repeating"},
    {"x f32 [2,1]", "t1[2] = expand(x; shape=[2])", "does not follow by repeating"},
    {"x f32 [2,1]", "t1[2,0] = expand(x; shape=[2,0])", "does not follow by repeating"},
    /* elements put together, replaced or chosen */
    {"x f32 [2,3]; y f32 [2,1]", "t1[2,4] = cat(x, y; dim=1)", NULL},
    {"x bool [3]", "t1[30] = cat(x, x, x, x, x, x, x, x, x, x; dim=0)", NULL},
    {"x f32 [3]", "t1[3] = cat(x; dim=0)", NULL},
    {"x f32 [2,3]; y f32 [2,1]", "t1[2,4] = cat(x, y)", "expected dim=, an axis of the operands"},
    {"x f32 [2,3]; y f32 [3,1]", "t1[2,4] = cat(x, y; dim=1)",
     "y has another shape; expected the first operand's but for axis 1"},
    {"x f32 [2,3]; y f32 [2]", "t1[2,4] = cat(x, y; dim=1)", "y has another shape"},
    {"x f32 [2,3]; y f16 [2,1]", "t1[2,4] = cat(x, y; dim=1)", "y is f16; expected f32"},
    {"x f32 [2,3]", "t1[2,4] = cat(x, 2; dim=1)", "operand 2 is a number"},
    {"x f32 [2,3]", "t1[2,3] = cat(; dim=1)", "expected an operand"},
    {"x f32 [2,3]", "t1[2,7] = pad(x; pad=[1,3])", NULL},
    {"x i64 [2,3]", "t1[5,3] = pad(x; pad=[0,0,1,2], value=7)", NULL},
    {"x f32 [2,3]", "t1[2,4] = pad(x; pad=[1])", "two numbers an axis, the last axis first"},
    {"x f32 [3]", "t1[4] = pad(x; pad=[1,0,0,0])", "two numbers an axis, the last axis first"},
    {"x f32 [2,3]", "t1[2,2] = pad(x; pad=[0,-1])", "pad has a number below 0"},
    {"x bool [2,3]", "t1[2,3] = tril(x; diagonal=-1)\nt2[2,3] = triu(t1)", NULL},
    {"x f32 [3]", "t1[3] = tril(x)", "expected an operand of 2 axes or more"},
    {"x f16 [2,3]; m bool [3]", "t1[2,3] = masked_fill(x, mask=m; value=-inf)", NULL},
    {"x f32 [2,3]; m bool [2,1]", "t1[2,3] = masked_fill(x, mask=m; value=-1e9)", NULL},
    {"x f32 [2,3]; m f32 [3]", "t1[2,3] = masked_fill(x, mask=m; value=0)",
     "expected mask=, a bool tensor"},
    {"x f32 [2,3]; m bool [4,2,3]", "t1[4,2,3] = masked_fill(x, mask=m; value=0)",
     "mask does not broadcast to the operand"},
    {"x f32 [1,3]; m bool [2,3]", "t1[2,3] = masked_fill(x, mask=m; value=0)",
     "mask does not broadcast to the operand"},
    {"x f32 [2,3]; m bool [3]", "t1[2,3] = masked_fill(x, mask=m)", "expected value="},
    {"x i64 [2,1]; y i64 [3]", "t1[2,3]:bool = eq(x, y)", NULL},
    {"x bool [2]", "t1[2] = eq(x, 0)", NULL},
    {"x f32 [2]", "t1[2] = eq(x, 0)", "write t1[2]:bool"},
    {"x f32 [2]; y i64 [2]", "t1[2]:bool = eq(x, y)",
     "operands are f32 and i64; expected one type"},
    {"x f32 [2,3]; y f32 [2]", "t1[2,3]:bool = eq(x, y)", "shapes do not broadcast"},
    {"x f32 [2,3]; i i64 [5]", "t1[5,3] = index_select(x, index=i; dim=0)", NULL},
    {"x f32 [2,3]; i i64 [2] values(1,0)", "t1[2,3] = index_select(x, index=i; dim=0)", NULL},
    {"x f32 [2,3]; i i64 [2] values(1,2)", "t1[2,3] = index_select(x, index=i; dim=0)",
     "i may be beyond axis 0"},
    {"x f32 [2,3]; i i64 [2] values(-1,1)", "t1[2,3] = index_select(x, index=i; dim=0)",
     "i may be beyond axis 0"},
    {"x f32 [2,3]; i i64 [5,1]",
     "v[5]:i64 = view(i; shape=[5])\nt1[2,5] = index_select(x, index=v; dim=-1)", NULL},
    {"x f32 [1,3]; i i64 [5]", "t1[5,3] = index_select(x, index=i; dim=0)",
     "i may be beyond axis 0; expected a tensor of integers(0,1)"},
    {"x f32 [2,3]", "m[3], i[3]:i64 = max(x; dim=0)\nt1[2,3] = index_select(x, index=i; dim=1)",
     "i may be beyond axis 1"},
    {"x f32 [2,3]; i i64 [5,1]", "t1[5,3] = index_select(x, index=i; dim=0)",
     "expected index=, an i64 tensor of one axis"},
    {"x f32 [2]",
     "t1[2,3] = full(; shape=[2,3], value=-inf)\nt2[3] = sum(t1; dim=0)\n"
     "t3[2,1] = unsqueeze(x; dim=1)\nt4[2,3] = add(t3, t2)",
     NULL},
    {"x bool [2]", "f[2] = full(; shape=[2], value=2, dtype=bool)\nt1[2] = eq(x, f)",
     "value does not fit bool"},
    {"x i64 [2]", "f[2] = full(; shape=[2], value=0.5, dtype=i64)\nt1[2]:bool = eq(x, f)",
     "value does not fit i64"},
    {"x i64 [2]", "t1[2]:bool = eq(x, 0.5)", "value does not fit i64"},
    {"x i64 [2]", "t1[2]:bool = eq(-3, x)", NULL},
    {"x f32 [2]", "t1[2]:bool = eq(0.5, x)", NULL},
    {"x i64 [2]; m bool [2]", "t1[2] = masked_fill(x, mask=m; value=0.5)",
     "value does not fit i64"},
    {"x bool [2]", "t1[3] = pad(x; pad=[0,1], value=2)", "value does not fit bool"},
    {"x f32 [2]", "f[2] = full(; shape=[2])\nt1[2] = add(x, f)", "expected value="},
    {"x f32 [2]", "f[2] = full(x; shape=[2], value=0)\nt1[2] = add(x, f)", "expected a comma or )"},
    {"x f32 [2]", "t1[2] = hardtanh(x; min_val=0, max_val=inf)", NULL},
    {"x f32 [2]", "t1[2] = hardtanh(x; min_val=0, max_val=-infinity)",
     "expected a number, a list, a word"},
    /* products */
    {"a f32 [2,3]; b f32 [3,4]", "t1[2,4] = matmul(a, b)", NULL},
    {"a f16 [5,1,2,3]; b f16 [7,3,4]", "t1[5,7,2,4] = matmul(a, b)", NULL},
    {"a f32 [2,3]; b f32 [4,3]", "t1[2,4] = matmul(a, b)",
     "the second operand has 4 rows; expected 3"},
    {"a f32 [2,3]; b f16 [3,4]", "t1[2,4] = matmul(a, b)", "b is f16; expected f32"},
    {"a f32 [3]; b f32 [3,4]", "t1[4] = matmul(a, b)", "expected matrices"},
    {"a f32 [2,2,3]; b f32 [3,3,4]", "t1[2,2,4] = matmul(a, b)", "leading axes differ"},
    {"a f32 [2,3]", "t1[2,3] = matmul(a, 2)", "operand 2 is a number"},
    {"x f32 [7,2,3]; w f32 [4,3]; b f32 [4]", "t1[7,2,4] = linear(x, weight=w, bias=b)", NULL},
    {"x f32 [2,3]; w f32 [3,4]", "t1[2,4] = linear(x, weight=w)", "weight does not fit"},
    {"x f32 [2,3]; w f32 [4,3]; b f32 [3]", "t1[2,4] = linear(x, weight=w, bias=b)",
     "b has another shape; expected [4]"},
    {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,7,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v; dropout_p=0, is_causal=false)",
     NULL},
    {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,6,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v)", "value length differs"},
    {"q f32 [2,5,3]; k f32 [2,7,4]; v f32 [2,7,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v)", "key width differs"},
    {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,7,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v; dropout_p=0.1)",
     "dropout_p is not 0"},
    {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,7,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v; is_causal=true)",
     "is_causal=true is not implemented"},
    /* recurrent networks */
    {"x f32 [5,2,3]; h f32 [1,2,4]; c f32 [1,2,4]; a f32 [16,3]; b f32 [16,4]; p f32 [16]; "
     "q f32 [16]",
     "t1[5,2,4], t2[1,2,4], t3[1,2,4] = lstm(x, h, c, a, b, p, q)", NULL},
    {"x f32 [2,5,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[2,5,4], t2[1,2,4] = gru(x, h, a, b, p, q; num_layers=1, batch_first=true)", NULL},
    {"x f32 [5,2,3]; h f32 [2,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[5,2,4], t2[2,2,4] = gru(x, h, a, b, p, q; num_layers=2)", "6 operands; expected 10"},
    {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[5,2,8], t2[2,2,4] = gru(x, h, a, b, p, q; bidirectional=true)",
     "h has another shape; expected [2,2,4]"},
    {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [16,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[5,2,4], t2[1,2,4] = gru(x, h, a, b, p, q)", "a has another shape; expected [12,3]"},
    {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[5,2,4], t2[1,2,4] = gru(x, h, a, b, p, q; num_layers=0)", "expected num_layers="},
    /* convolutions and pooling */
    {"x f32 [2,4,9]; w f32 [6,2,3]; b f32 [6]",
     "t1[2,6,5] = conv1d(x, weight=w, bias=b; stride=[2], padding=1, dilation=1, groups=2)", NULL},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]",
     "t1[2,6,5,8] = conv2d(x, weight=w; stride=[2,1], padding=[1,1], dilation=[1,2])", NULL},
    {"x f32 [2,3,5,5,5]; w f32 [6,3,3,3,3]", "t1[2,6,3,3,3] = conv3d(x, weight=w)", NULL},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]", "t1[2,6,7,7] = conv2d(x, weight=w; stride=[1,1,1])",
     "stride has 3 entries; expected 2"},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]", "t1[2,6,7,7] = conv2d(x, weight=w; stride=0)",
     "stride is 0; expected 1 to 2147483647"},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]", "t1[2,6,1,1] = conv2d(x, weight=w; stride=3000000000)",
     "stride is 3000000000; expected 1 to 2147483647"},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]", "t1[2,6,7,7] = conv2d(x, weight=w; padding=-1)",
     "padding is -1; expected 0 to 2147483647"},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]", "t1[2,6,7,7] = conv2d(x, weight=w; groups=2)",
     "groups does not divide"},
    {"x f32 [2,4,9,8]; w f32 [6,4,3,2]", "t1[2,6,7,7] = conv2d(x, weight=w; groups=2)",
     "weight has 4 input channels; expected 2"},
    {"x f32 [2,3,9,8]; w f32 [6,3,3,2]; b f32 [3]", "t1[2,6,7,7] = conv2d(x, weight=w, bias=b)",
     "b has another shape; expected [6]"},
    {"x f32 [2,3,2,2]; w f32 [6,3,3,3]", "t1[2,6,1,1] = conv2d(x, weight=w)",
     "larger than the padded operand"},
    {"x f32 [2,3,9]; w f32 [6,3,3]", "t1[2,6,7] = conv2d(x, weight=w)", "of 4 axes"},
    {"x f32 [2,3,7,7]",
     "t1[2,3,3,3] = max_pool2d(x; kernel_size=3, stride=2, padding=0, dilation=1, ceil_mode=false)",
     NULL},
    {"x f32 [2,3,7,8]", "t1[2,3,4,4] = max_pool2d(x; kernel_size=[3,2], stride=2, padding=[1,0])",
     NULL},
    {"x f32 [2,3,7,8]", "t1[2,3,3,4] = max_pool2d(x; kernel_size=3, stride=2, ceil_mode=true)",
     NULL},
    {"x f32 [2,3,7]", "t1[2,3,3] = max_pool1d(x; kernel_size=2, stride=3, ceil_mode=true)", NULL},
    {"x f32 [2,3,6]", "t1[2,3,2] = max_pool1d(x; kernel_size=1, stride=5, ceil_mode=true)", NULL},
    {"x f32 [2,3,5]", "t1[2,3,1] = max_pool1d(x; kernel_size=1, stride=5, ceil_mode=true)", NULL},
    {"x f32 [2,3,6]",
     "t1[2,3,2] = avg_pool1d(x; kernel_size=2, stride=4, padding=1, ceil_mode=true)", NULL},
    {"x f32 [2,3,8]",
     "t1[2,3,3] = avg_pool1d(x; kernel_size=2, stride=4, padding=1, ceil_mode=true)", NULL},
    {"x f32 [2,3,4]", "t1[2,3,1] = max_pool1d(x; kernel_size=5, stride=2, ceil_mode=true)", NULL},
    {"x f32 [2,3,4]", "t1[2,3,1] = max_pool1d(x; kernel_size=6, stride=2, ceil_mode=true)",
     "the window is larger than the padded operand"},
    {"x f32 [2,3,6,7,8]",
     "t1[2,3,3,3,4] = max_pool3d(x; kernel_size=2, stride=2, return_indices=false)", NULL},
    {"x f32 [2,3,7,7]", "t1[2,3,3,3] = max_pool2d(x; kernel_size=3, stride=2, return_indices=true)",
     "return_indices=true is not implemented"},
    {"x f32 [2,3,9]",
     "t1[2,3,10] = avg_pool1d(x; kernel_size=[8], stride=[1], padding=[4], count_include_pad=true)",
     NULL},
    {"x f32 [2,3,9]", "t1[2,3,4] = avg_pool1d(x; kernel_size=3, stride=2, divisor_override=2)",
     "avg_pool1d has no attribute `divisor_override`"},
    {"x f32 [2,3,9]", "t1[2,3,4] = avg_pool1d(x; kernel_size=3, stride=2, dilation=2)",
     "avg_pool1d has no attribute `dilation`"},
    {"x f32 [2,3,9,9]", "t1[2,3,4,4] = avg_pool2d(x; kernel_size=3)", "expected stride="},
    {"x f32 [2,3,9,9]", "t1[2,3,7] = avg_pool3d(x; kernel_size=3, stride=1)",
     "expected an operand of 5 axes"},
    {"x f32 [2,3,9,9]", "t1[2,3,7,2] = adaptive_avg_pool2d(x; output_size=[7,2])", NULL},
    {"x f32 [2,3,9,9]", "t1[2,3,1,1] = adaptive_avg_pool2d(x; output_size=1)", NULL},
    {"x f32 [2,3,9,9]", "t1[2,3,1,1] = adaptive_avg_pool2d(x; output_size=[1,1,1])",
     "output_size has 3 entries; expected 2"},
    {"x f32 [2,3,9,9]", "t1[2,3,1,1] = adaptive_avg_pool2d(x)", "expected output_size="},
    {"x f32 [2,3,9,9]", "t1[2,3,0,0] = adaptive_avg_pool2d(x; output_size=0)",
     "output_size is 0; expected 1 to 2147483647"},
    {"x f32 [2,4,9]; w f32 [4,3,3]; b f32 [6]",
     "t1[2,6,19] = conv_transpose1d(x, weight=w, bias=b; stride=[2], padding=1, "
     "output_padding=1, groups=2, dilation=[1])",
     "t1 is declared"},
    {"x f32 [2,4,9]; w f32 [4,3,3]; b f32 [6]",
     "t1[2,6,18] = conv_transpose1d(x, weight=w, bias=b; stride=[2], padding=1, "
     "output_padding=1, groups=2, dilation=[1])",
     NULL},
    {"x f32 [2,4,5,6]; w f32 [4,8,3,5]",
     "t1[2,8,11,16] = conv_transpose2d(x, weight=w; stride=[2,3], padding=[1,2], dilation=[2,1])",
     NULL},
    {"x f32 [2,4,5,6]; w f32 [8,4,3,3]", "t1[2,4,7,8] = conv_transpose2d(x, weight=w)",
     "weight has 8 input channels; expected 4"},
    {"x f32 [2,4,5,6]; w f32 [4,8,3,3]; b f32 [4]",
     "t1[2,8,7,8] = conv_transpose2d(x, weight=w, bias=b)", "b has another shape; expected [8]"},
    {"x f32 [2,4,5,6]; w f32 [4,8,3,3]", "t1[2,8,7,8] = conv_transpose2d(x, weight=w; groups=3)",
     "groups does not divide"},
    {"x f32 [2,4,5,6]; w f32 [4,8,3,3]",
     "t1[2,8,7,8] = conv_transpose2d(x, weight=w; output_padding=1)",
     "output_padding is 1; expected less than the stride, 1"},
    {"x f32 [2,4,5,6]; w f32 [4,8,3,3]", "t1[2,8,7,8] = conv_transpose2d(x, weight=w; padding=4)",
     "the padding leaves nothing"},
    {"x f32 [2,4,5,6]; w f32 [4,8,3]", "t1[2,8,7,8] = conv_transpose2d(x, weight=w)", "of 4 axes"},
    {"x f32 [1,1,140737488355328]; w f32 [1,1,1]",
     "t1[1,1,1] = conv_transpose1d(x, weight=w; stride=131072)", "or it is too large"},
    {"x f32 [2,3,7,7]", "t1[2,3,3,3] = max_pool2d(x; stride=2)", "expected kernel_size="},
    {"x f32 [2,3,7,7]", "t1[2,3,9,9] = max_pool2d(x; kernel_size=3, stride=1, padding=2)",
     "padding is too large"},
    /* elementwise */
    {"x f16 [2,3]", "t1[2,3] = relu(x)", NULL},
    {"x f32 [2,3]", "t1[2,3] = gelu(x; approximate=none)", NULL},
    {"x i64 [2,3]", "t1[2,3] = relu(x)", "x is i64; expected f64, f32, f16 or bf16"},
    {"x f32 [2,3]", "t1[2,3] = leaky_relu(x; negative_slope=0.01)", NULL},
    {"x f32 [2,3]",
     "t1[2,3] = sigmoid(x)\nt2[2,3] = tanh(t1)\nt3[2,3] = softplus(t2)\nt4[2,3] = sqrt(t3)", NULL},
    {"x f32 [2,3]", "t1[2,3] = clamp(x; min=0)\nt2[2,3] = clamp(t1; max=6)", NULL},
    {"x f32 [2,3]", "t1[2,3] = clamp(x)", "expected min=, max= or both"},
    {"x f32 [2,3]; y f32 [3]", "t1[2,3] = smooth_l1_loss(x, target=y; beta=0.5)", NULL},
    {"x f32 [2,3]", "t1[2,3] = pow(x, 2)", NULL},
    {"x f32 [2,3]; y f32 [2,3]", "t1[2,3] = pow(x, y)", "operand 2 is a tensor; expected a number"},
    {"x f32 [2,3]; y f32 [3]", "t1[2,3] = add(x, y)", NULL},
    {"x f32 [2,1]; y f32 [4,1,3]", "t1[4,2,3] = mul(x, y)", NULL},
    {"x f32 [2,3]", "t1[2,3] = sub(1, x)", NULL},
    {"x f32 [2,3]", "t1[2,3] = div(x, 1e-05)", NULL},
    {"x f32 [2,3]; y f32 [2]", "t1[2,3] = add(x, y)", "shapes do not broadcast"},
    {"x f32 [2,3]; y f16 [3]", "t1[2,3] = add(x, y)", "operands are f32 and f16"},
    {"x f32 [2,3]; y bool [3]", "t1[2,3] = mul(x, y)", NULL},
    {"x f16 [2,3]; y i64 [3]", "t1[2,3]:f16 = sub(y, x)", NULL},
    {"x i64 [2,3]; y f16 [3]", "t1[2,3] = mul(x, y)", "write t1[2,3]:f16"},
    {"x bool [2,3]; y i64 [3]", "t1[2,3] = mul(x, y)", "operands are bool and i64"},
    {"x i64 [2,3]", "t1[2,3] = mul(x, 2)", "operands are i64 and i64; expected one floating type"},
    /* norms */
    {"x f32 [2,3,4]; w f32 [3,4]; b f32 [3,4]",
     "t1[2,3,4] = layer_norm(x, weight=w, bias=b; shape=[3,4], eps=1e-05)", NULL},
    {"x f32 [2,3,4]; b f32 [4]", "t1[2,3,4] = layer_norm(x, bias=b; shape=[4])", NULL},
    {"x f32 [2,3,4]", "t1[2,3,4] = layer_norm(x; shape=[3])", "the operand's last axes"},
    {"x f32 [2,3,4]; w f32 [4]", "t1[2,3,4] = layer_norm(x, weight=w; shape=[3,4])",
     "w has another shape; expected [3,4]"},
    {"x f32 [2,3,4]", "t1[2,3,4] = layer_norm(x; shape=[4], eps=0)", "eps is not positive"},
    {"x f32 [2,6,4]; w f32 [6]; b f32 [6]",
     "t1[2,6,4] = group_norm(x, weight=w, bias=b; num_groups=3, eps=1e-05)", NULL},
    {"x f32 [2,6,4]", "t1[2,6,4] = group_norm(x; num_groups=4)", "a divisor of the channels"},
    {"x f32 [2,6,4]", "t1[2,6,4] = group_norm(x)", "expected num_groups="},
    {"x f32 [2,6,4]", "t1[2,6,4] = instance_norm(x; use_input_stats=true, eps=1e-05)", NULL},
    {"x f32 [2,6,4]", "t1[2,6,4] = instance_norm(x; use_input_stats=false)", "is not implemented"},
    {"x f32 [2,6]", "t1[2,6] = instance_norm(x)", "3 axes or more"},
    {"x f32 [2,6,4]; w f32 [6]; b f32 [6]",
     "t1[2,6,4] = batch_norm(x, weight=w, bias=b; training=true, momentum=0.1, eps=1e-05)", NULL},
    {"x f32 [2,6,4]; w f32 [4]", "t1[2,6,4] = batch_norm(x, weight=w)",
     "w has another shape; expected [6]"},
    {"x f32 [2,6,4]", "t1[2,6,4] = batch_norm(x; training=false)",
     "training=false is not implemented"},
    /* softmax, reductions, scans, losses */
    {"x f32 [2,3,4]", "t1[2,3,4] = softmax(x; dim=-1)", NULL},
    {"x f32 [2,3,4]", "t1[2,3,4] = softmax(x; dim=3)", "an axis of the operand"},
    {"x f32 [2,3,4]", "t1[2,3,4] = cumsum(x; dim=0)", NULL},
    {"x f32 [2,3,4]", "t1[2,3,4] = cumsum(x; dim=[1])", "an axis of the operand"},
    {"x f32 [2,3,4]", "t1[2,4] = sum(x; dim=1)", NULL},
    {"x f32 [2,3,4]", "t1[2,1,4] = sum(x; dim=1, keepdim=true)", NULL},
    {"x f32 [2,3,4]", "t1[3] = mean(x; dim=[0,-1])", NULL},
    {"x f32 [2,3,4]", "t1[] = mean(x)", NULL},
    {"x f32 [2,3,4]", "t1[2] = mean(x; dim=[1,1])", "dim names no axes, or one twice"},
    {"x f32 [2,3,4]", "t1[2] = mean(x; dim=[])", "dim names no axes"},
    {"x f32 [2,3,4]", "t1[2,4], t2[2,4]:i64 = max(x; dim=1)", NULL},
    {"x f32 [2,3,4]", "t1[2,4] = max(x; dim=1)", "1 results are declared; expected 2"},
    {"x f32 [2,3,4]", "t1[2,4], t2[2,4] = max(x; dim=1)", "t2 is declared f32; expected i64"},
    {"x f32 [2,3,4]", "t1[2,1,4], t2[2,1,4]:i64 = min(x; dim=1, keepdim=true)", NULL},
    {"x f32 [2,3,4]", "t1[2,4], t2[2,4]:i64 = min(x; dim=[1])", "one axis of the operand"},
    {"x f32 [2,3,4]", "t1[2,4]:i64 = argmax(x; dim=1)", NULL},
    {"x f32 [2,3,4]", "t1[1,3,4]:i64 = argmin(x; dim=0, keepdim=true)", NULL},
    {"x f32 [2,3,4]", "t1[2,4] = argmax(x; dim=1)", "t1 is declared f32; expected i64"},
    {"x f32 [2,3,4]", "t1[]:i64 = argmax(x)", "one axis of the operand"},
    {"x f32 [2,3,4]", "t1[] = norm(x)", NULL},
    {"x f32 [2,3,4]", "t1[2,1,1] = norm(x; p=1, dim=[1,2], keepdim=true)", NULL},
    {"x f32 [2,3,4]", "t1[] = norm(x; p=3)", "p is 3; expected 1 or 2"},
    {"x f32 [2,3,4]", "t1[2,1,4] = logsumexp(x; dim=1, keepdim=true)", NULL},
    {"x f32 [2,3,4]", "t1[4] = logsumexp(x; dim=[0,1])", "one axis of the operand"},
    {"x f32 [5,7]; y i64 [5]",
     "t1[] = cross_entropy(x, target=y; ignore_index=-100, reduction=mean, label_smoothing=0)",
     NULL},
    {"x f32 [5,7]; y i64 [7]", "t1[] = cross_entropy(x, target=y)", "expected target=, i64 [5]"},
    {"x f32 [5,1]; y i64 [5]", "t1[] = cross_entropy(x, target=y)",
     "y may be no class; expected a tensor of integers(0,1)"},
    {"x f32 [3,7]; y i64 [3] values(0,-100,6)", "t1[] = cross_entropy(x, target=y)", NULL},
    {"x f32 [3,7]; y i64 [3] values(0,-100,6)", "t1[] = cross_entropy(x, target=y; ignore_index=6)",
     "y may be no class"},
    {"x f32 [3,7]; y i64 [3] values(0,7,6)", "t1[] = cross_entropy(x, target=y)",
     "y may be no class"},
    {"x f32 [5,7]", "i[5]:i64 = argmax(x; dim=1)\nt1[] = cross_entropy(x, target=i)",
     "i may be no class"},
    {"x f32 [5,7]; y i64 [5]", "t1[] = cross_entropy(x, target=y; reduction=sum)",
     "only reduction=mean"},
    {"x f32 [5,7]; y i64 [5]", "t1[] = cross_entropy(x, target=y; label_smoothing=0.1)",
     "label_smoothing is not implemented"},
};

static void infers_or_refuses(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[1024] = "";
        struct kp_task *t = load_graph(cases[i].tensors, cases[i].graph, message);
        if (cases[i].message ? t || !strstr(message, cases[i].message) : !t) {
            wrong++;
            print_error("%s: got `%s`, expected `%s`\n", cases[i].graph, t ? "(taken)" : message,
                        cases[i].message ? cases[i].message : "(taken)");
        }
        task_free(t);
    }
    assert_int_equal(wrong, 0);
}

static void answers_for_attributes(void **state) {
    (void)state;
    char message[1024];
    int64_t list[2];
    struct kp_task *t = load_graph(
        "x f32 [2,3,7,7]",
        "t1[2,3,3,3] = max_pool2d(x; kernel_size=3, stride=[2,2], ceil_mode=false)", message);
    assert_non_null(t);
    const struct kp_op *op = &t->ops[0];
    op_list(op, "kernel_size", 2, 1, list);
    assert_true(list[0] == 3 && list[1] == 3);
    op_list(op, "stride", 2, 1, list);
    assert_true(list[0] == 2 && list[1] == 2);
    op_list(op, "dilation", 2, 1, list);
    assert_true(list[0] == 1 && list[1] == 1);
    assert_false(op_bool(op, "ceil_mode", true));
    assert_int_equal(op_int(op, "kernel_size", 0), 3);
    assert_true(op_float(op, "eps", 1e-5) == 1e-5);
    assert_null(op_attr(op, "padding"));
    task_free(t);
}

static void finds_ops_by_name(void **state) {
    (void)state;
    for (int i = 0; i < KP_OP_COUNT; i++) {
        const struct kp_op_def *def = op_get((enum kp_op_id)i);
        assert_int_equal(def->id, i);
        assert_ptr_equal(op_find(def->name), def);
        assert_non_null(def->infer);
        assert_non_null(def->slice);
        assert_non_null(def->flops);
        assert_true(def->tensor_cores == (def->mm_flops != NULL));
    }
    assert_null(op_find("RELU"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infers_or_refuses),
        cmocka_unit_test(answers_for_attributes),
        cmocka_unit_test(finds_ops_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
