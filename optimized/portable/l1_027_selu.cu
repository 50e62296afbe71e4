// provenance: shipped
/* SELU: out = scale * (x where x > 0, else alpha * expm1(x)), elementwise.
 *
 * Idea: a float4 a thread, small blocks, plain loads and stores (map.cuh); expm1f hides behind the
 * memory.
 * Floor: 8 bytes an element (one read, one write) over the copy bandwidth, 3004 us.
 * Measured: 2998 us on an H200, 100 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "map.cuh"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::map<OUT_ELEMENTS>(stream, kp::Selu(), out->out, in->x);
}
