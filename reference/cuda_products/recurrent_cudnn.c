/* recurrent_cudnn.c: lstm and gru by cuDNN, with the algorithm that PyTorch takes.
 *
 * cuDNN wants all weights in one buffer of its own order.  There the gates of a weight lie one
 * after the other, as in its tensor, so that each weight is copied as a whole. */
#include "cuda_products/recurrent_cudnn.h"
#include "cuda_base/check.h"
#include "base/error.h"
#include "task/recurrent.h"

#include <stdlib.h>

#ifdef KP_NO_CUDNN

/* See recurrent_cudnn.h. */
struct kp_recurrent_plan *kp_recurrent_plan(const struct kp_call *c, size_t *scratch) {
    (void)c, (void)scratch;
    return NULL;
}

/* See recurrent_cudnn.h. */
void kp_recurrent_plan_run(struct kp_recurrent_plan *p, const struct kp_call *c, void *scratch,
                           cudaStream_t stream) {
    (void)p, (void)c, (void)scratch, (void)stream;
    die(KP_BUG, "recurrent network planned for cuDNN in a build without it");
}

/* See recurrent_cudnn.h. */
void kp_recurrent_plan_destroy(struct kp_recurrent_plan *p) {
    (void)p;
}

#else

#include <cudnn.h>

struct kp_recurrent_plan {
    struct kp_recurrent r;
    size_t size; /* of an element */
    cudnnDropoutDescriptor_t dropout;
    cudnnRNNDescriptor_t rnn;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t state, matrix, bias; /* the last two are filled in by cuDNN */
    size_t weights, work;                        /* bytes */
};

/* A sequence [steps,batch,width] of full length. */
static cudnnRNNDataDescriptor_t sequence(const struct kp_recurrent *r, cudnnDataType_t type,
                                         int64_t width) {
    cudnnRNNDataDescriptor_t d;
    int *length = malloc((size_t)r->batch * sizeof *length);
    if (!length) die(KP_MACHINE, "recurrent network: out of memory");
    for (int64_t n = 0; n < r->batch; n++) length[n] = (int)r->steps;
    KP_CUDNN(cudnnCreateRNNDataDescriptor(&d));
    KP_CUDNN(cudnnSetRNNDataDescriptor(d, type,
                                       r->batch_first ? CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
                                                      : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
                                       (int)r->steps, (int)r->batch, (int)width, length, NULL));
    free(length);
    return d;
}

/* The network itself: sums in float whatever the storage. */
static void describe(struct kp_recurrent_plan *p, cudnnDataType_t type, enum kp_math math) {
    const struct kp_recurrent *r = &p->r;
    cudnnMathType_t type_of_math = math == KP_MATH_FP32   ? CUDNN_FMA_MATH
                                   : math == KP_MATH_TF32 ? CUDNN_DEFAULT_MATH
                                                          : CUDNN_TENSOR_OP_MATH;
    int rows = r->layers * r->directions;
    int dim[3] = {rows, (int)r->batch, (int)r->hidden};
    int stride[3] = {dim[1] * dim[2], dim[2], 1};
    KP_CUDNN(cudnnCreateDropoutDescriptor(&p->dropout));
    KP_CUDNN(cudnnSetDropoutDescriptor(p->dropout, kp_cudnn(), 0, NULL, 0, 0));
    KP_CUDNN(cudnnCreateRNNDescriptor(&p->rnn));
    KP_CUDNN(cudnnSetRNNDescriptor_v8(
        p->rnn, CUDNN_RNN_ALGO_STANDARD, r->states > 1 ? CUDNN_LSTM : CUDNN_GRU,
        CUDNN_RNN_DOUBLE_BIAS, r->directions > 1 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
        CUDNN_LINEAR_INPUT, type, CUDNN_DATA_FLOAT, type_of_math, (int)r->input, (int)r->hidden,
        (int)r->hidden, r->layers, p->dropout, CUDNN_RNN_PADDED_IO_ENABLED));
    p->x = sequence(r, type, r->input);
    p->y = sequence(r, type, r->directions * r->hidden);
    KP_CUDNN(cudnnCreateTensorDescriptor(&p->state));
    KP_CUDNN(cudnnSetTensorNdDescriptor(p->state, type, 3, dim, stride));
    KP_CUDNN(cudnnCreateTensorDescriptor(&p->matrix));
    KP_CUDNN(cudnnCreateTensorDescriptor(&p->bias));
}

/* Bytes of y. */
static size_t bytes_of_y(const struct kp_recurrent_plan *p) {
    return (size_t)(p->r.steps * p->r.batch * p->r.directions * p->r.hidden) * p->size;
}

/* See recurrent_cudnn.h.  Where nobody reads y, it is scratch. */
struct kp_recurrent_plan *kp_recurrent_plan(const struct kp_call *c, size_t *scratch) {
    enum kp_dtype dtype = c->in[0].dtype;
    if (dtype != KP_F32 && dtype != KP_F16) return NULL;
    struct kp_recurrent_plan *p = calloc(1, sizeof *p);
    size_t reserve;
    if (!p) die(KP_MACHINE, "recurrent network: out of memory");
    p->r = recurrent_of(c->op, c->in[0].dim, c->in[1].dim);
    p->size = kp_dtype_size(dtype);
    describe(p, dtype == KP_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT, c->math);
    KP_CUDNN(cudnnGetRNNWeightSpaceSize(kp_cudnn(), p->rnn, &p->weights));
    KP_CUDNN(cudnnGetRNNTempSpaceSizes(kp_cudnn(), p->rnn, CUDNN_FWD_MODE_INFERENCE, p->x, &p->work,
                                       &reserve));
    *scratch = kp_align(p->weights) + kp_align(p->work) + bytes_of_y(p);
    return p;
}

/* Where the matrix and the bias of gate `gate` lie in the buffer of weights. */
static void place(struct kp_recurrent_plan *p, void *weights, int row, int gate, char *at[2]) {
    void *matrix, *bias;
    KP_CUDNN(cudnnGetRNNWeightParams(kp_cudnn(), p->rnn, row, p->weights, weights, gate, p->matrix,
                                     &matrix, p->bias, &bias));
    at[0] = matrix, at[1] = bias;
}

/* Copy the weights of a layer and direction: those for x, then those for h. */
static void copy_weights(struct kp_recurrent_plan *p, const struct kp_call *c, int l, int d,
                         void *weights, cudaStream_t stream) {
    const struct kp_recurrent *r = &p->r;
    static const int operand[2][2] = {{KP_W_IH, KP_B_IH}, {KP_W_HH, KP_B_HH}};
    for (int of_h = 0; of_h < 2; of_h++) {
        char *first[2], *last[2];
        int row = l * r->directions + d, gate = of_h * r->gates;
        place(p, weights, row, gate, first);
        place(p, weights, row, gate + r->gates - 1, last);
        for (int k = 0; k < 2; k++) {
            const struct kp_array *from = &c->in[recurrent_slot(r, l, d, operand[of_h][k])];
            size_t bytes = kp_array_bytes(from), each = bytes / (size_t)r->gates;
            if ((size_t)(last[k] - first[k]) + each != bytes)
                die(KP_BUG, "%s: cuDNN keeps gates apart", c->op->def->name);
            KP_CUDA(cudaMemcpyAsync(first[k], from->data, bytes, cudaMemcpyDeviceToDevice, stream));
        }
    }
}

/* See recurrent_cudnn.h. */
void kp_recurrent_plan_run(struct kp_recurrent_plan *p, const struct kp_call *c, void *scratch,
                           cudaStream_t stream) {
    char *weights = scratch, *work = weights + kp_align(p->weights);
    void *y = c->out[0].data ? c->out[0].data : work + kp_align(p->work);
    bool two = p->r.states > 1;
    KP_CUDNN(cudnnSetStream(kp_cudnn(), stream));
    for (int l = 0; l < p->r.layers; l++)
        for (int d = 0; d < p->r.directions; d++) copy_weights(p, c, l, d, weights, stream);
    KP_CUDNN(cudnnRNNForward(kp_cudnn(), p->rnn, CUDNN_FWD_MODE_INFERENCE, NULL, p->x,
                             c->in[0].data, p->y, y, p->state, c->in[1].data, c->out[1].data,
                             p->state, two ? c->in[2].data : NULL, two ? c->out[2].data : NULL,
                             p->weights, weights, p->work, work, 0, NULL));
}

/* See recurrent_cudnn.h. */
void kp_recurrent_plan_destroy(struct kp_recurrent_plan *p) {
    if (!p) return;
    KP_CUDNN(cudnnDestroyTensorDescriptor(p->bias));
    KP_CUDNN(cudnnDestroyTensorDescriptor(p->matrix));
    KP_CUDNN(cudnnDestroyTensorDescriptor(p->state));
    KP_CUDNN(cudnnDestroyRNNDataDescriptor(p->y));
    KP_CUDNN(cudnnDestroyRNNDataDescriptor(p->x));
    KP_CUDNN(cudnnDestroyRNNDescriptor(p->rnn));
    KP_CUDNN(cudnnDestroyDropoutDescriptor(p->dropout));
    free(p);
}

#endif
