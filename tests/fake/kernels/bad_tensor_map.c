// expect: tape
// task: relu64
// reason: cuTensorMapEncodeTiled failed in launch: CUDA_ERROR_INVALID_VALUE
/* Asks for a map of more dimensions than there are, and goes on without it. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    const cuuint64_t dimension[6] = {2, 2, 2, 2, 2, 2}, stride[5] = {16, 32, 64, 128, 256};
    const cuuint32_t ones[6] = {1, 1, 1, 1, 1, 1};
    CUtensorMap m;
    cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 6, out[0], dimension, stride, ones,
                           ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                           CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    start_usual(&relu, in, out, stream);
}
