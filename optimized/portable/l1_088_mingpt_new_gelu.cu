// provenance: shipped
/* GELU by tanh: out = x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), elementwise.
 *
 * Idea: a float4 a thread, small blocks, plain loads and stores (map.cuh); the eight operations of
 * the task in one map, as x times a sigmoid.
 * Floor: 8 bytes an element (one read, one write) over the copy bandwidth, 125 us.
 * Measured: 126.5 us on an H200, 99 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "map.cuh"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::map<OUT_ELEMENTS>(stream, kp::GeluTanh(), out->out, in->x);
}
