/* recurrent.c: recurrent networks: layers of cells, in one direction or both. */
#include "define/parts.h"
#include "task/recurrent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GATES = 4 };

/* The cells of a layer in one direction, and their states: h, and c in an lstm. */
struct cells {
    const struct kp_recurrent *r;
    int64_t width; /* of what they read */
    const double *weight[KP_CELL_WEIGHTS];
};

/* bias[row] + the product of a row of `weight` with `v` of n elements. */
static double product(const double *weight, const double *bias, int64_t row, const double *v,
                      int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += weight[row * n + i] * v[i];
    return bias[row] + sum;
}

static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

/* Cell u of one sample after a step that reads x; h is that of all cells before it. */
static double step(const struct cells *k, int64_t u, const double *x, const double *h, double *c) {
    double from_x[MOST_GATES], from_h[MOST_GATES];
    for (int g = 0; g < k->r->gates; g++) {
        int64_t row = g * k->r->hidden + u;
        from_x[g] = product(k->weight[KP_W_IH], k->weight[KP_B_IH], row, x, k->width);
        from_h[g] = product(k->weight[KP_W_HH], k->weight[KP_B_HH], row, h, k->r->hidden);
    }
    double a = logistic(from_x[0] + from_h[0]), b = logistic(from_x[1] + from_h[1]);
    if (k->r->states == 1) { /* gru: a resets, b keeps */
        double fresh = tanh(from_x[2] + a * from_h[2]);
        return (1 - b) * fresh + b * h[u];
    }
    *c = b * *c + a * tanh(from_x[2] + from_h[2]); /* lstm: a takes in, b keeps */
    return logistic(from_x[3] + from_h[3]) * tanh(*c);
}

/* One layer in one direction: its part of y, and the states at the end.  h and c hold the states
 * before the first step. */
static void run_cells(const struct cells *k, bool backward, const double *x, double *y, double *h,
                      double *c) {
    const struct kp_recurrent *r = k->r;
    int64_t hidden = r->hidden, wide = r->directions * hidden;
    double *before = malloc((size_t)hidden * sizeof *before);
    for (int64_t n = 0; n < r->batch && before; n++)
        for (int64_t i = 0; i < r->steps; i++) {
            int64_t t = backward ? r->steps - 1 - i : i;
            int64_t at = r->batch_first ? n * r->steps + t : t * r->batch + n;
            memcpy(before, h + n * hidden, (size_t)hidden * sizeof *before);
            for (int64_t u = 0; u < hidden; u++) {
                double *state = c ? &c[n * hidden + u] : NULL;
                h[n * hidden + u] = step(k, u, x + at * k->width, before, state);
                y[at * wide + u] = h[n * hidden + u];
            }
        }
    free(before);
}

/* All layers.  Results 1 and 2 hold the states as they go. */
static void run_layers(const struct call *call) {
    struct kp_recurrent r = recurrent_of(call->op, shape_in(call, 0)->dim, shape_in(call, 1)->dim);
    int64_t each = r.batch * r.hidden, wide = r.directions * r.hidden;
    size_t bytes = (size_t)(r.steps * r.batch * wide) * sizeof(double);
    double *x = malloc(bytes);
    if (!x) {
        *call->message = "out of memory";
        return;
    }
    for (int s = 0; s < r.states; s++)
        memcpy(call->out[1 + s], call->in[1 + s],
               (size_t)(r.layers * r.directions * each) * sizeof(double));
    for (int l = 0; l < r.layers; l++) {
        if (l) memcpy(x, call->out[0], bytes);
        for (int d = 0; d < r.directions; d++) {
            int64_t at = (l * r.directions + d) * each;
            struct cells k = {&r, recurrent_width(&r, l), {0}};
            for (int w = 0; w < KP_CELL_WEIGHTS; w++)
                k.weight[w] = call->in[recurrent_slot(&r, l, d, w)];
            run_cells(&k, d == 1, l ? x : call->in[0], call->out[0] + d * r.hidden,
                      call->out[1] + at, r.states > 1 ? call->out[2] + at : NULL);
        }
    }
    free(x);
}

/* lstm: i, f, g, o = logistic, logistic, tanh, logistic of w_ih x + b_ih + w_hh h + b_hh;
 * c' = f c + i g; h' = o tanh(c') */
void define_lstm(const struct call *c) {
    run_layers(c);
}

/* gru: r, z = logistic of the same; n = tanh(w_ih x + b_ih + r (w_hh h + b_hh));
 * h' = (1 - z) n + z h */
void define_gru(const struct call *c) {
    run_layers(c);
}
