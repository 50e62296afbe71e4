/* test_cuts.c: how the result of an op may be sliced, and what ops cost. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "task_text.h"
#include "task/ops.h"

enum { W = KP_WHOLE, N = KP_NEVER };

/* A task of one op and, for each operand, the answer for each axis of the result. */
static const struct {
    const char *tensors, *graph;
    int operands;
    int answer[3][5];
} cuts[] = {
    {"x f32 [2,3,4]", "t1[2,12] = view(x; shape=[2,12])", 1, {{0, N}}},
    {"x f32 [2,3,4]", "t1[6,4] = view(x; shape=[6,4])", 1, {{N, N}}},
    {"x f32 [2,3,4]", "t1[4,3,2] = transpose(x; dims=[0,2])", 1, {{2, 1, 0}}},
    {"x f32 [2,3,4]", "t1[4,2,3] = permute(x; dims=[-1,0,1])", 1, {{2, 0, 1}}},
    {"x f32 [2,3]", "t1[2,1,3] = unsqueeze(x; dim=1)", 1, {{0, N, 1}}},
    {"x f32 [2,1,3]", "t1[2,3] = squeeze(x; dim=1)", 1, {{0, 2}}},
    {"x f32 [2,3,4,5]", "t1[2,12,5] = flatten(x; start_dim=1, end_dim=2)", 1, {{0, N, 3}}},
    {"x f32 [2,7]", "t1[2,3] = slice(x; dim=1, start=4)", 1, {{0, N}}},
    {"x f32 [2,7]", "t1[2,7] = flip(x; dim=0)", 1, {{N, 1}}},
    {"x f32 [2,1]", "t1[4,2,3] = expand(x; shape=[4,2,3])", 1, {{W, 0, W}}},
    {"x f32 [2,3]; y f32 [2,1]", "t1[2,4] = cat(x, y; dim=1)", 2, {{0, N}, {0, N}}},
    {"x f32 [2,3,4]", "t1[2,5,4] = pad(x; pad=[0,0,1,1])", 1, {{0, N, 2}}},
    {"x f32 [2,3,4]", "t1[2,4,4] = pad(x; pad=[0,0,1,0])", 1, {{0, N, 2}}}, /* before alone */
    {"x f32 [2,3,4]", "t1[2,3,4] = tril(x)", 1, {{0, N, N}}},
    {"x f32 [2,3]; m bool [3]", "t1[2,3] = masked_fill(x, mask=m; value=0)", 2, {{0, 1}, {W, 0}}},
    {"x f32 [4,2,3]; i i64 [5]",
     "t1[4,5,3] = index_select(x, index=i; dim=1)",
     2,
     {{0, W, 2}, {W, 0, W}}},
    {"a f32 [2,3]; b f32 [3,4]", "t1[2,4] = matmul(a, b)", 2, {{0, W}, {W, 1}}},
    {"a f32 [5,1,2,3]; b f32 [7,3,4]",
     "t1[5,7,2,4] = matmul(a, b)",
     2,
     {{0, W, 2, W}, {W, 0, W, 2}}},
    {"x f32 [7,2,3]; w f32 [4,3]; b f32 [4]",
     "t1[7,2,4] = linear(x, weight=w, bias=b)",
     3,
     {{0, 1, W}, {W, W, 0}, {W, W, 0}}},
    {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,7,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v)",
     3,
     {{0, 1, W}, {0, W, W}, {0, W, 2}}},
    {"x f32 [2,3,5,5]; w f32 [6,3,3,3]; b f32 [6]",
     "t1[2,6,3,3] = conv2d(x, weight=w, bias=b)",
     3,
     {{0, W, N, N}, {W, 0, N, N}, {W, 0, N, N}}},
    {"x f32 [2,4,5]; w f32 [4,1,3]",
     "t1[2,4,3] = conv1d(x, weight=w; groups=4)",
     2,
     {{0, N, N}, {W, N, N}}},
    {"x f32 [2,3,5,5]; w f32 [3,6,3,3]; b f32 [6]",
     "t1[2,6,7,7] = conv_transpose2d(x, weight=w, bias=b)",
     3,
     {{0, W, N, N}, {W, 1, N, N}, {W, 0, N, N}}},
    {"x f32 [2,4,5]; w f32 [4,1,3]; b f32 [4]",
     "t1[2,4,7] = conv_transpose1d(x, weight=w, bias=b; groups=4)",
     3,
     {{0, N, N}, {W, N, N}, {W, N, N}}},
    {"x f32 [2,3,6,6]", "t1[2,3,3,3] = max_pool2d(x; kernel_size=2, stride=2)", 1, {{0, 1, N, N}}},
    {"x f32 [2,3,6]", "t1[2,3,3] = avg_pool1d(x; kernel_size=2, stride=2)", 1, {{0, 1, N}}},
    {"x f32 [2,3,6,6]", "t1[2,3,1,1] = adaptive_avg_pool2d(x; output_size=1)", 1, {{0, 1, N, N}}},
    {"x f32 [2,3]; y f32 [3]", "t1[2,3] = add(x, y)", 2, {{0, 1}, {W, 0}}},
    {"x f32 [2,1]; y f32 [4,1,3]", "t1[4,2,3] = mul(x, y)", 2, {{W, 0, W}, {0, W, 2}}},
    {"x f32 [2,3]", "t1[2,3] = sub(1, x)", 2, {{W, W}, {0, 1}}},
    {"x f32 [1,3]", "t1[1,3] = relu(x)", 1, {{0, 1}}},
    {"x f32 [2,3,4]; w f32 [4]",
     "t1[2,3,4] = layer_norm(x, weight=w; shape=[4])",
     2,
     {{0, 1, N}, {W, W, N}}},
    {"x f32 [2,6,4]; w f32 [6]",
     "t1[2,6,4] = group_norm(x, weight=w; num_groups=3)",
     2,
     {{0, N, N}, {W, N, N}}},
    {"x f32 [2,6,4]; b f32 [6]",
     "t1[2,6,4] = instance_norm(x, bias=b)",
     3,
     {{0, 1, N}, {W, W, N}, {W, 0, N}}},
    {"x f32 [2,6,4]; w f32 [6]; b f32 [6]",
     "t1[2,6,4] = batch_norm(x, weight=w, bias=b)",
     3,
     {{N, 1, N}, {N, 0, N}, {N, 0, N}}},
    {"x f32 [2,3,4]", "t1[2,3,4] = softmax(x; dim=-2)", 1, {{0, N, 2}}},
    {"x f32 [2,3,4]", "t1[2,3,4] = cumsum(x; dim=2)", 1, {{0, 1, N}}},
    {"x f32 [2,3,4]", "t1[2,4] = sum(x; dim=1)", 1, {{0, 2}}},
    {"x f32 [2,3,4]", "t1[2,1,4] = sum(x; dim=1, keepdim=true)", 1, {{0, N, 2}}},
    {"x f32 [2,3,4,5]", "t1[3] = mean(x; dim=[0,2,3])", 1, {{1}}},
    {"x f32 [2,3,4]", "t1[2,4], t2[2,4]:i64 = max(x; dim=1)", 1, {{0, 2}}},
    {"x f32 [2,3,4]", "t1[2,1,4]:i64 = argmin(x; dim=1, keepdim=true)", 1, {{0, N, 2}}},
    {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[5,2,4], t2[1,2,4] = gru(x, h, a, b, p, q)",
     3,
     {{N, N, N}, {N, N, N}, {N, N, N}}},
};

static void cuts_by_the_rules(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char message[1024];
        struct kp_task *t = load_graph(cuts[i].tensors, cuts[i].graph, message);
        if (!t) fail_msg("%s: %s", cuts[i].graph, message);
        const struct kp_op *op = &t->ops[0];
        for (int slot = 0; slot < cuts[i].operands; slot++)
            for (int axis = 0; axis < t->values[op->out[0]].shape.n; axis++) {
                int got = op->def->slice(t, op, axis, slot);
                if (got != cuts[i].answer[slot][axis])
                    fail_msg("%s: axis %d, operand %d: got %d, expected %d", cuts[i].graph, axis,
                             slot, got, cuts[i].answer[slot][axis]);
            }
        task_free(t);
    }
}

static const struct {
    const char *tensors, *graph;
    double flops, mm_flops, bytes_in, bytes_out;
} costs[] = {
    {"x f32 [2,3]", "t1[2,3] = relu(x)", 6, 0, 24, 24},
    {"x f16 [2,3]; y f16 [3]", "t1[2,3] = add(x, y)", 6, 0, 18, 12},
    {"a f32 [2,3]; b f32 [3,4]", "t1[2,4] = matmul(a, b)", 48, 48, 72, 32},
    {"x f32 [2,3]; w f32 [4,3]; b f32 [4]", "t1[2,4] = linear(x, weight=w, bias=b)", 56, 48, 88,
     32},
    {"x f32 [2,4,9]; w f32 [6,2,3]", "t1[2,6,7] = conv1d(x, weight=w; groups=2)", 1008, 1008, 432,
     336},
    {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,7,4]",
     "t1[2,5,4] = scaled_dot_product_attention(q, key=k, value=v)", 980 + 350, 980, 512, 160},
    {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
     "t1[5,2,4], t2[1,2,4] = gru(x, h, a, b, p, q)", 1680 + 960, 1680, 584, 160},
    {"x f32 [5,2,3]; h f32 [2,2,4]; c f32 [2,2,4]; a f32 [16,3]; b f32 [16,4]; p f32 [16]; "
     "q f32 [16]; d f32 [16,4]; e f32 [16,4]; r f32 [16]; s f32 [16]",
     "t1[5,2,4], t2[2,2,4], t3[2,2,4] = lstm(x, h, c, a, b, p, q, d, e, r, s; num_layers=2)",
     4800 + 2400, 4800, 120 + 128 + 64 * 19, 160},
    {"x f32 [2,3,7,7]", "t1[2,3,3,3] = max_pool2d(x; kernel_size=3, stride=2)", 486, 0, 1176, 216},
    {"x f32 [2,4,9]; w f32 [4,3,3]", "t1[2,6,11] = conv_transpose1d(x, weight=w; groups=2)", 1296,
     1296, 432, 528},
    {"x f32 [2,4,9]; w f32 [4,6,3]; b f32 [6]",
     "t1[2,6,11] = conv_transpose1d(x, weight=w, bias=b)", 2592 + 132, 2592, 600, 528},
    {"x f32 [2,3,7]", "t1[2,3,4] = avg_pool1d(x; kernel_size=3, stride=2, padding=1)", 72, 0, 168,
     96},
    {"x f32 [2,3,5,4]", "t1[2,3,1,1] = adaptive_avg_pool2d(x; output_size=1)", 120, 0, 480, 24},
    {"x f32 [2,3,5,4]", "t1[2,3,3,4] = adaptive_avg_pool2d(x; output_size=[3,4])", 6 * 7 * 4, 0,
     480, 288},
    {"x f32 [2,3,4]", "t1[2,3,4] = softmax(x; dim=1)", 120, 0, 96, 96},
    {"x f32 [2,3,4]", "t1[2,4] = sum(x; dim=1)", 24, 0, 96, 32},
    {"x f32 [5,7]; y i64 [5]", "t1[] = cross_entropy(x, target=y)", 175, 0, 180, 4},
    /* KernelBench level 1: 1, 47, 50, 72 */
    {"a f32 [4096,4096]; b f32 [4096,4096]", "t1[4096,4096] = matmul(a, b)", 137438953472.0,
     137438953472.0, 134217728, 67108864},
    {"x f32 [128,4096,4095]", "t1[128,1,4095] = sum(x; dim=1, keepdim=true)", 2146959360, 0,
     8587837440.0, 2096640},
    {"x f32 [256,3,224,224]; w f32 [96,3,11,11]; b f32 [96]",
     "t1[256,96,55,55] = conv2d(x, weight=w, bias=b; stride=4, padding=2)", 54046924800.0,
     53972582400.0, 154280448, 297369600},
    {"x f32 [8,32,12,24,48]; w f32 [32,8,3,5,7]",
     "t1[8,32,24,48,96] = conv_transpose3d(x, weight=w; stride=2, padding=[1,2,3], "
     "output_padding=1, groups=4)",
     5945425920.0, 5945425920.0, 14155776 + 107520, 113246208},
    {"x f32 [2,3]",
     "t1[3,2] = transpose(x; dims=[0,1])\nt2[3,2] = mul(t1, 2)\nt3[3,2] = add(t2, t1)", 12, 0, 24,
     24},
};

static void counts_cost(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        char message[1024];
        struct kp_task *t = load_graph(costs[i].tensors, costs[i].graph, message);
        if (!t) fail_msg("%s: %s", costs[i].graph, message);
        struct kp_cost c = task_cost(t);
        if (c.flops != costs[i].flops || c.mm_flops != costs[i].mm_flops ||
            c.bytes_in != costs[i].bytes_in || c.bytes_out != costs[i].bytes_out)
            fail_msg("%s: %g flops, %g in products, %g + %g bytes", costs[i].graph, c.flops,
                     c.mm_flops, c.bytes_in, c.bytes_out);
        task_free(t);
    }
    char message[1024];
    struct kp_task *t =
        load_graph("x f32 [2,3,4]", "t1[2,4], t2[2,4]:i64 = max(x; dim=1)", message);
    t->outputs[t->noutputs++] = t->ops[0].out[1];
    assert_true(task_cost(t).bytes_out == 32 + 64); /* both outputs are written */
    task_free(t);
}

/* Of a product of 3 x 3 tensors whose wraps are given: as many of its 27 multiply-adds as are not
 * with a zero of a triangle. */
static void counts_triangles(void **state) {
    (void)state;
    const int U = KP_WRAP_UPPER, L = KP_WRAP_LOWER;
    const struct {
        int a, b, adds;
    } row[] = {{0, 0, 27},
               {U, 0, 18},
               {0, U, 18},
               {L, 0, 18},
               {U, U, 10},
               {L, L, 10},
               {U, L, 14},
               {L, U, 14},
               {KP_WRAP_SCALED, U, 18},
               {KP_WRAP_SYMMETRIC, KP_WRAP_SOFTMAX, 27}};
    char message[1024];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_task *t =
            load_graph("a f32 [3,3]; b f32 [3,3]", "y[3,3] = matmul(a, b)", message);
        t->tensors[0].fill.wrap = row[i].a, t->tensors[1].fill.wrap = row[i].b;
        assert_int_equal(lround(task_cost(t).mm_flops * 1e6), 2000000 * row[i].adds);
        task_free(t);
    }
    struct kp_task *t = load_graph("a f32 [3,4]; b f32 [4,3]", "y[3,3] = matmul(a, b)", message);
    t->tensors[0].fill.wrap = U;
    assert_true(task_cost(t).mm_flops == 72); /* not square */
    task_free(t);
    t = load_graph("a f32 [3,3]; b f32 [3,3]", "c[3,3] = relu(a)\ny[3,3] = matmul(c, b)", message);
    t->tensors[0].fill.wrap = U;
    assert_true(task_cost(t).mm_flops == 54); /* not a tensor */
    task_free(t);
}

/* What a kernel saves that leaves a tensor out. */
static void counts_shares(void **state) {
    (void)state;
    const struct {
        const char *tensors, *graph, *tensor;
        double share;
    } row[] = {
        {"x f32 [2,3]", "y[2,3] = relu(x)", "x", 1},
        {"x f32 [2,3]; b f32 [3]", "y[2,3] = add(x, b)", "b", 1}, /* nothing is left to compute */
        {"x f32 [2,3]; b f32 [3]", "c[2,3] = relu(x)\ny[2,3] = add(c, b)", "b", 0.5},
        {"x f32 [2,3]; b f32 [3]", "c[2,3] = relu(x)\ny[2,3] = add(c, b)", "x", 1},
        {"x f32 [2,3]; w f32 [4,3]; b f32 [4]", "y[2,4] = linear(x, weight=w, bias=b)", "b",
         16. / 120},
        {"x f32 [2,3]; w f32 [4,3]; b f32 [4]", "y[2,4] = linear(x, weight=w, bias=b)", "w", 1},
        {"x f32 [2,3]; w f32 [4,3]", "y[2,4] = linear(x, weight=w)", "x", 1},
        /* the product that leads to nothing is not needed, either */
        {"a f32 [8,8]; b f32 [8,8]; c f32 [8,8]",
         "p[8,8] = matmul(a, b)\nq[8,8] = matmul(p, c)\ny[8,8] = add(q, a)", "c", 1},
        {"a f32 [8,8]; b f32 [8,8]; c f32 [8,8]",
         "p[8,8] = matmul(a, b)\nq[8,8] = relu(c)\ny[8,8] = add(p, q)", "c", 0.25},
        {"a f32 [8,8]; b f32 [8,8]; c f32 [8,8]",
         "p[8,8] = matmul(a, b)\nq[8,8] = relu(c)\ny[8,8] = add(p, q)", "a", 1 - 64. / 1152},
        {"x f32 [4,8]; w f32 [8]; b f32 [8]",
         "y[4,8] = layer_norm(x, weight=w, bias=b; shape=[8], eps=1e-5)", "w", 32. / 320},
        {"x f32 [4,8]; w f32 [8]; b f32 [8]",
         "y[4,8] = layer_norm(x, weight=w, bias=b; shape=[8], eps=1e-5)", "x", 1},
        {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
         "t1[5,2,4], t2[1,2,4] = gru(x, h, a, b, p, q)", "h", 32. / 744},
        {"x f32 [5,2,3]; h f32 [1,2,4]; a f32 [12,3]; b f32 [12,4]; p f32 [12]; q f32 [12]",
         "t1[5,2,4], t2[1,2,4] = gru(x, h, a, b, p, q)", "b", 1},
        {"q f32 [2,5,3]; k f32 [2,7,3]; v f32 [2,7,4]",
         "y[2,5,4] = scaled_dot_product_attention(q, key=k, value=v)", "k", 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char message[1024];
        struct kp_task *t = load_graph(row[i].tensors, row[i].graph, message);
        if (!t) fail_msg("%s: %s", row[i].graph, message);
        int k = 0;
        while (strcmp(t->tensors[k].name, row[i].tensor)) k++;
        double share = task_share(t, k);
        if (!(fabs(share - row[i].share) < 1e-9))
            fail_msg("%s, %s: %g", row[i].graph, row[i].tensor, share);
        task_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_by_the_rules),
        cmocka_unit_test(counts_cost),
        cmocka_unit_test(counts_shares),
        cmocka_unit_test(counts_triangles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
