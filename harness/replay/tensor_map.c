/* tensor_map.c: see tensor_map.h. */
#include "replay/tensor_map.h"
#include "gpu/driver.h"

#include <stdio.h>
#include <string.h>

/* The mark of a form: no map that the driver makes begins so, nor does anything else by chance. */
static const uint64_t mark[2] = {0x6b7022a9fd316c85, 0xe64b1f97c05d338a};

/* A map's 128 bytes while it is on a tape.  Every number fits: the driver refuses a dimension above
 * 2^32 (less 1 is kept), a box above 256 and an element stride above 8. */
struct form {
    uint64_t mark[2], address, stride[4];
    uint32_t below[5]; /* dimension less 1 */
    uint16_t box[5];
    uint8_t element_stride[5], type, rank, interleave, swizzle, promotion, fill;
};
_Static_assert(sizeof(struct form) <= sizeof(CUtensorMap), "a form is no larger than a map");

static CUresult encode(CUtensorMap *to, const struct tensor_map *m) {
    return cu.cuTensorMapEncodeTiled(
        to, (CUtensorMapDataType)m->type, m->rank, (void *)(uintptr_t)m->address,
        (const cuuint64_t *)m->dimension, (const cuuint64_t *)m->stride, m->box, m->element_stride,
        (CUtensorMapInterleave)m->interleave, (CUtensorMapSwizzle)m->swizzle,
        (CUtensorMapL2promotion)m->promotion, (CUtensorMapFloatOOBfill)m->fill);
}

CUresult tensor_map_note(CUtensorMap *to, const struct tensor_map *m) {
    CUtensorMap made;
    CUresult e = encode(&made, m);
    if (e) return e;
    struct form f = {{mark[0], mark[1]},
                     m->address,
                     .type = (uint8_t)m->type,
                     .rank = (uint8_t)m->rank,
                     .interleave = (uint8_t)m->interleave,
                     .swizzle = (uint8_t)m->swizzle,
                     .promotion = (uint8_t)m->promotion,
                     .fill = (uint8_t)m->fill};
    memcpy(f.stride, m->stride, sizeof f.stride);
    for (int i = 0; i < 5; i++) {
        f.below[i] = (uint32_t)(m->dimension[i] - 1);
        f.box[i] = (uint16_t)m->box[i];
        f.element_stride[i] = (uint8_t)m->element_stride[i];
    }
    memset(to, 0, sizeof *to);
    memcpy(to, &f, sizeof f);
    return CUDA_SUCCESS;
}

/* What a form asks for. */
static struct tensor_map asked(const struct form *f) {
    struct tensor_map m = {.address = f->address,
                           .type = f->type,
                           .rank = f->rank,
                           .interleave = f->interleave,
                           .swizzle = f->swizzle,
                           .promotion = f->promotion,
                           .fill = f->fill};
    memcpy(m.stride, f->stride, sizeof m.stride);
    for (int i = 0; i < 5; i++) {
        m.dimension[i] = (uint64_t)f->below[i] + 1;
        m.box[i] = f->box[i];
        m.element_stride[i] = f->element_stride[i];
    }
    return m;
}

/* Nobody trusts the recorder: the driver is asked for no more dimensions than it has room for. */
static bool make(struct tape_node *n, uint32_t at, char message[KP_TAPE_MESSAGE]) {
    struct form f;
    CUtensorMap map;
    memcpy(&f, n->params + at, sizeof f);
    const struct tensor_map m = asked(&f);
    CUresult e = m.rank > 5 ? CUDA_ERROR_INVALID_VALUE : encode(&map, &m);
    if (e)
        snprintf(message, KP_TAPE_MESSAGE, "the driver refuses a tensor map of %s: %s", n->name,
                 driver_error(e));
    else
        memcpy(n->params + at, &map, sizeof map);
    return !e;
}

bool tensor_maps_make(struct tape *raw, char message[KP_TAPE_MESSAGE]) {
    for (int i = 0; i < raw->nnodes; i++) {
        struct tape_node *n = &raw->nodes[i];
        for (uint32_t at = 0; at + sizeof(CUtensorMap) <= n->param_bytes; at += 8)
            if (!memcmp(n->params + at, mark, sizeof mark) && !make(n, at, message)) return false;
    }
    return true;
}
