/* extreme.cu: the largest or smallest element of rows, and its first index: max, min, argmax,
 * argmin. */
#include "cuda_ops/reduce.cuh"

namespace {

/* NaN goes before all else; of equals the first counts. */
template <class T, bool LEAST> struct Extreme {
    struct State {
        Acc<T> value;
        int64_t index;
    };
    static __device__ State empty() { return {LEAST ? INFINITY : -INFINITY, INT64_MAX}; }
    static __device__ State take(T x, int64_t i) { return {widen(x), i}; }
    static __device__ void put(const Target<T> &to, int64_t i, State s) {
        if (to.value) to.value[i] = narrow<T>(s.value);
        if (to.index && to.index_is_real)
            ((double *)to.index)[i] = (double)s.index;
        else if (to.index)
            ((int64_t *)to.index)[i] = s.index;
    }
    __device__ State operator()(State a, State b) const {
        bool an = isnan(a.value), bn = isnan(b.value), second = b.index < a.index;
        if (an || bn) return bn && (!an || second) ? b : a;
        bool better = LEAST ? b.value < a.value : b.value > a.value;
        return better || (b.value == a.value && second) ? b : a;
    }
};
template <class T> using Max = Extreme<T, false>;
template <class T> using Min = Extreme<T, true>;

} // namespace

/* Where there is one result, it is values or indices by its type. */
KP_IMPL(max, prepare, (run<Max, false>), NULL, free, KP_DENSE);
KP_IMPL(min, prepare, (run<Min, false>), NULL, free, KP_DENSE);
KP_IMPL(argmax, prepare, (run<Max, false>), NULL, free, KP_DENSE);
KP_IMPL(argmin, prepare, (run<Min, false>), NULL, free, KP_DENSE);
