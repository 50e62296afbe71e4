// provenance: shipped
/* Instance norm: each plane of x [112][64][512][512] less its mean, over its deviation.
 *
 * Idea: 32 blocks share a plane, which waits in their shared memory until its moments are known, so
 * that x is read once (row_ring.cuh).
 * Floor: 8 bytes an element over the copy bandwidth, 3504 us.
 * Measured: 3823 us on an H200, 92 % of the floor. */
#include "task.h"
#include "row_ops.cuh"
#include "row_ring.cuh"

constexpr int PLANES = X_DIM0 * X_DIM1, PLANE = X_DIM2 * X_DIM3;
using Norm = kp::Standardize<X_DIM1, PLANE>;

constexpr int THREADS = 256;

extern "C" size_t scratch_bytes(void) {
    return kp::rows_once_scratch<PLANES, PLANE, THREADS, Norm>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::rows_once<PLANES, PLANE, THREADS>(stream, Norm{1e-5, nullptr, nullptr}, in->x, out->out,
                                          scratch);
}
