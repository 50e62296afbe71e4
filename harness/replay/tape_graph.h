/* tape_graph.h: a tape from a CUDA graph, and a CUDA graph from a tape. */
#ifndef KP_TAPE_GRAPH_H
#define KP_TAPE_GRAPH_H

#include "gpu/driver.h"
#include "base/tape.h"

/* The raw tape of a captured graph, its nodes in an order in which every edge points forward.
 * `skip` nodes (the runner's own event nodes) and their edges are left out.  NULL and a message if
 * the graph holds what a tape cannot: host functions, allocations, copies from or to the host,
 * access policy windows. */
struct tape *tape_from_graph(CUgraph graph, const CUgraphNode *skip, int nskip,
                             char message[KP_TAPE_MESSAGE]);

/* Enqueue a raw tape on a stream under capture, and store its two event nodes.  First comes
 * `start`.  Then comes every launch with the tape's own dependencies; a launch without any depends
 * on start.  Last comes `stop`, which depends on every launch by a full edge, so that neither side
 * streams nor programmatic edges can hide work after it.  Where both events are NULL there are no
 * such nodes: launches without dependencies come behind all that was captured before, and what is
 * captured next comes behind them all, by full edges.  False and a message if the module lacks a
 * kernel or refuses a launch. */
bool tape_capture(const struct tape *raw, CUmodule module, CUstream stream, CUevent start,
                  CUevent stop, CUgraphNode event_nodes[2], char message[KP_TAPE_MESSAGE]);

#endif
