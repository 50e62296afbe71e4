/* recurrent.h: the sizes of a recurrent network (lstm, gru), from its operands' shapes.
 *
 * Its operands are x [steps,batch,input], or [batch,steps,input] with batch_first; for each state
 * of a cell (h; c, too, in an lstm) its values before the first step [layers*directions,batch,
 * hidden]; then four weights for each layer and direction, in this order: w_ih
 * [gates*hidden,width], w_hh [gates*hidden,hidden], b_ih and b_hh [gates*hidden].  Gates are
 * stacked: input, forget, cell and output in an lstm, reset, update and new in a gru. */
#ifndef KP_RECURRENT_H
#define KP_RECURRENT_H

#include "task/op.h"

enum { KP_W_IH, KP_W_HH, KP_B_IH, KP_B_HH, KP_CELL_WEIGHTS };

struct kp_recurrent {
    int64_t steps, batch, input, hidden;
    int layers, directions, gates, states;
    bool batch_first;
};

/* The sizes, from the dims of x and of h before the first step. */
static inline struct kp_recurrent recurrent_of(const struct kp_op *op, const int64_t *x,
                                               const int64_t *h) {
    struct kp_recurrent r = {.input = x[2], .hidden = h[2], .gates = op->def->gates};
    r.batch_first = op_bool(op, "batch_first", false);
    r.steps = x[r.batch_first];
    r.batch = x[!r.batch_first];
    r.layers = (int)op_int(op, "num_layers", 1);
    r.directions = op_bool(op, "bidirectional", false) ? 2 : 1;
    r.states = r.gates - 2;
    return r;
}

/* Width of what layer `l` reads; the last layer gives as much as any but the first reads. */
static inline int64_t recurrent_width(const struct kp_recurrent *r, int l) {
    return l ? r->directions * r->hidden : r->input;
}

/* The operand that is a weight of a layer and direction. */
static inline int recurrent_slot(const struct kp_recurrent *r, int l, int direction, int weight) {
    return 1 + r->states + KP_CELL_WEIGHTS * (l * r->directions + direction) + weight;
}

#endif
