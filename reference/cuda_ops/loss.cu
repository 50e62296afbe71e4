/* loss.cu: cross_entropy, the mean over rows of log(sum(exp(x))) - x[target].
 *
 * One launch gives each row's loss, a block a row; one more block adds them up in
 * a fixed order.  Rows whose target is ignore_index count for nothing; a target
 * that is no class at all gives NaN. */
#include "cuda_base/device.cuh"
#include "cuda_base/noise.cuh"

namespace {

using namespace kp;

enum { BLOCK = 256, TOTAL_BLOCK = 1024 };

template <class A> struct Loss { A sum, rows; };
struct AddLoss {
    template <class A> __device__ Loss<A> operator()(Loss<A> a, Loss<A> b) const {
        return {a.sum + b.sum, a.rows + b.rows};
    }
};

/* Loss of row blockIdx.x; I: the type that targets are stored in. */
template <class T, class I, int V>
__global__ void __launch_bounds__(BLOCK)
    row_loss(const T *__restrict__ in, const I *__restrict__ target, Loss<Acc<T>> *losses,
             int64_t classes, int64_t ignore) {
    using A = Acc<T>;
    const T *row = in + blockIdx.x * classes;
    Online<A> s = online_scan<T, V>(row, classes / V, threadIdx.x, BLOCK);
    s = block_reduce(s, online_empty<A>(), Join());
    if (threadIdx.x) return;
    int64_t t = (int64_t)target[blockIdx.x];
    Loss<A> loss = {0, 0};
    if (t != ignore) {
        bool known = t >= 0 && t < classes;
        loss = {known ? log(s.sum) + (s.max - widen(row[known ? t : 0])) : A(NAN), 1};
    }
    losses[blockIdx.x] = loss;
}

/* The mean of the rows' losses, by one block. */
template <class T>
__global__ void __launch_bounds__(TOTAL_BLOCK)
    mean_loss(const Loss<Acc<T>> *__restrict__ losses, T *out, int64_t rows) {
    using A = Acc<T>;
    Loss<A> s = {0, 0};
    for (int64_t i = threadIdx.x; i < rows; i += TOTAL_BLOCK) s = AddLoss()(s, losses[i]);
    s = block_reduce(s, Loss<A>{0, 0}, AddLoss());
    if (threadIdx.x == 0) *out = narrow<T>(s.sum / s.rows);
}

/* The loss of each row, then their mean. */
template <class T, class I>
void launch(const struct kp_call *c, void *scratch, cudaStream_t stream) {
    const T *in = (const T *)c->in[0].data;
    const I *target = (const I *)c->in[1].data;
    Loss<Acc<T>> *losses = (Loss<Acc<T>> *)scratch;
    int64_t rows = c->in[0].dim[0], classes = c->in[0].dim[1];
    int64_t ignore = op_int(c->op, "ignore_index", -100);

    if (packs<T>(in, classes))
        row_loss<T, I, kPack<T>>
            <<<(unsigned)rows, BLOCK, 0, stream>>>(in, target, losses, classes, ignore);
    else
        row_loss<T, I, 1>
            <<<(unsigned)rows, BLOCK, 0, stream>>>(in, target, losses, classes, ignore);
    KP_CUDA(cudaGetLastError());
    mean_loss<T><<<1, TOTAL_BLOCK, 0, stream>>>(losses, (T *)c->out[0].data, rows);
    KP_CUDA(cudaGetLastError());
}

/* ---- the same with noise ---- */

enum { OF_ROW = 1, OF_LOSSES };

/* Loss of row blockIdx.x: the log of the noisy sum, in rough arithmetic. */
template <class I>
__global__ void __launch_bounds__(BLOCK)
    row_loss_rough(const double *__restrict__ in, const I *__restrict__ target,
                   Loss<double> *losses, int64_t classes, int64_t ignore, kp_noise noise) {
    const double *row = in + blockIdx.x * classes;
    double max = -INFINITY;
    Sums sum = {0, 0};
    for (int64_t i = threadIdx.x; i < classes; i += BLOCK) max = fmax(max, row[i]);
    max = block_reduce(max, -(double)INFINITY, [](double a, double b) { return fmax(a, b); });
    for (int64_t i = threadIdx.x; i < classes; i += BLOCK)
        sum.add(exp_below(Rough(row[i], noise.seed), max).v);
    sum = block_reduce(sum, Sums{0, 0}, Add());
    if (threadIdx.x) return;
    int64_t t = (int64_t)target[blockIdx.x];
    Loss<double> loss = {0, 0};
    if (t != ignore) {
        bool known = t >= 0 && t < classes;
        Rough total = {noisy(sum, (double)classes, noise, OF_ROW, blockIdx.x), noise.seed};
        loss = {known ? (log(total) + Rough(max) - Rough(row[known ? t : 0])).v : NAN, 1};
    }
    losses[blockIdx.x] = loss;
}

/* The mean of the rows' losses with the noise of its sum, by one block. */
__global__ void __launch_bounds__(TOTAL_BLOCK)
    mean_loss_rough(const Loss<double> *__restrict__ losses, double *out, int64_t rows,
                    kp_noise noise) {
    Sums sum = {0, 0};
    double counted = 0;
    for (int64_t i = threadIdx.x; i < rows; i += TOTAL_BLOCK) {
        sum.add(losses[i].sum);
        counted += losses[i].rows;
    }
    sum = block_reduce(sum, Sums{0, 0}, Add());
    counted = block_reduce(counted, 0.0, Add());
    if (threadIdx.x) return;
    Rough total = {noisy(sum, counted, noise, OF_LOSSES, 0), noise.seed};
    *out = (total / Rough(counted)).v;
}

/* Both of them; I: the type that targets are stored in. */
template <class I> void launch_rough(const struct kp_call *c, void *scratch, cudaStream_t stream) {
    Loss<double> *losses = (Loss<double> *)scratch;
    int64_t rows = c->in[0].dim[0], classes = c->in[0].dim[1];
    row_loss_rough<I><<<(unsigned)rows, BLOCK, 0, stream>>>(
        (const double *)c->in[0].data, (const I *)c->in[1].data, losses, classes,
        op_int(c->op, "ignore_index", -100), *c->noise);
    KP_CUDA(cudaGetLastError());
    mean_loss_rough<<<1, TOTAL_BLOCK, 0, stream>>>(losses, (double *)c->out[0].data, rows,
                                                   *c->noise);
    KP_CUDA(cudaGetLastError());
}

/* Room for the losses of the rows. */
void *prepare(const struct kp_call *c, size_t *scratch) {
    if (c->in[0].n != 2 || c->in[0].dim[0] > INT32_MAX)
        die(KP_INPUT, "cross_entropy: expected scores [rows, classes] with fewer than 2^31 rows");
    *scratch = (size_t)c->in[0].dim[0] * sizeof(Loss<double>);
    return NULL;
}

/* Targets are i64; float64 runs may hold them as double. */
void run(const struct kp_call *c, void *, void *scratch, cudaStream_t stream) {
    if (c->in[1].dtype == KP_F64) {
        KP_BY_TYPE(c->in[0].dtype, launch<T, double>(c, scratch, stream))
    } else if (c->in[1].dtype == KP_I64) {
        KP_BY_TYPE(c->in[0].dtype, launch<T, int64_t>(c, scratch, stream))
    } else {
        die(KP_BUG, "cross_entropy: targets of type %s", kp_dtype_name(c->in[1].dtype));
    }
}

/* The same with noise. */
void rough(const struct kp_call *c, void *, void *scratch, cudaStream_t stream) {
    if (c->in[1].dtype == KP_F64)
        launch_rough<double>(c, scratch, stream);
    else
        launch_rough<int64_t>(c, scratch, stream);
}

} // namespace

KP_IMPL(cross_entropy, prepare, run, rough, NULL, KP_DENSE);
