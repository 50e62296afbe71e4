/* one_by_one.cuh: stores (stores.cuh) that compute a thread's elements one after another.
 *
 * The phases of a transposed convolution (convolve.cuh) write parts of the same lines, which are
 * cheap as long as a line stays in L2 until its last part comes. That depends on when each block
 * stores: some kernels are faster with elements side by side, by up to a tenth, some with this, by
 * up to a third. Only measuring tells. Reaches: see l2_015, l2_091 (no share of its own was
 * measured). */
#pragma once
#include "stores.cuh"

namespace kp {

/* An epilogue F whose elements are computed so. */
template <class F> struct OneByOne : F {};

/* As in stores.cuh, which takes this one for such an epilogue. */
template <int COLUMNS, long long PITCH, bool FOURS, class P, class F>
__device__ __forceinline__ void store_columns(P &part, const OneByOne<F> &f, int row, int column,
                                              int name, float *to, const long long (&at)[4],
                                              const bool (&inside)[4]) {
    static_assert(!FOURS, "rows of a transposed convolution are no float4");
    store_columns_of<COLUMNS, PITCH, false, false>(part, (const F &)f, row, column, name, to, at,
                                                   inside);
}

} // namespace kp
