// provenance: shipped
/* GELU, exact form: out = x / 2 * (1 + erf(x / sqrt 2)), elementwise.
 *
 * Idea: a float4 a thread, small blocks, plain loads and stores (map.cuh); erff hides
 * behind the memory.
 * Floor: 8 bytes an element over the copy bandwidth, 3004 us.
 * Measured: 3003 us on an H200, 100 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "map.cuh"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::map<OUT_ELEMENTS>(stream, kp::Gelu(), out->out, in->x);
}
