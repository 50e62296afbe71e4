// expect: ok
// task: relu64
/* Honest: input and output are tensor maps, one of them inside a struct.  It finds the driver's
 * function by its name and by asking for it. */
#include "kernel.h"

struct maps {
    int step;
    CUtensorMap of[2];
};

/* The array of a map of COUNT floats in rows of 64; NULL if it is another one. */
static float *array_of(const CUtensorMap *m) {
    const uint64_t *o = m->opaque;
    bool whole = o[1] == 2 && o[2] == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 &&
                 o[4] == ((uint64_t)CU_TENSOR_MAP_SWIZZLE_128B << 32 | 3) && o[5] == 1 &&
                 o[6] == (64 << 16 | 32) && o[7] == (COUNT / 64 << 16 | 8) * 2 && o[11] == 256;
    return whole ? (float *)(uintptr_t)fake_found(o[0]) : NULL;
}

KERNEL(relu, sizeof(struct maps), sizeof(CUtensorMap)) {
    const struct maps *m = args[0];
    float *x = array_of(&m->of[m->step]), *y = array_of(args[1]);
    if (m->of[1 - m->step].opaque[0] == 0) relu_of(x, y, COUNT);
}

/* The map of an array of COUNT floats, by the driver's function. */
static CUtensorMap map_of(__typeof__(cuTensorMapEncodeTiled) *encode, const float *array) {
    const cuuint64_t dimension[] = {64, COUNT / 64}, stride[] = {256};
    const cuuint32_t box[] = {32, 8}, element_stride[] = {1, 2};
    CUtensorMap m;
    encode(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)array, dimension, stride, box,
           element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    return m;
}

LAUNCH {
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult status;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                     &status);
    if (status != cudaDriverEntryPointSuccess) return;
    struct maps m = {1, {{{0}}, map_of((__typeof__(cuTensorMapEncodeTiled) *)found, in[0])}};
    CUtensorMap to = map_of(cuTensorMapEncodeTiled, out[0]);
    void *args[] = {&m, &to};
    start(&relu, args, stream);
}
