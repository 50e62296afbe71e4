// provenance: shipped
/* NetVLAD: x [2048][100][512], shares of 32 clusters, -> [2048][512 x 32]; l3_046 has 16 ghost
 * clusters beside these, l3_047 none. Batch norm of the 204800 x 48 or 32 logits is by their own
 * statistics.
 *
 * Idea: netvlad.cuh: a product that stores logits and gathers statistics, then a block a sample.
 * Floor: 0.55 GB, 124 us. x is needed twice and does not fit the chip: 1.05 GB, 236 us (l3_047:
 * 1.03 GB, 230 us).
 * Measured on an H200: 417 us, 57 % of the floor of two readings; l3_047: 401 us, 57 %. */
#include "task.h"
#include "netvlad.cuh"

using Sizes = kp::Vlad<X_DIM0, X_DIM1, X_DIM2, CLUSTERS2_DIM2, CLUSTERS_DIM1>;

extern "C" size_t scratch_bytes(void) {
    return sizeof(kp::VladScratch<Sizes>);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::netvlad<Sizes>(in->x, in->clusters, in->clusters2, in->batch_norm_weight,
                       in->batch_norm_bias, out->out, scratch, stream);
}
