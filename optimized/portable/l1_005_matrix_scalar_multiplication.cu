// provenance: shipped
/* Matrix times a number: out = 3.14 A, elementwise.
 *
 * Idea: a float4 a thread, small blocks, plain loads and stores (map.cuh).
 * Floor: 8 bytes an element (one read, one write) over the copy bandwidth, 2002 us.
 * Measured: 2001 us on an H200, 100 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "map.cuh"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::map<OUT_ELEMENTS>(stream, kp::Scale{3.14f}, out->out, in->A);
}
