/* mma_tf32.cuh: the product of a warp in TF32 (sm_80), for kernels that load operands themselves,
 * and at fp32 accuracy by three of them. */
#pragma once
#include <stdint.h>

namespace kp {

/* d (16 x 8, fp32) += a (16 x 8) * b (8 x 8), of whose numbers the last 13 bits are cut off. A lane
 * has, with g = lane / 4 and t = lane % 4: d[2 h + e] is row g + 8 h, column 2 t + e; a[h + 2 u] is
 * row g + 8 h, depth t + 4 u; b[u] is column g, depth t + 4 u. */
__device__ __forceinline__ void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

} // namespace kp
