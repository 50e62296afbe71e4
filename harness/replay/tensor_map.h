/* tensor_map.h: tensor maps on a tape.
 *
 * The driver alone knows how a CUtensorMap holds its address.  While a kernel is recorded, a map is
 * therefore a form of ours of the same size: a mark and what cuTensorMapEncodeTiled() was asked,
 * with the address in a word of its own, which a tape relocates like any other.  Where the tape is
 * placed, the driver makes the maps. */
#ifndef KP_TENSOR_MAP_H
#define KP_TENSOR_MAP_H

#include "base/tape.h"

#include <cuda.h>

/* What a map was asked for.  Sizes as in cuda.h; strides in bytes. */
struct tensor_map {
    uint64_t address, stride[4], dimension[5];
    uint32_t box[5], element_stride[5], type, rank, interleave, swizzle, promotion, fill;
};

/* Write the form of a map, if the driver would make such a map; else the driver's error. */
CUresult tensor_map_note(CUtensorMap *to, const struct tensor_map *m);

/* Put the driver's map in the place of each form in the parameters of a raw tape.  False and a
 * message if the driver refuses one. */
bool tensor_maps_make(struct tape *raw, char message[KP_TAPE_MESSAGE]);

#endif
