// provenance: shipped
/* ReLU: out = max(x, 0), elementwise.
 *
 * Idea: a float4 a thread, small blocks, plain loads and stores (stream_map.cuh).
 * Floor: 8 bytes an element (one read, one write) over the copy bandwidth, 3004 us.
 * Measured on an H200: 3013 us, 0.997 of the floor's speed. */
#include "task.h"
#include "activation.cuh"
#include "stream_map.cuh"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    stream_map<Relu, 128, 1, OUT_ELEMENTS>(in->x, out->out, stream);
}
