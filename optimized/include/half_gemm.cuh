/* half_gemm.cuh: a product of f16 with fp32 sums on sm_90a, as a choice says: half_direct.cuh or
 * half_product.cuh, of which only one is compiled. */
#pragma once
#include "half_direct.cuh"
#include "half_product.cuh"

namespace kp {

/* out = a * transpose(bt), as Choice::C says; `scratch` has SCRATCH bytes. */
template <class Choice, bool DIRECT = Choice::C.way == HALF_DIRECT> struct HalfGemm {
    static constexpr HalfChoice C = Choice::C;
    static_assert(half_possible(C), "sizes are multiples of 64, and a line is right");
    using Sizes = HalfSizes<C.m, C.n, C.k>;
    using Tile = HalfTile<Sizes, C.way, C.tile_m, C.tile_n, C.split, C.parts, C.walk>;
    static constexpr size_t SCRATCH = Tile::SCRATCH;
    static void run(const __half *a, const __half *bt, __half *out, void *scratch,
                    cudaStream_t stream) {
        half_product<Sizes, Tile>(a, bt, out, scratch, stream);
    }
};

template <class Choice> struct HalfGemm<Choice, true> {
    static constexpr HalfChoice C = Choice::C;
    static_assert(half_possible(C), "sizes are multiples of 64, and a line is right");
    static constexpr size_t SCRATCH = 0;
    static void run(const __half *a, const __half *bt, __half *out, void *, cudaStream_t stream) {
        direct_product<DirectTile<C.m, C.n, C.k, C.tile_m, C.tile_n, C.split>>(a, bt, out, stream);
    }
};

} // namespace kp
