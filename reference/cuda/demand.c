/* demand.c: see demand.h.
 *
 * Rows of an output need rows of the values that it is computed from, as far back as the ops'
 * slicing rules allow.  A value is computed whole if a consumer needs all of it, or if two
 * consumers need rows along different axes: a batch norm needs the whole batch, but channels of its
 * result need only those channels.
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

/* The axis along which operand k is needed where the result is wanted along `wanted`. */
static int operand_cut(const struct kp_task *t, const struct kp_op *op, int wanted, int k) {
    return wanted >= 0 ? kp_plan_cut(t, op, wanted, k) : KP_WHOLE;
}

/* A slice along another axis than 0 is a range of the output for each index of the axes before it.
 * A range costs launches: more or shorter ones are not worth them. */
enum { MOST_RANGES = 256, LEAST_RANGE = 64 };

/* Whether an output of this shape can be handed over in slices of `rows` along `axis`. */
static bool in_ranges(const struct kp_shape *s, int axis, int64_t rows) {
    int64_t before = 1, behind = 1;
    if (axis < 0 || axis >= s->n || s->dim[axis] != rows) return false;
    for (int i = 0; i < s->n; i++)
        if (i != axis) *(i < axis ? &before : &behind) *= s->dim[i];
    return axis == 0 || (before <= MOST_RANGES && behind >= LEAST_RANGE);
}

/* See demand.h. */
void kp_plan_demand(const struct kp_task *t, int axis, int *demand) {
    int64_t rows = axis < 0 ? 0 : t->values[t->outputs[0]].shape.dim[axis];
    for (int v = 0; v < t->nvalues; v++) demand[v] = KP_UNNEEDED;
    for (int o = 0; o < t->noutputs; o++) {
        bool cut = in_ranges(&t->values[t->outputs[o]].shape, axis, rows);
        demand_add(&demand[t->outputs[o]], cut ? axis : KP_WHOLE);
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
            demand_add(&demand[op->in[k].value], operand_cut(t, op, wanted, k));
        }
    }
}

/* Elements that ops read whole, so that slices do not divide that work. */
static int64_t read_whole(const struct kp_task *t, const int *demand) {
    int64_t elements = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        int wanted = KP_UNNEEDED;
        for (int r = 0; r < op->nout && !op->def->view; r++)
            if (demand[op->out[r]] != KP_UNNEEDED) wanted = demand[op->out[r]];
        for (int k = 0; k < op->nin && wanted != KP_UNNEEDED; k++)
            if (op_has(op, k) && operand_cut(t, op, wanted, k) == KP_WHOLE)
                elements += kp_shape_count(&t->values[op->in[k].value].shape);
    }
    return elements;
}

/* See demand.h. */
int kp_plan_axis(const struct kp_task *t, int *demand) {
    const struct kp_shape *s = &t->values[t->outputs[0]].shape;
    int best = KP_WHOLE;
    int64_t least = INT64_MAX;
    for (int axis = 0; axis < s->n; axis++) {
        kp_plan_demand(t, axis, demand);
        int64_t elements = read_whole(t, demand);
        if (elements > least - kp_shape_count(s)) continue;
        least = elements;
        best = axis;
    }
    return best;
}
