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

/* Write the form of what cuTensorMapEncodeTiled() is asked, if the driver would make such a map;
 * else return the driver's error. */
CUresult tensor_map_note(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address,
                         const cuuint64_t *dimension, const cuuint64_t *stride,
                         const cuuint32_t *box, const cuuint32_t *element_stride,
                         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                         CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

/* Put the driver's map in the place of each form in the parameters of a raw tape.  False and a
 * message if the driver refuses one. */
bool tensor_maps_make(struct tape *raw, char message[KP_TAPE_MESSAGE]);

#endif
