/* plan.c: turns a task's graph into a list of steps on planned memory.
 *
 * First demand.c finds which values are needed whole and which in slices.  Then, along the graph,
 * views become strides, task tensors are converted where the arithmetic has another type, and
 * every other op becomes a step.  Last, buffers that are not alive together share memory. */
#include "cuda/plan.h"
#include "cuda/demand.h"
#include "cuda/index.h"
#include "cuda_base/strided.h"
#include "base/error.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    struct kp_plan *plan;
    const struct kp_task *task;
    enum kp_phase phase;
    int64_t rows;        /* in this phase's slices */
    int *demand;         /* by value */
    int *direct;         /* by value: output that it is written to at once, or -1 */
    bool *written;       /* by output: some value is */
    struct kp_ref *ref;  /* by value, of this phase */
    bool *ready;         /* by value: ref is valid */
    struct kp_ref *kept; /* what phase WHOLE left in ref */
    bool *kept_ready;
};

/* Zeroed memory, or no return. */
static void *need(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) die(KP_MACHINE, "out of memory while planning; free some and try again");
    return p;
}

/* Whether a dtype is a floating type. */
static bool is_float(enum kp_dtype t) {
    return t == KP_F64 || t == KP_F32 || t == KP_F16 || t == KP_BF16;
}

/* The type in which values of type t are stored under this arithmetic. */
static enum kp_dtype stored(enum kp_math m, enum kp_dtype t) {
    if (!is_float(t) || m == KP_MATH_HALF) return t;
    return m == KP_MATH_F64 ? KP_F64 : KP_F32;
}

/* The op that makes value v, or NULL for a task tensor. */
static const struct kp_op *producer(const struct kp_task *t, int v) {
    for (int i = 0; i < t->nops; i++)
        for (int r = 0; r < t->ops[i].nout; r++)
            if (t->ops[i].out[r] == v) return &t->ops[i];
    return NULL;
}

/* Let ops write directly into the caller's outputs.  The operand of a view that keeps the order
 * is the same memory, so its op can write there, too. */
static void find_direct(struct builder *b) {
    const struct kp_task *t = b->task;
    for (int v = 0; v < t->nvalues; v++) b->direct[v] = -1;
    if (b->plan->math == KP_MATH_F64) return;
    for (int o = 0; o < t->noutputs; o++) {
        int v = t->outputs[o];
        const struct kp_op *op = producer(t, v);
        while (op && op->def->view == KP_VIEW_ORDER) {
            v = op->in[0].value;
            op = producer(t, v);
        }
        enum kp_dtype type = t->values[v].dtype;
        if (!op || op->def->view || stored(b->plan->math, type) != type || b->direct[v] >= 0)
            continue;
        b->direct[v] = o;
        b->written[o] = true;
    }
}

/* ---- steps and buffers ---- */

/* Append a step that reads up to `nin` arrays; valid until the next one is appended. */
static struct kp_step *add_step(struct builder *b, int nin) {
    struct kp_plan *p = b->plan;
    if (p->nsteps % 64 == 0) {
        p->steps = realloc(p->steps, (size_t)(p->nsteps + 64) * sizeof *p->steps);
        if (!p->steps) die(KP_MACHINE, "out of memory while planning; free some and try again");
    }
    struct kp_step *s = &p->steps[p->nsteps++];
    memset(s, 0, sizeof *s);
    s->in = need((size_t)nin, sizeof *s->in);
    s->nin = nin;
    s->scratch = -1;
    return s;
}

/* A buffer that the newest step is the first to use. */
static int add_buffer(struct builder *b, size_t bytes) {
    struct kp_plan *p = b->plan;
    if (p->nbuffers % 64 == 0) {
        p->buffers = realloc(p->buffers, (size_t)(p->nbuffers + 64) * sizeof *p->buffers);
        if (!p->buffers) die(KP_MACHINE, "out of memory while planning; free some and try again");
    }
    int now = p->nsteps - 1;
    p->buffers[p->nbuffers] =
        (struct kp_buffer){.size = kp_align(bytes), .first = now, .last = now};
    return p->nbuffers++;
}

/* The newest step reads `r`.  What one slice reads of phase WHOLE, every later slice reads, too. */
static void touch(struct builder *b, const struct kp_ref *r) {
    struct kp_plan *p = b->plan;
    if (r->where != KP_IN_BUFFER) return;
    struct kp_buffer *x = &p->buffers[r->index];
    bool kept = b->phase != KP_PHASE_WHOLE && x->first < p->begin[KP_PHASE_SLICE];
    x->last = kept ? INT_MAX : p->nsteps - 1;
}

/* See plan.h.  Task tensors are exact. */
bool kp_ref_exact(const struct kp_plan *p, const struct kp_ref *r) {
    return r->where != KP_IN_BUFFER || p->buffers[r->index].shared;
}

/* A step that copies `from` into a new dense buffer of type t. */
static struct kp_ref materialise(struct builder *b, const struct kp_ref *from, enum kp_dtype t) {
    struct kp_shape shape = {.n = from->array.n};
    memcpy(shape.dim, from->array.dim, sizeof shape.dim);
    struct kp_ref to = {.where = KP_IN_BUFFER, .array = kp_array_dense(t, &shape)};
    struct kp_step *s = add_step(b, 1);
    s->kind = KP_STEP_COPY;
    touch(b, from);
    to.index = add_buffer(b, kp_array_bytes(&to.array));
    s->exact = b->plan->buffers[to.index].shared = kp_ref_exact(b->plan, from);
    s->in[0] = *from;
    s->out[0] = to;
    return to;
}

/* What a slice has of a whole array: for each row of the outputs the same number of indices. */
static struct kp_ref narrow(const struct builder *b, struct kp_ref r, int axis) {
    int64_t each = r.array.dim[axis] / b->plan->rows;
    r.array.dim[axis] = b->rows * each;
    r.row_bytes = each * r.array.stride[axis] * (int64_t)kp_dtype_size(r.array.dtype);
    return r;
}

/* The shape that value v has in this phase. */
static struct kp_shape shape_now(const struct builder *b, int v) {
    struct kp_shape s = b->task->values[v].shape;
    if (b->demand[v] >= 0) s.dim[b->demand[v]] = s.dim[b->demand[v]] / b->plan->rows * b->rows;
    return s;
}

/* A value, or its rows of this phase along `axis`.  A task tensor is converted
 * when first asked for. */
static struct kp_ref value(struct builder *b, int v, int axis) {
    bool sliced = b->demand[v] >= 0, whole = !sliced && b->phase != KP_PHASE_WHOLE;
    struct kp_ref *ref = whole ? &b->kept[v] : &b->ref[v];
    bool *ready = whole ? &b->kept_ready[v] : &b->ready[v];
    if (!*ready) {
        if (v >= b->task->ntensors || whole)
            die(KP_BUG, "%s: value %s is used before it is computed", b->task->name,
                b->task->values[v].name);
        const struct kp_tensor *t = &b->task->tensors[v];
        *ref = (struct kp_ref){.where = KP_IN_TENSOR, .index = v};
        ref->array = kp_array_dense(t->dtype, &t->shape);
        if (sliced) *ref = narrow(b, *ref, b->demand[v]);
        enum kp_dtype type = stored(b->plan->math, t->dtype);
        if (type != t->dtype) *ref = materialise(b, ref, type);
        *ready = true;
    }
    return axis >= 0 && !sliced ? narrow(b, *ref, axis) : *ref;
}

/* ---- ops ---- */

/* Axis along which operand k is needed to compute what is wanted of the op. */
static int operand_axis(const struct builder *b, const struct kp_op *op, int k, int wanted) {
    return wanted >= 0 ? kp_plan_cut(b->task, op, wanted, k) : KP_WHOLE;
}

/* The strides of a view that shows its operand's elements at other places. */
static void place_view(const struct builder *b, const struct kp_op *op, const struct kp_ref *from,
                       struct kp_ref *to) {
    struct kp_array *x = &to->array;
    struct kp_part part;
    switch (op->def->view) {
    case KP_VIEW_AXES:
        for (int i = 0; i < x->n; i++)
            x->stride[i] = from->array.stride[op->def->slice(b->task, op, i, 0)];
        return;
    case KP_VIEW_PART:
        op->def->part(op, &b->task->values[op->in[0].value].shape, &part);
        to->offset += part.start * x->stride[part.axis] * (int64_t)kp_dtype_size(x->dtype);
        x->stride[part.axis] *= part.step;
        return;
    case KP_VIEW_REPEAT:
        for (int i = 0; i < x->n; i++) x->stride[i] = kp_stride_along(&from->array, x->n, i);
        return;
    default: die(KP_BUG, "%s: a view of no kind", op->def->name);
    }
}

/* A view costs nothing unless its operand's strides cannot express it. */
static void add_view(struct builder *b, const struct kp_op *op, int wanted) {
    int v = op->out[0];
    struct kp_ref from = value(b, op->in[0].value, operand_axis(b, op, 0, wanted)), to = from;
    struct kp_shape shape = shape_now(b, v);
    if (op->def->view != KP_VIEW_ORDER) {
        to.array.n = shape.n;
        memcpy(to.array.dim, shape.dim, sizeof shape.dim);
        place_view(b, op, &from, &to);
    } else if (!kp_array_reshape(&from.array, &shape, &to.array)) {
        to = from = materialise(b, &from, from.array.dtype);
        kp_array_reshape(&from.array, &shape, &to.array);
    }
    b->ref[v] = to;
    b->ready[v] = true;
}

/* Where operands begin for libraries, and for device code that asks for dense ones. */
enum { ALIGNMENT = 256 };

/* Operand k in the form that the implementation asks for: dense, aligned, or of the result's type
 * (a mask times a float). */
static struct kp_ref operand(struct builder *b, const struct kp_op *op, int k, int wanted) {
    const struct kp_impl *impl = kp_impl_of(op->def->id);
    struct kp_ref r = value(b, op->in[k].value, operand_axis(b, op, k, wanted));
    enum kp_dtype type = r.array.dtype;
    bool mask = impl->asks & KP_MASKS && k == 1 && type == KP_BOOL && b->plan->math != KP_MATH_F64;
    if (impl->asks & KP_ONE_TYPE && !mask)
        type = stored(b->plan->math, b->task->values[op->out[0]].dtype);
    bool dense = impl->asks & KP_DENSE, aligned = dense || op->def->tensor_cores;
    if (type != r.array.dtype || (dense && !kp_array_is_dense(&r.array)) ||
        (aligned && r.offset % ALIGNMENT))
        r = materialise(b, &r, type);
    return r;
}

/* Where result v goes: the caller's output, a buffer, or nowhere if unneeded. */
static struct kp_ref result(struct builder *b, int v) {
    struct kp_shape shape = shape_now(b, v);
    struct kp_ref r = {.where = KP_NOWHERE};
    r.array = kp_array_dense(stored(b->plan->math, b->task->values[v].dtype), &shape);
    if (b->direct[v] >= 0) {
        r.where = KP_IN_OUTPUT;
        r.index = b->direct[v];
    } else if (b->demand[v] != KP_UNNEEDED) {
        r.where = KP_IN_BUFFER;
        r.index = add_buffer(b, kp_array_bytes(&r.array));
    }
    b->ref[v] = r;
    b->ready[v] = r.where != KP_NOWHERE;
    return r;
}

/* A matrix product may read a given transpose of its second operand in its place: the task
 * promises that it holds the same values (fill transposed(NAME)).  It is passed as operand 2. */
static void add_transpose(struct builder *b, const struct kp_op *op, struct kp_step *s) {
    const struct kp_task *t = b->task;
    if (!(s->impl->asks & KP_GIVEN_TRANSPOSE) || b->plan->math != KP_MATH_HALF) return;
    for (int i = 0; i < t->ntensors; i++) {
        const struct kp_fill *f = &t->tensors[i].fill;
        if (f->kind != KP_FILL_TRANSPOSED || f->wrap || f->source != op->in[1].value) continue;
        s->in[2] = (struct kp_ref){.where = KP_IN_TENSOR, .index = i};
        s->in[2].array = kp_array_dense(t->tensors[i].dtype, &t->tensors[i].shape);
        s->call.present[2] = true;
        return;
    }
}

/* An op that computes becomes one step, after steps that copy the operands that it cannot take as
 * they are. */
static void add_op(struct builder *b, const struct kp_op *op, int wanted) {
    int slots = op->nin > KP_SLOTS ? op->nin : KP_SLOTS;
    struct kp_ref *in = need((size_t)slots, sizeof *in);
    for (int k = 0; k < op->nin; k++)
        if (op_has(op, k)) in[k] = operand(b, op, k, wanted);
    struct kp_step *s = add_step(b, slots);
    s->kind = KP_STEP_OP;
    s->impl = kp_impl_of(op->def->id);
    s->call = (struct kp_call){.task = b->task, .op = op, .math = b->plan->math};
    s->call.nin = op->nin;
    s->call.nout = op->nout;
    s->call.in = need((size_t)slots, sizeof *s->call.in);
    s->call.present = need((size_t)slots, sizeof *s->call.present);
    memcpy(s->in, in, (size_t)slots * sizeof *in);
    free(in);
    for (int k = 0; k < op->nin; k++) s->call.present[k] = op_has(op, k);
    add_transpose(b, op, s);
    s->call.exact_operands = true;
    for (int k = 0; k < slots; k++) {
        if (!s->call.present[k]) continue;
        touch(b, &s->in[k]);
        s->call.in[k] = s->in[k].array;
        s->call.exact_operands &= kp_ref_exact(b->plan, &s->in[k]);
    }
    s->exact = s->call.exact_operands && !s->impl->rough;
    for (int r = 0; r < op->nout; r++) {
        s->out[r] = result(b, op->out[r]);
        s->call.out[r] = s->out[r].array;
        if (s->out[r].where == KP_IN_BUFFER) b->plan->buffers[s->out[r].index].shared = s->exact;
    }
    size_t scratch = 0;
    if (s->impl->prepare) s->state = s->impl->prepare(&s->call, &scratch);
    if (!scratch) return;
    s->scratch = add_buffer(b, scratch);
    b->plan->buffers[s->scratch].shared = true;
}

/* Hand out output o: to the sink as dense float64, or to the caller's memory. */
static void add_output(struct builder *b, int o) {
    int v = b->task->outputs[o];
    struct kp_ref from = value(b, v, b->demand[v]);
    bool oracle = b->plan->math == KP_MATH_F64;
    if (oracle && (from.array.dtype != KP_F64 || !kp_array_is_dense(&from.array)))
        from = materialise(b, &from, KP_F64);
    struct kp_step *s = add_step(b, 1);
    s->kind = oracle ? KP_STEP_SINK : KP_STEP_COPY;
    s->output = o;
    s->in[0] = from;
    touch(b, &from);
    if (oracle) return;
    s->out[0] = (struct kp_ref){.where = KP_IN_OUTPUT, .index = o};
    s->out[0].array = kp_array_dense(b->task->values[v].dtype, &b->task->values[v].shape);
}

/* ---- phases and memory ---- */

/* Append the steps of one phase: the ops whose results it needs, then the conversions of task
 * tensors that the slices need, then its outputs. */
static void add_phase(struct builder *b, enum kp_phase phase, int64_t rows) {
    const struct kp_task *t = b->task;
    bool whole = phase == KP_PHASE_WHOLE;
    b->phase = phase;
    b->rows = rows;
    memset(b->ready, 0, (size_t)t->nvalues * sizeof *b->ready);
    for (int i = 0; i < t->nops; i++) {
        const struct kp_op *op = &t->ops[i];
        int wanted = KP_UNNEEDED;
        for (int r = 0; r < op->nout; r++)
            if (b->demand[op->out[r]] != KP_UNNEEDED) wanted = b->demand[op->out[r]];
        if (wanted == KP_UNNEEDED || (wanted < 0) != whole) continue;
        if (op->def->view)
            add_view(b, op, wanted);
        else
            add_op(b, op, wanted);
    }
    for (int v = 0; whole && v < t->ntensors; v++)
        if (b->demand[v] == KP_WHOLE) value(b, v, KP_WHOLE);
    for (int o = 0; o < t->noutputs; o++)
        if ((b->demand[t->outputs[o]] < 0) == whole && !b->written[o]) add_output(b, o);
}

/* Whether step i may write its result over operand k, which nobody reads later. */
static bool goes_over(const struct kp_plan *p, int i, int k) {
    const struct kp_step *s = &p->steps[i];
    const struct kp_ref *x = &s->in[k], *y = &s->out[0];
    if (s->kind != KP_STEP_OP || !(s->impl->asks & KP_IN_PLACE) || !s->call.present[k])
        return false;
    if (x->where != KP_IN_BUFFER || y->where != KP_IN_BUFFER) return false;
    const struct kp_buffer *from = &p->buffers[x->index], *to = &p->buffers[y->index];
    if (from->last != i || from->shared != to->shared || from->size != to->size) return false;
    for (int j = 0; j < s->nin; j++) { /* the operand may be another, too, seen otherwise */
        const struct kp_ref *z = &s->in[j];
        if (z->where != KP_IN_BUFFER || z->index != x->index) continue;
        if (z->offset || z->row_bytes || !kp_array_is_dense(&z->array)) return false;
        if (kp_array_bytes(&z->array) != kp_array_bytes(&y->array)) return false;
    }
    return true;
}

/* Let results take the place of operands where both may: a chain of elementwise ops needs one
 * buffer.  Only of the oracle: baselines are what a user gets. */
static void write_in_place(struct kp_plan *p) {
    for (int i = 0; i < p->nsteps && p->math == KP_MATH_F64; i++) {
        struct kp_step *s = &p->steps[i];
        int k = 0, from = s->out[0].index;
        while (k < s->nin && !goes_over(p, i, k)) k++;
        if (k == s->nin) continue;
        int to = s->in[k].index;
        p->buffers[to].last = p->buffers[from].last;
        p->buffers[from].size = 0;
        for (int j = i; j < p->nsteps; j++) {
            struct kp_step *later = &p->steps[j];
            for (int r = 0; r < later->nin + KP_MAX_RESULTS; r++) {
                struct kp_ref *x = r < later->nin ? &later->in[r] : &later->out[r - later->nin];
                if (x->where == KP_IN_BUFFER && x->index == from) x->index = to;
            }
        }
    }
}

/* Give each buffer the lowest place that is free while it lives, among those that are shared, or
 * among the others.  Returns the bytes of all of them. */
static size_t place_buffers(struct kp_plan *p, bool shared) {
    size_t bytes = 0;
    for (int i = 0; i < p->nbuffers; i++) {
        struct kp_buffer *x = &p->buffers[i];
        if (x->shared != shared) continue;
        for (int j = 0; j < i; j++) {
            const struct kp_buffer *y = &p->buffers[j];
            if (y->shared != shared || x->first > y->last || y->first > x->last) continue;
            if (x->offset >= y->offset + y->size || y->offset >= x->offset + x->size) continue;
            x->offset = y->offset + y->size;
            j = -1; /* an earlier one may be in the way there */
        }
        if (x->offset + x->size > bytes) bytes = x->offset + x->size;
    }
    return bytes;
}

/* The phases one after the other, then their memory. */
static void build(struct builder *b, int64_t slice) {
    struct kp_plan *p = b->plan;
    p->axis = p->math == KP_MATH_F64 ? kp_plan_axis(b->task, b->demand) : KP_WHOLE;
    kp_plan_demand(b->task, p->axis, b->demand);
    find_direct(b);
    for (int o = 0; o < b->task->noutputs; o++) {
        const struct kp_shape *s = &b->task->values[b->task->outputs[o]].shape;
        if (b->demand[b->task->outputs[o]] < 0) continue;
        p->rows = s->dim[p->axis];
        p->inner[o] = 1;
        for (int i = p->axis + 1; i < s->n; i++) p->inner[o] *= s->dim[i];
    }
    p->slice = slice > 0 && slice < p->rows ? slice : p->rows;
    add_phase(b, KP_PHASE_WHOLE, 0);
    memcpy(b->kept, b->ref, (size_t)b->task->nvalues * sizeof *b->ref);
    memcpy(b->kept_ready, b->ready, (size_t)b->task->nvalues * sizeof *b->ready);
    p->begin[KP_PHASE_SLICE] = p->nsteps;
    if (p->rows) add_phase(b, KP_PHASE_SLICE, p->slice);
    p->begin[KP_PHASE_REST] = p->nsteps;
    if (p->rows && p->rows % p->slice) add_phase(b, KP_PHASE_REST, p->rows % p->slice);
    p->begin[KP_PHASES] = p->nsteps;
    write_in_place(p);
    p->shared_bytes = place_buffers(p, true);
    p->world_bytes = place_buffers(p, false);
}

/* See plan.h. */
struct kp_plan *kp_plan_make(const struct kp_task *t, enum kp_math m, int64_t slice) {
    struct kp_plan *p = need(1, sizeof *p);
    p->task = t;
    p->math = m;
    size_t n = (size_t)t->nvalues;
    struct builder b = {.plan = p, .task = t};
    b.demand = need(n, sizeof *b.demand);
    b.direct = need(n, sizeof *b.direct);
    b.written = need((size_t)t->noutputs, sizeof *b.written);
    b.ref = need(n, sizeof *b.ref);
    b.ready = need(n, sizeof *b.ready);
    b.kept = need(n, sizeof *b.kept);
    b.kept_ready = need(n, sizeof *b.kept_ready);
    build(&b, slice);
    free(b.demand);
    free(b.direct);
    free(b.written);
    free(b.ref);
    free(b.ready);
    free(b.kept);
    free(b.kept_ready);
    return p;
}

/* See plan.h. */
void kp_plan_free(struct kp_plan *p) {
    if (!p) return;
    for (int i = 0; i < p->nsteps; i++) {
        struct kp_step *s = &p->steps[i];
        if (s->kind == KP_STEP_OP && s->impl->destroy) s->impl->destroy(s->state);
        free(s->call.present);
        free(s->call.in);
        free(s->in);
    }
    free(p->steps);
    free(p->buffers);
    free(p);
}
