/* tape_graph.h: the way between a tape and a CUDA graph. */
#ifndef KP_TAPE_GRAPH_H
#define KP_TAPE_GRAPH_H

#include "gpu/driver.h"
#include "base/tape.h"

/* The raw tape of a captured graph.  Nodes are put in an order in which every edge
 * points forward.  `skip` nodes (the runner's own event nodes) and their edges are left
 * out.  Returns NULL and a message that names whatever a tape cannot hold: host
 * functions, allocations, copies from or to the host, access policy windows. */
struct tape *tape_from_graph(CUgraph graph, const CUgraphNode *skip, int nskip,
                             char message[KP_TAPE_MESSAGE]);

/* Enqueue a raw tape on a stream that is being captured: first `start`, then every
 * launch with the tape's own dependencies (those without any depend on start), then
 * `stop`, which depends on every launch by a full edge, so that neither side streams
 * nor programmatic edges can hide work behind it.  Stores the two event nodes.
 * Returns false and a message if the module lacks a kernel or refuses a launch. */
bool tape_capture(const struct tape *raw, CUmodule module, CUstream stream, CUevent start,
                  CUevent stop, CUgraphNode event_nodes[2], char message[KP_TAPE_MESSAGE]);

#endif
