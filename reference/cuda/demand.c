/* demand.c: see demand.h.
 *
 * Rows of an output need rows of the values that it is computed from, as far back as the ops'
 * slicing rules allow.  A value is computed whole if a consumer needs all of it, or if two
 * consumers need rows along different axes.
 *
 * A row of an output may be several of another value's, behind a view that makes one axis of two:
 * a batch's images, each of many windows.  A value that is cut has the same number for each row. */
#include "cuda/demand.h"

/* Add one consumer's demand; two that differ need the whole value. */
static void demand_add(int *demand, int wanted) {
    if (*demand == KP_UNNEEDED)
        *demand = wanted;
    else if (*demand != wanted)
        *demand = KP_WHOLE;
}

/* See demand.h.  A view that keeps the order has in each part of an axis what its operand has in
 * each part of the axis that begins at the same place: as many indices come before both. */
int kp_plan_cut(const struct kp_task *t, const struct kp_op *op, int axis, int k) {
    if (op->def->view != KP_VIEW_ORDER) return op->def->slice(t, op, axis, k);
    const struct kp_shape *x = &t->values[op->in[0].value].shape;
    const struct kp_shape *r = &t->values[op->out[0]].shape;
    int64_t before = 1, mine = 1;
    for (int i = 0; i < axis; i++) before *= r->dim[i];
    for (int i = 0; i < x->n; mine *= x->dim[i++])
        if (mine == before && (x->dim[i] > 1 || r->dim[axis] == 1)) return i;
    return KP_NEVER;
}

/* Whether a part of the result, of `rows` along `axis`, follows from such parts of the operands.
 * Only a view may have more or fewer indices in a part than its operand. */
static bool can_cut(const struct kp_task *t, const struct kp_op *op, int axis, int64_t rows) {
    int64_t own = t->values[op->out[0]].shape.dim[axis];
    for (int k = 0; k < op->nin; k++) {
        if (!op_has(op, k)) continue;
        int cut = kp_plan_cut(t, op, axis, k);
        if (cut == KP_NEVER) return false;
        if (cut < 0) continue;
        int64_t mine = t->values[op->in[k].value].shape.dim[cut];
        if (op->def->view == KP_VIEW_ORDER ? mine % rows : mine != own) return false;
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
        if (wanted >= 0 && !can_cut(t, op, wanted, rows)) wanted = KP_WHOLE;
        for (int r = 0; r < op->nout; r++)
            if (demand[op->out[r]] != KP_UNNEEDED) demand[op->out[r]] = wanted;
        for (int k = 0; k < op->nin; k++) {
            if (!op_has(op, k)) continue;
            int from = wanted >= 0 ? kp_plan_cut(t, op, wanted, k) : KP_WHOLE;
            demand_add(&demand[op->in[k].value], from);
        }
    }
}
