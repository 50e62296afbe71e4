// provenance: shipped
/* Softplus: out = log(1 + exp(x)), x itself above 20, elementwise.
 *
 * Idea: a float4 a thread, small blocks, plain loads and stores (map.cuh); an exponential and
 * a short series hide behind the memory.
 * Floor: 8 bytes an element (one read, one write) over the copy bandwidth, 3004 us.
 * Measured: 2993 us on an H200, 100 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "map.cuh"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::map<OUT_ELEMENTS>(stream, kp::Softplus(), out->out, in->x);
}
