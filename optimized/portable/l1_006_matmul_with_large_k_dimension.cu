// provenance: shipped
/* C = A * B, A 256 x 524288, B 524288 x 256. Computed as transpose(C) = transpose(B) *
 * transpose(A), as A has the depth contiguous and can be split on the way.
 *
 * Idea: the depth in 66 parts, so that every multiprocessor has a tile; one pass in TF32 and two in
 * bf16 on the tensor cores (product.cuh), of both operands as they are, since splitting either
 * beforehand would move more bytes than the product; a second kernel adds the parts.
 * Floor: 344 us of products; 1 GiB, 229 us.
 * Measured: 427.2 us on an H200, 81 % of the floor.
 * Spills 32 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "operands.cuh"
#include "split_depth.cuh"
#include "stores.cuh"

constexpr int PARTS = 66;

using Sizes = kp::SplitDepth<B_DIM1, A_DIM0, A_DIM1, PARTS>;
/* Each slab is added in fp32: sums of so many show what longer runs cut off. */
using Tile = kp::Tile<128, kp::Bf16Rest, 1, 1>;

extern "C" size_t scratch_bytes(void) {
    return Sizes::parts_bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *parts = (float *)scratch;
    const kp::Across<B_DIM1, A_DIM1> b = {{}, in->B};
    const kp::Along<A_DIM0, A_DIM1> a = {{}, in->A};
    const kp::StoreColumns<kp::Same, B_DIM1, A_DIM0, A_DIM0 *B_DIM1> store = {{}, parts};
    kp::multiply<Sizes, Tile>(b, a, store, stream);
    kp::add_parts<PARTS>(parts, out->out, A_DIM0 * B_DIM1, stream);
}
