/* demand.c: see demand.h.
 *
 * Rows of an output need rows of the values that it is computed from, as far back as the ops'
 * slicing rules allow.  A value is computed whole if a consumer needs all of it, or if two
 * consumers need rows along different axes. */
#include "cuda/demand.h"

/* Add one consumer's demand; two that differ need the whole value. */
static void demand_add(int *demand, int wanted) {
    if (*demand == KP_UNNEEDED)
        *demand = wanted;
    else if (*demand != wanted)
        *demand = KP_WHOLE;
}

/* Whether result rows along `axis` follow from rows of the operands. */
static bool can_cut(const struct kp_task *t, const struct kp_op *op, int axis) {
    int64_t rows = t->values[op->out[0]].shape.dim[axis];
    for (int k = 0; k < op->nin; k++) {
        if (!op_has(op, k)) continue;
        int cut = op->def->slice(t, op, axis, k);
        if (cut == KP_NEVER) return false;
        if (cut >= 0 && t->values[op->in[k].value].shape.dim[cut] != rows) return false;
    }
    return true;
}

/* See demand.h. */
void kp_plan_demand(const struct kp_task *t, int64_t rows, int *demand) {
    for (int v = 0; v < t->nvalues; v++) demand[v] = KP_UNNEEDED;
    for (int o = 0; o < t->noutputs; o++) {
        const struct kp_shape *s = &t->values[t->outputs[o]].shape;
        bool same = s->n > 0 && s->dim[0] == rows;
        demand_add(&demand[t->outputs[o]], same ? 0 : KP_WHOLE);
    }
    for (int i = t->nops - 1; i >= 0; i--) {
        const struct kp_op *op = &t->ops[i];
        int wanted = KP_UNNEEDED;
        for (int r = 0; r < op->nout; r++)
            if (demand[op->out[r]] != KP_UNNEEDED) demand_add(&wanted, demand[op->out[r]]);
        if (wanted == KP_UNNEEDED) continue;
        if (wanted >= 0 && !can_cut(t, op, wanted)) wanted = KP_WHOLE;
        for (int r = 0; r < op->nout; r++)
            if (demand[op->out[r]] != KP_UNNEEDED) demand[op->out[r]] = wanted;
        for (int k = 0; k < op->nin; k++) {
            if (!op_has(op, k)) continue;
            int from = wanted >= 0 ? op->def->slice(t, op, wanted, k) : KP_WHOLE;
            demand_add(&demand[op->in[k].value], from);
        }
    }
}
