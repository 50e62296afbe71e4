/* tensor_map.c: see tensor_map.h. */
#include "replay/tensor_map.h"
#include "gpu/driver.h"

#include <stdio.h>
#include <string.h>

/* The mark of a form: no map that the driver makes begins so, nor does anything else by chance. */
static const uint64_t mark[2] = {0x6b7022a9fd316c85, 0xe64b1f97c05d338a};

/* A map's 128 bytes while it is on a tape.  Every number fits: the driver refuses a box above 256
 * and an element stride above 8. */
enum { MOST_RANK = 5 };
struct form {
    uint64_t mark[2], address, stride[MOST_RANK - 1], dimension[MOST_RANK];
    uint16_t box[MOST_RANK];
    uint8_t element_stride[MOST_RANK], type, rank, interleave, swizzle, promotion, fill;
};
_Static_assert(sizeof(struct form) <= sizeof(CUtensorMap), "a form is no larger than a map");

CUresult tensor_map_note(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address,
                         const cuuint64_t *dimension, const cuuint64_t *stride,
                         const cuuint32_t *box, const cuuint32_t *element_stride,
                         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                         CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    CUtensorMap made;
    CUresult e = cu.cuTensorMapEncodeTiled(&made, type, rank, address, dimension, stride, box,
                                           element_stride, interleave, swizzle, promotion, fill);
    if (e) return e;
    struct form f = {{mark[0], mark[1]},
                     (uint64_t)(uintptr_t)address,
                     .type = (uint8_t)type,
                     .rank = (uint8_t)rank,
                     .interleave = (uint8_t)interleave,
                     .swizzle = (uint8_t)swizzle,
                     .promotion = (uint8_t)promotion,
                     .fill = (uint8_t)fill};
    for (cuuint32_t i = 0; i < rank && i < MOST_RANK; i++) {
        f.dimension[i] = dimension[i];
        if (i) f.stride[i - 1] = stride[i - 1];
        f.box[i] = (uint16_t)box[i];
        f.element_stride[i] = (uint8_t)element_stride[i];
    }
    memset(to, 0, sizeof *to);
    memcpy(to, &f, sizeof f);
    return CUDA_SUCCESS;
}

/* The driver's map of a form.  Nobody trusts the recorder: the driver is asked for no more
 * dimensions than there is room for. */
static CUresult encode(CUtensorMap *to, const struct form *f) {
    cuuint64_t dimension[MOST_RANK], stride[MOST_RANK - 1];
    cuuint32_t box[MOST_RANK], element_stride[MOST_RANK];
    if (f->rank > MOST_RANK) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < MOST_RANK; i++) {
        dimension[i] = f->dimension[i];
        if (i) stride[i - 1] = f->stride[i - 1];
        box[i] = f->box[i];
        element_stride[i] = f->element_stride[i];
    }
    return cu.cuTensorMapEncodeTiled(
        to, (CUtensorMapDataType)f->type, f->rank, (void *)(uintptr_t)f->address, dimension, stride,
        box, element_stride, (CUtensorMapInterleave)f->interleave, (CUtensorMapSwizzle)f->swizzle,
        (CUtensorMapL2promotion)f->promotion, (CUtensorMapFloatOOBfill)f->fill);
}

/* Put the driver's map in the place of the form at a byte of a launch's parameters. */
static bool make(struct tape_node *n, uint32_t at, char message[KP_TAPE_MESSAGE]) {
    struct form f;
    CUtensorMap map;
    memcpy(&f, n->params + at, sizeof f);
    CUresult e = encode(&map, &f);
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
