/* test_tape_graph.c: a tape from a graph and a graph from a tape, on the pretend GPU: as many
 * launches as a tape may hold come back in their order, and fast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "replay/tape_graph.h"

enum { NODES = 10000 };

static CUstream capturing(void) {
    CUstream s;
    KP_CU(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    KP_CU(cu.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    return s;
}

/* A launch that is known by its number; nothing is ever run. */
static void launch(CUstream s, int number) {
    KP_CU(cu.cuMemsetD32Async(256, (unsigned)number, 1, s));
}

/* The tape of what was captured. */
static struct tape *tape_of(CUstream s, const CUgraphNode *skip, int nskip) {
    char message[KP_TAPE_MESSAGE] = "";
    CUgraph graph;
    KP_CU(cu.cuStreamEndCapture(s, &graph));
    struct tape *t = tape_from_graph(graph, skip, nskip, message);
    if (!t) fail_msg("%s", message);
    return t;
}

static void edge_is(const struct tape *t, int k, int from, int to) {
    if (t->edges[k].from != from || t->edges[k].to != to)
        fail_msg("edge %d: %d %d, not %d %d", k, t->edges[k].from, t->edges[k].to, from, to);
}

/* A chain of as many launches as there may be, and the same as a runner rebuilds it. */
static void chain(void) {
    char message[KP_TAPE_MESSAGE] = "";
    CUgraphNode events[2];
    CUevent event;
    CUstream s = capturing();
    KP_CU(cu.cuEventCreate(&event, CU_EVENT_DEFAULT));
    for (int i = 0; i < NODES; i++) launch(s, i);
    clock_t began = clock();
    struct tape *t = tape_of(s, NULL, 0);
    print_message("%d launches: read in %.3f s\n", NODES,
                  (double)(clock() - began) / CLOCKS_PER_SEC);
    assert_int_equal(t->nnodes, NODES);
    assert_int_equal(t->nedges, NODES - 1);
    for (int i = 0; i < NODES; i++) assert_int_equal(t->nodes[i].value, i);
    for (int i = 0; i < NODES - 1; i++) edge_is(t, i, i, i + 1);
    s = capturing();
    began = clock();
    if (!tape_capture(t, NULL, s, event, event, events, message)) fail_msg("%s", message);
    struct tape *u = tape_of(s, events, 2);
    if (!tape_equal(t, u, message)) fail_msg("%s", message);
    print_message("%d launches: rebuilt and compared in %.3f s\n", NODES,
                  (double)(clock() - began) / CLOCKS_PER_SEC);
    tape_free(t);
    tape_free(u);
}

static void test_chain(void **state) {
    (void)state;
    chain();
}

/* The driver may list the nodes of a graph in any order. */
static void test_reversed(void **state) {
    (void)state;
    setenv("KP_FAKE_REVERSED", "1", 1);
    chain();
    unsetenv("KP_FAKE_REVERSED");
}

/* Two streams: what was captured first comes first, and edges are in the order of what waits. */
static void test_fork(void **state) {
    (void)state;
    CUstream s = capturing(), side;
    CUevent fork, join;
    KP_CU(cu.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    KP_CU(cu.cuEventCreate(&fork, CU_EVENT_DEFAULT));
    KP_CU(cu.cuEventCreate(&join, CU_EVENT_DEFAULT));
    launch(s, 0);
    KP_CU(cu.cuEventRecordWithFlags(fork, s, 0));
    assert_int_equal(cudaStreamWaitEvent(side, fork, 0), 0);
    launch(s, 1);
    launch(side, 2);
    launch(s, 3);
    KP_CU(cu.cuEventRecordWithFlags(join, side, 0));
    assert_int_equal(cudaStreamWaitEvent(s, join, 0), 0);
    launch(s, 4);
    struct tape *t = tape_of(s, NULL, 0);
    assert_int_equal(t->nedges, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(t->nodes[i].value, i);
    static const int edges[][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 4}};
    for (int k = 0; k < 5; k++) edge_is(t, k, edges[k][0], edges[k][1]);
    tape_free(t);
}

/* Two runs of the same launches without events: those of the second that wait for none of their own
 * wait for those of the first that none waits for by a full edge. */
static void test_runs(void **state) {
    (void)state;
    enum { LAUNCHES = 5, PROGRAMMATIC = 1 };
    char message[KP_TAPE_MESSAGE] = "";
    struct tape_node nodes[LAUNCHES] = {{.type = TAPE_MEMSET}};
    struct tape_edge edges[] = {{.to = 2}, {.from = 1, .to = 3, .type = PROGRAMMATIC}};
    struct tape t = {.nnodes = LAUNCHES, .nodes = nodes, .nedges = 2, .edges = edges};
    for (unsigned i = 0; i < LAUNCHES; i++)
        nodes[i] = (struct tape_node){
            .type = TAPE_MEMSET, .to = 256, .value = i, .width = 1, .height = 1, .element = 4};
    CUstream s = capturing();
    for (int run = 0; run < 2; run++)
        if (!tape_capture(&t, NULL, s, NULL, NULL, NULL, message)) fail_msg("%s", message);
    launch(s, 0); /* whatever is last, so that all streams are joined */
    struct tape *u = tape_of(s, NULL, 0);
    assert_int_equal(u->nnodes, 2 * LAUNCHES + 1);
    static const int ends[] = {1, 2, 3, 4}, roots[] = {0, 1, 4};
    int k = 2;
    edge_is(u, 0, 0, 2);
    edge_is(u, 1, 1, 3);
    for (int root = 0; root < LAUNCHES; root++) {
        bool is_root = root == roots[0] || root == roots[1] || root == roots[2];
        if (!is_root) edge_is(u, k++, LAUNCHES + root - 2, LAUNCHES + root);
        for (int end = 0; is_root && end < 4; end++) {
            assert_int_equal(u->edges[k].type, 0);
            edge_is(u, k++, ends[end], LAUNCHES + root);
        }
    }
    for (int end = 0; end < 4; end++) edge_is(u, k++, LAUNCHES + ends[end], 2 * LAUNCHES);
    assert_int_equal(u->nedges, k);
    tape_free(u);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain),
                                       cmocka_unit_test(test_reversed), cmocka_unit_test(test_fork),
                                       cmocka_unit_test(test_runs)};
    driver_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
