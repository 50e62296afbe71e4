/* tape.h: the launch tape: what a kernel's host code enqueued.
 *
 * The recorder captures `launch` and writes a raw tape, whose parameters hold the addresses of that
 * recording.  Two recordings, at two sets of addresses, are merged: bytes that differ must be
 * addresses of declared buffers, and become relocations.  Anything else that differs is refused.  A
 * merged tape holds no address, so a runner may map its buffers anywhere, and several times.
 *
 * The file is text with one node or edge on each line, for tests and people to read. */
#ifndef KP_TAPE_H
#define KP_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_MAX_BUFFERS = 1024, KP_TAPE_MESSAGE = 512 /* bytes of a message */ };

enum tape_type { TAPE_KERNEL, TAPE_MEMSET, TAPE_COPY };

struct tape_reloc { /* 8 bytes of a parameter block that are an address */
    uint32_t at;    /* offset in the block */
    uint32_t buffer;
    uint64_t offset; /* in the buffer; its size itself is allowed (one past the end) */
};

struct tape_node {
    enum tape_type type;
    /* kernel */
    char *name;
    uint32_t grid[3], block[3], shared, cluster[3];
    int cooperative;
    int carveout;       /* preferred shared memory, percent; -1 unless set */
    int cluster_policy; /* scheduling policy; 0 unless set */
    int nonportable;    /* cluster sizes above 8 allowed */
    uint32_t param_bytes;
    uint8_t *params;
    int nreloc;
    struct tape_reloc *reloc;
    /* memset (to) and copy (from, to): raw tapes hold addresses, merged ones buffers */
    uint64_t from, to;               /* raw: address; merged: offset */
    uint32_t from_buffer, to_buffer; /* merged */
    uint64_t width, height, pitch;   /* memset: elements, rows, bytes; copy: width bytes */
    uint32_t value, element;         /* memset: value, element size 1, 2 or 4 */
};

struct tape_edge {
    int from, to;
    int type; /* 0 full, 1 programmatic */
    int from_port, to_port;
};

struct tape {
    bool merged;
    int nnodes, nedges;
    struct tape_node *nodes; /* in an order in which every edge points forward */
    struct tape_edge *edges; /* in the order of the nodes that they lead to */
};

struct tape_span { /* where a buffer lies */
    uint64_t address, bytes;
};

/* Text form, newly allocated. */
char *tape_print(const struct tape *t);

/* Parse the text form.  NULL and a message with a line number if it is not exactly what tape_print
 * writes. */
struct tape *tape_parse(const char *text, char message[KP_TAPE_MESSAGE]);

/* Merge two raw tapes.  NULL and a message that names node and parameter byte if they differ in
 * anything but addresses of declared buffers, or touch memory outside these. */
struct tape *tape_merge(const struct tape *a, const struct tape_span *at_a, const struct tape *b,
                        const struct tape_span *at_b, int nbuffers, char message[KP_TAPE_MESSAGE]);

/* Whether both describe the same launches, raw or merged; if not, a message. */
bool tape_equal(const struct tape *a, const struct tape *b, char message[KP_TAPE_MESSAGE]);

/* The raw tape of a merged one, with its buffers at these addresses. */
struct tape *tape_place(const struct tape *merged, const struct tape_span *at, int nbuffers,
                        char message[KP_TAPE_MESSAGE]);

void tape_free(struct tape *t);

#endif
