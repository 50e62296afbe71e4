/* half_gemm.cuh: a product of f16 with fp32 sums on sm_90a, as a choice says: half_direct.cuh or
 * half_product.cuh, of which only one is compiled. */
#pragma once
#include "half_direct.cuh"
#include "half_product.cuh"

namespace kp {

/* out = a * transpose(bt), as Choice::C says; `scratch` has scratch_bytes(). */
template <class Choice> struct HalfGemm {
    static constexpr HalfChoice C = half_multiplied(Choice::C);
    static_assert(half_possible(C), "a line is right");
    static_assert(C.m % 64 == 0 && C.n % 64 == 0 && C.k % 64 == 0, "multiples of 64");
    static_assert((long long)C.m * C.n < 1ll << 31, "results are counted in 32 bits");
    static constexpr bool DIRECT = C.way == HALF_DIRECT;
    using Sizes = HalfSizes<C.m, C.n, C.k>;
    using Tile = HalfTile<Sizes, C.way, C.tile_m, C.tile_n, C.split, C.parts, C.walk, C.transposed>;
    using Direct = DirectTile<C.m, C.n, C.k, C.tile_m, C.tile_n, C.split>;

    static constexpr size_t scratch_bytes() {
        if constexpr (DIRECT)
            return 0;
        else
            return Tile::SCRATCH;
    }
    static void run(const __half *a, const __half *bt, __half *out, void *scratch,
                    cudaStream_t stream) {
        if constexpr (DIRECT)
            direct_product<Direct>(a, bt, out, stream);
        else
            half_product<Sizes, Tile>(C.transposed ? bt : a, C.transposed ? a : bt, out, scratch,
                                      stream);
    }
};

} // namespace kp
